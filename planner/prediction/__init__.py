"""How fast a job would run elsewhere, on more GPUs, mended, or sharing a GPU."""
