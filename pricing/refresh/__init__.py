"""New prices from outside: read, checked, kept."""
