"""Measuring a running job: what its GPUs, its machine and its own process say, on one clock."""
