"""What changed between two plans, as a table and the sentence that sums it up."""

from decimal import Decimal

from gpucost.views.output import Output, Table, print_json, print_prose, print_table
from planner.documents.plan_change import JobChange, PlanChange
from pricing.listing import listed
from pricing.money import show

_COLUMNS = ("job", "what", "before", "after", "change", "by price", "by use", "by machine")
_SHOWN = 15


def print_change(change: PlanChange, output: Output) -> None:
    """Print what changed; the sum comes last."""
    if output.format == "json":
        print_json(change)
        return
    moved = [job for job in change.jobs if job.what != "stays" or job.before != job.after]
    moved.sort(key=lambda job: -abs((job.after or Decimal(0)) - (job.before or Decimal(0))))
    whole = output.format != "table" or output.verbose
    shown = moved if whole else moved[:_SHOWN]
    table = Table(
        columns=_COLUMNS,
        rows=tuple(_row(job) for job in shown),
        right=frozenset(_COLUMNS[2:]),
        spare=("by machine", "by use", "by price"),
    )
    print_table(table, output)
    if output.format != "table":
        return
    if len(moved) > len(shown):
        print_prose(f"{len(moved) - len(shown)} more jobs changed: -v.")
    for what, word in (("new", "New waste"), ("gone", "Gone waste")):
        found = [one for one in change.waste if one.what == what]
        if found:
            names = listed([f"{one.job}: {one.code}" for one in found], _SHOWN)
            print_prose(f"{word}: {names}.")
    if change.unknown:
        print_prose(f"In no total, for their cost is unknown: {', '.join(change.unknown)}.")
    print_prose(change_text(change))


def change_text(change: PlanChange) -> str:
    """Return the sum of a change with its causes in a sentence."""
    totals = change.totals
    moved = totals.after - totals.before
    causes = (
        ("prices", totals.price_usd),
        ("use", totals.usage_usd),
        ("other machines", totals.machine_usd),
        ("new jobs", totals.new_jobs_usd),
        ("jobs that ended", totals.gone_jobs_usd),
    )
    parts = ", ".join(f"{name} {_signed(usd)}" for name, usd in causes if usd)
    span = f"{change.earlier} to {change.later}"
    if not parts:
        return f"{span}: ${show(totals.after)} a {change.period}, unchanged."
    return (
        f"{span}: ${show(totals.before)} -> ${show(totals.after)} a {change.period} "
        f"({_signed(moved)}): {parts}."
    )


def _row(job: JobChange) -> tuple[str, ...]:
    moved = None
    if None not in (job.before, job.after) or job.what != "stays":
        moved = (job.after or Decimal(0)) - (job.before or Decimal(0))
    return (
        job.job,
        job.what,
        _dollars(job.before),
        _dollars(job.after),
        "unknown" if moved is None else _signed(moved),
        *(
            "" if usd is None else _signed(usd)
            for usd in (job.price_usd, job.usage_usd, job.machine_usd)
        ),
    )


def _dollars(usd: Decimal | None) -> str:
    return "" if usd is None else f"${show(usd)}"


def _signed(usd: Decimal) -> str:
    sign = "-" if usd < 0 else "+"
    return f"{sign}${show(abs(usd))}"
