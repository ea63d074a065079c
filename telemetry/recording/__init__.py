"""What a source or a measurement saw: readings, steps, events."""
