"""How fast jobs run on one GPU in each way of sharing it: MPS, time-slicing, MIG."""

from collections.abc import Callable, Mapping, Sequence

from planner.models.estimate import Estimate
from planner.prediction.sharing.shares import shared_speed
from planner.prediction.sharing.slices import cut, speeds_on
from planner.prediction.sharing.time_slices import by_turns
from planner.profile.model import Profile
from planner.profile.source import source_gpu
from pricing.errors import InputError


def speeds_in(profiles: Sequence[Profile], mode: str) -> tuple[Estimate, ...]:
    """Return each job's speed relative to running alone (1.0), in order of the input.

    Args:
        profiles: the jobs.
        mode: `mps`, `time-slicing` or `mig`.

    Raises:
        InputError: another mode; GPU use was not measured; an isolated job would share without
            slices; the GPU of the first job cannot be cut into slices for them.
    """
    if mode not in _MODES:
        raise InputError(f"no mode of sharing is called {mode!r}; there are {', '.join(_MODES)}.")
    return _MODES[mode](profiles)


def _whole(profiles: Sequence[Profile]) -> tuple[Estimate, ...]:
    isolated = [p.job.name for p in profiles if p.job.trust == "isolated"]
    if isolated and len(profiles) > 1:
        raise InputError(f"{', '.join(isolated)} must be isolated; only mode='mig' keeps that.")
    return shared_speed(profiles)


def _in_turns(profiles: Sequence[Profile]) -> tuple[Estimate, ...]:
    expected = _whole(profiles)
    named = [one.hardware.gpu for one in profiles]
    if len(set(named)) != 1 or named[0] is None:
        return expected
    return by_turns(source_gpu(profiles[0]).name, profiles) or expected


def _sliced(profiles: Sequence[Profile]) -> tuple[Estimate, ...]:
    if not profiles:
        return ()
    gpu = source_gpu(profiles[0])
    pieces = cut(gpu, profiles)
    if isinstance(pieces, str):
        raise InputError(f"{pieces}.")
    return speeds_on(gpu, profiles, pieces)


_MODES: Mapping[str, Callable[[Sequence[Profile]], tuple[Estimate, ...]]] = {
    "mps": _whole,
    "time-slicing": _in_turns,
    "mig": _sliced,
}
