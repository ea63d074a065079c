"""What may go wrong where jobs share a GPU, and how to go back, in sentences.

Containment of errors: NVIDIA's documentation of MPS (a fatal fault of one client ends all clients
on that GPU) and of MIG (each slice has memory, caches and engines of its own).
"""

from collections.abc import Iterator, Mapping, Sequence

from planner.choice.baseline import gpu_memory_gib
from planner.fleet.fleet import Fleet, Placement
from planner.fleet.tenant import CONTEXT_GIB
from planner.plan.draft import JobDraft
from planner.prediction.slices import DAY_S, memory_growth, recorded_s
from planner.profile.model import Profile
from planner.signals.compute_share import SHARES
from planner.signals.signals import memory_need_gib

_HOUR_S = 3600.0
_MODES: Mapping[str, tuple[str, ...]] = {
    "mps": (
        "errors: a fatal error of one job on the GPU ends all jobs there (MPS).",
        "no isolation: a job that takes more memory than it did takes it from the others.",
    ),
    "time-slicing": (
        "errors: a job that fails ends alone; one that fills the memory makes others fail.",
        "no isolation: jobs take turns on the whole GPU, so long kernels of one delay the others.",
    ),
    "mig": ("errors: they stay in a slice; to change the layout all jobs there must be stopped.",),
}


def risks(placement: Placement, jobs: Sequence[JobDraft]) -> tuple[str, ...]:
    """Return what may go wrong on a GPU that jobs share; nothing for a job alone.

    Args:
        placement: the GPU.
        jobs: those that share it, in the order of the plan.
    """
    if len(placement.jobs) == 1:
        return ()
    profiles = [job.profile for job in jobs]
    return (
        *_MODES.get(placement.mode or "", ()),
        *_of_memory(placement, profiles),
        *_of_peaks(profiles),
        *_of_interval(placement),
    )


def _of_memory(placement: Placement, profiles: Sequence[Profile]) -> Iterator[str]:
    if placement.mode == "mig":
        return
    held = [memory_need_gib(profile) for profile in profiles]
    known = [gib + CONTEXT_GIB for gib in held if gib is not None]
    room = gpu_memory_gib(placement.offer)
    if len(known) == len(held):
        left = room - sum(known)
        yield (
            f"memory: at the most that was measured they hold {sum(known):.1f} of {room:.1f} GiB; "
            f"{left:.1f} are left for all to grow."
        )


def _of_peaks(profiles: Sequence[Profile]) -> Iterator[str]:
    blind = [one.job.name for one in profiles if not _has_peak(one)]
    if blind:
        yield f"peaks: of {', '.join(blind)} they were not measured; means stand for them."
    short = [one for one in profiles if (recorded_s(one) or 0.0) < DAY_S]
    if short:
        yield (
            f"peaks: {_recorded(short)}: less than a day, so what a day's busiest hour wants may "
            f"not be in it{_room(short)}."
        )


def _recorded(short: Sequence[Profile]) -> str:
    """Return names, with how long each was recorded where that is known."""
    by_time: dict[str, list[str]] = {}
    for one in short:
        seen_s = recorded_s(one)
        told = "recorded for an unknown time" if seen_s is None else f"recorded {_hours(seen_s)}"
        by_time.setdefault(told, []).append(one.job.name)
    return "; ".join(f"{', '.join(names)} {told}" for told, names in by_time.items())


def _hours(seen_s: float) -> str:
    return f"{seen_s / 3600.0:.3g} h" if seen_s >= _HOUR_S else f"{seen_s / 60.0:.3g} min"


def _room(short: Sequence[Profile]) -> str:
    """Return what was left for growth, in words; empty where nothing was."""
    grown = [one for one in short if memory_growth(one) > 1.0]
    if not grown:
        return ""
    most = max(memory_growth(one) for one in grown)
    return (
        f"; room was left as other services grew beyond such a recording (memory x {most:.2g}): "
        "record a whole day to pack by what is measured"
    )


def _has_peak(profile: Profile) -> bool:
    slot = next((slot for slot in SHARES if profile.mean(slot) is not None), SHARES[-1])
    return any(one.p95 is not None for one in profile.readings(slot))


def _of_interval(placement: Placement) -> Iterator[str]:
    worst = min(placement.jobs, key=lambda name: placement.speed[name].low)
    low, mid = placement.speed[worst].low, placement.speed[worst].mid
    yield (
        f"speed: {worst} is expected at {mid:.2f} of its speed alone; the interval (90 %) reaches "
        f"down to {low:.2f}."
    )


def roll_back(fleet: Fleet) -> str | None:
    """Return how to go back to a machine for each job; None where nothing is shared."""
    if all(len(one.jobs) == 1 for one in fleet.placements):
        return None
    return (
        "Keep today's machines until every job has run through a busy hour on its shared GPU. To "
        "go back, start the job on its own machine again as today (o0), then end it here; what it "
        "keeps on disk is the same."
    )
