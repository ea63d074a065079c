"""The values of `gpucost capacity -f json` (`gpucost.capacity/v1`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from planner.capacity.queueing import ErlangWait

SCHEMA = "gpucost.capacity/v1"
Verdict = Literal["fewer", "keep", "more", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRange:
    """A figure of the trace as it was, and its 5th and 95th percentile over drawn traces.

    Attributes:
        mid: of the trace; None where no job fits the pool.
        low: None where nothing was drawn.
        high: None where nothing was drawn.
    """

    low: float | None
    mid: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredWaits:
    """How long jobs really waited in the trace, in seconds.

    Attributes:
        jobs: how many say it.
        mean_s: of them.
        p50_s: of half of them at most.
        p95_s: of 95 % of them at most.
    """

    jobs: int
    mean_s: float
    p50_s: float
    p95_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDocument:
    """What was replayed.

    Attributes:
        file: its name.
        jobs: that are replayed.
        days: from the first submission to the last.
        load_gpus: GPUs that were busy on average.
        widest: the most GPUs of one job.
        measured: waits that the file records; None where it has no start times.
        dropped: rows left out, by reason.
    """

    file: str
    jobs: int
    days: float
    load_gpus: float
    widest: int
    measured: MeasuredWaits | None
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """At most `wait_s` seconds for this quantile of jobs.

    Attributes:
        quantile: of the jobs [0 to 1].
        wait_s: at most.
    """

    quantile: float
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """What one GPU costs an hour.

    Attributes:
        usd_per_gpu_hour: None where no machine or price was named.
        how: in words.
        step: GPUs come in machines of so many.
    """

    usd_per_gpu_hour: Decimal | None
    how: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Other traces that were replayed: how many, and of blocks of how many days.

    Attributes:
        draws: how many.
        blocks: what they are drawn in, `weeks` or `days`; None where nothing was drawn.
        of: days of a block.
    """

    draws: int
    blocks: str | None
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstNow:
    """What changes against the GPUs of today; more is positive.

    Attributes:
        gpus: more than today.
        usd_per_month: of them [USD]; None without a price.
        waited_h_per_month: hours that all jobs of a month of 730 h wait together.
    """

    gpus: int
    usd_per_month: Decimal | None
    waited_h_per_month: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeDocument:
    """One size of the pool.

    Attributes:
        gpus: of it.
        load_fraction: busy on average, of all.
        overloaded: more work comes than it can do; waits then grow with the length of the trace.
        never: jobs wider than the pool; they are in no other figure.
        mean_s: wait of all jobs.
        p50_s: wait of half of them at most.
        p90_s: wait of 90 % of them at most.
        p95_s: wait of 95 % of them at most.
        p99_s: wait of 99 % of them at most.
        late_fraction: jobs that wait longer than the target.
        erlang: the textbook's waits beside it; None where overloaded.
        usd_per_month: of 730 h.
        against_now: None without today's GPUs.
    """

    gpus: int
    load_fraction: float
    overloaded: bool
    never: int
    mean_s: DrawnRange
    p50_s: DrawnRange
    p90_s: DrawnRange
    p95_s: DrawnRange
    p99_s: DrawnRange
    late_fraction: DrawnRange
    erlang: ErlangWait | None
    usd_per_month: Decimal | None
    against_now: AgainstNow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAnswer:
    """Do we need more GPUs?

    Attributes:
        verdict: fewer, keep, more; unknown without today's GPUs, or where no size is enough.
        gpus: the size to have; None where no size is enough.
        enough: fewest GPUs that keep the target in the trace as it was; None: none asked for does.
        surely: fewest that keep it in 95 % of drawn traces; None: none, or nothing was drawn.
        usd_per_month: of `gpus`.
    """

    verdict: Verdict
    gpus: int | None
    enough: int | None
    surely: int | None
    usd_per_month: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityDocument:
    """Waits and dollars of a shared pool by its size, and what to have.

    Attributes:
        schema: `gpucost.capacity/v1`.
        as_of: day of the price.
        currency: of every amount.
        trace: what was replayed.
        order: in which jobs are served.
        target: what waits are held against.
        price: of a GPU.
        drawn: other traces, as the seen one might have been.
        now: GPUs of today; None where not said.
        sizes: each size that was asked for.
        answer: what to have.
        assumptions: what was assumed rather than stated.
        notes: what a reader must know.
    """

    schema: str
    as_of: date
    currency: str
    trace: TraceDocument
    order: str
    target: Target
    price: GpuPrice
    drawn: Drawn
    now: int | None
    sizes: tuple[SizeDocument, ...]
    answer: CapacityAnswer
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
