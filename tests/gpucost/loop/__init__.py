"""`gpucost loop`: which experiment is next, and a loop that goes on wherever it was cut off."""
