"""How fast two training jobs run that take turns on one GPU (time-slicing).

Who has the longer steps keeps the GPU for longer each time, so it is delayed less. For jobs that
both keep the GPU busy, t and u their seconds a step alone:

    ln speed = c + a tanh(ln(t / u) / 2) + b ln t + d (ln t)^2 + e ln u + f (ln u)^2

fitted for each GPU on published pairs (`planner/models/data/sharing.toml`); the form is that of
Gavel's pairs in our own regressions. The coefficients do not carry over to other GPUs: there, and
outside the measured step times, the rule of shares (`shares.py` beside this) is the better guess.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from planner.models.coefficients import coefficients
from planner.models.estimate import Estimate
from planner.profile.model import Profile
from planner.signals.compute_share import compute_share

_BUSY = 0.8  # of the time, from which a job keeps its GPU busy: all fitted jobs did
_BASIS = "step times of both, fitted on pairs on this GPU"


def terms(own_s: float, other_s: float) -> tuple[float, ...]:
    """Return what the coefficients of the law are of.

    Args:
        own_s: seconds a step of the job, alone.
        other_s: of the job beside it, alone.
    """
    own, other = math.log(own_s), math.log(other_s)
    return (1.0, math.tanh((own - other) / 2.0), own, own**2, other, other**2)


def by_turns(gpu: str, profiles: Sequence[Profile]) -> tuple[Estimate, ...] | None:
    """Return the speed of two jobs relative to running alone; None where no law is fitted for them.

    Args:
        gpu: canonical name of the GPU that they share.
        profiles: the jobs as measured alone on it.
    """
    law = coefficients("sharing").get("pair", {}).get(gpu)
    steps = [one.step.mean_s if one.step is not None else None for one in profiles]
    known = [step_s for step_s in steps if step_s is not None]
    busy = all((compute_share(one) or 0.0) >= _BUSY for one in profiles)
    if law is None or len(profiles) != 2 or len(known) != 2 or not busy:  # noqa: PLR2004 - a pair
        return None
    if not law["shortest_s"] <= min(known) <= max(known) <= law["longest_s"]:
        return None
    first, second = known
    return _speed(law, first, second), _speed(law, second, first)


def _speed(law: Mapping[str, Any], own_s: float, other_s: float) -> Estimate:
    told = sum(a * b for a, b in zip(law["law"], terms(own_s, other_s), strict=True))
    mid, factor = min(1.0, math.exp(told)), float(law["factor"])
    return Estimate(low=mid / factor, mid=mid, high=min(1.0, mid * factor), basis=_BASIS)
