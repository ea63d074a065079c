"""Our own jobs on one H200, alone and beside each other: what `measured/side_by_side` holds.

The runs and the profiles are ours to pass on. Each profile is of the job alone, as
`gpucost.measure` wrote it.
"""

import csv
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median

from planner.profile.codec import parse_profiles
from planner.profile.model import Profile
from planner.signals.compute_share import compute_share

MEASURED = Path(__file__).parent / "measured" / "side_by_side"
MODES = {"mps": "side by side (MPS)", "time-slicing": "in turns"}
FULL = 0.95
"""SM activity of a job that leaves no room: two of the nine."""
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Run:
    """One job in one run, alone or beside others.

    Attributes:
        mode: how they shared; `profiled`: alone, while gpucost measured it.
        together: who ran.
        job: whose figures these are.
        per_s: steps a second; of a service, requests that it could answer one after the other.
            None where too little was done to tell.
        p95_s: latency of a service with its queue, else time between the ends of two steps.
    """

    mode: str
    together: tuple[str, ...]
    job: str
    per_s: float | None
    p95_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One job beside another, as it was measured in all runs of the pair.

    Attributes:
        mode: how they share.
        profiles: the job and the one beside it, alone.
        true: speed relative to running alone.
        slower: 95th percentile of a service's latency relative to alone; None for other jobs.
    """

    mode: str
    profiles: tuple[Profile, Profile]
    true: float
    slower: float | None

    @property
    def jobs(self) -> frozenset[str]:
        """The names of both."""
        return frozenset(one.job.name for one in self.profiles)

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of the GPU that both take: SM activity."""
        own, other = (compute_share(one) or 0.0 for one in self.profiles)
        return own, other

    @property
    def has_room(self) -> bool:
        """Whether neither fills the GPU."""
        return max(self.shares) < FULL


@cache
def profiles() -> Mapping[str, Profile]:
    """Return the jobs as they were measured alone, by name."""
    files = sorted((MEASURED / "profiles").glob("*.json"))
    read = (parse_profiles(path.read_bytes(), path.name)[0] for path in files)
    return {one.job.name: one for one in read}


@cache
def runs() -> tuple[Run, ...]:
    """Return all runs."""
    with (MEASURED / "runs.csv").open(newline="", encoding="utf-8") as file:
        return tuple(_run(row) for row in csv.DictReader(file))


def _run(row: Mapping[str, str]) -> Run:
    served, per_s = row["service_s"], row["per_s"]
    rate = 1.0 / float(served) if served else float(per_s) if per_s else None
    p95_s = float(row["p95_s"]) if row["p95_s"] else None
    return Run(row["mode"], tuple(row["together"].split("+")), row["job"], rate, p95_s)


@cache
def measured() -> tuple[Measured, ...]:
    """Return both jobs of all pairs, in both modes."""
    pairs = list(itertools.combinations(sorted(profiles()), _PAIR))
    return tuple(
        one
        for mode in MODES
        for pair in pairs
        for job in pair
        if (one := _measured(mode, pair, job)) is not None
    )


def _measured(mode: str, pair: tuple[str, ...], job: str) -> Measured | None:
    (other,) = (name for name in pair if name != job)
    both = profiles()[job], profiles()[other]
    speed = _relative(mode, pair, job, lambda run: run.per_s)
    if speed is None:
        return None
    later = _relative(mode, pair, job, lambda run: run.p95_s)
    slower = later if both[0].job.kind.answers else None
    return Measured(mode=mode, profiles=both, true=speed, slower=slower)


def _relative(
    mode: str, together: tuple[str, ...], job: str, figure: Callable[[Run], float | None]
) -> float | None:
    """Return the mean of a figure in some runs over its median alone; None where none is known."""
    found = defaultdict[bool, list[float]](list)
    for run in runs():
        known = figure(run) if (run.mode, run.job) == (mode, job) else None
        if known is not None and set(run.together) in ({job}, set(together)):
            found[len(run.together) == 1].append(known)
    return fmean(found[False]) / median(found[True]) if found[False] else None
