"""The plan as a value, and what is said of all its jobs: savings, notes, the next experiment."""
