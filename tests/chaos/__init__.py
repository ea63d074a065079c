"""Everything that can go wrong while machines are made and ended, and what is left afterwards."""
