"""The life of a run: launch, wait, end, reap, and the journal of all of it."""
