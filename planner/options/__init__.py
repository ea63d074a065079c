"""What a job could run on instead: every offer is a candidate or a rejection with its reason.

`context` is what all options of a job share; `search` is the door.
"""
