"""`gpucost loop`: measure, plan, run or rent, verify, and again until nothing pays."""
