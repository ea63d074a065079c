"""Node pools as the command line asks for them."""
