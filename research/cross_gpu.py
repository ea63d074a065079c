"""Speed on another GPU: whole GPUs, whole tasks, or both are left out of the fit."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from planner.models.coefficients import coefficients
from planner.models.gpu_speed import log_spread
from planner.profile.kinds import JobKind
from planner.profile.model import Hardware, Job, Profile, Work
from pricing.hardware import gpus
from research import published as published_
from research.class_fits import quantile
from research.effects import FAMILIES, Fit, difference, features, fit, speed_table
from research.rows import Predicted, answers, row
from research.score import Row, Section
from research.throughput import TASKS, Run, runs, specs_of

Left = Literal["task", "both"]
_NAMES = {"fp16": "Lambda, fp16", "fp32": "Lambda, fp32 / TF32"}
_ASKED: Mapping[Left, str] = {"task": "task", "both": "GPU and task"}


@dataclass(frozen=True, slots=True)
class Case:
    """One pair of GPUs, predicted without what was left out.

    Attributes:
        before: the measured run.
        after: the run to predict.
        predicted: ln of the predicted speed ratio.
        spread: the shipped model's spread of it.
    """

    before: Run
    after: Run
    predicted: float
    spread: float

    @property
    def true(self) -> float:
        """Ln of the measured speed ratio."""
        return self.after.log_rate - self.before.log_rate

    @property
    def error(self) -> float:
        """Predicted less measured, ln."""
        return self.predicted - self.true


def fitted_runs(folder: Path) -> tuple[Run, ...]:
    """Return the runs that the shipped model is fitted on."""
    return runs(folder, "v1", "v2")


def pairs(known: Sequence[Run]) -> Iterable[tuple[Run, Run]]:
    """Yield all ordered pairs of GPUs that ran the same task of the same table (v1)."""
    asked = [run for run in known if run.version == "v1" and run.task in TASKS]
    for after in asked:
        for before in asked:
            alike = (before.task, before.named) == (after.task, after.named)
            if alike and before.gpu != after.gpu:
                yield before, after


@cache
def fit_without(known: tuple[Run, ...], gpu: str | None, task: str | None) -> Fit:
    """Return the fit without a GPU, a task, or both (None = none)."""
    kept = [run for run in known if gpu != run.gpu and task != run.task]
    return fit(kept, coefficients("speed")["widths"])


def cases(known: tuple[Run, ...], left: Left) -> list[Case]:
    """Return every pair, predicted from a fit without its target's task, or GPU and task."""
    widths = coefficients("speed")["widths"]
    found = []
    for before, after in pairs(known):
        model = fit_without(known, after.gpu if left == "both" else None, after.task)
        guess = model.expect(difference(features(after), features(before)))[0]
        spread = log_spread(
            specs_of(before.gpu, before.used), specs_of(after.gpu, after.used), widths
        )
        found.append(Case(before, after, guess, spread))
    return found


# Pairs less apart than this are held to their own errors: the scaled width grows from nothing.
_NEAR = 0.3


def intervals(found: Sequence[Case], tasks_left: Sequence[Case]) -> dict[str, dict[str, float]]:
    """Return the widths of intervals as `speed.toml` holds them, by half and single precision.

    Args:
        found: cases with GPU and task left out.
        tasks_left: cases with only the task left out.
    """
    return {
        name: _widths_of(
            [case for case in found if case.after.named == named],
            [case for case in tasks_left if case.after.named == named],
        )
        for name, named in FAMILIES.items()
    }


def _widths_of(found: Sequence[Case], tasks_left: Sequence[Case]) -> dict[str, float]:
    near = [case.error for case in tasks_left if case.spread < _NEAR]
    far = [case.error / case.spread for case in tasks_left if case.spread >= _NEAR]
    return {
        "scale": round(quantile(far), 3),
        "near": round(math.exp(quantile(near)), 3),
        "unseen_gpu": round(math.exp(quantile([case.error for case in found])), 3),
    }


def _profile(run: Run) -> Profile:
    """Return what a user would have of a run: its precision is the one that the kernels used."""
    precision = "amp-fp16" if run.used == "fp16" else "tf32"
    return Profile(
        job=Job(name=run.task, kind=JobKind.TRAINING, precision=precision),
        hardware=Hardware(gpu=run.gpu, gpu_count=1),
        work=Work(unit="item", rate_per_s=math.exp(run.log_rate)),
    )


def published(before: Run, after: Run, name: str) -> published_.Case:
    """Return a pair of runs as a case."""
    return published_.Case(
        name=name,
        group=after.task,
        work="training",
        profile=_profile(before),
        target=after.gpu,
        true=math.exp(after.log_rate - before.log_rate),
    )


def rows(known: tuple[Run, ...]) -> list[Row]:
    """Return the scores of `predict` on Lambda's tables, by what was left out and precision."""
    left_out: dict[Left, list[Case]] = {left: cases(known, left) for left in _ASKED}
    made = []
    for left, found in left_out.items():
        answered: dict[str, list[Predicted]] = {"fp16": [], "fp32": []}
        groups = itertools.groupby(found, key=lambda c: (c.after.gpu, c.after.task))
        for (gpu, task), some in groups:
            rest = {
                name: [c for c in all_ if gpu not in (c.after.gpu, c.before.gpu)]
                for name, all_ in left_out.items()
            }
            model = fit_without(known, gpu if left == "both" else None, task)
            kept = [run for run in known if left != "both" or run.gpu != gpu]
            table = {
                **coefficients("speed"),
                **speed_table(model, kept),
                "interval": intervals(rest["both"], rest["task"]),
            }
            for case in some:
                one = published(case.before, case.after, _NAMES[case.after.named])
                answered[case.after.named] += answers([one], speed=table)
        both = [one for some in answered.values() for one in some]
        for named, mine in answered.items():
            made.append(row(_NAMES[named], _ASKED[left], mine, groups=_groups(mine)))
        whole = row("all of them", _ASKED[left], both, groups=_groups(both))
        made.append(replace(whole, whole_class=True))
    return made


def _groups(some: Sequence[Predicted]) -> int:
    return len({one.case.group for one in some})


def older(folder: Path, known: Sequence[Run]) -> Row:
    """Return how the shipped fit does on the older runs (v0), of which it has seen none."""
    asked = [run for run in runs(folder, "v0") if run.gpu in gpus()]
    some = [
        published(before, after, "Lambda v0")
        for before, after in itertools.permutations(asked, 2)
        if (before.task, before.named) == (after.task, after.named) and before.gpu != after.gpu
    ]
    table = {**coefficients("speed"), **speed_table(fit(known, _widths()), known)}
    found = answers(some, speed=table)
    return row("Lambda v0, older software", "source", found, groups=_groups(found))


def _widths() -> Mapping[str, float]:
    widths: Mapping[str, float] = coefficients("speed")["widths"]
    return widths


def section(folder: Path) -> Section:
    """Return all scores of training on one GPU."""
    known = fitted_runs(folder)
    return Section(
        title="Training on one GPU",
        rows=(*rows(known), older(folder, known)),
        notes=(
            """\
Lambda's PyTorch training benchmarks: 12 GPUs x 5 tasks, all ordered pairs; every pair is
predicted by a fit without its target's task, or its GPU and task. What is left out is left out of
the H100, H200, GH200 and B200 tables that the fit uses beside them, too.""",
            """\
waveglow's fp16 rates equal its fp32 rates: AMP had no effect there, so it is predicted as what it
ran, single precision. ncf and tacotron2 are unreliable and left out.""",
            """\
The widths of the prior were chosen on other runs (the older v0 ones: other software, mostly other
GPUs), as were the memory term and the treatment of GeForce boards; intervals are conformal,
calibrated without every pair of the target's GPU. What was chosen with these scores in sight:
which variants to try at all, and the distance (0.3) under which pairs count as near. The RTX 4090
and the RTX 6000 Ada, the only Ada boards, mispredict each other: one chip, twice the rate on paper,
the same speed.""",
            """\
The older runs (v0) chose the prior widths, none of the coefficients. They were made over two
years with changing software, Volta and Turing boards before Ampere ones, so a difference of
generations there is one of software too: the intervals do not cover that, and no interval of ours
covers a change of software.""",
        ),
    )
