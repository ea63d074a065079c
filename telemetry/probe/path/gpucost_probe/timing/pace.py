"""How much time a line of events covers: little at first, more the longer a process runs.

At 300 bytes a line the step lines of eight ranks take 70 MB in a week.
"""

from __future__ import annotations

# Until this age of the process, seconds: seconds that a line covers at least.
WIDTHS = ((60.0, 0.05), (600.0, 0.25), (3600.0, 1.0), (21600.0, 10.0))
LAST_WIDTH_S = 30.0


def width_s(age_s: float) -> float:
    """Return how long a line covers, seconds.

    Args:
        age_s: since the first line of its kind.
    """
    for until_s, width in WIDTHS:
        if age_s < until_s:
            return width
    return LAST_WIDTH_S
