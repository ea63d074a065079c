"""The machine around the job: its processes, counters, limits and identity."""
