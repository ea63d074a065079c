"""Do we need more GPUs? A trace of jobs replayed on pools of other sizes.

`job_trace` is what was submitted, `queueing` lets it wait for GPUs, `busy_weeks` draws other weeks
of it, `erlang` is the formula of the textbook beside it, `capacity` puts them together.
"""
