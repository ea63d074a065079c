"""What an invoice says of GPUs, as tables."""

from decimal import Decimal

import click

from gpucost.views.output import Output, Table, print_table
from planner.bills.review import (
    ReviewDocument,
    ReviewedLine,
    ReviewedMachine,
    ReviewFinding,
)
from pricing.money import plain, show

_MACHINES = ("machine", "gpu", "purchase", "machines", "hours", "GPU hours", "USD", "%")
_FINDINGS = ("nobody used", "what", "where", "USD", "lines", "proof")
_CUT = frozenset(("machine",))
_CODES = {
    "idle-address": "address",
    "idle-disk": "disk",
    "idle-commitment": "commitment",
}


def print_review(document: ReviewDocument, output: Output) -> None:
    """Print GPU dollars by machine, what nobody used, and say what to measure first.

    In csv only the machines: a CSV file is one table.
    """
    total = document.totals.gpu_usd
    rows = tuple(_machine(one, total, output) for one in document.machines)
    right, spare = frozenset(_MACHINES[3:]), ("GPU hours", "purchase", "machines")
    print_table(Table(columns=_MACHINES, rows=rows, right=right, spare=spare, cut=_CUT), output)
    if output.format == "csv":
        return
    if document.findings:
        if output.format == "md":
            click.echo()
        found = tuple(_finding(one) for one in document.findings)
        print_table(Table(columns=_FINDINGS, rows=found, right=frozenset(("USD", "lines"))), output)
    _say(document, output)


def _say(document: ReviewDocument, output: Output) -> None:
    totals = document.totals
    if not document.machines:
        output.say("no machine with a GPU is on this bill.")
    output.say(
        f"GPUs: USD {show(totals.gpu_usd)} of USD {show(totals.usd)} for use; nobody used "
        f"USD {show(totals.leftover_usd)}."
    )
    week = document.by_part
    parts = (
        ("Monday to Friday, 8 to 20 h", week.workday_usd),
        ("nights", week.night_usd),
        ("weekends", week.weekend_usd),
        ("hours not told", week.unknown_usd),
    )
    told = ", ".join(f"{name} USD {show(usd)}" for name, usd in parts if usd)
    if told:
        output.say(f"when ({document.zone}): {told}.")
    for one in document.undecided:
        ask = f" Ask: {one.look_up}" if one.look_up else ""
        output.say(
            f"not told by the bill: whether {one.provider}'s {one.what}s of USD {show(one.usd)} "
            f"are used.{ask}"
        )
    first = document.measure_first
    if first is not None:
        output.say(f"measure first: {first.machine} (USD {show(first.usd)}), there:")
        for line in first.commands:
            output.say(f"  {line}")
    for note in document.notes:
        output.say(f"note: {note}")


def _machine(one: ReviewedMachine, total: Decimal, output: Output) -> tuple[str, ...]:
    return (
        "/".join(part for part in (one.provider, one.instance_type, one.region) if part),
        one.gpu or "",
        one.purchase or "",
        "" if one.machines is None else str(one.machines),
        *("" if hours is None else f"{hours:g}" for hours in (one.hours, one.gpu_hours)),
        plain(one.usd) if output.format == "csv" else show(one.usd),
        f"{one.usd / total:.1%}" if total else "",
    )


def _finding(one: ReviewFinding) -> tuple[str, ...]:
    return (
        _CODES[one.code],
        one.what,
        "/".join(part for part in (one.provider, one.region) if part),
        show(one.usd),
        _lines(one.lines),
        one.proof,
    )


def _lines(lines: tuple[ReviewedLine, ...]) -> str:
    """Return the first line and how many follow."""
    more = len(lines) - 1
    return f"{lines[0].source} and {more} more" if more else lines[0].source
