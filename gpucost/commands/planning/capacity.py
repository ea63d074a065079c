"""`gpucost capacity`: does a pool need more GPUs?"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from operator import attrgetter

import click

from gpucost.arguments.parameters import options, today
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output, Table, output_options, print_if_json, print_table
from planner.capacity.capacity import (
    CapacityDocument,
    CapacityQuestion,
    DrawnRange,
    GpuPrice,
    SizeDocument,
    Target,
    capacity,
)
from planner.capacity.queueing import ORDERS, Order, TraceReading
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer, parse_place
from pricing.errors import InputError
from pricing.hardware import matching
from pricing.listing import counted
from pricing.message import Message
from pricing.money import price_text, show
from telemetry.job_trace_file import read_trace
from telemetry.readers.payload import Stream
from templates.report_text import signed


def load_trace(
    path: str, mapped: Iterable[tuple[str, str]], gpus: tuple[int, int] | None
) -> tuple[str, TraceReading]:
    """Return the name of a file of jobs, and those of its jobs that hold so many GPUs.

    Args:
        path: of the file; `-` is standard input, `.gz` is read as is.
        mapped: columns with their slots.
        gpus: fewest and most of a job; None: any.

    Raises:
        InputError: it cannot be read, or holds no such job.
    """
    with Stream(path) as stream:
        payload = stream.load()
    reading = read_trace(payload.name, payload.text, dict(mapped))
    if gpus is not None:
        trace = reading.trace.only(*gpus)
        reading = replace(reading, trace=trace, waits_s=())
    return payload.name, reading


def gpu_price(offer: Offer | None, price: Decimal | None) -> GpuPrice:
    """Return what one GPU costs an hour: a part of a machine, else as stated.

    Args:
        offer: the machine whose GPUs are meant.
        price: of one GPU an hour, USD.
    """
    if price is not None:
        return GpuPrice(usd_per_gpu_hour=price, how="as stated by --gpu-price", step=1)
    if offer is None:
        how = "no price: name --type, --gpu or --gpu-price for dollars"
        return GpuPrice(usd_per_gpu_hour=None, how=how, step=1)
    how = (
        f"{offer.provider}/{offer.instance_type} ({offer.gpu_count:g}x {offer.gpu}), "
        f"{offer.purchase.replace('_', ' ')}, {price_text(offer.usd_per_hour)} USD/h, "
        f"read {offer.as_of}"
    )
    step = max(1, int(offer.gpu_count))
    return GpuPrice(usd_per_gpu_hour=offer.usd_per_gpu_hour, how=how, step=step)


def _offer(place: str | None, gpu: str, purchase: str, catalog: Catalog) -> Offer:
    """Return a machine by its name, else the cheapest with such a GPU.

    Raises:
        InputError: nothing is sold so.
    """
    if place is not None:
        return catalog.find(*parse_place(place), purchase)
    models = {model.name for model in matching(gpu)}
    sold = [
        offer
        for offer in catalog.offers
        if offer.gpu in models and offer.purchase == purchase and offer.gpu_count >= 1
    ]
    if not sold:
        raise InputError(Message("input.not-sold", gpu=gpu, purchase=purchase.replace("_", " ")))
    return min(sold, key=attrgetter("usd_per_gpu_hour", "gpu_count"))


_QUANTILE = 0.95


@click.command(
    name="capacity", epilog="Example: gpucost capacity jobs.csv --gpus 8..64 --now 32 --gpu H100"
)
@click.argument("trace", metavar="TRACE")
@options(
    "gpus.capacity now max-wait order job-gpus map type gpu.capacity gpu-price "
    "purchase draws as-of",
    order={"type": click.Choice(ORDERS), "default": ORDERS[0]},
)
@output_options
def command(
    trace: str,
    gpus: tuple[int, int],
    now: int | None,
    max_wait: Decimal,
    order: Order,
    job_gpus: tuple[int, int] | None,
    mapped: tuple[tuple[str, str], ...],
    place: str | None,
    gpu: str | None,
    price: Decimal | None,
    purchase: str,
    draws: int,
    as_of: date | None,
    output: Output,
) -> None:
    """Find out whether a pool needs more GPUs by replaying its jobs on pools of other sizes.

    TRACE is a table with one row per job: when it was submitted, how long it ran, and how many GPUs
    it used. It can be CSV of any kind or the output of `sacct -P`; .gz is read directly.
    """
    day = as_of or today()
    if len([value for value in (place, gpu, price) if value is not None]) > 1:
        raise InputError(Message("input.one-gpu-price"))
    catalog = load_catalog(day, say=output.say) if place or gpu else None
    offer = _offer(place, gpu or "", purchase, catalog) if catalog else None
    file, reading = load_trace(trace, mapped, job_gpus)
    question = CapacityQuestion(
        least=gpus[0],
        most=gpus[1],
        now=now,
        target=Target(quantile=_QUANTILE, wait_s=float(max_wait)),
        order=order,
        price=gpu_price(offer, price),
        draws=draws,
    )
    answer = capacity(
        reading, file, question, day, lambda size: output.say(f"replaying on {size} GPUs ...")
    )
    if not print_if_json(answer, output):
        print_capacity(answer, output)


_COLUMNS = (
    "GPUs",
    "busy %",
    "mean wait",
    "p95 wait",
    "90 % of weeks",
    "late %",
    "textbook p95",
    "USD/month",
    "against now",
)
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_LONG = 2  # of a unit, before the next larger one is used
_VERDICTS = {
    "fewer": "No: fewer are enough.",
    "keep": "No: keep what you have.",
    "more": "Yes: more are needed.",
    "unknown": "Say --now N to compare with today's GPUs.",
}


def print_capacity(document: CapacityDocument, output: Output) -> None:
    """Print the answer, the table of sizes, and what it rests on."""
    output.insist(answer_text(document))
    trace = document.trace
    title = (
        f"{trace.file}: {counted(trace.jobs, 'job')} of up to "
        f"{counted(trace.widest, 'GPU')} in {counted(trace.days, 'day')}, "
        f"{trace.load_gpus:g} GPUs busy on average; {document.order}"
    )
    rows = tuple(_row(size, document) for size in document.sizes)
    spare, right = (
        ("textbook p95", "against now", "mean wait", "90 % of weeks"),
        frozenset(_COLUMNS),
    )
    print_table(Table(columns=_COLUMNS, rows=rows, right=right, title=title, spare=spare), output)
    if trace.measured is not None:
        was = trace.measured
        output.say(
            f"measured: {was.jobs:,} jobs waited {_time(was.mean_s)} on average, 95 % at most "
            f"{_time(was.p95_s)}."
        )
    output.say(f"price: {document.price.how}.")
    for note in document.notes:
        output.say(f"note: {note}")
    for assumption in document.assumptions if output.verbose else ():
        output.say(f"assumed: {assumption}.")


def answer_text(document: CapacityDocument) -> str:
    """Return the answer as a sentence or two."""
    answer, target = document.answer, document.target
    target_text = f"95 % of jobs within {_time(target.wait_s)}"
    if answer.enough is None:
        largest = max(size.gpus for size in document.sizes)
        verdict = "Yes: more are needed;" if answer.verdict == "more" else "Unknown:"
        return (
            f"{verdict} no pool of up to {largest} GPUs serves {target_text}; "
            f"try more: --gpus {largest}..{2 * largest}."
        )
    if answer.verdict == "unknown" and document.now is not None and document.trace.measured:
        waited = _time(document.trace.measured.p95_s)
        today = next(size for size in document.sizes if size.gpus == document.now)
        replayed = _time(today.p95_s.mid)
        return Message("why.waited", waited=waited, replayed=replayed, now=document.now)
    served = f"{counted(answer.enough, 'GPU')} served {target_text} in the trace as it was"
    if answer.surely is not None:
        served += f", {answer.surely} in 95 % of {document.drawn.draws} redrawn traces"
    elif document.drawn.draws:
        served += ", and no size of these in 95 % of the redrawn traces"
    cost = "" if answer.usd_per_month is None else f" for USD {show(answer.usd_per_month)} a month"
    return f"{_VERDICTS[answer.verdict]} {answer.gpus} GPUs{cost}: {served}."


def _row(size: SizeDocument, document: CapacityDocument) -> tuple[str, ...]:
    mark = " now" if size.gpus == document.now else ""
    change = size.against_now
    against = ""
    if change is not None and change.gpus:
        dollars = "" if change.usd_per_month is None else f", {signed(change.usd_per_month)}"
        against = f"{change.gpus:+d} GPUs{dollars}, {change.waited_h_per_month:+,.0f} h waited"
    return (
        f"{size.gpus}{mark}",
        f"{100 * size.load_fraction:.0f}" + (" overloaded" if size.overloaded else ""),
        _time(size.mean_s.mid),
        _time(size.p95_s.mid),
        _range(size.p95_s),
        "" if size.late_fraction.mid is None else f"{100 * size.late_fraction.mid:.1f}",
        "" if size.erlang is None else _time(size.erlang.p95_s),
        "" if size.usd_per_month is None else show(size.usd_per_month),
        against,
    )


def _range(drawn: DrawnRange) -> str:
    if drawn.low is None or drawn.high is None:
        return "unknown"
    return f"{_time(drawn.low)} to {_time(drawn.high)}"


def _time(seconds: float | None) -> str:
    """Return a wait as people say it: `40 s`, `12 min`, `3.4 h`, `5.1 d`."""
    if seconds is None:
        return "never"
    if seconds < _LONG * _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < _LONG * _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    if seconds < _LONG * _DAY_S:
        return f"{seconds / _HOUR_S:.1f} h"
    return f"{seconds / _DAY_S:.1f} d"
