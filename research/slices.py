"""Jobs on a slice of a GPU (MIG): published iteration times, each model left out in turn."""

import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.models.coefficients import coefficients, fitted_as
from planner.prediction.slices import POWER, slice_speed
from research.class_fits import quantile
from research.score import Coverage, Score, Section, errors

WHOLE = "7g.40gb"
_BAR = 0.14
"""The most that the mean absolute error of the speed may be without a measured slice."""


@dataclass(frozen=True, slots=True)
class OnSlice:
    """One training job on one slice of an A100.

    Attributes:
        model: what is trained.
        compute: the slice's share of the GPU's compute.
        true: speed relative to the whole GPU.
    """

    model: str
    compute: float
    true: float

    @property
    def exponent(self) -> float:
        """The power of the compute share that would have told the speed."""
        return math.log(self.true) / math.log(self.compute)


def times(folder: Path) -> dict[tuple[str, str], dict[str, float]]:
    """Return MISO's median seconds an iteration by model and batch, on each slice that held it."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    with (folder / "miso" / "mig_iter_times.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[row["model"], row["batch"]][row["slice"]] = float(row["median_iter_s"])
    return found


def runs(folder: Path) -> tuple[OnSlice, ...]:
    """Return MISO's runs that did not run out of memory, but for those on the whole GPU.

    How busy the GPU was is not published: it is taken to be busy all the time.
    """
    return tuple(
        OnSlice(model, int(name[0]) / 7.0, of_job[WHOLE] / took_s)
        for (model, _), of_job in sorted(times(folder).items())
        for name, took_s in sorted(of_job.items())
        if name != WHOLE and WHOLE in of_job
    )


def width(some: Sequence[OnSlice]) -> float:
    """Return how far the exponent of nine in ten runs is from the square root's."""
    return quantile([run.exponent - POWER for run in some])


def section(folder: Path) -> Section:
    """Return the scores of slices; the interval is fitted without the model in question."""
    known = runs(folder)
    found, inside = [], []
    for model in sorted({run.model for run in known}):
        rest = width([run for run in known if run.model != model])
        with fitted_as(sharing={**coefficients("sharing"), "slice": {"width": rest}}):
            for run in (run for run in known if run.model == model):
                speed = slice_speed(1.0, run.compute)
                found.append((speed.mid, run.compute, run.true, speed.high / speed.low))
                inside.append(speed.low <= run.true <= speed.high)
    mid, compute, true, spread = (np.array(column) for column in zip(*found, strict=True))
    off, plain = (float(np.mean(np.abs(guess - true))) for guess in (mid, compute))
    return Section(
        title="A slice of a GPU (MIG)",
        scores=(
            Score(
                question="speed of a job on a slice, model unseen, nothing measured on a slice",
                cases=len(true),
                ours=errors(mid, true),
                baseline=("the slice's share of the compute", errors(compute, true)),
                note=(
                    f"mean absolute error of the speed {off:.3f} (at most {_BAR} was asked), "
                    f"by the share of the compute {plain:.3f}"
                ),
            ),
        ),
        coverages=(
            Coverage(
                question="speed on a slice, model unseen",
                share=float(np.mean(inside)),
                factor=float(np.median(np.sqrt(spread))),
            ),
        ),
        notes=(
            """\
MISO's training jobs on an A100 with 40 GB: four models. The square root is not fitted; only the
width of the interval is. Jobs that keep the GPU busy for a part of their time are not in these
data: that only the busy part takes longer on a slice is our rule.""",
        ),
    )
