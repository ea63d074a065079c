"""How fast each job runs when several share one GPU.

Expected: 1 / max(1, sum of compute shares), the better guess for an unmeasured pair (mean error
0.08 of full speed on 2,760 published pairs). The interval is that x/: f^c, f calibrated on pairs of
jobs left out (`planner/models/data/sharing.toml`) and c the others' share, at most 1: who does not
run delays nobody. It reaches down to where every other share delays this job, 1 / (1 + that sum),
and up to a job alone as it was measured again.
"""

import math
from collections.abc import Sequence

from planner.models.coefficients import coefficients
from planner.models.estimate import Estimate, exactly
from planner.prediction.sharing.growth import peak_of
from planner.profile.model import Profile
from planner.signals.compute_share import SHARES, compute_share
from pricing.errors import InputError

_BASIS = "1 / max(1, sum of compute shares)"
_AGAIN = 1.07  # run-to-run spread of one job on like hosts, as of predictions on the same GPU


def peak_share(profile: Profile) -> float | None:
    """Return the 95th percentile of the share that the job takes; its mean where none is known.

    Of a service recorded for less than a day with room for the other hours, so it may be above 1.
    """
    mean = compute_share(profile)
    slot = next((slot for slot in SHARES if profile.mean(slot) is not None), None)
    seen = [peak_of(profile, one) for one in profile.readings(slot)] if slot else []
    return max((one for one in seen if one is not None), default=mean)


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
    return tuple(_beside(total, total - (share or 0.0)) for share in shares)


def most_beside(least: float) -> float:
    """Return the share of a GPU that others may take so that a job surely keeps such a speed.

    The other way round of the low end of `shared_speed`, while shares sum to at most 1.

    Args:
        least: of its speed alone, above 0.
    """
    if least >= 1.0:
        return 0.0
    factor = float(coefficients("sharing")["factor"])
    by_pairs = math.log(1.0 / least) / math.log(factor)
    return min(1.0 / least - 1.0, by_pairs if by_pairs < 1.0 else math.inf)


def contention(others: float) -> float:
    """Return how much of the calibrated width applies: the others' share of the GPU, at most 1."""
    return min(1.0, others)


def expected_speed(total: float) -> float:
    """Return the expected speed of jobs that together would take `total` of a GPU's time."""
    return 1.0 / max(1.0, total)


def _beside(total: float, others: float) -> Estimate:
    mid = expected_speed(total)
    factor = float(coefficients("sharing")["factor"]) ** contention(others)
    return Estimate(
        low=min(mid / factor, 1.0 / (1.0 + others)),
        mid=mid,
        high=min(1.0, mid * factor) * (_AGAIN if others > 0.0 else 1.0),
        basis=_BASIS,
    )
