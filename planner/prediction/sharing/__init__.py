"""How fast jobs run that share one GPU: by shares of its time, in turns, on slices of it."""
