"""On the path of a command whose screen is taken: it starts on the day of the pages."""
