"""Jobs that share a GPU: published pairs, each with its model left out of the interval."""

import ast
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from planner.models.coefficients import coefficients, fitted_as
from planner.prediction.sharing import contention, expected_speed, shared_speed
from planner.profile.kinds import JobKind
from planner.profile.model import GpuReadings, Hardware, Job, Profile, Statistics
from research.class_fits import quantile
from research.score import Score, Section, covered, errors

_GPUS = {"k80": "K80", "p100": "P100-SXM-16GB"}


@dataclass(frozen=True, slots=True)
class Pair:
    """One job beside another.

    Attributes:
        gpu: on which.
        victim: the model whose speed is asked for.
        aggressor: the model beside it.
        shares: of the GPU's time that both take alone.
        true: speed relative to running alone.
    """

    gpu: str
    victim: str
    aggressor: str
    shares: tuple[float, float]
    true: float

    @property
    def profiles(self) -> tuple[Profile, Profile]:
        """Both jobs, as a user has them."""
        one, other = (_profile(self.gpu, share) for share in self.shares)
        return one, other

    @property
    def error(self) -> float:
        """Ln of truth over the expected speed, over what the interval's width grows with."""
        return math.log(self.true / expected_speed(sum(self.shares))) / contention(self.shares[1])


def _profile(gpu: str, share: float) -> Profile:
    metrics = {"util.kernel_time": Statistics(mean=share)}
    return Profile(
        job=Job(name="job", kind=JobKind.TRAINING),
        hardware=Hardware(gpu=gpu, gpu_count=1),
        gpus=(GpuReadings(index=0, metrics=metrics),),
    )


@dataclass(frozen=True, slots=True)
class Together:
    """One job beside another, as it was measured.

    Attributes:
        gpu: on which.
        jobs: the job whose speed is asked for, and the one beside it: models with batch sizes.
        steps_s: seconds a step of both, alone.
        true: speed relative to running alone.
    """

    gpu: str
    jobs: tuple[str, str]
    steps_s: tuple[float, float]
    true: float


@cache
def measured(folder: Path) -> tuple[Together, ...]:
    """Return Gavel's jobs on one GPU beside each other and beside their own copies, that ran."""
    path = folder / "gavel" / "throughputs_k80_p100.json"
    found = []
    for gpu, table in json.loads(path.read_text(encoding="utf-8")).items():
        alone = {
            name: row["null"]
            for name, row in table.items()
            if ast.literal_eval(name)[1] == 1 and row["null"] > 0.0
        }
        for one, other in ((one, other) for one in alone for other in alone):
            together = table[one].get(other, (0.0,))[0]
            if together > 0.0:
                steps_s = 1.0 / alone[one], 1.0 / alone[other]
                found.append(Together(_GPUS[gpu], (one, other), steps_s, together / alone[one]))
    return tuple(found)


@cache
def pairs(folder: Path) -> tuple[Pair, ...]:
    """Return pairs of jobs with their shares of the GPU's time.

    The shares were not measured: a job beside its own copy tells them.
    """
    known = measured(folder)
    share = {
        (one.gpu, one.jobs[0]): min(1.0, 0.5 / one.true)
        for one in known
        if one.jobs[0] == one.jobs[1]
    }
    found = []
    for one in known:
        own, other = (share.get((one.gpu, job)) for job in one.jobs)
        if one.jobs[0] != one.jobs[1] and own is not None and other is not None:
            victim, aggressor = (_model(job) for job in one.jobs)
            found.append(Pair(one.gpu, victim, aggressor, (own, other), one.true))
    return tuple(found)


def _model(name: str) -> str:
    return str(ast.literal_eval(name)[0]).split(" (", maxsplit=1)[0]


def factor(some: Sequence[Pair]) -> float:
    """Return the factor of the 90 % interval at full contention."""
    return math.exp(quantile([pair.error for pair in some]))


def section(folder: Path) -> Section:
    """Return the scores of sharing, each model left out of the interval in both roles."""
    known = pairs(folder)
    answers = []
    for model in sorted({pair.victim for pair in known}):
        rest = [pair for pair in known if model not in (pair.victim, pair.aggressor)]
        with fitted_as(sharing={**coefficients("sharing"), "factor": factor(rest)}):
            answers += [
                (pair, shared_speed(pair.profiles, in_turns=True)[0])
                for pair in known
                if pair.victim == model
            ]
    scored, guesses = zip(*answers, strict=True)
    true = np.array([pair.true for pair in scored])
    added = errors([1.0 / (1.0 + pair.shares[1]) for pair in scored], true)
    unchanged = errors(np.ones(len(true)), true)
    return Section(
        title="Sharing a GPU",
        scores=(
            Score(
                question="speed of a job beside another on one GPU, model unseen in both roles",
                cases=len(true),
                ours=errors([guess.mid for guess in guesses], true),
                baseline=("half each", errors(np.full(len(true), 0.5), true)),
                note=f"1 / (1 + the other's share): {added}; no change: {unchanged}",
            ),
        ),
        coverages=(
            covered(
                "speed beside another job, model unseen in both roles",
                guesses,
                true,
                [pair.gpu for pair in scored],
            ),
        ),
        notes=(
            """\
Gavel's pairs of training jobs on a K80 and a P100, time-shared. Shares of the GPU were not measured
and come from each job beside its own copy, so they are near 1: how intervals narrow for jobs that
need little of a GPU is our rule (in proportion to the others' share), not a measurement.""",
        ),
    )
