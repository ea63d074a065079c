"""Waits and dollars of a shared pool of GPUs by its size, and the fewest that keep a target."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from statistics import fmean
from typing import Literal

from planner.capacity import queueing
from pricing.errors import InputError
from pricing.money import HOURS_PER_MONTH, cents

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
        never: jobs wider than the pool; in the other figures they wait for ever.
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
    erlang: queueing.ErlangWait | None
    usd_per_month: Decimal | None
    against_now: AgainstNow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAnswer:
    """Do we need more GPUs?

    Attributes:
        verdict: fewer, keep, more; unknown without today's GPUs, where no size is enough, and where
            the replay of today's GPUs does not show the waits that were measured.
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


_MOST_SIZES = 12
"""Sizes that are replayed at most: a table that is read, and a minute of work."""
_QUANTILES = (0.5, 0.9, 0.95, 0.99)
_LOW, _HIGH = 0.05, 0.95
_ROUNDING = 1e-9
_ASSUMPTIONS = (
    "a job runs as long as it did in the trace, on any GPU; nothing is moved or interrupted",
    "the pool is empty when the trace begins, and jobs come whether or not others wait",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityQuestion:
    """What is asked of a trace.

    Attributes:
        least, most: GPUs of the smallest and the largest pool.
        now: GPUs of today; None: not said.
        target: how long jobs may wait.
        order: who is served next.
        price: of one GPU.
        draws: other traces to replay, 0 for none.
    """

    least: int
    most: int
    now: int | None
    target: Target
    order: queueing.Order
    price: GpuPrice
    draws: int


@dataclass(frozen=True, slots=True)
class _Figures:
    """One replay: seconds, and the part that is late."""

    mean_s: float
    quantiles_s: tuple[float, ...]
    late_fraction: float
    never: int
    waited_s: float


def capacity(
    reading: queueing.TraceReading,
    file: str,
    question: CapacityQuestion,
    day: date,
    progress: Callable[[int], None],
) -> CapacityDocument:
    """Return waits and dollars by size, and the answer.

    Args:
        reading: of the trace; only the jobs that shall be replayed.
        file: its name.
        question: what is asked.
        day: of the prices.
        progress: called with the GPUs of each size before it is replayed.

    Raises:
        InputError: no size lies between the smallest and the largest pool.
    """
    trace = reading.trace
    drawn = tuple(queueing.drawn_traces(trace, question.draws))
    replays: dict[int, tuple[_Figures, tuple[_Figures, ...]]] = {}
    for gpus in _sizes(question):
        progress(gpus)
        traces = () if trace.load_gpus > gpus else drawn  # a queue without end has no range
        replays[gpus] = (
            _replay(trace, gpus, question),
            tuple(_replay(other_trace, gpus, question) for other_trace in traces),
        )
    sizes = tuple(_size(trace, gpus, question, replays) for gpus in replays)
    days = queueing.block_days(trace)
    return CapacityDocument(
        schema=SCHEMA,
        as_of=day,
        currency="USD",
        trace=_trace(reading, file),
        order=question.order,
        target=question.target,
        price=question.price,
        drawn=Drawn(draws=len(drawn), blocks={7: "weeks", 1: "days"}.get(days or 0), of=days or 0),
        now=question.now,
        sizes=sizes,
        answer=_answer(sizes, question, sorted(reading.waits_s)),
        assumptions=_ASSUMPTIONS,
        notes=tuple(_notes(reading, question, sizes, drawn)),
    )


def _sizes(question: CapacityQuestion) -> list[int]:
    """Return the sizes to replay: whole machines, today's among them, evenly spread, both ends."""
    step = question.price.step
    possible = [gpus for gpus in range(step, question.most + 1, step) if gpus >= question.least]
    if not possible:
        raise InputError(
            f"no pool of {question.least} to {question.most} GPUs is made of machines of {step}; "
            f"ask for --gpus {step}..{step * max(2, question.most // step)}."
        )
    spacing = max(1.0, (len(possible) - 1) / (_MOST_SIZES - 1))
    chosen = {possible[min(round(spacing * n), len(possible) - 1)] for n in range(_MOST_SIZES)}
    return sorted(chosen | ({question.now} if question.now else set()))


def _replay(trace: queueing.JobTrace, gpus: int, question: CapacityQuestion) -> _Figures:
    waiting = queueing.waits(trace.jobs, gpus, question.order)
    waited = sorted(math.inf if wait is None else wait for wait in waiting)
    return _Figures(
        mean_s=fmean(waited),
        quantiles_s=tuple(_quantile(waited, q) for q in _QUANTILES),
        late_fraction=sum(wait > question.target.wait_s for wait in waited) / len(waited),
        never=waiting.count(None),
        waited_s=sum(wait for wait in waiting if wait is not None),
    )


def _quantile(ascending: Sequence[float], q: float) -> float:
    """Return the smallest value that at least a share `q` of all does not exceed."""
    return ascending[max(0, math.ceil(q * len(ascending)) - 1)]


def _size(
    trace: queueing.JobTrace,
    gpus: int,
    question: CapacityQuestion,
    replays: dict[int, tuple[_Figures, tuple[_Figures, ...]]],
) -> SizeDocument:
    was, drawn_replays = replays[gpus]
    mean_duration_s = trace.load_gpus * trace.span_s / sum(job.gpus for job in trace.jobs)
    p50, p90, p95, p99 = (
        _range(was.quantiles_s[n], [replayed.quantiles_s[n] for replayed in drawn_replays])
        for n in range(len(_QUANTILES))
    )
    before = replays[question.now][0] if question.now else None
    return SizeDocument(
        gpus=gpus,
        load_fraction=round(trace.load_gpus / gpus, 4),
        overloaded=trace.load_gpus > gpus,
        never=was.never,
        mean_s=_range(was.mean_s, [replayed.mean_s for replayed in drawn_replays]),
        p50_s=p50,
        p90_s=p90,
        p95_s=p95,
        p99_s=p99,
        late_fraction=_range(was.late_fraction, [r.late_fraction for r in drawn_replays], 4),
        erlang=queueing.erlang_wait(trace.load_gpus, mean_duration_s, gpus),
        usd_per_month=_usd_per_month(question.price, gpus),
        against_now=_against(trace, gpus, question, was, before),
    )


def _range(mid: float, drawn: Sequence[float], digits: int = 1) -> DrawnRange:
    ascending = sorted(drawn)
    low, high = (_quantile(ascending, q) if ascending else math.inf for q in (_LOW, _HIGH))
    ends = (round(end, digits) if math.isfinite(end) else None for end in (low, mid, high))
    return DrawnRange(**dict(zip(("low", "mid", "high"), ends, strict=True)))


def _usd_per_month(price: GpuPrice, gpus: int) -> Decimal | None:
    if price.usd_per_gpu_hour is None:
        return None
    return cents(price.usd_per_gpu_hour * gpus * HOURS_PER_MONTH)


def _against(
    trace: queueing.JobTrace,
    gpus: int,
    question: CapacityQuestion,
    was: _Figures,
    before: _Figures | None,
) -> AgainstNow | None:
    if question.now is None or before is None:
        return None
    usd, usd_now = (
        _usd_per_month(question.price, gpus),
        _usd_per_month(question.price, question.now),
    )
    months = trace.span_s / 3600 / float(HOURS_PER_MONTH)
    return AgainstNow(
        gpus=gpus - question.now,
        usd_per_month=None if usd is None or usd_now is None else usd - usd_now,
        waited_h_per_month=round((was.waited_s - before.waited_s) / 3600 / months, 1),
    )


def _keeps(size: SizeDocument, question: CapacityQuestion, *, surely: bool) -> bool:
    late = size.late_fraction.high if surely else size.late_fraction.mid
    allowed = 1 - question.target.quantile
    return (
        late is not None and not size.never and not size.overloaded and late <= allowed + _ROUNDING
    )


def _answer(
    sizes: Sequence[SizeDocument], question: CapacityQuestion, waited_s: Sequence[float]
) -> CapacityAnswer:
    """Return the fewest GPUs of the sizes that were replayed.

    Today's GPUs are kept where they are enough in the trace as it was and no fewer surely are. A
    replay that does not show the waits of today shows nothing of other sizes.
    """
    sufficient = [size for size in sizes if _keeps(size, question, surely=False)]
    enough = min((size.gpus for size in sufficient), default=None)
    surely = min(
        (size.gpus for size in sufficient if _keeps(size, question, surely=True)), default=None
    )
    safest = surely if surely is not None else enough
    verdict: Verdict = "unknown"
    chosen = safest
    if question.now is not None and enough is not None:
        if question.now < enough:
            verdict = "more"
        elif surely is not None and surely < question.now:
            verdict = "fewer"
        else:
            verdict, chosen = "keep", question.now
    elif question.now is not None:
        verdict = "more" if max(size.gpus for size in sizes) >= question.now else "unknown"
    today = next((size for size in sizes if size.gpus == question.now), None)
    if verdict != "more" and today is not None and _waits_otherwise(today, question, waited_s):
        verdict, chosen = "unknown", None
    usd = None if chosen is None else _usd_per_month(question.price, chosen)
    return CapacityAnswer(
        verdict=verdict, gpus=chosen, enough=enough, surely=surely, usd_per_month=usd
    )


_NOT_REPLAYED = 0.5


def _waits_otherwise(
    today: SizeDocument, question: CapacityQuestion, waited_s: Sequence[float]
) -> bool:
    """Return whether jobs really waited over the target, and far longer than in the replay."""
    if not waited_s:
        return False
    measured_s, replayed_s = _quantile(waited_s, question.target.quantile), today.p95_s.mid
    late = measured_s > question.target.wait_s
    return late and replayed_s is not None and replayed_s < _NOT_REPLAYED * measured_s


def _trace(reading: queueing.TraceReading, file: str) -> TraceDocument:
    trace, waited = reading.trace, sorted(reading.waits_s)
    measured = None
    if waited:
        measured = MeasuredWaits(
            jobs=len(waited),
            mean_s=round(fmean(waited), 1),
            p50_s=round(_quantile(waited, 0.5), 1),
            p95_s=round(_quantile(waited, 0.95), 1),
        )
    return TraceDocument(
        file=file,
        jobs=len(trace.jobs),
        days=round(trace.span_s / queueing.DAY_S, 2),
        load_gpus=round(trace.load_gpus, 2),
        widest=trace.widest,
        measured=measured,
        dropped=reading.dropped,
    )


def _notes(
    reading: queueing.TraceReading,
    question: CapacityQuestion,
    sizes: Sequence[SizeDocument],
    drawn: Sequence[queueing.JobTrace],
) -> Iterable[str]:
    for reason, count in sorted(reading.dropped.items()):
        yield f"{count} of {reading.rows} rows {reason}, and are left out."
    if question.draws and not drawn:
        yield "the trace is shorter than four days: how days differ is unknown, so no range."
    if reading.trace.jobs[-1].submit_s < reading.trace.longest_s:
        yield (
            "the trace is shorter than its longest job: GPUs are busy on average until its last "
            "job would end if none waited; how busy a longer one keeps them is unknown."
        )
    wide = [size for size in sizes if size.never]
    if wide:
        yield (
            f"{wide[0].never} jobs hold up to {reading.trace.widest} GPUs and never start on "
            f"{wide[0].gpus}; a pool on which a job never starts is not enough."
        )
    if question.now and question.now % question.price.step:
        yield (
            f"today's {question.now} GPUs are not a whole number of machines of "
            f"{question.price.step}."
        )
