"""Our own jobs beside each other on an H200, side by side (MPS) and in turns: no law saw them.

The runs and the profiles lie in `measured/side_by_side` and are ours to pass on, so this section
needs no other data. Each profile is of the job alone, as `gpucost.measure` wrote it.
"""

import csv
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from statistics import fmean, median
from textwrap import fill

import numpy as np

from planner.baseline.requirements import Requirements
from planner.models.estimate import Estimate
from planner.pipeline import make_plan
from planner.prediction.sharing.modes import speeds_in
from planner.profile.codec import parse_profiles
from planner.profile.model import Profile
from planner.signals.compute_share import compute_share
from pricing.catalog.catalog import Catalog, load_catalog
from research.score import Coverage, Score, Section, errors

MEASURED = Path(__file__).parent / "measured" / "side_by_side"
MODES = {"mps": "side by side (MPS)", "time-slicing": "in turns"}
_DAY = date(2026, 11, 26)
_FULL = 0.95
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
class Beside:
    """One job beside another: what was predicted, and what was measured in all runs of the pair.

    Attributes:
        mode: how they share.
        profiles: the job and the one beside it, alone.
        true: speed relative to running alone.
        told: its speed, predicted from the profiles.
        slower: 95th percentile of a service's latency relative to alone; None for other jobs.
        fits: whether a fleet would put the two on one GPU.
    """

    mode: str
    profiles: tuple[Profile, Profile]
    true: float
    told: Estimate
    slower: float | None
    fits: bool

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of the GPU that both take: SM activity."""
        own, other = (compute_share(one) or 0.0 for one in self.profiles)
        return own, other

    @property
    def has_room(self) -> bool:
        """Whether neither fills the GPU."""
        return max(self.shares) < _FULL

    @property
    def holds(self) -> bool:
        """Whether the truth lies in the interval."""
        return self.told.low <= self.true <= self.told.high


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
def beside() -> tuple[Beside, ...]:
    """Return both jobs of all pairs, in both modes."""
    pairs = list(itertools.combinations(sorted(profiles()), _PAIR))
    fit = {pair: fits([profiles()[name] for name in pair]) for pair in pairs}
    return tuple(
        one
        for mode in MODES
        for pair in pairs
        for job in pair
        if (one := _beside(mode, pair, job, fits=fit[pair])) is not None
    )


def _beside(mode: str, pair: tuple[str, ...], job: str, *, fits: bool) -> Beside | None:
    (other,) = (name for name in pair if name != job)
    both = profiles()[job], profiles()[other]
    speed = _relative(mode, pair, job, lambda run: run.per_s)
    if speed is None:
        return None
    later = _relative(mode, pair, job, lambda run: run.p95_s)
    return Beside(
        mode=mode,
        profiles=both,
        true=speed,
        told=speeds_in(both, mode)[0],
        slower=later if both[0].job.kind.answers else None,
        fits=fits,
    )


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


@cache
def _catalog() -> Catalog:
    return load_catalog(_DAY)


def fits(some: Sequence[Profile]) -> bool:
    """Return whether a fleet of these jobs on machines with one H200 each needs one GPU."""
    today = [
        replace(
            one,
            hardware=replace(
                one.hardware, provider="digitalocean", instance_type="gpu-h200x1-141gb"
            ),
        )
        for one in some
    ]
    asked = Requirements(consolidate=True)
    fleet = make_plan(tuple(today), _catalog(), asked, as_of=_DAY).fleet
    return fleet is not None and fleet.gpus_after == 1


def section(_: Path) -> Section:
    """Return the scores of what `predict_sharing` answers, beside simple rules."""
    scores, coverages = [], []
    for mode, title in MODES.items():
        known = [one for one in beside() if one.mode == mode]
        room = [one for one in known if one.has_room]
        packed = [one for one in known if one.fits]
        scores += [
            _score(f"a job beside another on an H200, {title}", known),
            _score(f"the same, neither fills the GPU (SM activity < {_FULL:.0%})", room),
            _score("the same, a fleet would put them on one GPU", packed),
        ]
        coverages.append(
            Coverage(
                question=f"beside another job on an H200, {title}",
                share=_share(known),
                factor=float(np.median([(one.told.high / one.told.low) ** 0.5 for one in known])),
                groups={"neither fills the GPU": _share(room), "put on one GPU": _share(packed)},
            )
        )
    return Section(
        title="Sharing an H200",
        scores=tuple(scores),
        coverages=tuple(coverages),
        notes=(_NOTE, _packed_note([one for one in beside() if one.fits and one.mode == "mps"])),
    )


def _share(some: Sequence[Beside]) -> float:
    return fmean(one.holds for one in some)


def _score(question: str, some: Sequence[Beside]) -> Score:
    true = [one.true for one in some]
    half = errors(np.full(len(true), 0.5), true)
    unchanged = errors(np.ones(len(true)), true)
    return Score(
        question=question,
        cases=len(true),
        ours=errors([one.told.mid for one in some], true),
        baseline=(
            "1 / max(1, sum of SM activity)",
            errors([1.0 / max(1.0, sum(one.shares)) for one in some], true),
        ),
        note=f"half each: {half}; no change: {unchanged}",
    )


def _packed_note(packed: Sequence[Beside]) -> str:
    below = [one.true / one.told.low for one in packed if one.true < one.told.low]
    over = sum(one.true < 1.0 / Requirements().max_slowdown for one in packed)
    late = [(one.slower, one.told.low) for one in packed if one.slower is not None]
    kept = sum(slower <= 1.0 / low for slower, low in late)
    told = f"""
        A fleet would put {len(packed) // _PAIR} of the 36 pairs on one H200. Under MPS the slowest
        of their {len(packed)} jobs ran at {min(one.true for one in packed):.2f} of its speed alone;
        {over} ran below the 0.83 that `--max-slowdown 1.2` allows, and {len(below)} below the low
        end of their interval, by {1.0 - min(below, default=1.0):.0%} at most. The 95th percentile
        of the latency stayed within measured / low end for {kept} of {len(late)} services. Nobody
        ran out of memory."""
    return fill(" ".join(told.split()), width=100)


_NOTE = """\
Nine jobs of ours in PyTorch (training of ResNet-50, of BERT-base, of a small network, and of one
fed by JPEG files; decoding by a language model; two services; sweeps over memory; fp32 products),
all 36 pairs, twice, 1.35 s each, in both modes on one H200 (`research/measured/side_by_side`).
Nothing is fitted on them. That a job is delayed for its own kernel time, and by the kernel time of
others in turns, was decided with these scores in sight; Gavel's figures are the same either way.
Jobs that launch from the CPU ran up to 20 % faster and slower alone from minute to minute.

Under MPS the two jobs that fill the GPU (SM activity 97 and 99 %) let others starve: these ran at
0.02 to 0.8 of their speed, while they themselves kept 0.8 to 1 of theirs. Such estimates are marked
weak, and a fleet's limit of 90 % lets no such job share. In turns a job of short steps waits for
its turn several times a step: one of 2 ms kept 0.27 of its speed beside any busy job, and the rule
misses that. No reading of a profile tells the one or the other."""
