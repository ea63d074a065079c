"""Node pools from the command line."""
