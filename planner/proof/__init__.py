"""Was it faster, by how much, and is that sure: two runs of one job, or settings tried in turns.

`verify` holds a run before a change against one after it, the plan that predicted it and the bill.
`experiment` tries a setting on and off within one run; `schedule` says when it is which.
"""
