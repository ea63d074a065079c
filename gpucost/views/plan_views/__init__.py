"""The plan in the terminal: one screen, or all of it."""
