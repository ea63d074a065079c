"""What may go wrong where jobs share a GPU, and how to go back, in sentences.

Containment of errors: NVIDIA's documentation of MPS (a fatal fault of one client ends all clients
on that GPU) and of MIG (each slice has memory, caches and engines of its own).
"""

from collections.abc import Iterator, Mapping, Sequence

from planner.baseline.baseline import gpu_memory_gib
from planner.fleet.consolidate import CONTEXT_GIB, Fleet, Placement
from planner.plan.plan import JobPlan
from planner.prediction.sharing.shares import SHARES
from planner.profile.model import Profile
from planner.signals.signals import memory_need_gib

_DAY_S = 86_400.0
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


def risks(placement: Placement, jobs: Sequence[JobPlan]) -> tuple[str, ...]:
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
    short = [one.job.name for one in profiles if _window_s(one) < _DAY_S]
    if short:
        yield (
            f"peaks: {', '.join(short)}: measured for less than a day, so what a day's busiest "
            "hour wants may not be in it."
        )


def _has_peak(profile: Profile) -> bool:
    slot = next((slot for slot in SHARES if profile.mean(slot) is not None), SHARES[-1])
    return any(one.p95 is not None for one in profile.readings(slot))


def _window_s(profile: Profile) -> float:
    window = profile.window
    return (window.duration_s or 0.0) if window else 0.0


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
