"""Whether two runs are one job: what must agree, what may differ, whether they learn the same."""

from collections.abc import Callable, Collection, Sequence
from statistics import fmean, stdev
from typing import Literal

import msgspec

from planner.profile.kinds import JobKind
from planner.profile.model import Profile
from planner.profile.source import slice_named
from planner.proof.speed import StepRow, t_quantile
from pricing.errors import InputError
from pricing.hardware import find
from pricing.message import Message

_ALIKE = 0.01  # sizes of data and models are told in different ways; no job changes by so little


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What is not the same in the two runs.

    Attributes:
        what: one word.
        before: of the run before.
        after: of the run after.
        asked: whether the user or the plan said that it would change; else it is said only.
    """

    what: str
    before: str
    after: str
    asked: bool = False


class Comparability(msgspec.Struct, frozen=True, kw_only=True):
    """What was compared of two runs of one job.

    Attributes:
        agreed: what is the same.
        differs: what is not, and may be.
        unknown: what a run does not say.
    """

    agreed: tuple[str, ...]
    differs: tuple[Difference, ...]
    unknown: tuple[str, ...]


def _gpu(profile: Profile) -> str | None:
    """Return the GPU's canonical name, else the name that was recorded, with its slice."""
    stated = profile.hardware
    gpu = find(stated.gpu, memory_gib=stated.gpu_memory_gib)
    if gpu is None:
        return stated.gpu
    piece = slice_named(profile)
    return f"{gpu.name} {piece}" if piece else gpu.name


def _name(profile: Profile) -> str | None:
    """Return the name of the job; None where it is but that of the file that was read."""
    name, sources = profile.job.name, profile.provenance.sources
    is_file = any(
        (source.path or "").rpartition("/")[2].startswith(f"{name}.") for source in sources
    )
    return None if is_file else name


_GUARDS: tuple[tuple[str, Callable[[Profile], float | str | None], bool], ...] = (
    ("name", _name, True),
    ("kind", lambda p: None if p.job.kind is JobKind.UNKNOWN else str(p.job.kind), True),
    ("framework", lambda p: p.job.framework, True),
    ("data", lambda p: p.job.dataset_gib, True),
    ("parameters", lambda p: p.job.parameters, True),
    ("batch", lambda p: p.job.batch_per_gpu, True),
    ("precision", lambda p: p.job.precision, False),
    ("parallelism", lambda p: p.job.parallelism, False),
    ("GPU", _gpu, False),
    ("GPUs", lambda p: p.hardware.gpu_count or len(p.gpus) or None, False),
    ("nodes", lambda p: p.hardware.nodes, False),
    ("machine", lambda p: p.hardware.instance_type, False),
    ("cores", lambda p: p.hardware.cpu_cores, False),
)
CHANGEABLE = tuple(topic for topic, _, must in _GUARDS if must)
"""What makes two jobs of two runs, unless it was changed on purpose: of `_GUARDS` (the word, its
value or None, whether it must agree) those that must agree."""

_CHANGED_BY: dict[str, tuple[str, ...]] = {
    "batch": (
        "larger-batch",
        "gradient-accumulation",
        "gradient-checkpointing",
        "dynamic-batching",
    ),
    "parameters": ("pruning",),
}
"""Actions that change what must agree."""


def changed_by(actions: Collection[str]) -> frozenset[str]:
    """Return what these actions change of the things that must agree."""
    return frozenset(topic for topic, codes in _CHANGED_BY.items() if set(codes) & set(actions))


def compare(before: Profile, after: Profile, changed: Collection[str] = ()) -> Comparability:
    """Return what two runs agree in, and what differs though they are one job.

    Args:
        before: the run before the change.
        after: the run after it.
        changed: words of CHANGEABLE that were changed on purpose.

    Raises:
        InputError: they are two jobs; everything that says so is listed.
    """
    topics: dict[Literal["agreed", "unknown"], list[str]] = {"agreed": [], "unknown": []}
    differs, problems = [], []
    for topic, read, must in _GUARDS:
        old, new = read(before), read(after)
        if old is None or new is None:
            topics["unknown"].append(topic)
        elif _agree(old, new):
            topics["agreed"].append(topic)
        elif must and topic not in changed:
            values = {"old": _shown(old), "new": _shown(new)}
            problems.append(Message("input.two-jobs", topic=topic, **values))
        else:
            expected = topic in changed
            differs.append(
                Difference(what=topic, before=_shown(old), after=_shown(new), asked=expected)
            )
    if problems:
        raise InputError(problems)
    return Comparability(
        agreed=tuple(topics["agreed"]), differs=tuple(differs), unknown=tuple(topics["unknown"])
    )


def _agree(old: float | str, new: float | str) -> bool:
    if isinstance(old, str) or isinstance(new, str):
        return str(old) == str(new)
    if isinstance(old, int) and isinstance(new, int):
        return old == new
    return abs(old - new) <= _ALIKE * max(abs(old), abs(new))


def _shown(value: float | str) -> str:
    return str(value) if isinstance(value, str) else f"{value:.6g}"


Alike = Literal["identical", "alike", "changed", "not recorded"]

_STRETCHES = 20  # means over stretches of steps: neighbours hang together, stretches hardly do
_LEFT_OUT = 2  # the first ones, where losses fall steeply and a step more or less shows
_FEWEST = 6
_SURE = 0.995  # two-sided 99 %: a proof is refused for it
# A seed changes the loss a little, too; our choice of what a user would not call the same curve.
_MATTERS = 0.01


class LossCurves(msgspec.Struct, frozen=True, kw_only=True):
    """How the losses of two runs compare at the same steps.

    Attributes:
        alike: the word.
        why: one sentence.
    """

    alike: Alike
    why: str


def compare_losses(before: Sequence[StepRow], after: Sequence[StepRow]) -> LossCurves:
    """Return whether two loss curves are the same, step for step.

    Changed is what differs by more than 1 % of the loss with a 99 % interval that excludes 0.
    """
    old = {row.step: row.loss for row in before if row.loss is not None}
    new = {row.step: row.loss for row in after if row.loss is not None}
    if not old or not new:
        return LossCurves(
            alike="not recorded",
            why="losses were not recorded in both runs: that results stay the same is not shown.",
        )
    shared = sorted(old.keys() & new.keys())
    if len(shared) >= _FEWEST and all(old[step] == new[step] for step in shared):
        return LossCurves(alike="identical", why=f"losses are identical at {len(shared)} steps.")
    pairs = _stretches(old, new)
    if len(pairs) < _FEWEST:
        return LossCurves(
            alike="not recorded",
            why=f"the losses share {len(pairs)} stretches of steps, too few to compare.",
        )
    return _judged(pairs)


def _judged(pairs: Sequence[tuple[float, float]]) -> LossCurves:
    differences = [b - a for a, b in pairs]
    scale = fmean(abs(a) for a, _ in pairs) or 1.0
    mean = fmean(differences) / scale
    error = stdev(differences) / scale / len(pairs) ** 0.5
    half = t_quantile(_SURE, len(pairs) - 1) * error
    change = f"the loss after is {mean:+.2%} of that before at the same steps (+-{half:.2%})"
    if abs(mean) > max(half, _MATTERS):
        return LossCurves(alike="changed", why=f"{change}: the job no longer learns the same.")
    return LossCurves(alike="alike", why=f"{change}: no change shows.")


def _stretches(old: dict[int, float], new: dict[int, float]) -> list[tuple[float, float]]:
    """Return the mean losses of both over equal stretches of the steps that both have."""
    first, last = max(min(old), min(new)), min(max(old), max(new))
    width = (last - first + 1) / _STRETCHES
    if width <= 0:
        return []
    cut: list[tuple[list[float], list[float]]] = [([], []) for _ in range(_STRETCHES)]
    for side, losses in enumerate((old, new)):
        for step, loss in losses.items():
            if first <= step <= last:
                cut[min(int((step - first) / width), _STRETCHES - 1)][side].append(loss)
    return [(fmean(a), fmean(b)) for a, b in cut[_LEFT_OUT:] if a and b]
