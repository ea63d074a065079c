"""What an invoice says of GPUs, as tables."""

from decimal import Decimal
from typing import Any

import click

from gpucost.views.output import Output, Table, print_table
from pricing.money import plain, show

_Json = dict[str, Any]
_MACHINES = ("machine", "gpu", "purchase", "machines", "hours", "GPU hours", "USD", "%")
_FINDINGS = ("nobody used", "what", "where", "USD", "lines", "proof")
_PARTS = ("Monday to Friday, 8 to 20 h", "nights", "weekends", "hours not told")
_CODES = {
    "idle-address": "address",
    "idle-disk": "disk",
    "idle-commitment": "commitment",
}


def print_review(document: _Json, output: Output) -> None:
    """Print GPU dollars by machine, what nobody used, and say what to measure first.

    In csv only the machines: a CSV file is one table.
    """
    total = Decimal(document["totals"]["gpu_usd"])
    rows = tuple(_machine(one, total, output) for one in document["machines"])
    print_table(Table(columns=_MACHINES, rows=rows, right=frozenset(_MACHINES[3:])), output)
    if output.format == "csv":
        return
    if document["findings"]:
        if output.format == "md":
            click.echo()
        found = tuple(_finding(one) for one in document["findings"])
        print_table(Table(columns=_FINDINGS, rows=found, right=frozenset(("USD", "lines"))), output)
    _say(document, output)


def _say(document: _Json, output: Output) -> None:
    totals = document["totals"]
    if not document["machines"]:
        output.say("no machine with a GPU is on this bill.")
    output.say(
        f"GPUs: USD {_usd(totals['gpu_usd'])} of USD {_usd(totals['usd'])} for use; nobody used "
        f"USD {_usd(totals['leftover_usd'])}."
    )
    parts = zip(_PARTS, document["by_part"].values(), strict=True)
    told = ", ".join(f"{name} USD {_usd(usd)}" for name, usd in parts if Decimal(usd))
    if told:
        output.say(f"when ({document['zone']}): {told}.")
    for one in document["undecided"]:
        ask = f" Ask: {one['look_up']}" if one["look_up"] else ""
        output.say(
            f"not told by the bill: whether {one['provider']}'s {one['what']}s of USD "
            f"{_usd(one['usd'])} are used.{ask}"
        )
    first = document["measure_first"]
    if first is not None:
        output.say(f"measure first: {first['machine']} (USD {_usd(first['usd'])}), there:")
        for line in first["commands"]:
            output.say(f"  {line}")
    for note in document["notes"]:
        output.say(f"note: {note}")


def _machine(one: _Json, total: Decimal, output: Output) -> tuple[str, ...]:
    usd = Decimal(one["usd"])
    return (
        "/".join(part for part in (one["provider"], one["instance_type"], one["region"]) if part),
        one["gpu"] or "",
        one["purchase"] or "",
        "" if one["machines"] is None else str(one["machines"]),
        *("" if one[name] is None else f"{one[name]:g}" for name in ("hours", "gpu_hours")),
        plain(usd) if output.format == "csv" else show(usd),
        f"{usd / total:.1%}" if total else "",
    )


def _finding(one: _Json) -> tuple[str, ...]:
    return (
        _CODES[one["code"]],
        one["what"],
        "/".join(part for part in (one["provider"], one["region"]) if part),
        _usd(one["usd"]),
        _lines(one["lines"]),
        one["proof"],
    )


def _lines(lines: list[_Json]) -> str:
    """Return the first line and how many follow."""
    more = len(lines) - 1
    return f"{lines[0]['source']} and {more} more" if more else str(lines[0]["source"])


def _usd(amount: str) -> str:
    return show(Decimal(amount))
