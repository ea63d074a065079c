"""How fast each job runs when several share one GPU.

Expected: 1 / max(1, own time on the GPU + the others' shares of it). A job is delayed only while it
has work there, which is its kernel time. Side by side (MPS) others leave it what their SM activity
does not take; in turns whoever has its turn has the whole GPU, so there their kernel time counts.
Where one of the two readings is known it stands for both, and this is 1 / max(1, sum of shares).
Nothing of it is fitted: on Gavel's pairs it is the better of the guesses, and on our own on an H200
(`research/side_by_side`) nearer than SM activity alone, in turns and under MPS.

The interval is that x/: two factors together, f^c and a, each as a square in log space. f is of
Gavel's pairs, and c the others' share, at most 1: who does not run delays nobody. a is how far a
job strays that runs again, and the most that sharing makes one faster. The low end is at most
1 / (1 + d x the others' shares): who shares is late more often than early. d is 1 under MPS, where
each share of others delays a job once at worst, and more in turns, where one that comes to the GPU
several times a step waits for its turn each time. How many times no profile tells: by the time of
a step, alone or times kernel time, intervals that held as much were wider. a and d are calibrated
on our pairs (`research/delays`, `planner/models/data/sharing.toml`).

A job whose SM activity is nearly 1 fills the GPU: under MPS its kernels keep the SMs until they
end, and others starved beside it (0.02 to 0.8 of their speed on an H200). How much depends on the
lengths of both jobs' kernels, which no reading here tells, so such an estimate is weak.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from planner.models.coefficients import coefficients
from planner.models.estimate import Estimate, exactly
from planner.prediction.sharing.growth import peak_of
from planner.profile.model import Profile
from planner.signals.compute_share import SHARES, compute_share, time_on_gpu
from pricing.errors import InputError

_BASIS = "1 / max(1, own time on the GPU + the others' shares)"
_STARVED = "weak: another job fills the GPU, and beside such jobs others starved; "
_FILLS = 0.95
"""SM activity from which a job fills its GPU; 0.85 left room on an H200, 0.97 did not."""


def peak_share(profile: Profile) -> float | None:
    """Return the 95th percentile of the share that the job takes; its mean where none is known.

    Of a service recorded for less than a day with room for the other hours, so it may be above 1.
    """
    mean = compute_share(profile)
    slot = next((slot for slot in SHARES if profile.mean(slot) is not None), None)
    seen = [peak_of(profile, one) for one in profile.readings(slot)] if slot else []
    return max((one for one in seen if one is not None), default=mean)


def shared_speed(profiles: Sequence[Profile], *, in_turns: bool = False) -> tuple[Estimate, ...]:
    """Return each job's speed relative to running alone (1.0), in order of the input.

    Args:
        profiles: the jobs.
        in_turns: whether one job at a time has the GPU (time-slicing), not several at once (MPS).

    Raises:
        InputError: GPU use of a job was not measured.
    """
    own = [time_on_gpu(profile) for profile in profiles]
    unknown = [p.job.name for p, s in zip(profiles, own, strict=True) if s is None]
    if unknown:
        raise InputError(f"GPU use of {', '.join(unknown)} was not measured.")
    if len(own) == 1:
        return (exactly(1.0, "alone on its GPU"),)
    taken = own if in_turns else [compute_share(profile) for profile in profiles]
    total = sum(share or 0.0 for share in taken)
    filling = [] if in_turns else [one for one in profiles if _fills(one)]
    found = (
        _beside(time or 0.0, total - (share or 0.0), in_turns=in_turns)
        for time, share in zip(own, taken, strict=True)
    )
    return tuple(
        replace(speed, basis=f"{_STARVED}{_BASIS}", weak=True)
        if any(other is not one for other in filling)
        else speed
        for one, speed in zip(profiles, found, strict=True)
    )


def _fills(profile: Profile) -> bool:
    return (profile.mean(SHARES[0]) or 0.0) >= _FILLS


def most_beside(least: float, *, in_turns: bool = False) -> float:
    """Return the share of a GPU that others may take so that a job surely keeps such a speed.

    The other way round of the low end of `shared_speed`, while its own time on the GPU and what
    others take sum to at most 1.

    Args:
        least: of its speed alone, above 0.
        in_turns: as of `shared_speed`.
    """
    fitted = coefficients("sharing")
    slower, again = math.log(1.0 / least), math.log(float(fitted["again"]))
    if slower < again:
        return 0.0
    by_pairs = math.sqrt(slower**2 - again**2) / math.log(float(fitted["factor"]))
    by_delays = (1.0 / least - 1.0) / _delay(in_turns=in_turns)
    return min(by_delays, by_pairs if by_pairs < 1.0 else math.inf)


def _delay(*, in_turns: bool) -> float:
    """Return how often each share of others delays a job at worst."""
    return float(coefficients("sharing")["delay"]["time-slicing" if in_turns else "mps"])


def contention(others: float) -> float:
    """Return how much of the calibrated width applies: the others' share of the GPU, at most 1."""
    return min(1.0, others)


def expected_speed(total: float) -> float:
    """Return the expected speed of a job for whose work and the others' `total` GPUs are needed."""
    return 1.0 / max(1.0, total)


def _beside(own: float, others: float, *, in_turns: bool) -> Estimate:
    fitted = coefficients("sharing")
    mid = expected_speed(own + others)
    again = float(fitted["again"]) if others > 0.0 else 1.0
    by_pairs = contention(others) * math.log(float(fitted["factor"]))
    factor = math.exp(math.hypot(math.log(again), by_pairs))
    return Estimate(
        low=min(mid / factor, 1.0 / (1.0 + _delay(in_turns=in_turns) * others)),
        mid=mid,
        high=min(again, mid * factor),
        basis=_BASIS,
    )
