"""The first lines that a reader sees, of one job or of several.

The terminal, report.md and the comment begin with these lines; each draws them in its own way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from templates.reports.fleet_screen import fleet_screen
from templates.reports.job_screen import FirstScreen, job_screen

if TYPE_CHECKING:
    from planner.plan.plan import Plan


def first_screen(plan: Plan, read_from: str = "") -> FirstScreen:
    """Return the first lines of a plan.

    Args:
        plan: made now, or read back.
        read_from: what was read, in words.
    """
    if len(plan.jobs) == 1:
        return job_screen(plan.jobs[0], plan, read_from)
    return fleet_screen(plan, read_from)
