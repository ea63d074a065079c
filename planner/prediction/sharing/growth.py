"""How far a service may go beyond a recording of less than a day: room for hours that nobody saw.

A few hours do not bound a day: on 72 published serving pods the quiet half of a day was packed on
half of the GPUs that the busy half took. What was recorded is therefore multiplied by what it grew
by in the hours left out (`planner/models/data/sharing.toml`, by the hours that were recorded):
the 99th percentile of the GPU use of a pod to its 95th percentile in the other hours, for 95 % of
pods; the most memory that two pods hold together, for 999 of 1,000 pairs. Of windows shorter than
those fitted nothing is known: they get what the shortest fitted ones do.
"""

from collections.abc import Mapping
from typing import Any

from planner.models.coefficients import coefficients
from planner.profile.model import Profile, Statistics

DAY_S = 86_400.0
_HOUR_S = 3600.0


def recorded_s(profile: Profile) -> float | None:
    """Return the length of the recording, seconds; None where it is not known."""
    return profile.window.duration_s if profile.window else None


def memory_growth(profile: Profile) -> float:
    """Return the most memory beyond the recording over the most in it, at least 1."""
    found = _growth(profile)
    return float(found["memory"]) if found else 1.0


def peak_of(profile: Profile, seen: Statistics) -> float | None:
    """Return the 95th percentile of a share of a GPU's time, the hours not recorded included.

    Args:
        profile: the job.
        seen: what was recorded of the share on one of its GPUs.

    Returns:
        0 or more, above 1 where no GPU would hold the growth; None where no peak was recorded.
    """
    found = _growth(profile)
    if found is None:
        return seen.p95
    by_p99 = None if seen.p99 is None else seen.p99 * float(found["use"])
    bounds = [bound for bound in (by_p99, seen.max) if bound is not None]
    known = [value for value in (seen.p95, min(bounds, default=None)) if value is not None]
    return max(known, default=None)


def _growth(profile: Profile) -> Mapping[str, Any] | None:
    """Return the row for the hours that were recorded; None where they bound what comes."""
    seen_s = recorded_s(profile)
    if not profile.job.kind.answers or seen_s is None or seen_s >= DAY_S:
        return None
    growth: Mapping[str, Mapping[str, Any]] = coefficients("sharing")["growth"]
    rows = sorted(growth.values(), key=lambda row: float(row["hours"]))
    fitting = [row for row in rows if float(row["hours"]) * _HOUR_S <= seen_s]
    return fitting[-1] if fitting else rows[0]
