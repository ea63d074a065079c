"""A comparison of plan and bill as a table."""

from decimal import Decimal
from typing import Any

from gpucost.views.output import Output, Table, print_table
from pricing.money import plain, show

_Json = dict[str, Any]
_COLUMNS = (
    "match",
    "what",
    "where",
    "purchase",
    "jobs",
    "hours predicted",
    "hours billed",
    "USD predicted",
    "USD billed",
    "difference",
    "%",
)
_RIGHT = frozenset(_COLUMNS[5:])
_MATCHES = {"both": "both", "plan": "plan only", "bill": "bill only", "apart": "apart"}
_SHOWN = 20


def print_reconciliation(document: _Json, output: Output) -> None:
    """Print the lines of a comparison, then its totals."""
    lines = document["lines"]
    short = output.format == "table" and not output.verbose
    hidden = [line for line in lines if line["match"] == "bill"][_SHOWN:] if short else []
    rows = [_row(line, output) for line in lines if line not in hidden]
    if output.format != "csv" and document["totals"]["matched"]["difference_usd"]:
        rows.append(_total(document["totals"]["matched"]))
    print_table(Table(columns=_COLUMNS, rows=tuple(rows), right=_RIGHT), output)
    if hidden:
        output.say(f"{len(hidden)} more lines that only the bill has, with -v.")
    totals = document["totals"]
    output.say(
        f"planned USD {_usd(totals['predicted_usd'])}, billed USD {_usd(totals['actual_usd'])} "
        f"for use, and USD {_usd(totals['apart_usd'])} of taxes, credits and fees."
    )
    for note in document["notes"]:
        output.say(f"note: {note}")


def _row(line: _Json, output: Output) -> tuple[str, ...]:
    money = _usd if output.format != "csv" else _exact
    parts = (line["provider"], line["instance_type"], line["region"])
    hours = line["hours"]
    return (
        _MATCHES[line["match"]],
        line["what"],
        "/".join(part for part in parts if part),
        line["purchase"] or "",
        ", ".join(line["jobs"]),
        *("" if hours[side] is None else f"{hours[side]:g}" for side in ("predicted", "actual")),
        *(money(line[f"{side}_usd"]) for side in ("predicted", "actual", "difference")),
        _percent(line["difference_fraction"]),
    )


def _total(matched: _Json) -> tuple[str, ...]:
    return (
        "both",
        "total",
        *("",) * 5,
        *(_usd(matched[f"{side}_usd"]) for side in ("predicted", "actual", "difference")),
        _percent(matched["difference_fraction"]),
    )


def _usd(amount: str | None) -> str:
    return "" if amount is None else show(Decimal(amount))


def _exact(amount: str | None) -> str:
    return "" if amount is None else plain(Decimal(amount))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:+.2%}"
