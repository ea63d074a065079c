"""A hierarchical regression of log throughput: effects with prior widths, solved in closed form.

Each run is a sum of effects: its task, the specifications of its GPU, its architecture, the GPU
itself, and how far its task departs from these. An effect has a prior mean and a prior width (one a
group); the posterior is that of Bayesian linear regression. The widths are those under which the
older runs (v0) are most likely; no run of the tables that are predicted (v1) has a say in them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from research.throughput import Run, specs_of

Key = tuple[str, ...]
Features = dict[Key, float]
Array = npt.NDArray[np.float64]

# Prior means of the slopes: half a roofline, less what launches and latencies take.
PRIOR_MEANS: Mapping[Key, float] = {
    ("slope", "peak"): 0.33,
    ("slope", "bandwidth"): 0.52,
    ("memory",): 0.3,
}
# Where the search for the widths starts, and the middle of their own prior (log width +- 1).
START: Mapping[str, float] = {
    "slope": 0.10,
    "memory": 0.15,
    "slope-precision": 0.05,
    "architecture": 0.08,
    "gpu": 0.08,
    "geforce": 0.12,
    "architecture-precision": 0.03,
    "gpu-precision": 0.02,
    "task-slope": 0.09,
    "task-architecture": 0.06,
    "task-gpu": 0.04,
    "version-gpu": 0.02,
    "noise": 0.02,
}
_TASK_WIDTH = 10.0  # a task's own level is free


def features(run: Run) -> Features:
    """Return the effects of one run with their factors."""
    spec = specs_of(run.gpu, run.used)
    peak, bandwidth, memory = spec.logs
    found: Features = {
        ("task", run.version, run.task, run.named): 1.0,
        ("slope", "peak"): peak,
        ("slope", "bandwidth"): bandwidth,
        ("slope-precision", "peak", run.used): peak,
        ("slope-precision", "bandwidth", run.used): bandwidth,
        ("memory",): memory,
        ("geforce",): float(spec.is_geforce),
        ("architecture", spec.architecture): 1.0,
        ("gpu", run.gpu): 1.0,
        ("architecture-precision", spec.architecture, run.used): 1.0,
        ("gpu-precision", run.gpu, run.used): 1.0,
        ("task-slope", run.task, "peak"): peak,
        ("task-slope", run.task, "bandwidth"): bandwidth,
        ("task-slope", run.task, "memory"): memory,
        ("task-architecture", run.task, spec.architecture): 1.0,
        ("task-gpu", run.version, run.task, run.gpu): 1.0,
        ("version-gpu", run.version, run.gpu): 1.0,
    }
    return found


def _width(group: str, widths: Mapping[str, float]) -> float:
    return _TASK_WIDTH if group == "task" else widths[group]


@dataclass(frozen=True, slots=True)
class Fit:
    """The posterior of all effects seen in the fit.

    Attributes:
        columns: place of each effect.
        mean: posterior means.
        covariance: of the effects.
        widths: prior widths by group, and "noise".
    """

    columns: Mapping[Key, int]
    mean: Array
    covariance: Array
    widths: Mapping[str, float]

    def expect(self, wanted: Features, *, readings: int = 1) -> tuple[float, float]:
        """Return mean and standard deviation of a sum of effects, with the noise of `readings`.

        An effect that no run of the fit has keeps its prior.
        """
        x, mean, variance = np.zeros(len(self.mean)), 0.0, readings * self.widths["noise"] ** 2
        for key, factor in wanted.items():
            place = self.columns.get(key)
            if place is None:
                mean += factor * PRIOR_MEANS.get(key, 0.0)
                variance += (factor * _width(key[0], self.widths)) ** 2
            else:
                x[place] = factor
        return mean + float(x @ self.mean), float(np.sqrt(variance + x @ self.covariance @ x))

    def effect(self, *key: str) -> float:
        """Return the posterior mean of one effect; its prior where no run of the fit has it."""
        place = self.columns.get(key)
        return PRIOR_MEANS.get(key, 0.0) if place is None else float(self.mean[place])


FAMILIES = {"half": "fp16", "single": "fp32"}


def speed_table(model: Fit, runs: Sequence[Run]) -> dict[str, Any]:
    """Return a fit as `fitted_speed` reads it: `speed.toml` without the intervals."""
    gpus = sorted({run.gpu for run in runs})
    architectures = sorted({specs_of(gpu, "fp16").architecture for gpu in gpus})
    found: dict[str, Any] = {
        "memory": round(model.effect("memory"), 4),
        "geforce": round(model.effect("geforce"), 4),
        "widths": dict(model.widths),
    }

    def both(group: str, name: str, precision: str) -> float:
        own = model.effect(f"{group}-precision", name, precision)
        return round(model.effect(group, name) + own, 4)

    for part, precision in FAMILIES.items():
        row: dict[str, Any] = {}
        for name in ("peak", "bandwidth"):
            own = model.effect("slope-precision", name, precision)
            row[name] = round(model.effect("slope", name) + own, 4)
        row["architecture"] = {n: both("architecture", n, precision) for n in architectures}
        row["gpu"] = {n: both("gpu", n, precision) for n in gpus}
        found[part] = row
    return found


def difference(after: Features, before: Features) -> Features:
    """Return the effects of a ratio of two runs; what both share cancels."""
    keys = dict.fromkeys((*after, *before))
    found = {key: after.get(key, 0.0) - before.get(key, 0.0) for key in keys}
    return {key: factor for key, factor in found.items() if factor}


def _design(runs: Sequence[Run]) -> tuple[dict[Key, int], Array, Array]:
    rows = [features(run) for run in runs]
    columns = {key: place for place, key in enumerate(dict.fromkeys(k for r in rows for k in r))}
    x = np.zeros((len(rows), len(columns)))
    for number, row in enumerate(rows):
        for key, factor in row.items():
            x[number, columns[key]] = factor
    return columns, x, np.array([run.log_rate for run in runs])


def fit(runs: Iterable[Run], widths: Mapping[str, float]) -> Fit:
    """Return the posterior of the effects of some runs."""
    columns, x, y = _design(tuple(runs))
    prior = np.array([PRIOR_MEANS.get(key, 0.0) for key in columns])
    precision = np.array([_width(key[0], widths) ** -2.0 for key in columns])
    noise = widths["noise"] ** -2.0
    covariance = np.linalg.inv(noise * x.T @ x + np.diag(precision))
    mean = covariance @ (noise * x.T @ y + precision * prior)
    return Fit(columns=columns, mean=mean, covariance=covariance, widths=widths)


def likeliest_widths(runs: Sequence[Run]) -> dict[str, float]:
    """Return the prior widths under which the runs are most likely (restricted, with a weak prior).

    Needs scipy.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - only a new fit needs scipy

    names = tuple(START)
    start = np.log([START[name] for name in names])
    kernels, z = _kernels(runs, names[:-1])

    def loss(logs: Array) -> tuple[float, Array]:
        squares = np.exp(2.0 * logs)
        total = squares[-1] * np.eye(len(z))
        for square, kernel in zip(squares, kernels, strict=False):
            total = total + square * kernel
        inverse = np.linalg.inv(total)
        solved = inverse @ z
        value = 0.5 * z @ solved + 0.5 * np.linalg.slogdet(total)[1]
        slope = inverse - np.outer(solved, solved)
        gradient = [q * np.sum(slope * k) for q, k in zip(squares, kernels, strict=False)]
        gradient.append(squares[-1] * np.trace(slope))
        away = logs - start
        return float(value + 0.5 * away @ away), np.array(gradient) + away

    best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x
    return {name: round(float(np.exp(log)), 4) for name, log in zip(names, best, strict=True)}


def _kernels(runs: Sequence[Run], groups: Sequence[str]) -> tuple[list[Array], Array]:
    """Return each group's kernel and the readings, both with the tasks' levels projected out."""
    columns, x, y = _design(runs)
    of = np.array([key[0] for key in columns])
    prior = np.array([PRIOR_MEANS.get(key, 0.0) for key in columns])
    tasks = x[:, of == "task"]
    rest = np.linalg.qr(tasks, mode="complete")[0][:, tasks.shape[1] :]
    return [rest.T @ x[:, of == group] @ x[:, of == group].T @ rest for group in groups], rest.T @ (
        y - x @ prior
    )
