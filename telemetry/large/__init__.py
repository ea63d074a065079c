"""Logs too large for objects in Python: DuckDB keeps their rows, a few GPUs are read at a time."""
