"""The share of a GPU's time that a job takes: the better of two readings."""

from planner.profile.model import Profile

SHARES = ("util.sm_active", "util.kernel_time")
"""What tells the share of a GPU's time that a job takes, the better reading first."""


def compute_share(profile: Profile) -> float | None:
    """Return the share of a GPU's time that the job takes: SM activity, else kernel time."""
    return next((share for slot in SHARES if (share := profile.mean(slot)) is not None), None)
