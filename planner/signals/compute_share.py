"""The share of a GPU's time that a job takes: the better of two readings."""

from dataclasses import replace

from planner.profile.model import Profile, Statistics

SHARES = ("util.sm_active", "util.kernel_time")
"""What tells the share of a GPU's time that a job takes, the better reading first."""


def compute_share(profile: Profile) -> float | None:
    """Return the share of a GPU's time that the job takes: SM activity, else kernel time."""
    return next((share for slot in SHARES if (share := profile.mean(slot)) is not None), None)


def time_on_gpu(profile: Profile) -> float | None:
    """Return the share of the time in which the GPU runs anything of the job: kernel time.

    At least its SM activity: a collector may lack the one reading or write 0 for it.
    """
    return max((m for slot in SHARES if (m := profile.mean(slot)) is not None), default=None)


def busy_there(profile: Profile, factor: float) -> Profile:
    """Return the profile with its shares of a GPU's time as they would be on another GPU.

    Args:
        profile: what was measured.
        factor: share there over share here; 1 leaves the profile as it is.
    """
    if factor == 1.0:
        return profile
    there = tuple(
        replace(
            one,
            metrics={
                slot: _times(found, factor)
                if slot in SHARES and found.typical is not None
                else found
                for slot, found in one.metrics.items()
            },
        )
        for one in profile.gpus
    )
    return replace(profile, gpus=there)


def _times(found: Statistics, factor: float) -> Statistics:
    """Return mean and peaks of a share of time, times a factor, at most 1."""
    told = {
        name: min(1.0, value * factor)
        for name, value in (
            ("mean", found.typical),
            ("p95", found.p95),
            ("p99", found.p99),
            ("max", found.max),
        )
        if value is not None
    }
    return Statistics(**told)
