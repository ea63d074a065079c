"""Our own jobs beside each other on an H200, side by side (MPS) and in turns: neither seen.

The expected speed is fitted on nothing of them; what the interval takes of them (`delays`) is
calibrated without both jobs of the pair that it is asked about. They need no other data.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from statistics import fmean
from textwrap import fill

import numpy as np
from msgspec.structs import replace

from planner.choice.requirements import Requirements
from planner.models.coefficients import coefficients, fitted_as
from planner.models.estimate import Estimate
from planner.pipeline import draft_plan
from planner.prediction.sharing import predict_sharing
from planner.profile.model import GpuReadings, Profile
from pricing.catalog.catalog import Catalog, load_catalog
from research import delays
from research.h200_runs import FULL, MODES, Measured, measured
from research.score import Coverage, Score, Section, errors

_DAY = date(2026, 11, 26)
_PAIR = 2
_TIME = "util.kernel_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside(Measured):
    """One job beside another: what was measured, and what was predicted.

    Attributes:
        told: its speed, predicted from the profiles by figures that saw neither job.
        simple: the half width of one factor for the mode, calibrated without both, too.
        fits: whether a fleet would put the two on one GPU.
    """

    told: Estimate
    simple: float
    fits: bool

    @property
    def holds(self) -> bool:
        """Whether the truth lies in the interval."""
        return self.told.low <= self.true <= self.told.high

    @property
    def simple_holds(self) -> bool:
        """Whether it lies within one factor of what is expected."""
        return abs(math.log(self.true / self.told.mid)) <= math.log(self.simple)


@cache
def beside() -> tuple[Beside, ...]:
    """Return both jobs of all pairs, in both modes."""
    pairs = {one.jobs: one.profiles for one in measured()}
    fit = {jobs: fits(profiles) for jobs, profiles in pairs.items()}
    return tuple(_beside(one, fits=fit[one.jobs]) for one in measured())


def _beside(one: Measured, *, fits: bool) -> Beside:
    with fitted_as(sharing={**coefficients("sharing"), **delays.fitted(one.jobs)}):
        told = predict_sharing(one.profiles, one.mode)[0]
    return Beside(
        mode=one.mode,
        profiles=one.profiles,
        true=one.true,
        slower=one.slower,
        told=told,
        simple=delays.one_factor(one.mode, one.jobs),
        fits=fits,
    )


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
    asked = Requirements(consolidate=True, providers=("digitalocean",), gpus=("H200-SXM-141GB",))
    fleet = draft_plan(tuple(today), _catalog(), asked, as_of=_DAY).fleet
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
            _score(f"the same, neither fills the GPU (SM activity < {FULL:.0%})", room),
            _score("the same, a fleet would put them on one GPU", packed),
            *(_unread(known) if mode == "mps" else ()),
        ]
        groups = {"neither fills the GPU": room, "put on one GPU": packed}
        coverages += [
            Coverage(
                question=f"beside another job on an H200, {title}, neither job seen",
                share=_share(known),
                factor=float(np.median([_width(one) for one in known])),
                groups={told: _share(some) for told, some in groups.items()},
            ),
            Coverage(
                question="the same, one factor for all pairs of the mode",
                share=fmean(one.simple_holds for one in known),
                factor=float(np.median([one.simple for one in known])),
                groups={
                    told: fmean(one.simple_holds for one in some) for told, some in groups.items()
                },
            ),
        ]
    return Section(
        title="Sharing an H200",
        scores=tuple(scores),
        coverages=tuple(coverages),
        notes=(
            _NOTE,
            _width_note(),
            _packed_note([one for one in beside() if one.fits and one.mode == "mps"]),
        ),
    )


def _width(one: Beside) -> float:
    return math.sqrt(one.told.high / one.told.low)


def _share(some: Sequence[Beside]) -> float:
    return fmean(one.holds for one in some)


def _unread(known: Sequence[Beside]) -> tuple[Score, ...]:
    """Return the scores of jobs of whose GPU nothing is known but the time with a kernel."""
    blind = []
    for one in known:
        first, second = (
            replace(profile, gpus=tuple(_kernel_time(reading) for reading in profile.gpus))
            for profile in one.profiles
        )
        blind.append(dataclasses.replace(one, told=predict_sharing((first, second), one.mode)[0]))
    room = [one for one in blind if one.has_room]
    return (
        _score("the same, SM activity not measured", blind),
        _score("the same, SM activity not measured, neither fills the GPU", room),
    )


def _kernel_time(reading: GpuReadings) -> GpuReadings:
    return replace(reading, metrics={_TIME: reading.metrics[_TIME]})


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


def _width_note() -> str:
    """Return by how much intervals of pairs with room were missed, and how wide they were."""
    told = []
    for mode, title in MODES.items():
        room = [one for one in beside() if one.mode == mode and one.has_room]
        below = sum(one.true < one.told.low for one in room)
        above = sum(one.true > one.told.high for one in room)
        told.append(
            f"{title} the interval is x/÷ {fmean(map(_width, room)):.2f} wide in the mean, with "
            f"{below} of {len(room)} below it and {above} above, and one factor for all pairs "
            f"x/÷ {fmean(one.simple for one in room):.2f}"
        )
    return fill(f"Where neither job fills the GPU: {'; '.join(told)}.", width=100)


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
The expected speed is fitted on nothing of them. That a job is delayed for its own kernel time, and
by the kernel time of others in turns, was decided with these scores in sight, as was the form of
the interval; Gavel's errors are the same either way. How far a job strays that runs again, and how
often each share of others delays it in each mode, are calibrated on the pairs that neither job of
the pair in question is in; the latter under MPS on pairs of which neither job fills the GPU.

Under MPS the two jobs that fill the GPU (SM activity 97 and 99 %) let others starve: these ran at
0.02 to 0.8 of their speed, while they themselves kept 0.8 to 1 of theirs. That the others get what
is left of the SMs was decided with these scores in sight. Such estimates are marked weak, and a
fleet's limit of 90 % lets no such job share. Where SM activity was not measured nobody can tell. In
turns a job of short steps waits for its turn several times a step: one of 2 ms kept 0.27 of its
speed beside any busy job. The expected speed misses that. So does the low end beside such jobs:
calibrated without that job by up to 0.11, as it ships by 0.02. No reading of a profile tells the
one or the other."""
