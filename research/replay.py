"""A fleet of 1,000 jobs packed by the product, then run as published pairs behaved.

`python -m research.replay DATA` prints a table. Two pools, neither of whose true speeds were seen
by what predicts: the intervals are fitted on other models (and the room to grow on other pods).

- 600 services on K80 (12 GB). Each slows its neighbours, and is slowed, as a job of Gavel's pairs;
  when it is on, and what memory it holds, is a recorded serving pod (an eighth of its memory), its
  even hours measured and its odd hours judged. With several neighbours, slowdowns add up.
- 400 jobs that must be isolated on A100 (40 GB), each a job of MISO's with its speed on each slice.

Drawn by us, with a fixed seed: which job and pod, and each latency target, 1.5 to 4 times the time
alone. The published rows have no memory of Gavel's jobs, and only bounds of that of MISO's.
"""

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from planner.choice.requirements import Requirements
from planner.fleet.fleet import Fleet
from planner.models.coefficients import coefficients, fitted_as
from planner.pipeline import draft_plan
from planner.profile.kinds import JobKind
from planner.profile.model import (
    GpuReadings,
    Hardware,
    Job,
    MonthlyUse,
    Profile,
    Statistics,
    Window,
)
from planner.profile.trials import Latency
from pricing.catalog.catalog import load_catalog
from pricing.hardware import MigProfile, gpus
from research import co_location, growth, slices

_DAY = date(2026, 11, 20)
_SERVICES, _ISOLATED = 600, 400
_DIVIDED = 8.0  # a pod's memory on a GPU of 12 GB
_ROOM_GIB = 12.0
_MAX_SLOWDOWN = 2.5
_ALONE_MS = 10.0
_PUBLISHED = frozenset({"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", slices.WHOLE})

Series = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a packing did.

    Attributes:
        gpus: that it used.
        usd: of a month.
        overflows: GPUs whose memory was too small at some time.
        late: intervals in which a job missed its target.
        intervals: in which a job had work.
    """

    gpus: int
    usd: Decimal
    overflows: int
    late: int
    intervals: int

    def and_also(self, other: "Outcome") -> "Outcome":
        """Return the sum of both."""
        mine, theirs = astuple(self), astuple(other)
        return Outcome(*(a + b for a, b in zip(mine, theirs, strict=True)))


@dataclass(frozen=True, slots=True)
class Service:
    """A job of the first pool: its kind of work, the recording it follows, and its target."""

    name: str
    work: str
    pod: str
    target: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """A pod's minutes: GPU use 0-1 and memory in GiB, NaN where nothing was read."""

    use: Series
    held: Series
    is_known: npt.NDArray[np.bool_]


def packed(profiles: Sequence[Profile]) -> Fleet:
    """Return the fleet as the product packs it."""
    asked = Requirements(consolidate=True, max_slowdown=_MAX_SLOWDOWN)
    plan = draft_plan(tuple(profiles), load_catalog(_DAY), asked, as_of=_DAY)
    if plan.fleet is None:
        raise ValueError("jobs of several machines are packed")
    return plan.fleet


def recordings(pods: pd.DataFrame) -> dict[str, Recorded]:
    """Return the pods that have readings in the even and the odd hours."""
    ticks = np.arange(int(pods.t_s.max() // growth.TICK_S) + 1)
    even = (ticks * growth.TICK_S // 3600) % 2 == 0
    found = {}
    for name, one in pods.groupby("pod"):
        by_tick = one.assign(tick=one.t_s // growth.TICK_S).groupby("tick")
        table = by_tick[["util_percent", "mem_gib"]].mean().reindex(ticks)
        use, held = table.util_percent.to_numpy() / 100.0, table.mem_gib.to_numpy() / _DIVIDED
        read = ~np.isnan(use) & ~np.isnan(held)
        if min((read & even).sum(), (read & ~even).sum()) >= growth.FEW:
            found[str(name)] = Recorded(use, held, even)
    return found


def service_profile(one: Service, seen: Recorded) -> Profile:
    """Return what a user has measured of a service alone, in the even hours."""
    known = seen.is_known & ~np.isnan(seen.use)
    use, held = seen.use[known], seen.held[known]
    p95, p99 = (float(np.quantile(use, q)) for q in (0.95, 0.99))
    metrics = {
        "util.kernel_time": Statistics(
            mean=float(use.mean()), p95=p95, p99=p99, max=float(use.max())
        ),
        "mem.used_gib": Statistics(mean=float(held.mean()), max=float(held.max())),
    }
    return Profile(
        job=Job(
            name=one.name,
            kind=JobKind.INFERENCE_ONLINE,
            latency_slo_ms=_ALONE_MS * one.target,
            latency_ms=Latency(p99=_ALONE_MS),
        ),
        hardware=Hardware(
            gpu="K80",
            gpu_count=1,
            provider="aws",
            instance_type="p2.xlarge",
            region="us-east-1",
        ),
        window=Window(duration_s=float(len(seen.use) * growth.TICK_S)),
        gpus=(GpuReadings(index=0, metrics=metrics),),
        usage=MonthlyUse(hours_per_month=730.0),
    )


def speeds_together(folder: Path) -> dict[tuple[str, str], float]:
    """Return the speed of one job beside another on a K80, of jobs known beside all others."""
    known = {one.jobs: one.true for one in co_location.measured(folder) if one.gpu == "K80"}
    names = sorted({job for jobs in known for job in jobs})
    while missing := {n: sum((n, o) not in known for o in names) for n in names}:
        worst = max(missing, key=lambda n: (missing[n], n))
        if not missing[worst]:
            break
        names.remove(worst)
    return {(a, b): known[a, b] for a in names for b in names}


def judge_services(
    groups: Sequence[Sequence[Service]],
    pods: Mapping[str, Recorded],
    pair: Mapping[tuple[str, str], float],
) -> tuple[int, int, int]:
    """Return GPUs whose memory is too small, late intervals, and intervals, of the odd hours."""
    overflows = late = intervals = 0
    for group in groups:
        later = ~pods[group[0].pod].is_known
        held = sum(
            np.nan_to_num(pods[one.pod].held[later]) + 0.6 * (len(group) > 1) for one in group
        )
        overflows += bool(np.max(held) > _ROOM_GIB)
        use = [np.minimum(1.0, np.nan_to_num(pods[one.pod].use[later])) for one in group]
        # Beside others the GPU does at most what it can: who wants more than is left waits.
        crowded = np.maximum(1.0, sum(use)) if len(group) > 1 else np.ones(later.sum())
        for one, own in zip(group, use, strict=True):
            delay = sum(
                other_use * (1.0 / pair[one.work, other.work] - 1.0)
                for other, other_use in zip(group, use, strict=True)
                if other is not one
            )
            longer = np.maximum(1.0 + np.maximum(0.0, delay), crowded)
            late += int(((own > 0.0) & (longer > one.target)).sum())
            intervals += int((own > 0.0).sum())
    return overflows, late, intervals


def services(folder: Path) -> Iterator[tuple[str, Outcome]]:
    """Yield how the first pool does, packed in each way; the first is the product's."""
    pods = growth.read(folder)
    names = sorted(pods.pod.unique())
    seen = recordings(pods[pods.pod.isin(names[0::2])])
    every = speeds_together(folder)
    models = sorted({_model(work) for work, _ in every})
    unseen, others = set(models[0::2]), set(models[1::2])
    works = sorted({work for work, _ in every if _model(work) in unseen})
    dice = np.random.default_rng(14)
    jobs = [
        Service(f"s{i:03d}", str(dice.choice(works)), str(dice.choice(sorted(seen))), target)
        for i, target in enumerate(np.exp(dice.uniform(np.log(1.5), np.log(4.0), _SERVICES)))
    ]
    by_others = {
        **coefficients("sharing"),
        "factor": co_location.factor(
            [p for p in co_location.pairs(folder) if {p.victim, p.aggressor} <= others]
        ),
        "growth": growth.fitted(pods[pods.pod.isin(names[1::2])]),
    }
    with fitted_as(sharing=by_others):
        fleet = packed([service_profile(one, seen[one.pod]) for one in jobs])
    by_name = {one.name: one for one in jobs}
    each = fleet.cost_before / len(jobs)
    ours = [[by_name[name] for name in placed.jobs] for placed in fleet.placements]
    alone = [[one] for one in jobs]
    for told, groups in (
        ("packed by gpucost", ours),
        ("packed by requests", _by_requests(jobs, seen)),
        ("one GPU each", alone),
    ):
        usd = fleet.cost_after if groups is ours else each * len(groups)
        yield told, Outcome(len(groups), usd, *judge_services(groups, seen, every))
    bound = fleet.gpus_lower_bound
    yield "no fewer under these limits", Outcome(bound, each * bound, 0, 0, 0)


def _model(work: str) -> str:
    return str(ast.literal_eval(work)[0]).split(" (", maxsplit=1)[0]


def _by_requests(jobs: Sequence[Service], seen: Mapping[str, Recorded]) -> list[list[Service]]:
    """Return first fit by mean use and most memory: what a scheduler is asked for."""
    bins: list[tuple[list[Service], list[float]]] = []
    asked = {one.name: _request(seen[one.pod]) for one in jobs}
    for one in sorted(jobs, key=lambda job: (-asked[job.name][1], job.name)):
        use, held = asked[one.name]
        room = next((b for b in bins if b[1][0] + use <= 1.0 and b[1][1] + held <= _ROOM_GIB), None)
        if room is None:
            bins.append(([one], [use, held]))
            continue
        room[0].append(one)
        room[1][0] += use
        room[1][1] += held
    return [group for group, _ in bins]


def _request(one: Recorded) -> tuple[float, float]:
    known = one.is_known
    return float(np.nanmean(one.use[known])), float(np.nanmax(one.held[known]))


def isolated(folder: Path) -> Iterator[tuple[str, Outcome]]:
    """Yield how the second pool does: half of the models in turn, predicted by the other half."""
    known = slices.runs(folder)
    models = sorted({run.model for run in known})
    halves = [
        _isolated(folder, [r for r in known if r.model not in some], some)
        for some in (models[0::2], models[1::2])
    ]
    for told in halves[0]:
        yield told, halves[0][told].and_also(halves[1][told])


def _isolated(
    folder: Path, others: Sequence[slices.OnSlice], models: Sequence[str]
) -> dict[str, Outcome]:
    times = {job: row for job, row in slices.times(folder).items() if job[0] in models}
    dice = np.random.default_rng(19)
    kinds = sorted(times)
    drawn = {f"i{i:03d}": kinds[dice.integers(len(kinds))] for i in range(_ISOLATED // 2)}
    targets = {name: float(np.exp(dice.uniform(np.log(1.5), np.log(4.0)))) for name in drawn}
    profiles = [_on_a100(name, times[job], targets[name]) for name, job in drawn.items()]
    width = {**coefficients("sharing"), "slice": {"width": slices.width(others)}}
    with fitted_as(sharing=width):
        fleet = packed(profiles)
    ours = [
        list(zip(placed.jobs, placed.slices or (slices.WHOLE,), strict=True))
        for placed in fleet.placements
    ]
    count, each = len(drawn), fleet.cost_before / len(drawn)
    bound, rows = fleet.gpus_lower_bound, {name: times[job] for name, job in drawn.items()}
    asked = _by_memory(profiles)
    return {
        "packed by gpucost": Outcome(
            fleet.gpus_after, fleet.cost_after, *_judge_slices(ours, rows, targets)
        ),
        "packed by requests": Outcome(
            len(asked), each * len(asked), *_judge_slices(asked, rows, targets)
        ),
        "one GPU each": Outcome(count, fleet.cost_before, 0, 0, count),
        "no fewer under these limits": Outcome(bound, each * bound, 0, 0, 0),
    }


def _judge_slices(
    groups: Sequence[Sequence[tuple[str, str]]],
    times: Mapping[str, Mapping[str, float]],
    targets: Mapping[str, float],
) -> tuple[int, int, int]:
    """Return GPUs with a slice that ran out of memory, late jobs, and jobs."""
    overflows = late = jobs = 0
    for group in groups:
        took = [(name, times[name].get(piece)) for name, piece in group]
        overflows += any(took_s is None for _, took_s in took)
        jobs += len(took)
        late += sum(
            took_s is not None and took_s > targets[name] * times[name][slices.WHOLE]
            for name, took_s in took
        )
    return overflows, late, jobs


def _by_memory(profiles: Sequence[Profile]) -> list[list[tuple[str, str]]]:
    """Return first fit of the smallest slice that holds each job's memory."""
    gpu = gpus()["A100-SXM-40GB"]
    published = [one for one in gpu.mig if one.profile in _PUBLISHED]
    bins: list[list[tuple[str, MigProfile]]] = []
    for profile in profiles:
        need = profile.peak("mem.used_gib") or 0.0
        piece = min(
            (one for one in published if one.memory_gib >= need), key=lambda one: one.compute_slices
        )
        room = (
            one
            for one in bins
            if not gpu.why_not_sliced([p.profile for _, p in one] + [piece.profile])
        )
        found = next(room, None)
        if found is None:
            found = []
            bins.append(found)
        found.append((profile.job.name, piece))
    return [[(name, piece.profile) for name, piece in one] for one in bins]


def _on_a100(name: str, row: Mapping[str, float], target: float) -> Profile:
    """Return what a user has measured of a MISO job on the whole GPU, at the most memory it may."""
    # It ran on the smallest slice there is of it, so it needs at most what packing fills of that.
    smallest = min(float(piece.split(".")[1].removesuffix("gb")) for piece in row)
    metrics = {
        "util.kernel_time": Statistics(mean=1.0),
        "mem.used_gib": Statistics(max=0.9 * smallest),
    }
    return Profile(
        job=Job(
            name=name,
            kind=JobKind.TRAINING,
            trust="isolated",
            latency_slo_ms=1000.0 * row[slices.WHOLE] * target,
            latency_ms=Latency(p99=1000.0 * row[slices.WHOLE]),
        ),
        hardware=Hardware(
            gpu="A100-SXM-40GB",
            gpu_count=1,
            provider="gcp",
            instance_type="a2-highgpu-1g",
            region="us-central1",
        ),
        gpus=(GpuReadings(index=0, metrics=metrics),),
        usage=MonthlyUse(hours_per_month=730.0),
    )


def rows(folder: Path) -> Iterator[str]:
    """Yield the table of both pools."""
    yield "| pool | packed | GPUs | USD a month | memory overflows | latency kept |"
    yield "|---|---|---:|---:|---:|---:|"
    for pool, found in (
        (f"{_SERVICES} services, K80", services(folder)),
        (f"{_ISOLATED} isolated jobs, A100 40 GB", isolated(folder)),
    ):
        for told, one in found:
            judged = (
                f"{one.overflows} | {1.0 - one.late / one.intervals:.2%}"
                if one.intervals
                else "- | -"
            )
            yield f"| {pool} | {told} | {one.gpus} | {one.usd:,.2f} | {judged} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(prog="python -m research.replay", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA")
    for row in rows(parser.parse_args(arguments).data):
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
