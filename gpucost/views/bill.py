"""A comparison of plan and bill as a table."""

from decimal import Decimal

from gpucost.views.output import Output, Table, print_table
from planner.bills.reconcile import ComparedLine, MatchedTotal, ReconciliationDocument
from pricing.listing import counted
from pricing.money import plain, show

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
_CUT, _WHOLE = frozenset(("where", "jobs")), frozenset(("what",))
_SPARE = ("hours predicted", "hours billed", "purchase", "jobs", "%")
_LEAST_NAME = 25
_MATCHES = {"both": "both", "plan": "plan only", "bill": "bill only", "apart": "apart"}
_SHOWN = 20


def print_reconciliation(document: ReconciliationDocument, output: Output) -> None:
    """Print the lines of a comparison, then its totals."""
    short = output.format == "table" and not output.verbose
    hidden = [line for line in document.lines if line.match == "bill"][_SHOWN:] if short else []
    rows = [_row(line, output) for line in document.lines if line not in hidden]
    totals = document.totals
    if output.format != "csv" and totals.matched.difference_usd is not None:
        rows.append(_total(totals.matched))
    print_table(_table(tuple(rows)), output)
    if hidden:
        output.say(f"{counted(len(hidden), 'more line')} that only the bill has, with -v.")
    for note in document.notes:
        output.say(f"note: {note}")
    output.say(
        f"planned USD {_usd(totals.predicted_usd)}, billed USD {_usd(totals.actual_usd)} "
        f"for use, and USD {_usd(totals.apart_usd)} of taxes, credits and fees."
    )


def _table(rows: tuple[tuple[str, ...], ...]) -> Table:
    return Table(
        columns=_COLUMNS,
        rows=rows,
        right=_RIGHT,
        spare=_SPARE,
        whole=_WHOLE,
        cut=_CUT,
        least_name=_LEAST_NAME,
    )


def _row(line: ComparedLine, output: Output) -> tuple[str, ...]:
    money = _usd if output.format != "csv" else _exact
    parts = (line.provider, line.instance_type, line.region)
    return (
        _MATCHES[line.match],
        line.what,
        "/".join(part for part in parts if part),
        line.purchase or "",
        ", ".join(line.jobs),
        _hours(line.hours.predicted),
        _hours(line.hours.actual),
        money(line.predicted_usd),
        money(line.actual_usd),
        money(line.difference_usd),
        _percent(line.difference_fraction),
    )


def _total(matched: MatchedTotal) -> tuple[str, ...]:
    return (
        "both",
        "total",
        *("",) * 5,
        _usd(matched.predicted_usd),
        _usd(matched.actual_usd),
        _usd(matched.difference_usd),
        _percent(matched.difference_fraction),
    )


def _hours(hours: float | None) -> str:
    return "" if hours is None else f"{hours:g}"


def _usd(amount: Decimal | None) -> str:
    return "" if amount is None else show(amount)


def _exact(amount: Decimal | None) -> str:
    return "" if amount is None else plain(amount)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:+.2%}"
