"""Fits the laws of all classes of work together, and their intervals; models and GPUs left out.

One hierarchical regression of ln speed-up on ln ratios of specifications, on the generation and on
the GPU: what all classes share, and what each strays from it. All is shrunk to the geometric mean
of peak and bandwidth, so that a class with few readings is never far from it. Residuals count by
their square up to `_HUBER` and by their size beyond, so that a saturated server or an odd box does
not set an exponent.

How far a class goes by its law, and how far by the rule that the law is shrunk to, is decided from
errors on what was left out of the fit, apart for GPUs that the class measured and for others. An
evaluation decides without what it scores: that is left out of the decision, too, whose errors come
from fits without both (nested cross-validation).
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.models.gpu_speed import CUDA, FEATURES, RULE, WorkClass, family, scale_of, steps
from pricing.hardware import gpus
from research.published import Case

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]
COVERAGE = 0.9
_HUBER = 0.1  # ln
_NOISE = 0.15  # ln, of a model's speed-up between two GPUs
_ROUNDS = 5
_FOLDS = 10  # of models

# The two-line rules that a law stands beside: exponents of peak, bandwidth and power limit.
RULES: Mapping[str, tuple[float, ...]] = {
    "peak": (1.0, 0.0, 0.0),
    "bandwidth": (0.0, 1.0, 0.0),
    "geometric mean": RULE,
    "no change": (0.0, 0.0, 0.0),
}
# What a class may take of its law, the rest being the rule, and the most that its errors may be
# then over those of the best rule, median and mean: a law goes alone where it is ahead by a fifth.
_TRUSTS = ((1.0, 0.8), (0.5, 1.0), (0.0, 1.0))
_HALF = 0.5
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
            if case.source < case.target:
                key = (case.work, case.name, case.group, case.source, case.target)
                grouped.setdefault((*key, case.profile.job.precision), []).append(case)
        first = [cases[0] for cases in grouped.values()]
        self.y = np.array(
            [np.median([math.log(case.true) for case in cases]) for cases in grouped.values()]
        )
        self.work, self.group, self.source, self.target = (
            np.array(column)
            for column in zip(*((c.work, c.group, c.source, c.target) for c in first), strict=True)
        )
        self.families = np.array([{generation(c.source), generation(c.target)} for c in first])
        self._rule = np.array([case_steps(case) for case in first]) @ np.array(RULE)
        like = [(c.work, c.name, c.source, c.target) for c in first]
        models = Counter(like)
        self._weight = np.array([1.0 / (1.0 + _TOGETHER * models[key]) for key in like])
        columns = dict.fromkeys(column for case in first for column, _ in _entries(case))
        self._columns: dict[_Column, int] = {name: place for place, name in enumerate(columns)}
        self._x = self.design(first)
        self._ridge = np.diag([_WIDTHS[column[0]] ** -2.0 for column in self._columns])

    def design(self, some: Sequence[Case]) -> Array:
        """Return the rows of some cases: the factor of each effect."""
        x = np.zeros((len(some), len(self._columns)))
        for row, case in enumerate(some):
            for column, value in _entries(case):
                if column in self._columns:
                    x[row, self._columns[column]] += value
        return x

    def without(self, *names: str) -> Mask:
        """Return the readings on none of the named GPUs."""
        found: Mask = ~np.isin(self.source, names) & ~np.isin(self.target, names)
        return found

    def fit(self, kept: Mask, also_without: Sequence[Mask] = ()) -> tuple[Array, list[Array]]:
        """Return the effects by the kept readings, and by less of them still.

        Args:
            kept: readings to fit.
            also_without: of these, each in turn, the ones to fit by the same weights.
        """
        x, y = self._x[kept], (self.y - self._rule)[kept]
        weight, beta = self._weight[kept], np.zeros(self._x.shape[1])
        for _ in range(_ROUNDS):
            off = np.maximum(np.abs(y - x @ beta), 1e-9)
            xw = x * (weight * np.minimum(1.0, _HUBER / off) / _NOISE**2)[:, None]
            gram, to = xw.T @ x + self._ridge, xw.T @ y
            beta = np.linalg.solve(gram, to)
        fewer = []
        for still in also_without:
            gone = ~still[kept]
            less = gram - xw[gone].T @ x[gone]
            fewer.append(np.linalg.solve(less, to - xw[gone].T @ y[gone]))
        return beta, fewer

    def law(self, work: str, beta: Array) -> Fitted:
        """Return the law of a class by the effects."""

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


def quantile(values: npt.ArrayLike) -> float:
    """Return the conformal quantile of absolute errors: the (n + 1) x 0.9th of them."""
    ranked = np.sort(np.abs(np.asarray(values, float)))
    place = math.ceil(COVERAGE * (len(ranked) + 1)) - 1
    return float(ranked[min(place, len(ranked) - 1)])


def widening(gpus: int) -> float:
    """Return what an interval is widened by as errors to a GPU go together: there are few of these.

    Student's t with a degree of freedom less than GPUs over the normal quantile, to first order.
    """
    z = NormalDist().inv_cdf((1.0 + COVERAGE) / 2.0)
    return 1.0 + (z**2 + 1.0) / (4.0 * max(1, gpus - 1))


@dataclass(frozen=True, slots=True)
class _Way:
    """One way of leaving out: whole models, or whole GPUs.

    Attributes:
        unit: what each case is scored without.
        touched: by unit, the cases that its fit has not seen.
        effects: by unit, of the fit without it.
        log: ln of the law's speed-up of each case without its unit.
        inner: by unit, cases of other units with ln of the law's speed-up without both.
    """

    unit: npt.NDArray[Any]
    touched: Mapping[Any, Mask]
    effects: Mapping[Any, Array]
    log: Array
    inner: Mapping[Any, tuple[Places, Array]]


class LeftOut:
    """The laws of all classes without models, without each GPU, and without each generation."""

    def __init__(self, everything: Sequence[Case]) -> None:
        """Fit them."""
        self.cases = [case for case in everything if case.work in WORKS]
        self._readings = readings = Readings(self.cases)
        self._work = np.array([case.work for case in self.cases])
        self._true = np.log([case.true for case in self.cases])
        kinds: dict[tuple[object, ...], int] = {}
        alike = [(c.work, c.source, c.target, case_steps(c)) for c in self.cases]
        self._kind = np.array([kinds.setdefault(key, len(kinds)) for key in alike])
        first = np.unique(self._kind, return_index=True)[1]
        self._x = readings.design([self.cases[place] for place in first])
        logs = np.array([case_steps(case) for case in self.cases])
        self._scale = np.array([scale_of(tuple(row)) for row in logs])
        self._rules = {name: logs @ np.array(exponents) for name, exponents in RULES.items()}
        self._rule = logs @ np.array(RULE)
        self.whole, _ = readings.fit(np.ones(len(readings.y), bool))
        group = np.array([case.group for case in self.cases])
        names, fold = np.unique(group, return_inverse=True)
        fold %= _FOLDS
        of_reading = np.searchsorted(names, readings.group) % _FOLDS
        self._models = self._left_out(
            fold,
            {n: fold == n for n in range(_FOLDS)},
            {n: of_reading != n for n in range(_FOLDS)},
        )
        source, target = (
            np.array([getattr(case, end) for case in self.cases]) for end in ("source", "target")
        )
        each = [str(name) for name in np.unique(target)]
        self._gpus = self._left_out(
            target,
            {name: (source == name) | (target == name) for name in each},
            {name: readings.without(name) for name in each},
        )
        self._strange = self._without_generation(source, target)

    def _log(self, beta: Array, places: Places) -> Array:
        found: Array = self._rule[places] + (self._x @ beta)[self._kind[places]]
        return found

    def _left_out(
        self, unit: npt.NDArray[Any], touched: Mapping[Any, Mask], kept: Mapping[Any, Mask]
    ) -> _Way:
        log, effects, inner = np.zeros(len(unit)), {}, {}
        for name, mask in kept.items():
            others = [other for other in kept if other != name]
            effects[name], fewer = self._readings.fit(mask, [kept[other] for other in others])
            mine = np.flatnonzero(unit == name)
            log[mine] = self._log(effects[name], mine)
            rest = [np.flatnonzero((unit == other) & ~touched[name]) for other in others]
            logs = [self._log(beta, places) for beta, places in zip(fewer, rest, strict=True)]
            inner[name] = np.concatenate(rest), np.concatenate(logs)
        return _Way(unit, touched, effects, log, inner)

    def _without_generation(
        self, source: npt.NDArray[Any], target: npt.NDArray[Any]
    ) -> tuple[Places, Array]:
        """Return pairs of two generations, by laws whose class has not seen the target's."""
        readings, places, logs = self._readings, [], []
        old, new = (np.array([generation(name) for name in end]) for end in (source, target))
        for work, name in itertools.product(WORKS, np.unique(new)):
            some = np.flatnonzero((self._work == work) & (new == name) & (old != name))
            if len(some):
                seen = np.array([name in both for both in readings.families])
                beta, _ = readings.fit(~(seen & (readings.work == work)))
                places.append(some)
                logs.append(self._log(beta, some))
        return np.concatenate(places), np.concatenate(logs)

    def trust(self, work: str, places: Places, log: Array) -> float:
        """Return how far a class goes by its law, from errors of the law on some cases."""
        mine = self._work[places] == work
        if not mine.any():  # not measured otherwise: by what all classes show
            mine[:] = True
        places, log = places[mine], log[mine]
        best = np.min([self._errors(rule[places], places) for rule in self._rules.values()], axis=0)
        for trust, most in _TRUSTS:
            mixed = trust * log + (1.0 - trust) * self._rule[places]
            if (self._errors(mixed, places) <= most * best).all():
                return trust
        return _HALF

    def _errors(self, log: Array, places: Places) -> Array:
        off = np.abs(np.expm1(log - self._true[places]))
        return np.array([np.median(off), np.mean(off)])

    def _row(
        self, work: str, beta: Array, trusts: tuple[float, float], keep: Mask
    ) -> dict[str, Any]:
        """Return a row of `classes.toml`, its intervals from errors on what is kept."""
        law, every = self._readings.law(work, beta), np.arange(len(self.cases))
        seen = self._quantile(work, trusts[0], every, self._models.log, keep)
        unseen = self._quantile(work, trusts[1], every, self._gpus.log, keep)
        strange = self._quantile(work, trusts[1], *self._strange, keep)
        kept = np.flatnonzero((self._work == work) & keep)
        measured = sorted({self.cases[place].target for place in kept})
        more = widening(len(measured))
        return {
            **dict(zip(FEATURES, (round(e, 4) for e in law.exponents), strict=True)),
            "trust": trusts[0],
            "trust_unseen": trusts[1],
            "seen": round(more * seen, 4),
            "unseen": round(more * max(seen, unseen), 4),
            "strange": round(more * max(seen, unseen, strange), 4),
            "measured": measured,
            "family": _rounded(law.families),
            "gpu": _rounded(law.gpus),
        }

    def _quantile(self, work: str, trust: float, places: Places, log: Array, keep: Mask) -> float:
        """Return the quantile of a class; of all classes where it has no errors to go by."""
        off = trust * log + (1.0 - trust) * self._rule[places] - self._true[places]
        scaled, kept = off / self._scale[places], keep[places]
        mine = kept & (self._work[places] == work)
        return quantile(scaled[mine if mine.any() else kept])

    def shipped(self, work: WorkClass) -> dict[str, Any]:
        """Return the row of a class fitted on all of its cases."""
        every = np.arange(len(self.cases))
        seen, unseen = (self.trust(work, every, way.log) for way in (self._models, self._gpus))
        return self._row(work, self.whole, (seen, unseen), np.ones(len(every), bool))

    def without_model(self, work: WorkClass) -> Iterator[tuple[list[Case], dict[str, Any]]]:
        """Yield the cases of each model with a row of a law and intervals that have not seen it."""
        yield from self._without(work, self._models)

    def without_gpu(self, work: WorkClass) -> Iterator[tuple[list[Case], dict[str, Any]]]:
        """Yield the cases to each GPU with a row of a law and intervals that have not seen it."""
        yield from self._without(work, self._gpus)

    def _without(self, work: WorkClass, way: _Way) -> Iterator[tuple[list[Case], dict[str, Any]]]:
        for name, touched in way.touched.items():
            mine = np.flatnonzero((self._work == work) & (way.unit == name))
            if not len(mine):
                continue
            rest = np.flatnonzero(~touched)
            other = self._gpus if way is self._models else self._models
            trusts = self.trust(work, *way.inner[name]), self.trust(work, rest, other.log[rest])
            if way is self._gpus:
                trusts = trusts[::-1]
            row = self._row(work, way.effects[name], trusts, ~touched)
            yield [self.cases[place] for place in mine], row


def _rounded(effects: Mapping[str, float]) -> dict[str, float]:
    return {name: round(effect, 4) for name, effect in sorted(effects.items())}


@cache
def left_out(everything: tuple[Case, ...]) -> LeftOut:
    """Return the laws of some cases, each left out in turn."""
    return LeftOut(everything)
