"""What an evaluation reports: errors beside a baseline and a bar, coverage beside a width."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from planner.models.estimate import Estimate

Array = npt.NDArray[np.float64]
_EQUAL = 0.5  # points of an error: as good as
_BAND = (0.87, 0.93)  # shares of a 90 % interval that hold
_ENOUGH = 40  # cases from which a share tells anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Median and mean of |predicted / true - 1|, percent."""

    median: float
    mean: float

    def __str__(self) -> str:
        return f"{self.median:.1f} / {self.mean:.1f}"


def errors(predicted: npt.ArrayLike, true: npt.ArrayLike) -> Errors:
    """Return the absolute errors of predictions, percent."""
    off = np.abs(np.asarray(predicted, float) / np.asarray(true, float) - 1.0) * 100.0
    return Errors(median=float(np.median(off)), mean=float(np.mean(off)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One question, answered for data that the model was not fitted on.

    Attributes:
        question: what is predicted, and what was left out.
        cases: predictions scored.
        ours: errors of what ships.
        baseline: name and errors of a simple method on the same cases.
        bar: the most that median and mean may be; None = not asked.
        note: how it was left out, and what to know.
    """

    question: str
    cases: int
    ours: Errors
    baseline: tuple[str, Errors] | None = None
    bar: tuple[float | None, float | None] = (None, None)
    note: str = ""

    @property
    def bar_text(self) -> str:
        """The bar as "median / mean"; "-" where none is asked."""
        if not any(self.bar):
            return "-"
        return " / ".join("-" if bar is None else f"{bar:g}" for bar in self.bar)

    @property
    def verdict(self) -> str:
        """`held`, or by how much the bar is missed; errors count as printed, to a tenth."""
        pairs = zip(("median", "mean"), (self.ours.median, self.ours.mean), self.bar, strict=True)
        over = [
            f"{name} by {round(value, 1) - bar:.1f}"
            for name, value, bar in pairs
            if bar is not None and round(value, 1) > bar
        ]
        return "missed: " + ", ".join(over) if over else "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often the 90 % interval held, and how wide it was.

    Attributes:
        question: what was left out.
        share: of the cases inside.
        factor: median of the interval's factor x/:.
        groups: share inside by group, such as the architecture of the target.
    """

    question: str
    share: float
    factor: float
    groups: Mapping[str, float] = field(default_factory=dict)

    @property
    def by_group(self) -> str:
        """The shares by group, as text."""
        return ", ".join(f"{name} {share:.0%}" for name, share in sorted(self.groups.items()))


def covered(
    question: str, answers: Sequence[Estimate], true: npt.ArrayLike, groups: Collection[str] = ()
) -> Coverage:
    """Return how often the intervals of answers hold the truth, in all and by group."""
    inside = pd.Series(
        [e.low <= t <= e.high for e, t in zip(answers, np.asarray(true), strict=True)]
    )
    by_group = inside.groupby(list(groups) or [""] * len(inside)).mean()
    return Coverage(
        question=question,
        share=float(inside.mean()),
        factor=float(np.median([math.sqrt(e.high / e.low) for e in answers])),
        groups={str(name): float(share) for name, share in by_group.items() if name},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How `predict` did on one set of measurements of one class of work.

    Attributes:
        measured: the set.
        work: the class of work.
        left_out: from the fit that predicted.
        cases: predictions scored.
        groups: models, GPUs ... left out in turn.
        ours: errors of what `gpucost.predict` answers.
        inside: share of the cases inside the 90 % interval.
        factor: median of the interval's factor x/:.
        baselines: errors of the simple methods on the same cases, by name.
        whole_class: whether these are all cases of the class, for which the interval must hold.
    """

    measured: str
    work: str
    left_out: str
    cases: int
    groups: int
    ours: Errors
    inside: float
    factor: float
    baselines: Mapping[str, Errors]
    whole_class: bool = False

    @property
    def misses(self) -> tuple[str, ...]:
        """What the row misses: a baseline ahead by over half a point, an interval out of its band.

        Figures count as printed, to a tenth.
        """
        found = []
        for figure in ("median", "mean"):
            best = min(
                self.baselines, key=lambda name: float(getattr(self.baselines[name], figure))
            )
            ahead = round(getattr(self.ours, figure), 1) - round(
                getattr(self.baselines[best], figure), 1
            )
            if ahead > _EQUAL:
                found.append(f"{figure}: {best} is ahead by {ahead:.1f}")
        low, high = _BAND
        if self.whole_class and self.cases >= _ENOUGH and not low <= round(self.inside, 3) <= high:
            found.append(f"inside {self.inside:.1%}, not {low:.0%} to {high:.0%}")
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Scores that belong together.

    Attributes:
        title: of the section.
        scores: errors.
        rows: the same of `predict`, beside every baseline.
        coverages: of intervals.
        notes: sentences below the tables.
    """

    title: str
    scores: tuple[Score, ...] = ()
    rows: tuple[Row, ...] = ()
    coverages: tuple[Coverage, ...] = ()
    notes: tuple[str, ...] = ()
