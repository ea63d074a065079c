"""A job on machines that were launched for it: its files there, its command, its results here."""
