"""The loader law, energy under a power cap, and power on another GPU."""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from planner.models.input_pipeline import loader_rate
from planner.models.power import CapLaw, idle_fraction
from research.class_fits import quantile
from research.score import Score, Section, errors

_KEY = ["dataset", "network", "batch_size", "optimizer"]
_CORES = (1, 2, 3, 4, 5, 6, 9, 12, 24)
_REFERENCE_CORES = 3
_POWERS = tuple(round(0.5 + 0.05 * step, 2) for step in range(11))
# The cards that were measured: the PCIe V100 (250 W); idle power was not among the columns.
_TDP_W = {"a40": 300.0, "v100": 250.0}
_IDLE_W = {"a40": idle_fraction("A40") * 300.0, "v100": idle_fraction("V100-16GB") * 250.0}
_LINEAR, _SQUARE = np.arange(0.0, 0.61, 0.02), np.arange(0.3, 1.21, 0.05)
_REACHED = (0.9, 0.925, 0.95, 0.975, 1.0)


def fed_rate(rate: float, before: float, after: float, roof: float, power: float) -> float:
    """Return the job's rate with other cores: the loader's, up to what the GPU can take."""
    return min(roof, rate * loader_rate(after, power) / loader_rate(before, power))


def carried_w(power_w: float, before: tuple[float, float], after: tuple[float, float]) -> float:
    """Return the power on another GPU; each GPU is its (idle, TDP), watts."""
    share = (power_w - before[0]) / (before[1] - before[0])
    return after[0] + min(1.0, max(0.0, share)) * (after[1] - after[0])


def loader_rates(folder: Path) -> pd.DataFrame:
    """Return the relative speed of each model (rows) by cores a GPU (columns)."""
    table = pd.read_csv(folder / "dataloading" / "cpu_sensitivity.csv", index_col=0, header=0)
    table.columns = list(_CORES)
    return table


def _loader_cases(table: pd.DataFrame, power: float) -> pd.DataFrame:
    """Return guess and truth of every model and number of cores, from 3 cores and a known roof."""
    rows = []
    for model, rates in table.iterrows():
        known, roof = float(rates[_REFERENCE_CORES]), float(rates.max())
        for cores in (count for count in _CORES if count != _REFERENCE_CORES):
            guess = fed_rate(known, _REFERENCE_CORES, float(cores), roof, power)
            rows.append((model, cores, guess, float(rates[cores])))
    return pd.DataFrame(rows, columns=["model", "cores", "guess", "true"])


def fitted_power(table: pd.DataFrame) -> float:
    """Return the exponent above 3 cores with the least mean error."""

    def mean(power: float) -> float:
        cases = _loader_cases(table, power)
        return errors(cases.guess, cases.true).mean

    return min(_POWERS, key=mean)


def loader_left_out(table: pd.DataFrame) -> pd.DataFrame:
    """Return guess and truth, each model by an exponent fitted on the others."""
    parts = []
    for model in table.index:
        power = fitted_power(table.drop(index=model))
        parts.append(_loader_cases(table.loc[[model]], power))
    return pd.concat(parts)


def loader_factor(table: pd.DataFrame) -> float:
    """Return the factor of the 90 % interval, over models that the loader limits at 3 cores."""
    cases = loader_left_out(table)
    limited = cases[cases.model.map(table.max(axis=1)) > cases.model.map(table[_REFERENCE_CORES])]
    return math.exp(quantile(np.abs(np.log(limited.guess / limited.true))))


def _loader(folder: Path) -> Score:
    table = loader_rates(folder)
    mine, linear = loader_left_out(table), _loader_cases(table, 1.0)
    return Score(
        question="job speed by host cores (loader law), GPU's roof known",
        cases=len(mine),
        ours=errors(mine.guess, mine.true),
        baseline=("in proportion to cores", errors(linear.guess, linear.true)),
        bar=(None, 8.0),
        note="exponent fitted without the model",
    )


def power_runs(folder: Path) -> pd.DataFrame:
    """Return power and time by GPU, job and cap, beside those of the same job without a cap."""
    parts = []
    for name in _TDP_W:
        rows = pd.read_csv(folder / "power" / f"summary_power_{name}.csv")
        free = rows[rows.power_limit == rows.power_limit.max()].set_index(_KEY)
        free = free[["time_per_epoch", "average_power"]].set_axis(["t0", "p0"], axis=1)
        parts.append(rows.join(free, on=_KEY).dropna().assign(gpu=name))
    return pd.concat(parts).reset_index(drop=True)


def fitted_cap_law(rows: pd.DataFrame) -> CapLaw:
    """Return the law of a cap with the least mean |ln error| of time, then of power, on a grid."""
    capped = rows[rows.power_limit < rows.groupby("gpu").power_limit.transform("max")]
    over = (capped.p0 / capped.power_limit - 1.0).clip(lower=0.0, upper=2.5).to_numpy()
    slow = np.log(np.asarray(capped.time_per_epoch / capped.t0))
    a, b = (grid.ravel() for grid in np.meshgrid(_LINEAR, _SQUARE))
    guess = np.log1p(np.outer(a, over) + np.outer(b, over**2))
    best = int(np.abs(guess - slow).mean(axis=1).argmin())

    def off(reached: float) -> float:
        power = np.minimum(capped.p0, reached * capped.power_limit)
        return float(np.abs(np.log(power / capped.average_power)).mean())

    return CapLaw(linear=float(a[best]), square=float(b[best]), reached=min(_REACHED, key=off))


def _cap_cases(rows: pd.DataFrame, *, gpu_unseen: bool) -> pd.DataFrame:
    """Return guess, naive guess and truth of energy; the network, or the GPU too, is left out."""
    parts = []
    for (gpu, network), mine in rows.groupby(["gpu", "network"]):
        rest = rows[rows.network != network]
        law = fitted_cap_law(rest[rest.gpu != gpu] if gpu_unseen else rest)
        capped = mine[mine.power_limit < mine.power_limit.max()]
        free = capped.t0 * capped.p0
        gain = [law.energy(w, c) for w, c in zip(capped.p0, capped.power_limit, strict=True)]
        true = capped.time_per_epoch * capped.average_power
        parts.append(pd.DataFrame({"guess": free * gain, "naive": free, "true": true}))
    return pd.concat(parts)


def _cap(rows: pd.DataFrame) -> list[Score]:
    scores = []
    for gpu_unseen, bar in ((False, (6.0, 10.0)), (True, (None, None))):
        cases = _cap_cases(rows, gpu_unseen=gpu_unseen)
        scores.append(
            Score(
                question=f"energy under a power cap, network {'and GPU ' * gpu_unseen}unseen",
                cases=len(cases),
                ours=errors(cases.guess, cases.true),
                baseline=("as without the cap", errors(cases.naive, cases.true)),
                bar=bar,
            )
        )
    return scores


def cap_factor(rows: pd.DataFrame) -> float:
    """Return the factor of the 90 % interval of energy under a cap, network and GPU unseen."""
    cases = _cap_cases(rows, gpu_unseen=True)
    return math.exp(quantile(np.abs(np.log(cases.guess / cases.true))))


def _other_gpu_cases(rows: pd.DataFrame) -> tuple[list[float], list[float], list[float]]:
    """Return guesses, the same share of TDP alone, and truth, both ways between the two GPUs."""
    free = rows[rows.power_limit == rows.groupby("gpu").power_limit.transform("max")]
    wide = free.pivot_table(index=_KEY, columns="gpu", values="average_power").dropna()
    guesses: list[float] = []
    share: list[float] = []
    truth: list[float] = []
    for before, after in (("a40", "v100"), ("v100", "a40")):
        here, there = _TDP_W[before], _TDP_W[after]
        idle = _IDLE_W[before], _IDLE_W[after]
        for watts, true in zip(wide[before], wide[after], strict=True):
            guesses.append(carried_w(watts, (idle[0], here), (idle[1], there)))
            share.append(watts / here * there)
            truth.append(true)
    return guesses, share, truth


def other_gpu_factor(rows: pd.DataFrame) -> float:
    """Return the factor of the 90 % interval of power on another GPU."""
    guesses, _, truth = _other_gpu_cases(rows)
    return math.exp(quantile(np.abs(np.log(np.divide(guesses, truth)))))


def section(folder: Path) -> Section:
    """Return all scores of the host and of power."""
    rows = power_runs(folder)
    guesses, share, truth = _other_gpu_cases(rows)
    other = Score(
        question="power on another GPU",
        cases=len(truth),
        ours=errors(guesses, truth),
        baseline=("same share of TDP", errors(share, truth)),
        bar=(15.0, 18.0),
        note="nothing fitted: idle power is that of like GPUs of the hardware table",
    )
    return Section(
        title="Host and power",
        scores=(_loader(folder), *_cap(rows), other),
        notes=(
            """\
Loader: 12 models by 1 to 24 cores a GPU (Synergy; partly interpolated by its authors). Power:
training on a V100 and an A40 at 7 and 9 power limits (Zeus); the bar of the cap is held with the
network unseen, not with the GPU unseen, too. Power on another GPU rests on two cards and on idle
power that was not measured on them.""",
        ),
    )
