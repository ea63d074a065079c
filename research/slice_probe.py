"""Jobs on slices of a GPU (MIG) when one slice was measured: each model left out in turn."""

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from planner.models.coefficients import coefficients, fitted_as
from planner.prediction.slices import OFFSET, slowdown_there, speed_by_probe
from research.class_fits import quantile
from research.score import Coverage, Score, Section, errors

_WHOLE = "7g.40gb"
_MEMORY = 40.0
_PROBE = "2g.10gb"
_BAR = 0.05
"""The most that the mean absolute error of the speed may be with one measured slice."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One training job on two slices of an A100.

    Attributes:
        model: what is trained.
        probe: the slice that was measured.
        seen: its share of the compute and of the memory.
        there: those of the slice that is asked about.
        speed: on the measured slice, relative to the whole GPU.
        true: on the other.
    """

    model: str
    probe: str
    seen: tuple[float, float]
    there: tuple[float, float]
    speed: float
    true: float


def pairs(folder: Path) -> tuple[Pair, ...]:
    """Return every two slices on which MISO ran a job, by its mean iteration time.

    The mean is what a job's length follows; the median is not, where iterations differ in size.
    """
    times: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    with (folder / "miso" / "mig_iter_times.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            times[row["model"], row["batch"]][row["slice"]] = float(row["mean_iter_s"])
    return tuple(
        Pair(
            model, probe, _shares(probe), _shares(name), whole / of_job[probe], whole / of_job[name]
        )
        for (model, _), of_job in sorted(times.items())
        if (whole := of_job.get(_WHOLE))
        for probe in sorted(of_job)
        for name in sorted(of_job)
        if len({probe, name, _WHOLE}) == len((probe, name, _WHOLE))
    )


def _shares(name: str) -> tuple[float, float]:
    compute, memory = name.split("g.")
    # The memory of an A100 is cut in eighths: 1g.5gb, 2g.10gb, 3g.20gb and 4g.20gb of 40.
    return int(compute) / 7.0, float(memory.removesuffix("gb")) / _MEMORY


def fitted(some: Sequence[Pair]) -> dict[str, Any]:
    """Return the law, and the factor of its interval: of models left out of the law in turn."""
    ratios: list[float] = []
    for model in {one.model for one in some}:
        law = _law([one for one in some if one.model != model])
        ratios += [
            math.log((_slowdown(law, one) + OFFSET) / (max(0.0, 1.0 / one.true - 1.0) + OFFSET))
            for one in some
            if one.model == model
        ]
    return {
        "law": [round(one, 3) for one in _law(some)],
        "factor": round(math.exp(quantile(ratios)), 3),
    }


def _law(some: Sequence[Pair]) -> list[float]:
    def off(law: Sequence[float]) -> list[float]:
        return [1.0 / (1.0 + _slowdown(law, one)) - one.true for one in some]

    found = least_squares(off, (1.0, 1.0, 0.0), loss="soft_l1", f_scale=0.05)
    return [float(one) for one in found.x]


def _slowdown(law: Sequence[float], one: Pair) -> float:
    a, b, e = law
    return slowdown_there(1.0 / one.speed - 1.0, one.seen, one.there, (a, b, e))


@dataclass(frozen=True, slots=True)
class Guess:
    """A speed predicted by a law fitted without the model in question."""

    pair: Pair
    mid: float
    spread: float
    inside: bool


def guesses(known: Sequence[Pair]) -> Iterator[Guess]:
    """Yield the prediction of each pair, its model left out of law and interval."""
    for model in sorted({one.model for one in known}):
        law = fitted([one for one in known if one.model != model])
        with fitted_as(sharing={**coefficients("sharing"), "probe": law}):
            for one in (one for one in known if one.model == model):
                speed = speed_by_probe(one.speed, one.seen, one.there)
                # A slice that was faster than the whole GPU, by chance, was as fast.
                inside = speed.low <= min(1.0, one.true) <= speed.high
                yield Guess(one, speed.mid, speed.high / speed.low, inside)


def section(folder: Path) -> Section:
    """Return the scores with a slice of 2g measured, and what other slices tell."""
    every = list(guesses(pairs(folder)))
    asked = [one for one in every if one.pair.probe == _PROBE]
    mid, true = (
        np.array([*column]) for column in zip(*((g.mid, g.pair.true) for g in asked), strict=True)
    )
    share = np.array([one.pair.there[0] for one in asked])
    others = ", ".join(
        f"from {probe} {_mean_error([g for g in every if g.pair.probe == probe]):.3f}"
        for probe in sorted({one.pair.probe for one in every} - {_PROBE})
    )
    return Section(
        title="A slice of a GPU (MIG), another slice measured",
        scores=(
            Score(
                question="speed of a job on a slice, model unseen, the job measured on 2g",
                cases=len(asked),
                ours=errors(mid, true),
                baseline=("the slice's share of the compute", errors(share, true)),
                note=(
                    f"mean absolute error of the speed {_mean_error(asked):.3f} "
                    f"(at most {_BAR} was asked); {others}"
                ),
            ),
        ),
        coverages=(
            Coverage(
                question="speed on a slice, another slice measured, model unseen",
                share=float(np.mean([one.inside for one in every])),
                factor=float(np.median(np.sqrt([one.spread for one in every]))),
            ),
        ),
        notes=(
            """\
MISO's jobs by their mean iteration times, which the length of a job follows; by medians the law is
off by more, as iterations of deepspeech2 differ in size. The form was chosen on these jobs; its
three exponents and the interval are fitted without the model in question.""",
        ),
    )


def _mean_error(some: Sequence[Guess]) -> float:
    return float(np.mean([abs(one.mid - one.pair.true) for one in some]))
