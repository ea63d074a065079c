"""What `--map` gives a meaning: its targets, and those of the machine around the GPUs."""
