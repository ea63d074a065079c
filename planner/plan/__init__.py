"""The plan: for every job the baseline, the findings, the options and the choice; and the fleet."""
