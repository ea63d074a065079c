"""Think: measurements in, plan out.

Read `planner/pipeline.py` first; it calls the whole story in order. Everything here is pure.
Words: a *sample* is one reading of one GPU; a
*profile* is what a job measured; a *finding* is a cause with evidence; an *action* is what to
change; an *option* is an offer with actions applied; a *plan* is the choice with its reasons.
"""
