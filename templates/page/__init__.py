"""The page of a plan: one file that works offline; Python draws it, its script scales bills."""
