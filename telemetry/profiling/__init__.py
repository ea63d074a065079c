"""From samples to a profile: windows, phases, steps, statistics, doubts."""
