"""Fits the laws of all classes of work together, and their intervals; models and GPUs left out.

One hierarchical regression of ln speed-up on ln ratios of specifications, on the generation and on
the GPU: what all classes share, and what each strays from it. All is shrunk to the geometric mean
of peak and bandwidth, so that a class with few readings is never far from it. Residuals count by
their square up to `_HUBER` and by their size beyond, so that a saturated server or an odd box does
not set an exponent.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.models.gpu_speed import CUDA, FEATURES, WorkClass, family, scale_of, steps
from pricing.hardware import gpus
from research.published import Case

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
COVERAGE = 0.9
_HUBER = 0.1  # ln
_NOISE = 0.15  # ln, of a model's speed-up between two GPUs
_ROUNDS = 5
_FOLDS = 10  # of models

# What every law is shrunk to: exponents of peak, bandwidth and power limit.
RULE = (0.5, 0.5, 0.0)
WORKS: tuple[WorkClass, ...] = (
    "llm-training",
    "scaled-training",
    "fp32",
    "inference",
    "diffusion",
    "llm-inference",
    "llm-decode",
    "llm-prefill",
)
# How far each may stray from none, ln: exponents, effects of generations and of GPUs, shared by all
# classes and of one. The order of what benchmarks of training do (planner/models/data/speed.toml);
# set before any score.
_WIDTHS: Mapping[str, float] = {
    "exponent": 0.2,
    "exponent of class": 0.15,
    "family": 0.2,
    "family of class": 0.15,
    "gpu": 0.07,
    "gpu of class": 0.07,
}
# Models of a set on one pair of GPUs err together: the variance they share over each one's own.
_TOGETHER = 0.25

_Column = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fitted:
    """The fitted law of a class.

    Attributes:
        exponents: of peak, bandwidth and power.
        families: ln, of generations, by name.
        gpus: the same of GPUs.
    """

    exponents: tuple[float, ...]
    families: Mapping[str, float]
    gpus: Mapping[str, float]

    def log(self, case: Case) -> float:
        """Return ln of the predicted speed-up."""
        found = float(np.dot(self.exponents, case_steps(case)))
        return found + self._effect(case.target) - self._effect(case.source)

    def _effect(self, gpu: str) -> float:
        return self.families.get(generation(gpu), 0.0) + self.gpus.get(gpu, 0.0)


@cache
def generation(gpu: str) -> str:
    """Return the generation of a GPU by its name."""
    return family(gpus()[gpu])


@cache
def _steps_of(source: str, target: str, precision: str | None) -> tuple[float, ...]:
    return steps(gpus()[source], gpus()[target], precision)


def case_steps(case: Case) -> tuple[float, ...]:
    """Return ln of the ratios of specifications of a case's two GPUs."""
    precision = CUDA if case.work == "fp32" else case.profile.job.precision
    return _steps_of(case.source, case.target, precision)


class Readings:
    """Cases as arrays, ready to be fitted without some of them.

    Cases of a model on a pair of GPUs are one reading, their median; the way back from one GPU to
    the other is not counted again.
    """

    def __init__(self, some: Sequence[Case]) -> None:
        """Take the cases of all classes."""
        grouped: dict[tuple[str | None, ...], list[Case]] = {}
        for case in some:
            if case.source < case.target and case.work in WORKS:
                key = (case.work, case.name, case.group, case.source, case.target)
                grouped.setdefault((*key, case.profile.job.precision), []).append(case)
        first = [cases[0] for cases in grouped.values()]
        self.y = np.array(
            [np.median([math.log(case.true) for case in cases]) for cases in grouped.values()]
        )
        self.work, self.set, self.group, self.source, self.target = (
            np.array(column)
            for column in zip(
                *((c.work, c.name, c.group, c.source, c.target) for c in first), strict=True
            )
        )
        self.families = np.array([{generation(c.source), generation(c.target)} for c in first])
        self.steps = np.array([case_steps(case) for case in first])
        like = [(c.work, c.name, c.source, c.target) for c in first]
        models = Counter(like)
        self._weight = np.array([1.0 / (1.0 + _TOGETHER * models[key]) for key in like])
        self._columns: dict[_Column, int] = {}
        entries = [(row, *entry) for row, case in enumerate(first) for entry in _entries(case)]
        for _, column, _ in entries:
            self._columns.setdefault(column, len(self._columns))
        self._x = np.zeros((len(first), len(self._columns)))
        for row, column, value in entries:
            self._x[row, self._columns[column]] += value
        self._ridge = np.diag([_WIDTHS[column[0]] ** -2.0 for column in self._columns])

    def without(self, *names: str) -> Mask:
        """Return the readings on none of the named GPUs."""
        found: Mask = ~np.isin(self.source, names) & ~np.isin(self.target, names)
        return found

    def fit(self, kept: Mask) -> dict[str, Fitted]:
        """Return the laws of the kept readings."""
        x, y = self._x[kept], (self.y - self.steps @ np.array(RULE))[kept]
        weight, beta = self._weight[kept], np.zeros(self._x.shape[1])
        for _ in range(_ROUNDS):
            off = np.maximum(np.abs(y - x @ beta), 1e-9)
            xw = x * (weight * np.minimum(1.0, _HUBER / off) / _NOISE**2)[:, None]
            beta = np.linalg.solve(xw.T @ x + self._ridge, xw.T @ y)
        return {work: self._law(work, beta) for work in WORKS}

    def _law(self, work: str, beta: Array) -> Fitted:
        def effect(kind: str, name: str) -> float:
            columns = (kind, name), (f"{kind} of class", name, work)
            return float(sum(beta[self._columns[c]] for c in columns if c in self._columns))

        names = {kind: [c[1] for c in self._columns if c[0] == kind] for kind in ("family", "gpu")}
        strays = (effect("exponent", feature) for feature in FEATURES)
        return Fitted(
            tuple(e + s for e, s in zip(RULE, strays, strict=True)),
            {name: effect("family", name) for name in names["family"]},
            {name: effect("gpu", name) for name in names["gpu"]},
        )


def _entries(case: Case) -> Iterator[tuple[_Column, float]]:
    """Yield the columns that a case has in the regression, shared and of its class."""
    labels = [
        ("exponent", name, value) for name, value in zip(FEATURES, case_steps(case), strict=True)
    ]
    for name, sign in ((case.target, 1.0), (case.source, -1.0)):
        labels += [("family", generation(name), sign), ("gpu", name, sign)]
    for kind, name, value in labels:
        yield (kind, name), value
        yield (f"{kind} of class", name, case.work), value


def error(model: Fitted, case: Case) -> float:
    """Return predicted less measured, ln, over what errors grow with."""
    return (model.log(case) - math.log(case.true)) / scale_of(case_steps(case))


def quantile(values: npt.ArrayLike) -> float:
    """Return the conformal quantile of absolute errors: the (n + 1) x 0.9th of them."""
    ranked = np.sort(np.abs(np.asarray(values, float)))
    place = math.ceil(COVERAGE * (len(ranked) + 1)) - 1
    return float(ranked[min(place, len(ranked) - 1)])


@dataclass(frozen=True, slots=True)
class Without:
    """A law that has not seen something, and what it would have predicted.

    Attributes:
        case: that is predicted.
        law: of its class.
        error: scaled, of the prediction.
    """

    case: Case
    law: Fitted
    error: float


def _scored(case: Case, law: Fitted) -> Without:
    return Without(case, law, error(law, case))


class LeftOut:
    """The laws of all classes without models, without each GPU, and without each generation."""

    def __init__(self, everything: Sequence[Case]) -> None:
        """Fit them."""
        cases = [case for case in everything if case.work in WORKS]
        readings = Readings(cases)
        self.cases = cases
        self.whole = readings.fit(np.ones(len(readings.y), bool))
        names = sorted({case.group for case in cases})
        fold_of = {name: place % _FOLDS for place, name in enumerate(names)}
        folds = [
            readings.fit(np.array([fold_of[name] != fold for name in readings.group]))
            for fold in range(_FOLDS)
        ]
        self.models = [_scored(c, folds[fold_of[c.group]][c.work]) for c in cases]
        targets = sorted({case.target for case in cases})
        no_gpu = {name: readings.fit(readings.without(name)) for name in targets}
        self.gpus = [_scored(c, no_gpu[c.target][c.work]) for c in cases]
        self.families = list(self._strange(readings))

    def _strange(self, readings: Readings) -> Iterator[Without]:
        """Yield pairs of two generations by laws whose class has not seen the target's."""
        laws: dict[tuple[str, str], Fitted] = {}
        for case in self.cases:
            new = generation(case.target)
            if new == generation(case.source):
                continue
            if (case.work, new) not in laws:
                seen = np.array([new in both for both in readings.families])
                kept = ~(seen & (readings.work == case.work))
                laws[case.work, new] = readings.fit(kept)[case.work]
            yield _scored(case, laws[case.work, new])

    def row(self, law: Fitted, work: str, keep: Callable[[Case], bool]) -> dict[str, Any]:
        """Return a row of `classes.toml`, its intervals from errors on what is kept."""
        seen, unseen, strange = (
            self._quantile(some, work, keep) for some in (self.models, self.gpus, self.families)
        )
        kept = [case for case in self.cases if case.work == work and keep(case)]
        return {
            **dict(zip(FEATURES, (round(e, 4) for e in law.exponents), strict=True)),
            "seen": seen,
            "unseen": max(seen, unseen),
            "strange": max(seen, unseen, strange),
            "measured": sorted({case.target for case in kept}),
            "family": _rounded(law.families),
            "gpu": _rounded(law.gpus),
        }

    @staticmethod
    def _quantile(some: Sequence[Without], work: str, keep: Callable[[Case], bool]) -> float:
        """Return the quantile of a class; of all classes where it has no errors to go by."""
        kept = [one for one in some if keep(one.case)]
        mine = [one.error for one in kept if one.case.work == work]
        return round(quantile(mine or [one.error for one in kept]), 4)

    def shipped(self, work: WorkClass) -> dict[str, Any]:
        """Return the row of a class fitted on all of its cases."""
        return self.row(self.whole[work], work, lambda _: True)

    def without_model(self, work: WorkClass) -> Iterator[tuple[list[Case], dict[str, Any]]]:
        """Yield the cases of each model with a row of a law and intervals that have not seen it."""
        yield from self._without(work, self.models, lambda case: case.group, _not_of_model)

    def without_gpu(self, work: WorkClass) -> Iterator[tuple[list[Case], dict[str, Any]]]:
        """Yield the cases to each GPU with a row of a law and intervals that have not seen it."""
        yield from self._without(work, self.gpus, lambda case: case.target, _not_on_gpu)

    def _without(
        self,
        work: WorkClass,
        some: Sequence[Without],
        key: Callable[[Case], str],
        keep: Callable[[str], Callable[[Case], bool]],
    ) -> Iterator[tuple[list[Case], dict[str, Any]]]:
        mine = [one for one in some if one.case.work == work]
        for name in sorted({key(one.case) for one in mine}):
            out = [one for one in mine if key(one.case) == name]
            yield [one.case for one in out], self.row(out[0].law, work, keep(name))


def _rounded(effects: Mapping[str, float]) -> dict[str, float]:
    return {name: round(effect, 4) for name, effect in sorted(effects.items())}


def _not_of_model(name: str) -> Callable[[Case], bool]:
    return lambda case: case.group != name


def _not_on_gpu(name: str) -> Callable[[Case], bool]:
    return lambda case: name not in (case.source, case.target)


@cache
def left_out(everything: tuple[Case, ...]) -> LeftOut:
    """Return the laws of some cases, each left out in turn."""
    return LeftOut(everything)
