"""What is asked of a service hour by hour, and how much one copy of it was measured to answer."""

import math
from collections.abc import Sequence

from planner.profile.model import Profile
from pricing.errors import InputError

DAY_H = 24
WEEK_H = 168
_REQUEST = "request"


def hourly_demand(profile: Profile) -> tuple[float, ...] | None:
    """Return requests a second in each hour, of all copies of the job together.

    24 numbers are the hours of every day from 0 h; 168 those of a week from Monday 0 h. None where
    none are stated.

    Raises:
        InputError: what is stated cannot be used: other things than numbers, another count of them,
            or no request in any hour.
    """
    stated = profile.job.demand_by_hour
    if stated is None:
        return None
    wrong = _wrong(stated)
    if wrong is not None or not isinstance(stated, Sequence):
        raise InputError(
            f"{profile.job.name}: job.demand_by_hour {wrong}. Give requests per second of all "
            "copies together: 24 numbers (each hour of a day) or 168 (of a week from Monday 0 h)."
        )
    return tuple(float(rate) for rate in stated)


def _wrong(stated: object) -> str | None:
    """Return what is wrong with the stated demand, as the end of a sentence."""
    if not isinstance(stated, Sequence) or isinstance(stated, str):
        return f"is {stated!r:.40}, not a list"
    for hour, rate in enumerate(stated):
        known = isinstance(rate, int | float) and not isinstance(rate, bool)
        if not known or not math.isfinite(rate) or rate < 0.0:
            return f"has {rate!r:.40} at place {hour + 1}, not a number of at least 0"
    if len(stated) not in {DAY_H, WEEK_H}:
        return f"has {len(stated)} numbers"
    return None if any(stated) else "is 0 in every hour"


def measured_requests_per_s(profile: Profile) -> float | None:
    """Return requests a second that the one measured copy answered; None where not measured."""
    if profile.job.requests_per_s:
        return profile.job.requests_per_s
    work = profile.work
    counted = work is not None and (work.unit or "").lower() == _REQUEST
    return (work.rate_per_s or None) if work is not None and counted else None
