"""What changed between two plans, as a table and the sentence that sums it up."""

from decimal import Decimal

from gpucost.views.output import Output, Table, print_json, print_prose, print_table
from planner.documents.plan_change import JobChange, PlanChange
from pricing.money import show
from templates.language.translate import _, join, word
from templates.report_text import period_name

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
    columns = _columns()
    table = Table(
        columns=columns,
        rows=tuple(_row(job) for job in shown),
        right=frozenset(columns[2:]),
        spare=columns[:-4:-1],
    )
    print_table(table, output)
    if output.format != "table":
        return
    if len(moved) > len(shown):
        print_prose(_("{n} more jobs changed: -v.", n=len(moved) - len(shown)))
    if new := _waste(change, "new"):
        print_prose(_("New waste: {names}.", names=new))
    if gone := _waste(change, "gone"):
        print_prose(_("Gone waste: {names}.", names=gone))
    if change.unknown:
        jobs = join(change.unknown)
        print_prose(_("In no total, for their cost is unknown: {jobs}.", jobs=jobs))
    print_prose(change_text(change))


def _columns() -> tuple[str, ...]:
    return (
        _("job"),
        _("what"),
        _("before"),
        _("after"),
        _("change"),
        _("by price"),
        _("by use"),
        _("by machine"),
    )


def _waste(change: PlanChange, what: str) -> str:
    """Return what came or went, by job; empty where nothing did."""
    found = [_("{job}: {paid}", job=o.job, paid=o.code) for o in change.waste if o.what == what]
    more = len(found) - _SHOWN
    return join(found[:_SHOWN]) + (_(", and {n} more", n=more) if more > 0 else "")


def change_text(change: PlanChange) -> str:
    """Return the sum of a change with its causes in a sentence."""
    totals = change.totals
    moved = totals.after - totals.before
    causes = (
        (_("prices"), totals.price_usd),
        (_("use"), totals.usage_usd),
        (_("other machines"), totals.machine_usd),
        (_("new jobs"), totals.new_jobs_usd),
        (_("jobs that ended"), totals.gone_jobs_usd),
    )
    parts = join(f"{name} {_signed(usd)}" for name, usd in causes if usd)
    said = {
        "span": _("{low} to {high}", low=change.earlier, high=change.later),
        "after": f"${show(totals.after)}",
        "period": period_name(change.period),
    }
    if not parts:
        return _("{span}: {after} {period}, unchanged.", **said)
    return _(
        "{span}: {before} -> {after} {period} ({change}): {causes}.",
        **said,
        before=f"${show(totals.before)}",
        change=_signed(moved),
        causes=parts,
    )


def _row(job: JobChange) -> tuple[str, ...]:
    moved = None
    if None not in (job.before, job.after) or job.what != "stays":
        moved = (job.after or Decimal(0)) - (job.before or Decimal(0))
    return (
        job.job,
        word("change", job.what),
        _dollars(job.before),
        _dollars(job.after),
        _("unknown") if moved is None else _signed(moved),
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
