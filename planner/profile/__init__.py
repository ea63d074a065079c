"""What one job measured: the value, its file, and how samples become statistics.

`slots` names the metrics, `model` holds the values and their limits, `codec` reads and writes
`profile.json` (every problem of a file at once), `build` turns samples into a profile.
"""
