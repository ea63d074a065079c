"""What interruptions and failures cost a job: billed time, lost work, wall time, restarts.

What interruptions cost a job on spot capacity: billed time, lost work, wall time, deadlines.
Closed form (Daly 2006, exponential up-times of mean M): with checkpoints of C seconds every tau
seconds and R seconds to restart, work of W seconds takes M e^(R/M) (e^((tau+C)/M) - 1) W/tau billed
seconds; tau* = sqrt(2 C M) - C where C < M/2, else M. Real up-times are heavy-tailed and wall time
depends on when capacity returns, so wall time and deadlines come from replay of a trace alone.

How often jobs on many GPUs fail, and what a run needs to survive it: checkpoints and restarts.
Mean time between failures: 419 unexpected interruptions of 16,384 H100 in 54 days (Llama 3 report,
2024), one in 50,676 GPU-hours.
"""

import json
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from planner.models.document import Number
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import HOURS_PER_MONTH

_SECONDS_PER_MONTH = float(HOURS_PER_MONTH) * 3600.0
_LONGEST_FACTOR = 1e6  # beyond it the job never ends


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCosts:
    """What it takes to survive an interruption.

    Attributes:
        write_s: seconds to write one checkpoint, > 0; nothing else runs meanwhile.
        restart_s: seconds from a new machine to work going on: boot, set-up, loading.
    """

    write_s: float
    restart_s: float

    def __post_init__(self) -> None:
        if not (self.write_s > 0.0 and self.restart_s >= 0.0):
            raise ValueError(f"checkpoint of {self.write_s} s, restart of {self.restart_s} s")


# Two minutes to write a checkpoint and six from a new machine to work going on: what the published
# traces were evaluated with. The user's own figures replace them.
CHECKPOINTS = CheckpointCosts(write_s=120.0, restart_s=360.0)


def checkpoint_interval_s(mean_up_s: float, checkpoints: CheckpointCosts) -> float:
    """Return the best time of work between checkpoints, seconds (Daly's first-order optimum)."""
    write_s = checkpoints.write_s
    if write_s >= mean_up_s / 2.0:
        return mean_up_s
    return math.sqrt(2.0 * write_s * mean_up_s) - write_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """Billed machine time of a job under interruptions, in seconds.

    Attributes:
        work_s: useful work.
        checkpoint_s: writing checkpoints.
        lost_s: work done twice and restarts.
    """

    work_s: float
    checkpoint_s: float
    lost_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.work_s + self.checkpoint_s + self.lost_s


def expected_billed(
    work_s: float, mean_up_s: float, checkpoints: CheckpointCosts, interval_s: float
) -> Billed:
    """Return the expected billed time of `work_s` seconds of work (Daly's closed form).

    Args:
        work_s: useful work, seconds, >= 0.
        mean_up_s: mean time between interruptions, seconds, > 0.
        checkpoints: what one costs.
        interval_s: work between checkpoints, seconds, > 0.

    Raises:
        InputError: interruptions come so fast that the work never ends.
    """
    tau = min(interval_s, work_s) if work_s else interval_s
    exponent = (tau + checkpoints.write_s) / mean_up_s
    restarts = checkpoints.restart_s / mean_up_s
    if exponent > math.log(_LONGEST_FACTOR) or restarts > math.log(_LONGEST_FACTOR):
        times = {"minutes": mean_up_s / 60.0, "seconds": checkpoints.write_s}
        raise InputError(Message("input.no-time-between", **times))
    segments = work_s / tau
    total = mean_up_s * math.exp(restarts) * math.expm1(exponent) * segments
    written = segments * checkpoints.write_s
    return Billed(work_s=work_s, checkpoint_s=written, lost_s=max(0.0, total - work_s - written))


def mean_up_from_monthly_share(share: float) -> float:
    """Return the mean time between interruptions in seconds, from the share interrupted in a month.

    A share f of machines interrupted within a month of 730 h means M = -730 h / ln(1 - f) if
    interruptions come at a constant rate. The bucket limits how well M is known.

    Raises:
        ValueError: the share is not between 0 and 1.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"a share of {share}")
    return -_SECONDS_PER_MONTH / math.log1p(-share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """A trace of spot capacity: whether a machine could be held, tick by tick.

    Attributes:
        tick_s: seconds between readings.
        up: one reading a tick.
    """

    tick_s: float
    up: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not self.tick_s > 0.0 or not self.up:
            raise ValueError("a trace needs readings at a positive distance")

    @property
    def mean_up_s(self) -> float | None:
        """Mean length of an up-time that ended in an interruption; None where none did."""
        ends = sum(a and not b for a, b in zip(self.up, self.up[1:], strict=False))
        return sum(self.up) * self.tick_s / ends if ends else None

    def spells(self) -> list[tuple[float, float]]:
        """Return the up-times as (start, end) in seconds from the start of the trace."""
        stretches: list[tuple[float, float]] = []
        start: int | None = None
        for tick, up in enumerate((*self.up, False)):
            if up and start is None:
                start = tick
            elif not up and start is not None:
                stretches.append((start * self.tick_s, tick * self.tick_s))
                start = None
        return stretches


def parse_trace(text: str, origin: str) -> Availability:
    """Return the trace of a JSON file `{"metadata": {"gap_seconds": 195}, "data": [0, 1, ...]}`.

    Raises:
        InputError: it has another form.
    """
    try:
        document = json.loads(text)
        tick_s = float(document["metadata"]["gap_seconds"])
        return Availability(tick_s=tick_s, up=tuple(reading > 0 for reading in document["data"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{origin}: no availability trace; wanted is "
            '{"metadata": {"gap_seconds": 195}, "data": [0, 1, ...]}.'
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReplayedRun:
    """One job replayed on a trace.

    Attributes:
        billed: machine time, in its parts.
        wall_s: from the start to the end of the work; None when the trace ended first.
        interruptions: how often the machine was lost.
    """

    billed: Billed
    wall_s: float | None
    interruptions: int


def replay(
    trace: Availability,
    work_s: float,
    checkpoints: CheckpointCosts,
    *,
    interval_s: float,
    start_s: float = 0.0,
) -> _ReplayedRun:
    """Return how a job would have gone that started at `start_s` of the trace.

    Whenever capacity is there the job restarts, works `interval_s`, writes a checkpoint, and so on;
    an interruption loses what came after the last checkpoint.
    """
    done_s = written_s = billed_s = 0.0
    interruptions = 0
    for begin, end in _from(trace.spells(), start_s):
        spell = _Spell(length_s=end - begin, checkpoints=checkpoints, interval_s=interval_s)
        used_s = spell.time_for(work_s - done_s)
        if used_s is not None:
            billed_s += used_s
            written_s += spell.checkpoints_in(work_s - done_s) * checkpoints.write_s
            lost = billed_s - work_s - written_s
            billed = Billed(work_s=work_s, checkpoint_s=written_s, lost_s=lost)
            return _ReplayedRun(
                billed=billed, wall_s=begin + used_s - start_s, interruptions=interruptions
            )
        interruptions += 1
        billed_s += spell.length_s
        saved = spell.saved_segments
        done_s += saved * interval_s
        written_s += saved * checkpoints.write_s
    lost = billed_s - done_s - written_s
    billed = Billed(work_s=done_s, checkpoint_s=written_s, lost_s=lost)
    return _ReplayedRun(billed=billed, wall_s=None, interruptions=interruptions)


def _from(spells: Sequence[tuple[float, float]], start_s: float) -> Sequence[tuple[float, float]]:
    first = bisect_left(spells, start_s, key=lambda spell: spell[1])
    later = list(spells[first:])
    if later and later[0][0] < start_s < later[0][1]:
        later[0] = (start_s, later[0][1])
    return [spell for spell in later if spell[1] > start_s]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spell:
    """One up-time, as the job uses it: restart, then work and checkpoints by turns."""

    length_s: float
    checkpoints: CheckpointCosts
    interval_s: float

    @property
    def saved_segments(self) -> int:
        """Segments of work whose checkpoint was finished."""
        remaining_s = self.length_s - self.checkpoints.restart_s
        return max(0, int(remaining_s // (self.interval_s + self.checkpoints.write_s)))

    def checkpoints_in(self, work_s: float) -> int:
        """Return how many checkpoints are written during the work; none after the last segment."""
        return max(0, math.ceil(work_s / self.interval_s) - 1)

    def time_for(self, work_s: float) -> float | None:
        """Return the seconds until the work is done in this spell; None if the spell ends first."""
        written = self.checkpoints_in(work_s) * self.checkpoints.write_s
        needed = self.checkpoints.restart_s + work_s + written
        return needed if needed <= self.length_s else None


def replay_starts(
    trace: Availability,
    work_s: float,
    checkpoints: CheckpointCosts,
    *,
    interval_s: float,
    starts_s: Sequence[float] | None = None,
) -> tuple[_ReplayedRun, ...]:
    """Return the runs that start at these seconds of the trace; None = every hour of it."""
    if starts_s is None:
        hours = max(1, int(len(trace.up) * trace.tick_s // 3600.0))
        starts_s = [hour * 3600.0 for hour in range(hours)]
    return tuple(
        replay(trace, work_s, checkpoints, interval_s=interval_s, start_s=start)
        for start in starts_s
    )


def miss_probability(runs: Sequence[_ReplayedRun], deadline_s: float) -> float:
    """Return the share of replayed runs that did not end within the deadline, 0-1."""
    missed = sum(run.wall_s is None or run.wall_s > deadline_s for run in runs)
    return missed / len(runs) if runs else 1.0


GPU_HOURS_A_FAILURE = 16384 * 54 * 24 / 419
MOST_LOST_S = 3600.0  # an hour of work, our choice: runs write every 15 to 60 minutes
_MOST_WRITING = 0.1  # of the time, where a checkpoint takes so long that an hour is too often
_SURE = 0.99  # that the restarts allowed are enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """What a run needs to survive the failures that are to be expected.

    Attributes:
        failures: expected over its hours, >= 0.
        max_restarts: torchrun's --max-restarts, enough with 99 %, >= 1.
        checkpoint_every_s: work between checkpoints, seconds, > 0.
    """

    failures: float
    max_restarts: int
    checkpoint_every_s: float


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """How training spreads over several GPUs.

    Attributes:
        mode: how they share the work.
        why: one sentence.
        failures: expected in the period.
        max_restarts: that the launcher is told.
        nnodes: machines that the launcher is told, `FEWEST:MOST` where it may lose some.
        checkpoint_every_s: work between checkpoints; None where nothing is trained.
    """

    mode: str
    why: str
    failures: Number
    max_restarts: int
    nnodes: str
    checkpoint_every_s: Number | None


def survival(
    gpus: float,
    hours: float,
    checkpoints: CheckpointCosts = CHECKPOINTS,
    spot_up_s: float | None = None,
) -> Survival:
    """Return what a run on so many GPUs for so many hours needs.

    Args:
        gpus: at work, > 0.
        hours: of the run, >= 0.
        checkpoints: what one costs.
        spot_up_s: mean time between interruptions of spot capacity; None where there are none or
            their rate is unknown. Restarts do not count them: they end the machine, and torchrun.
    """
    failures = gpus * hours / GPU_HOURS_A_FAILURE
    return Survival(
        failures=failures,
        max_restarts=max(1, _restarts(failures)),
        checkpoint_every_s=checkpoint_every_s(gpus, checkpoints, spot_up_s),
    )


def mean_up_s(gpus: float) -> float:
    """Return the mean time between failures of so many GPUs, seconds."""
    return GPU_HOURS_A_FAILURE * 3600.0 / gpus


def checkpoint_every_s(
    gpus: float, checkpoints: CheckpointCosts = CHECKPOINTS, spot_up_s: float | None = None
) -> float:
    """Return the time of work between checkpoints, seconds: what is set and what is billed.

    Young's and Daly's optimum, and no more than people care to lose at once: for one GPU and
    machines that hardly fail the optimum is days, and a crash of the program itself is likelier.
    Failures and interruptions of spot capacity (`spot_up_s` between them) add up as rates.
    """
    up_s = mean_up_s(gpus)
    if spot_up_s is not None:
        up_s = 1.0 / (1.0 / up_s + 1.0 / spot_up_s)
    optimum = checkpoint_interval_s(up_s, checkpoints)
    return min(optimum, max(MOST_LOST_S, checkpoints.write_s / _MOST_WRITING))


def _restarts(expected: float) -> int:
    """Return the least number that a Poisson count of this mean stays under with 99 %."""
    count, probability = 0, math.exp(-expected)
    total = probability
    while total < _SURE and count < 10_000:  # noqa: PLR2004 - beyond any real fleet
        count += 1
        probability *= expected / count
        total += probability
    return count
