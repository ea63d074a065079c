"""Serving pods over a day: packed by one half of the time, judged on the other.

`python -m research.duty_cycles DATA` prints a table. The pods are packed by `gpucost`'s own packing
on H100 with 80 GB; where the recording has no reading for a minute, the pod is not judged in it.
The room for what a recording of less than a day did not see is fitted on every second pod; the
others are packed with it, and the other way round, so that no pod tells of itself.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from planner.choice.requirements import Requirements
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
from pricing.catalog.catalog import load_catalog
from pricing.hardware import gpus
from research import growth

_ON = ("digitalocean", "gpu-h100x1-80gb", "H100-SXM-80GB")
_MOST = 0.03  # of the minutes a GPU may be wanted for more than 100 %


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a packing did in the half that it was not made from.

    Attributes:
        pods: packed.
        gpus: that they were packed on.
        oracle: GPUs that the same packing needs when it knows the judged half.
        without: GPUs of a packing that leaves no room for hours that were not seen.
        worst_without: share of minutes over 100 % on its worst GPU.
        over: share of minutes with a demand over 100 %, of all GPUs that are shared.
        worst: the same on the worst GPU.
        too_slow: pods that on average ran slower than 1 / --max-slowdown.
        overflows: GPUs whose memory would not hold the judged half.
    """

    pods: int
    gpus: int
    oracle: int
    without: int
    worst_without: float
    over: float
    worst: float
    too_slow: int
    overflows: int


def halves(times: "pd.Series[float]", way: str) -> "pd.Series[bool]":
    """Return which readings are packed by: alternate hours, the first half, or the second."""
    if way == "hours in turn":
        return pd.Series((times // 3600) % 2 == 0)
    first = times < times.max() / 2
    return first if way == "first half, then second" else ~first


WAYS = ("hours in turn", "first half, then second", "second half, then first")


def judged(pods: pd.DataFrame, way: str, memory_divided_by: float) -> Verdict:
    """Return how pods packed by one half do in the other."""
    pods = pods.assign(mem_gib=pods.mem_gib / memory_divided_by)
    known = pods[halves(pods.t_s, way)]
    later = pods[~halves(pods.t_s, way)]
    names = sorted(_measured(known) & _measured(later))
    groups, plain, oracle = [], [], []
    for fold in (0, 1):
        mine, others = names[fold::2], names[1 - fold :: 2]
        room = growth.fitted(pods[pods.pod.isin(others)])
        before = {name: known[known.pod == name] for name in mine}
        with fitted_as(sharing={**coefficients("sharing"), "growth": room}):
            groups += packed(before)
        plain += packed(before, whole=True)
        oracle += packed({name: later[later.pod == name] for name in mine}, whole=True)
    judged_by_gpu = [_judge(later, group) for group in groups if len(group) > 1]
    over = [one for one, _, _ in judged_by_gpu]
    return Verdict(
        pods=len(names),
        gpus=len(groups),
        oracle=len(oracle),
        without=len(plain),
        worst_without=max((_judge(later, g)[0] for g in plain if len(g) > 1), default=0.0),
        over=float(np.mean(over)) if over else 0.0,
        worst=max(over, default=0.0),
        too_slow=sum(slow for _, slow, _ in judged_by_gpu),
        overflows=sum(full for _, _, full in judged_by_gpu),
    )


def _measured(half: pd.DataFrame) -> set[str]:
    counts = half.dropna().groupby("pod").size()
    return set(counts[counts >= growth.FEW].index)


def packed(pods: Mapping[str, pd.DataFrame], *, whole: bool = False) -> list[Sequence[str]]:
    """Return which pods share a GPU, by what was read of each.

    Args:
        pods: readings by name.
        whole: take them for all that comes: no room is left for other hours.
    """
    profiles = tuple(_profile(name, readings, whole=whole) for name, readings in pods.items())
    day = date(2026, 11, 20)
    plan = draft_plan(profiles, load_catalog(day), Requirements(consolidate=True), as_of=day)
    if plan.fleet is None:
        raise ValueError("jobs of several machines are packed")
    return [placement.jobs for placement in plan.fleet.placements]


def _profile(name: str, readings: pd.DataFrame, *, whole: bool) -> Profile:
    busy, held = readings.util_percent.dropna() / 100.0, readings.mem_gib.dropna()
    provider, machine, gpu = _ON
    metrics = {
        "util.kernel_time": Statistics(
            mean=float(busy.mean()),
            p95=float(busy.quantile(0.95)),
            p99=float(busy.quantile(0.99)),
            max=float(busy.max()),
        ),
        "mem.used_gib": Statistics(mean=float(held.mean()), max=float(held.max())),
    }
    seen_s = float(readings.t_s.max() - readings.t_s.min())
    return Profile(
        window=None if whole else Window(duration_s=seen_s),
        job=Job(name=name, kind=JobKind.INFERENCE_ONLINE),
        hardware=Hardware(gpu=gpu, gpu_count=1, provider=provider, instance_type=machine),
        gpus=(GpuReadings(index=0, metrics=metrics),),
        usage=MonthlyUse(hours_per_month=730.0),
    )


def _judge(later: pd.DataFrame, group: Sequence[str]) -> tuple[float, int, bool]:
    """Return minutes over 100 %, pods that are too slow, and whether memory overflows."""
    there = later[later.pod.isin(group)]
    by_minute = there.assign(minute=there.t_s // 60)
    wanted = by_minute.pivot_table(index="minute", columns="pod", values="util_percent") / 100.0
    held = by_minute.pivot_table(index="minute", columns="pod", values="mem_gib")
    total = wanted.sum(axis=1)
    slowdown = np.maximum(1.0, total)
    slow = sum(
        float(np.average(slowdown, weights=wanted[pod].fillna(0.0) + 1e-9))
        > Requirements().max_slowdown
        for pod in wanted
    )
    return (
        float((total > 1.0).mean()),
        slow,
        bool(held.sum(axis=1).max() > gpus()[_ON[2]].memory_gib),
    )


def rows(folder: Path) -> Iterator[str]:
    """Yield the table, a row for each way of halving and each size of memory."""
    pods = growth.read(folder)
    yield (
        "| packed by, judged on | memory | pods | GPUs | oracle | over | worst | slow | full "
        "| no room: GPUs | worst |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for divided, told in ((1.0, "as recorded"), (8.0, "an eighth")):
        for way in WAYS:
            one = judged(pods, way, divided)
            held = "" if one.worst <= _MOST else " (missed)"
            yield (
                f"| {way} | {told} | {one.pods} | {one.gpus} | {one.oracle} | {one.over:.1%} | "
                f"{one.worst:.1%}{held} | {one.too_slow} | {one.overflows} | "
                f"{one.without} | {one.worst_without:.1%} |"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(prog="python -m research.duty_cycles", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA")
    for row in rows(parser.parse_args(arguments).data):
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
