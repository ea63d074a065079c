"""Experiment trackers besides W&B."""
