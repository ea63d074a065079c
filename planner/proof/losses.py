"""Does the job still learn the same? The losses of two runs, where both recorded them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from planner.proof.interval import t_quantile
from planner.proof.step_series import StepRow

Alike = Literal["identical", "alike", "changed", "not recorded"]

_STRETCHES = 20  # means over stretches of steps: neighbours hang together, stretches hardly do
_LEFT_OUT = 2  # the first ones, where losses fall steeply and a step more or less shows
_FEWEST = 6
_SURE = 0.995  # two-sided 99 %: a proof is refused for it
# A seed changes the loss a little, too; our choice of what a user would not call the same curve.
_MATTERS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurves:
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
    one = {row.step: row.loss for row in before if row.loss is not None}
    other = {row.step: row.loss for row in after if row.loss is not None}
    if not one or not other:
        return LossCurves(
            alike="not recorded",
            why="losses were not recorded in both runs: that results stay the same is not shown.",
        )
    shared = sorted(one.keys() & other.keys())
    if len(shared) >= _FEWEST and all(one[step] == other[step] for step in shared):
        return LossCurves(alike="identical", why=f"losses are identical at {len(shared)} steps.")
    pairs = _stretches(one, other)
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
    told = f"the loss after is {mean:+.2%} of that before at the same steps (+-{half:.2%})"
    if abs(mean) > max(half, _MATTERS):
        return LossCurves(alike="changed", why=f"{told}: the job no longer learns the same.")
    return LossCurves(alike="alike", why=f"{told}: no change shows.")


def _stretches(one: dict[int, float], other: dict[int, float]) -> list[tuple[float, float]]:
    """Return the mean losses of both over equal stretches of the steps that both have."""
    first, last = max(min(one), min(other)), min(max(one), max(other))
    width = (last - first + 1) / _STRETCHES
    if width <= 0:
        return []
    cut: list[tuple[list[float], list[float]]] = [([], []) for _ in range(_STRETCHES)]
    for side, losses in enumerate((one, other)):
        for step, loss in losses.items():
            if first <= step <= last:
                cut[min(int((step - first) / width), _STRETCHES - 1)][side].append(loss)
    return [(fmean(a), fmean(b)) for a, b in cut[_LEFT_OUT:] if a and b]
