"""How far predictions were off on what they were not fitted on: the scores that ship."""

from collections.abc import Mapping
from importlib.resources import files

import msgspec

from planner.models.document import decode

SCHEMA = "gpucost.accuracy/v1"


class ErrorPercent(msgspec.Struct, frozen=True, kw_only=True):
    """Median and mean of |predicted / measured - 1|, percent.

    Attributes:
        median: of the cases [%].
        mean: of the cases [%].
    """

    median: float
    mean: float


class MostPercent(msgspec.Struct, frozen=True, kw_only=True):
    """The bar: what median and mean may be at most; None where that is not asked.

    Attributes:
        median: of the cases [%].
        mean: of the cases [%].
    """

    median: float | None
    mean: float | None


class ClassScore(msgspec.Struct, frozen=True, kw_only=True):
    """One class of work on one set of measurements.

    Attributes:
        work: the class; `class` in the file.
        measured: the set; `set` in the file.
        left_out: what was left out of the fit.
        cases: predictions scored.
        groups: of cases, left out one by one.
        percent: errors of what ships.
        inside_fraction: share of the cases inside the 90 % interval.
        median_factor: how wide it is: median of its factor x/÷.
        baseline_percent: errors of simple methods on the same cases.
        misses: which bars are missed, in words.
    """

    work: str = msgspec.field(name="class")
    measured: str = msgspec.field(name="set")
    left_out: str
    cases: int
    groups: int
    percent: ErrorPercent
    inside_fraction: float
    median_factor: float
    baseline_percent: Mapping[str, ErrorPercent]
    misses: tuple[str, ...]


class QuestionScore(msgspec.Struct, frozen=True, kw_only=True):
    """One question beside its baseline and its bar.

    Attributes:
        question: what is predicted, and what was left out.
        cases: predictions scored.
        percent: errors of what ships.
        baseline: name of a simple method; None where there is none.
        baseline_percent: its errors on the same cases.
        at_most_percent: the bar.
        verdict: `held`, or by how much the bar is missed; None where none is asked.
    """

    question: str
    cases: int
    percent: ErrorPercent
    baseline: str | None
    baseline_percent: ErrorPercent | None
    at_most_percent: MostPercent
    verdict: str | None


class CoverageScore(msgspec.Struct, frozen=True, kw_only=True):
    """How often the 90 % interval held, and how wide it was.

    Attributes:
        question: what was left out.
        inside_fraction: share of the cases inside.
        median_factor: median of the interval's factor x/÷.
        by_group: share inside by group.
    """

    question: str
    inside_fraction: float
    median_factor: float
    by_group: Mapping[str, float]


class ShippedAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """All scores of a version.

    Attributes:
        schema: `gpucost.accuracy/v1`.
        rows: by class of work.
        scores: by question.
        coverages: how often intervals held.
    """

    schema: str
    rows: tuple[ClassScore, ...]
    scores: tuple[QuestionScore, ...]
    coverages: tuple[CoverageScore, ...]


def shipped_accuracy() -> ShippedAccuracy:
    """Return the scores that shipped with this version."""
    return decode(
        ShippedAccuracy, files("planner.models.data").joinpath("accuracy.json").read_bytes()
    )
