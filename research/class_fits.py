"""Fits the law of each class of work, and what its intervals must be; models and GPUs left out.

A law's few exponents are a robust ridge regression of ln speed-up on ln ratios of specifications:
residuals count by their square up to `_HUBER` and by their size beyond, so that a saturated server
or an odd box does not set an exponent. Priors are what physics says before any figure: half a
roofline, shared with the power limit where boards of one chip differ by it.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.models.gpu_speed import CUDA, FEATURES, WorkClass, family, scale_of, steps
from pricing.hardware import gpus
from research.published import Case, of_class

Array = npt.NDArray[np.float64]
COVERAGE = 0.9
_HUBER = 0.1  # ln
_NOISE = 0.15  # ln, of a model's speed-up between two GPUs
_ROUNDS = 30


@dataclass(frozen=True, slots=True)
class Prior:
    """What is expected of a law before the figures.

    Attributes:
        exponents: of peak, bandwidth and power.
        widths: how far each may stray; 0 = it does not.
        families: generations whose own effect is fitted, too.
        family_width: how far that may stray from none.
    """

    exponents: tuple[float, float, float]
    widths: tuple[float, float, float]
    families: tuple[str, ...] = ()
    family_width: float = 0.2


_ANY = (0.15, 0.15, 0.15)
_INFERENCE = Prior((0.3, 0.2, 0.3), _ANY, ("Blackwell",))
PRIORS: Mapping[WorkClass, Prior] = {
    "llm-training": Prior((0.4, 0.3, 0.3), _ANY),
    # Few and uneven rows: no fit of theirs was better than the geometric mean itself.
    "scaled-training": Prior((0.5, 0.5, 0.0), (0.0, 0.0, 0.0)),
    "fp32": Prior((0.5, 0.5, 0.0), (0.15, 0.15, 0.0)),
    "inference": _INFERENCE,
    "llm-decode": _INFERENCE,
    "llm-prefill": Prior((0.5, 0.0, 0.0), (0.15, 0.0, 0.0)),
}
# Classes whose law is one: fitted together it predicts either better than its own does.
TOGETHER: Mapping[WorkClass, tuple[WorkClass, ...]] = {
    "inference": ("inference", "llm-decode"),
    "llm-decode": ("inference", "llm-decode"),
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted law.

    Attributes:
        exponents: of peak, bandwidth and power.
        families: ln, of the generations that have an effect of their own.
    """

    exponents: tuple[float, ...]
    families: Mapping[str, float]

    def log(self, case: Case) -> float:
        """Return ln of the predicted speed-up."""
        found = float(np.dot(self.exponents, _steps(case)))
        ends = (self.families.get(family(gpus()[name]), 0.0) for name in (case.source, case.target))
        before, after = ends
        return found + after - before


@cache
def _steps_of(source: str, target: str, precision: str | None) -> tuple[float, ...]:
    return steps(gpus()[source], gpus()[target], precision)


def _steps(case: Case) -> tuple[float, ...]:
    precision = CUDA if case.work == "fp32" else case.profile.job.precision
    return _steps_of(case.source, case.target, precision)


class Table:
    """Cases as arrays, ready to be fitted without some of them."""

    def __init__(self, some: Sequence[Case], prior: Prior) -> None:
        """Take the cases, and what is expected of their law."""
        self.prior = prior
        names = prior.families
        self._expected = np.array([*prior.exponents, *(0.0 for _ in names)])
        self._widths = np.array([*prior.widths, *(prior.family_width for _ in names)])
        self._x = np.array([_row(case, names) for case in some])
        self._y = np.array([math.log(case.true) for case in some])
        self._weight = _weights(some)

    def fit(self, kept: npt.NDArray[np.bool_] | None = None) -> Fitted:
        """Return the law of the kept cases, None = all; the prior itself where there is none."""
        rows = np.ones(len(self._y), bool) if kept is None else kept
        free, found = self._widths > 0.0, self._expected.copy()
        if rows.any() and free.any():
            x = self._x[rows]
            y = self._y[rows] - x[:, ~free] @ self._expected[~free]
            expected, widths = self._expected[free], self._widths[free]
            found[free] = _robust(x[:, free], y, self._weight[rows], expected, widths)
        cut = len(FEATURES)
        effects = (float(value) for value in found[cut:])
        return Fitted(
            exponents=tuple(float(value) for value in found[:cut]),
            families=dict(zip(self.prior.families, effects, strict=True)),
        )


def _row(case: Case, names: Sequence[str]) -> tuple[float, ...]:
    before, after = (family(gpus()[name]) for name in (case.source, case.target))
    return (*_steps(case), *(float(after == name) - float(before == name) for name in names))


def _robust(x: Array, y: Array, weight: Array, expected: Array, widths: Array) -> Array:
    found: Array = expected
    for _ in range(_ROUNDS):
        off = np.maximum(np.abs(y - x @ found), 1e-9)
        w = weight * np.minimum(1.0, _HUBER / off) / _NOISE**2
        left = (x * w[:, None]).T @ x + np.diag(widths**-2.0)
        found = np.asarray(
            np.linalg.solve(left, (x * w[:, None]).T @ y + expected / widths**2.0), float
        )
    return found


def _weights(some: Sequence[Case]) -> Array:
    """Return the weight of each case.

    Rows of a model on a pair of GPUs are one reading, and a pair of a set counts as the root of its
    models.
    """
    keys = [(case.name, case.source, case.target, case.group) for case in some]
    rows = Counter(keys)
    models = Counter(key[:3] for key in rows)
    return np.array([1.0 / rows[key] / math.sqrt(models[key[:3]]) for key in keys])


def error(model: Fitted, case: Case) -> float:
    """Return predicted less measured, ln, over what errors grow with."""
    return (model.log(case) - math.log(case.true)) / scale_of(_steps(case))


def quantile(values: npt.ArrayLike) -> float:
    """Return the conformal quantile of absolute errors: the (n + 1) x 0.9th of them."""
    ranked = np.sort(np.abs(np.asarray(values, float)))
    place = math.ceil(COVERAGE * (len(ranked) + 1)) - 1
    return float(ranked[min(place, len(ranked) - 1)])


@dataclass(frozen=True)
class LeftOut:
    """The laws of a class without a whole model, or without a whole GPU, and their errors.

    Attributes:
        some: the cases of the class.
        models: the law without each model.
        gpus: the law without each GPU.
    """

    some: Sequence[Case]
    models: Mapping[str, Fitted]
    gpus: Mapping[str, Fitted]

    @cached_property
    def of_models(self) -> Array:
        """Scaled errors, each case by the law without its model."""
        return np.array([error(self.models[case.group], case) for case in self.some])

    @cached_property
    def of_gpus(self) -> Array:
        """Scaled errors, each case by the law without its target."""
        return np.array([error(self.gpus[case.target], case) for case in self.some])


def leave_out(everything: Sequence[Case], work: WorkClass) -> LeftOut:
    """Return the laws of a class with whole models, and with whole GPUs, left out."""
    mine = of_class(everything, work)
    together = [case for case in everything if case.work in TOGETHER.get(work, (work,))]
    table = Table(together, PRIORS[work])
    groups = np.array([case.group for case in together])
    ends = np.array([(case.source, case.target) for case in together])
    return LeftOut(
        some=mine,
        models={name: table.fit(groups != name) for name in sorted({c.group for c in mine})},
        gpus={
            name: table.fit((ends != name).all(axis=1)) for name in sorted({c.target for c in mine})
        },
    )


def row(model: Fitted, known: Sequence[str], seen: float, unseen: float) -> dict[str, Any]:
    """Return a row of `classes.toml`."""
    found: dict[str, Any] = dict(zip(FEATURES, (round(e, 4) for e in model.exponents), strict=True))
    found |= {"seen": round(seen, 4), "unseen": round(max(seen, unseen), 4), "gpus": list(known)}
    if model.families:
        found["family"] = {name: round(effect, 4) for name, effect in model.families.items()}
    return found


def measured(some: Sequence[Case]) -> list[str]:
    """Return the GPUs of some cases."""
    return sorted({case.target for case in some} | {case.source for case in some})


def shipped(everything: Sequence[Case], work: WorkClass) -> dict[str, Any]:
    """Return the row of a class fitted on all of its cases."""
    together = [case for case in everything if case.work in TOGETHER.get(work, (work,))]
    left = leave_out(everything, work)
    return row(
        Table(together, PRIORS[work]).fit(),
        measured(left.some),
        quantile(left.of_models),
        quantile(left.of_gpus),
    )


def without_model(
    everything: Sequence[Case], work: WorkClass
) -> Iterator[tuple[list[Case], dict[str, Any]]]:
    """Yield the cases of each model with the row of a law and intervals that have not seen it."""
    left = leave_out(everything, work)
    groups = np.array([case.group for case in left.some])
    for group, model in left.models.items():
        others = groups != group
        mine = [case for case in left.some if case.group == group]
        known = measured([case for case in left.some if case.group != group] or mine)
        errors = left.of_models[others] if others.any() else left.of_models
        unseen = left.of_gpus[others] if others.any() else left.of_gpus
        yield mine, row(model, known, quantile(errors), quantile(unseen))


def without_gpu(
    everything: Sequence[Case], work: WorkClass
) -> Iterator[tuple[list[Case], dict[str, Any]]]:
    """Yield the cases to each GPU with the row of a law and intervals that have not seen it."""
    left = leave_out(everything, work)
    ends = np.array([(case.source, case.target) for case in left.some])
    for gpu, model in left.gpus.items():
        others = (ends != gpu).all(axis=1)
        mine = [case for case in left.some if case.target == gpu]
        known = [name for name in measured(left.some) if name != gpu]
        errors = left.of_gpus[others] if others.any() else left.of_gpus
        yield mine, row(model, known, quantile(errors), quantile(errors))
