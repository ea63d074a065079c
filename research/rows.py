"""Scores `planner.prediction.predict.predict` on published cases beside the simple baselines.

Each case is predicted from its profile, as a plan would, by coefficients that have not seen its
model, or its GPU.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from planner.models.coefficients import coefficients, fitted_as
from planner.models.estimate import Estimate
from planner.models.gpu_speed import WorkClass
from planner.prediction.layout import Layout
from planner.prediction.predict import Predictions, Split, split_time
from planner.profile.model import Hardware, Job, Profile, Work
from pricing.hardware import gpus
from research import class_fits
from research.published import Case, cases, of_class
from research.score import Array, Errors, Row, Section, errors

_TITLES: Mapping[WorkClass, str] = {
    "llm-training": "LLM training",
    "scaled-training": "training on 4 and more GPUs",
    "fp32": "fp32 without TF32",
    "inference": "inference",
    "diffusion": "pictures and video made",
    "llm-inference": "LLM inference, offline",
    "llm-decode": "LLM serving, tokens",
    "llm-prefill": "LLM serving, prompts",
    "training": "training on one GPU",
}


@dataclass(frozen=True, slots=True)
class Predicted:
    """A case and what `predict` answered."""

    case: Case
    guess: Estimate


def answers(some: Iterable[Case], **tables: Mapping[str, Any]) -> list[Predicted]:
    """Return what a plan predicts for cases by other coefficients.

    It is asked once for all cases that it cannot tell apart: a rate tells something of the GPU's
    arithmetic where the parameters are known, and nothing else.
    """
    known: dict[tuple[object, ...], Estimate] = {}
    found = []
    with fitted_as(**tables):
        for case in some:
            job, hardware, work = case.profile.job, case.profile.hardware, case.profile.work
            rate = work and work.rate_per_s if job.parameters else None
            key = (job, hardware, work and work.unit, rate, case.target)
            if key not in known:
                target = Layout(gpu=gpus()[case.target], gpu_count=hardware.gpu_count or 1)
                parts = _parts(job, hardware, work)
                known[key] = Predictions(profile=case.profile, parts=parts).speed(target)
            found.append(Predicted(case, known[key]))
    return found


@cache
def _parts(job: Job, hardware: Hardware, work: Work) -> Split:
    """Return where the time of a case goes, of which its profile tells nothing."""
    return split_time(Profile(job=job, hardware=hardware, work=work))


def row(measured: str, left_out: str, found: Sequence[Predicted], *, groups: int) -> Row:
    """Return the score of some answers, all of one class."""
    true = np.array([one.case.true for one in found])
    low, mid, high = (
        np.array([getattr(one.guess, end) for one in found]) for end in ("low", "mid", "high")
    )
    return Row(
        measured=measured,
        work=_TITLES[found[0].case.work],
        left_out=left_out,
        cases=len(found),
        groups=groups,
        ours=errors(mid, true),
        inside=float(np.mean((low <= true) & (true <= high))),
        factor=float(np.median(np.sqrt(high / low))),
        baselines=_baselines([one.case for one in found], true),
    )


def _baselines(some: Sequence[Case], true: Array) -> dict[str, Errors]:
    logs = np.array([class_fits.case_steps(case) for case in some])
    return {
        name: errors(np.exp(logs @ np.array(rule)), true) for name, rule in class_fits.RULES.items()
    }


def _class_rows(everything: tuple[Case, ...], work: WorkClass) -> list[Row]:
    fits = class_fits.left_out(everything)
    found = _answered(fits.without_model(work), work)
    sets = list(dict.fromkeys(one.case.name for one in found))
    made = []
    for name in sets:
        of_set = [one for one in found if one.case.name == name]
        made.append(row(name, "model", of_set, groups=len({one.case.group for one in of_set})))
    groups = len({one.case.group for one in found})
    whole = [replace(row("all of them", "model", found, groups=groups), whole_class=True)]
    made = [replace(made[0], whole_class=True)] if len(sets) == 1 else made + whole
    unseen = _answered(fits.without_gpu(work), work)
    targets = len({one.case.target for one in unseen})
    return [*made, replace(row("all of them", "GPU", unseen, groups=targets), whole_class=True)]


def _answered(
    parts: Iterable[tuple[list[Case], dict[str, Any]]], work: WorkClass
) -> list[Predicted]:
    shipped = dict(coefficients("classes"))
    return [one for mine, table in parts for one in answers(mine, classes={**shipped, work: table})]


def section(folder: Path) -> Section:
    """Return the scores of all classes with a law of specifications."""
    everything = cases(folder)
    works = [work for work in class_fits.WORKS if of_class(everything, work)]
    return Section(
        title="Speed on another GPU, by class of work",
        rows=tuple(one for work in works for one in _class_rows(everything, work)),
        notes=NOTES,
    )


NOTES = (
    """\
Each case is one ordered pair of GPUs that did the same work: a profile is written from the first
(kind, precision, batch, parameters, unit, rate) and `gpucost.predict` asked for the second, by a
law fitted, and an interval calibrated, without that model ("model") or without that GPU ("GPU").
Peak is the dense rate of the precision used, the CUDA rate where TF32 is off.""",
    """\
All classes are fitted together: exponents, an effect of each generation and of each GPU, shared and
of the class, all shrunk to the geometric mean. A class goes by its law alone where that is ahead of
each of the four rules by a fifth in median and mean, on models or on GPUs left out; else halfway to
the geometric mean, where that is not behind them; else by the geometric mean. Each row was decided
without what it scores, by fits without that and without each other model or GPU, too (nested
cross-validation). What ships, decided on all: training on 4 and more GPUs and prompts go halfway,
as does fp32 to or from a GPU that was not measured; no class goes by the rule alone.""",
    """\
Decided with these scores in sight were: that the power limit is a third specification and memory
none, that one prior serves all classes, that pictures are a class of their own, MLPerf's Stable
Diffusion among them, that offline work at a stated batch of up to 78 goes by the law of tokens, the
fifth, halfway, and that an interval is widened by Student's t as there are few GPUs. No exponent,
effect, class's decision or width was. Of inference without the GPU, 93% of the cases are of the two
GPUs of timm, whose width comes from the others'.""",
)
