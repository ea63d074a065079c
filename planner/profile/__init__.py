"""What one job measured: the value, its file, its schema.

`metrics` names what is measured, `model` holds the values and their limits, `codec` reads and
writes `profile.json` (every problem of a file at once), `schema` is made from the same fields.
"""
