"""How fast jobs run on one GPU in each way of sharing it: MPS, time-slicing, slices, partitions."""

from collections.abc import Callable, Mapping, Sequence

from planner.models.estimate import Estimate
from planner.prediction.sharing.partitions import partitioned, speeds_on_partitions
from planner.prediction.sharing.shares import shared_speed
from planner.prediction.sharing.slices import Probes, cut, measured_slice, on_whole, speeds_on
from planner.prediction.sharing.time_slices import by_turns
from planner.profile.model import Profile
from planner.profile.source import source_gpu
from pricing.errors import InputError


def speeds_in(
    profiles: Sequence[Profile], mode: str, on_slice: Probes | None = None
) -> tuple[Estimate, ...]:
    """Return each job's speed relative to running alone (1.0), in order of the input.

    Args:
        profiles: the jobs.
        mode: `mps`, `time-slicing`, `mig` (slices of NVIDIA's GPUs) or `partition` (of AMD's).
        on_slice: with `mig` the slice that a job was measured on, and its speed there relative to
            the whole GPU, by its name.

    Raises:
        InputError: another mode; GPU use was not measured; an isolated job would share without
            slices; the GPU of the first job cannot be cut into slices or partitions for them, or is
            not one that shares so; `on_slice` is of no such job, slice or mode, or its speed is not
            above 0 and at most 1.
    """
    whole = tuple(on_whole(one) for one in profiles)
    if on_slice:
        _check(profiles, mode, on_slice)
        return _sliced(whole, on_slice)
    if mode not in _MODES:
        raise InputError(f"no mode of sharing is called {mode!r}; there are {', '.join(_MODES)}.")
    return _MODES[mode](whole)


def _check(profiles: Sequence[Profile], mode: str, on_slice: Probes) -> None:
    names = {one.job.name for one in profiles}
    problems = [
        *([f"a speed on a slice is of mode='mig', not of {mode!r}."] if mode != "mig" else []),
        *(f"no job is called {name}." for name in sorted(on_slice.keys() - names)),
        *(
            f"{name} on {piece}: a speed of {speed:g}; it is above 0 and at most 1 (whole GPU)."
            for name, (piece, speed) in sorted(on_slice.items())
            if not 0.0 < speed <= 1.0
        ),
    ]
    if problems:
        raise InputError(problems)


def _whole(profiles: Sequence[Profile], *, in_turns: bool = False) -> tuple[Estimate, ...]:
    isolated = [p.job.name for p in profiles if p.job.trust == "isolated"]
    if isolated and len(profiles) > 1:
        raise InputError(f"{', '.join(isolated)} must be isolated; only mode='mig' keeps that.")
    return shared_speed(profiles, in_turns=in_turns)


def _in_turns(profiles: Sequence[Profile]) -> tuple[Estimate, ...]:
    expected = _whole(profiles, in_turns=True)
    named = [one.hardware.gpu for one in profiles]
    if len(set(named)) != 1 or named[0] is None:
        return expected
    return by_turns(source_gpu(profiles[0]).name, profiles) or expected


def _sliced(profiles: Sequence[Profile], on_slice: Probes | None = None) -> tuple[Estimate, ...]:
    if not profiles:
        return ()
    gpu, probes = source_gpu(profiles[0]), on_slice or {}
    for name, _ in probes.values():
        measured_slice(gpu, name)
    pieces = cut(gpu, profiles, probes)
    if isinstance(pieces, str):
        raise InputError(f"{pieces}.")
    return speeds_on(gpu, profiles, pieces, probes)


def _in_partitions(profiles: Sequence[Profile]) -> tuple[Estimate, ...]:
    if len(profiles) < _SEVERAL:
        return shared_speed(profiles)
    mode = partitioned(source_gpu(profiles[0]), profiles)
    if isinstance(mode, str):
        raise InputError(f"{mode}.")
    return speeds_on_partitions(profiles, mode)


_SEVERAL = 2
_MODES: Mapping[str, Callable[[Sequence[Profile]], tuple[Estimate, ...]]] = {
    "mps": _whole,
    "time-slicing": _in_turns,
    "mig": _sliced,
    "partition": _in_partitions,
}
