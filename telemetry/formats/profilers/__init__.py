"""Traces and summaries of profilers: kernels, steps, energy."""
