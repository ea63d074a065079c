"""Weights & Biases: system metrics in each of the forms in which they are kept."""
