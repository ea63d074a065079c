"""Waits and dollars by size of the pool, and the answer, which comes last."""

from decimal import Decimal

from gpucost.views.output import Output, Table, print_table
from planner.capacity.capacity import CapacityDocument, DrawnRange, SizeDocument
from pricing.listing import counted
from pricing.money import show

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
    """Print the table of sizes, what it rests on, and the answer."""
    trace = document.trace
    title = (
        f"{trace.file}: {counted(trace.jobs, 'job')} of up to "
        f"{counted(trace.widest, 'GPU')} in {counted(trace.days, 'day')}, "
        f"{trace.load_gpus:g} GPUs busy on average; {document.order}"
    )
    rows = tuple(_row(size, document) for size in document.sizes)
    spare = ("textbook p95", "against now", "mean wait", "90 % of weeks")
    print_table(
        Table(
            columns=_COLUMNS,
            rows=rows,
            right=frozenset(_COLUMNS),
            title=title if output.format != "csv" else "",
            spare=spare,
        ),
        output,
    )
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
    output.insist(answer_text(document))


def answer_text(document: CapacityDocument) -> str:
    """Return the answer as a sentence or two."""
    answer, target = document.answer, document.target
    kept = f"95 % of jobs within {_time(target.wait_s)}"
    if answer.enough is None:
        most = max(size.gpus for size in document.sizes)
        found = (
            f"no pool of up to {most} GPUs serves {kept}; ask for more: --gpus {most}..{2 * most}."
        )
        return f"Yes: more are needed; {found}" if answer.verdict == "more" else f"Unknown: {found}"
    held = f"{counted(answer.enough, 'GPU')} served {kept} in the trace as it was"
    if answer.surely is not None:
        held += f", {answer.surely} in 95 % of {document.drawn.draws} redrawn traces"
    elif document.drawn.draws:
        held += ", and no size of these in 95 % of the redrawn traces"
    cost = "" if answer.usd_per_month is None else f" for USD {show(answer.usd_per_month)} a month"
    return f"{_VERDICTS[answer.verdict]} {answer.gpus} GPUs{cost}: {held}."


def _row(size: SizeDocument, document: CapacityDocument) -> tuple[str, ...]:
    mark = " now" if size.gpus == document.now else ""
    beside = size.against_now
    against = ""
    if beside is not None and beside.gpus:
        dollars = "" if beside.usd_per_month is None else f", USD {_signed(beside.usd_per_month)}"
        against = f"{beside.gpus:+d} GPUs{dollars}, {beside.waited_h_per_month:+,.0f} h waited"
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


def _signed(usd: Decimal) -> str:
    return f"{'+' if usd > 0 else ''}{show(usd)}"


def _range(found: DrawnRange) -> str:
    if found.low is None or found.high is None:
        return "unknown"
    return f"{_time(found.low)} to {_time(found.high)}"


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
