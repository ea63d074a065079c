"""More GPUs from a probe on two: `predict` on published step times of whole clusters."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from planner.models.coefficients import coefficients, fitted_as
from planner.models.communication import ring
from planner.models.estimate import Estimate
from planner.prediction.layout import Layout
from planner.prediction.predict import Predictions, split_time
from planner.profile.kinds import JobKind
from planner.profile.model import Hardware, Job, Profile, Work
from pricing.hardware import gpus
from research.class_fits import quantile
from research.score import Score, Section, covered, errors
from research.several_gpus import placements
from research.small_work import CLUSTER_GPU

_BATCHES = 8  # of each model and cluster, evenly over those that were run
_PLACES = 3  # every so many placements on several machines


@dataclass(frozen=True)
class Probed:
    """A prediction of more GPUs.

    Attributes:
        cluster: on which.
        nodes: whether over several machines.
        gpus: how many.
        ring: speed if the probe's overhead grew as a ring.
        asked: the profile of one GPU, the probe and the target.
        true: measured speed over one GPU.
    """

    cluster: str
    nodes: bool
    gpus: int
    ring: float
    asked: tuple[Profile, Profile, Layout]
    true: float

    @cached_property
    def guess(self) -> Estimate:
        """The speed predicted by what ships."""
        return self.predict()

    @cached_property
    def blind(self) -> Estimate:
        """The same without the probe."""
        job, _, target = self.asked
        return Predictions(profile=job, parts=split_time(job)).speed(target)

    def predict(self) -> Estimate:
        """Return the speed predicted by the coefficients of the moment."""
        job, probe, target = self.asked
        parts = split_time(job)
        return Predictions(profile=job, parts=parts, probes=(probe,)).speed(target)


def _profile(gpu: str, placement: str, batch: int, step_s: float) -> Profile:
    """Return what a user would have of a run: GPUs, machines, batch and rate."""
    count = sum(map(int, placement))
    return Profile(
        job=Job(name="job", kind=JobKind.TRAINING, precision="amp-fp16", batch_per_gpu=batch),
        hardware=Hardware(gpu=gpu, gpu_count=count, nodes=len(placement)),
        work=Work(unit="sample", rate_per_s=count * batch / step_s),
    )


@cache
def cases(folder: Path) -> tuple[Probed, ...]:
    """Return the predictions from two GPUs of one machine, and from two machines of one GPU."""
    table = placements(folder)
    known = table[table.cluster.isin(list(CLUSTER_GPU))]
    return tuple(
        case
        for (_, cluster), rows in known.groupby(["model", "cluster"])
        for case in _of_cluster(str(cluster), rows)
    )


def _of_cluster(cluster: str, rows: pd.DataFrame) -> Iterator[Probed]:
    keys = zip(rows.placement, rows.local_bsz, strict=True)
    steps: dict[tuple[str, int], float] = dict(zip(keys, rows.step_s, strict=True))
    batches = sorted(batch for place, batch in steps if place == "1")
    some = batches[:: max(1, len(batches) // _BATCHES)]
    places = sorted(set(rows.placement), key=lambda name: (len(name), name))
    inside = [place for place in places if len(place) == 1 and int(place) > 2]  # noqa: PLR2004
    between = [place for place in places if len(place) > 1 and place != "11"][::_PLACES]
    for batch, (probe, wanted) in itertools.product(some, (("2", inside), ("11", between))):
        for place in wanted if (probe, batch) in steps else ():
            if (place, batch) in steps:
                timed = [steps[name, batch] for name in ("1", probe, place)]
                yield _case(cluster, place, batch, timed)


def _case(cluster: str, place: str, batch: int, steps: list[float]) -> Probed:
    gpu, nodes, count = CLUSTER_GPU[cluster], len(place), sum(map(int, place))
    alone_s, probe_s, true_s = steps
    job = _profile(gpu, "1", batch, alone_s)
    probe = _profile(gpu, "2" if nodes == 1 else "11", batch, probe_s)
    over = max(0.0, probe_s / alone_s - 1.0)
    return Probed(
        cluster=cluster,
        nodes=nodes > 1,
        gpus=count,
        ring=count / (1.0 + over * ring(count) / ring(2)),
        asked=(job, probe, Layout(gpu=gpus()[gpu], gpu_count=count, nodes=nodes)),
        true=count * alone_s / true_s,
    )


def nodes_factor(some: Iterable[Probed]) -> float:
    """Return the factor of the 90 % interval of several machines from a probe on two."""
    off = [math.log(case.guess.mid / case.true) for case in some if case.nodes]
    return math.exp(quantile(off))


def _guesses(mine: Sequence[Probed]) -> list[Estimate]:
    """Return predictions, the interval of several machines from all other clusters."""
    shipped = coefficients("scale")
    factors = {
        name: nodes_factor(case for case in mine if case.cluster != name)
        for name in sorted({case.cluster for case in mine if case.nodes})
    }
    found = []
    for case in mine:
        factor = factors.get(case.cluster, shipped["probe_factor_nodes"])
        with fitted_as(scale={**shipped, "probe_factor_nodes": factor}):
            found.append(case.predict())
    return found


_NAMES = {
    False: "more GPUs of one machine, one and two of its GPUs measured",
    True: "more GPUs and machines, one GPU and one each of two machines measured",
}


def section(folder: Path) -> Section:
    """Return the scores of probes."""
    scores, coverages = [], []
    for nodes, question in _NAMES.items():
        mine = [case for case in cases(folder) if case.nodes == nodes]
        true = np.array([case.true for case in mine])
        guesses = _guesses(mine)
        grown = errors([case.ring for case in mine], true)
        linear = errors([case.gpus for case in mine], true)
        blind = errors([case.blind.mid for case in mine], true)
        scores.append(
            Score(
                question=question,
                cases=len(mine),
                ours=errors([guess.mid for guess in guesses], true),
                baseline=("ring: 2 (n - 1) / n", grown),
                note=f"linear: {linear}; ours without the probe: {blind}",
            )
        )
        clusters = [case.cluster for case in mine]
        coverages.append(covered(question, guesses, true, clusters))
    return Section(
        title="More GPUs, from a probe",
        scores=tuple(scores),
        coverages=tuple(coverages),
        notes=(
            """\
BERT and CIFAR-10 on four clusters (T4, 2080 Ti, RTX 6000, A100), eight batch sizes each, asked
through the prediction that plans use. The law and the interval of one machine come from another
source (Lambda's boxes), the interval of several machines from the other clusters. Networks and
links were not stated in the profiles.""",
        ),
    )
