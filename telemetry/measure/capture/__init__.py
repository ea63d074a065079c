"""The capture of a measurement: written line by line, long stretches folded."""
