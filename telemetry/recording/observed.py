"""What a measurement saw of the job itself, beside its devices: steps, pauses, places, settings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import floor, log2
from typing import TYPE_CHECKING, Any

from planner.profile.model import Rank

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from planner.profile.model import Machine, Run, Wait
    from planner.profile.trials import Change, TracedSteps, TurnsSeen

# As the probe writes them (its timing/tally.py): bucket b holds 2**(b/16) to 2**((b+1)/16) s.
BUCKETS = 16
_SHORTEST_S = 1e-6


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Lengths of steps without evaluation and saving, each to within its bucket of 4.4 %.

    Attributes:
        counts: number of steps by bucket.
        longest_s: the longest, exactly; None without any.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    longest_s: float | None = None

    @property
    def n(self) -> int:
        """The number of steps."""
        return sum(self.counts.values())

    def quantile(self, share: float) -> float | None:
        """Return the length that a share of the steps does not exceed, seconds; None without any.

        The middle of its bucket, so it is within 2.2 % of the true one; never above the longest.
        """
        rank, passed = share * self.n, 0
        for bucket in sorted(self.counts):
            passed += self.counts[bucket]
            if passed >= rank and self.longest_s is not None:
                return min(_middle_s(bucket), self.longest_s)
        return None

    def from_length(self, length_s: float) -> tuple[int, float]:
        """Return the number of steps of this length and more, and their sum, seconds.

        A bucket counts by its middle.
        """
        long = {b: n for b, n in self.counts.items() if _middle_s(b) >= length_s}
        longest_s = self.longest_s or 0.0
        total_s = sum(min(_middle_s(b), longest_s) * n for b, n in long.items())
        return sum(long.values()), total_s


def add_up(parts: Iterable[StepTimes]) -> StepTimes:
    """Return the steps of all parts, in whatever order they come."""
    counts: Counter[int] = Counter()
    longest_s: float | None = None
    for part in parts:
        counts.update(part.counts)
        if part.longest_s is not None:
            longest_s = part.longest_s if longest_s is None else max(longest_s, part.longest_s)
    return StepTimes(dict(sorted(counts.items())), longest_s)


def of_line(line: Mapping[str, Any]) -> StepTimes:
    """Return the lengths in one line of the probe; empty where they are unknown.

    A line without lengths, as older probes wrote, counts its steps at their mean.
    """
    n, step_s, longest_s = int(line.get("n") or 0), line.get("step_s"), line.get("longest_s")
    if step_s is None or n <= 0:
        return StepTimes()
    lengths = line.get("lengths")
    if lengths:
        return StepTimes({int(b): int(k) for b, k in lengths.items()}, longest_s)
    if longest_s is None:
        longest_s = max(0.0, step_s - (line.get("checkpoint_s") or 0.0)) / n
    bucket = floor(log2(max(longest_s, _SHORTEST_S)) * BUCKETS)
    return StepTimes({bucket: n}, longest_s)


def _middle_s(bucket: int) -> float:
    return float(2.0 ** ((bucket + 0.5) / BUCKETS))


# Columns of `Observed.steps`; times and items are sums over the row's `n` steps, the loss is of the
# last of them.
SUMMED = ("step_s", "data_wait_s", "h2d_s", "optimizer_s", "checkpoint_s", "evaluation_s", "items")
STEP_COLUMNS = ("t_s", "step", "n", *SUMMED, "loss")
PAUSES = ("evaluation", "checkpoint")  # of which a row of steps tells how long they took


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A stretch in which the job did something other than steps.

    Attributes:
        kind: `evaluation`, `checkpoint`, `stall` or `loader-start`.
        start_s: when it began, seconds since 1970 UTC.
        length_s: how long it took.
        wait_s: time of it that was spent waiting for input; None where unknown.
        count: several that the probe told as one.
        over_s: from the begin of the first to the end of the last; None where it is one.
    """

    kind: str
    start_s: float
    length_s: float
    wait_s: float | None = None
    count: int = 1
    over_s: float | None = None

    @property
    def end_s(self) -> float:
        """The end, of the last one where it stands for several."""
        return self.start_s + max(self.length_s, self.over_s or 0.0)


# What a rank does for itself; the rest is waiting for the device or for other ranks.
_OWN = frozenset(("input", "host", "save", "network", "sleep", "thread"))
_DIGITS = 9


def rank_of(
    rank: int,
    steps: int,
    mean_s: float | None,
    data_wait_s: float | None,
    places: Sequence[Wait] = (),
) -> Rank:
    """Return one rank of a distributed run.

    Args:
        rank: its number.
        steps: that it made.
        mean_s: a whole step, seconds.
        data_wait_s: of it waiting for input, seconds; None where unknown.
        places: where its time went.
    """
    own = [wait for wait in places if wait.doing in _OWN]
    shares = [sum(wait.time_fraction or 0.0 for wait in own)] if places else []
    shares += [data_wait_s / mean_s] if data_wait_s is not None and mean_s else []
    return Rank(
        rank=rank,
        steps=steps,
        mean_s=None if mean_s is None else round(mean_s, _DIGITS),
        data_wait_s=None if data_wait_s is None else round(data_wait_s, _DIGITS),
        own_fraction=round(min(1.0, max(shares)), 4) if shares else None,
        place=own[0].place if own else None,
    )


# Fields of `model.Hardware` that tell which machine it is, and who bills it.
MACHINE_IDENTITY = ("machine", "provider", "instance_type", "region")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The job as `gpucost profile` watched it.

    Attributes:
        name: the program that ran.
        cpu_cores: cores that it may use.
        ram_gib: host memory that it may use.
        interconnect: between the GPUs, as `model.Hardware` names it.
        framework: the framework that stepped.
        kind: what sort of job, as `kinds.KINDS` names it.
        precision: as `kinds.PRECISIONS` names it.
        batch_per_gpu: items a GPU takes at a time.
        loader_workers: of the loader that feeds the steps.
        reading_cores: cores that the program wants while it waits for that loader, 0 to 1.
        parallelism: as `kinds.PARALLELISMS` names it.
        parameters: of the model.
        optimizer: class of the optimiser, as a trace names it.
        ended: how it ended, as `kinds.ENDINGS` names it.
        memory_at_end_gib: of the GPU, in use when the allocation failed, and all of it.
        counted_by: what counts as a step, as `kinds.COUNTED_BY` names it.
        steps: rows of the process that sets the pace, by time, with STEP_COLUMNS; None without any.
        step_count: steps of the whole run.
        step_times: lengths of the steps of the pacing process, without its first.
        items: items of all processes over those of the pacing one, >= 1.
        pauses: by time.
        places: where the pacing process spent the time of its steps.
        ranks: of a distributed run, by rank.
        changes: what of a recipe was applied, and what was left.
        turns: settings that were tried in turns; None where none were.
        trace: steps under the framework's own profiler; None where none were traced.
        machine: the whole machine, and whose its other GPUs were.
        identity: which machine it is, and who bills it: what is known of MACHINE_IDENTITY.
        run: which run it is a part of, and on which machine.
        notes: what a reader of the profile should know.
    """

    name: str | None = None
    cpu_cores: float | None = None
    ram_gib: float | None = None
    interconnect: str | None = None
    framework: str | None = None
    kind: str | None = None
    precision: str | None = None
    batch_per_gpu: int | None = None
    loader_workers: int | None = None
    reading_cores: float | None = None
    parallelism: str | None = None
    parameters: float | None = None
    optimizer: str | None = None
    ended: str | None = None
    memory_at_end_gib: tuple[float, float] | None = None
    counted_by: str | None = None
    steps: pd.DataFrame | None = None
    step_count: int = 0
    step_times: StepTimes = field(default_factory=StepTimes)
    items: float = 1.0
    pauses: tuple[Pause, ...] = ()
    places: tuple[Wait, ...] = ()
    ranks: tuple[Rank, ...] = ()
    changes: tuple[Change, ...] = ()
    turns: TurnsSeen | None = None
    trace: TracedSteps | None = None
    machine: Machine | None = None
    identity: Mapping[str, str] = field(default_factory=dict)
    run: Run | None = None
    notes: tuple[str, ...] = ()
