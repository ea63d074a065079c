"""Comments on GitHub: what changed since the base branch's plan, then the report, found again.

The first line is a marker that nobody sees: whoever posts the comment looks for it, and updates
the comment that has it in place of adding one.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from templates import report_text
from templates.language.translate import _
from templates.reports.fleet_rows import names
from templates.reports.whole import MOST_CHARACTERS, markdown_report

if TYPE_CHECKING:
    from jinja2 import Environment

    from planner.documents.plan_change import JobChange, PlanChange
    from planner.plan.plan import Plan

MARKER = "<!-- gpucost report: this comment is updated in place -->"
_ROWS = 25  # of a table in a comment: our own choice
_ZERO = Decimal(0)


def comment(plan: Plan, change: PlanChange | None, environment: Environment) -> str:
    """Return the report of a plan as a comment, what changed first where a base was given."""
    top = f"{MARKER}\n" + ("" if change is None else change_text(change, environment))
    return top + markdown_report(plan, environment, most=MOST_CHARACTERS - len(top))


def change_comment(change: PlanChange, environment: Environment) -> str:
    """Return what changed between two plans as a comment of its own."""
    return f"{MARKER}\n{change_text(change, environment).rstrip()}\n"


def change_text(change: PlanChange, environment: Environment) -> str:
    """Return what changed between two plans in markdown: causes, findings, jobs."""
    totals = change.totals
    causes = (
        (_("price changes (same usage)"), totals.price_usd),
        (_("usage changes (same prices)"), totals.usage_usd),
        (_("other machines"), totals.machine_usd),
        (_("new jobs"), totals.new_jobs_usd),
        (_("jobs that ended"), totals.gone_jobs_usd),
    )
    moved = [row for row in change.jobs if row.what != "stays" or row.before != row.after]
    moved.sort(key=_moved, reverse=True)
    return environment.get_template("change.md.j2").render(
        w=report_text,
        period=report_text.period_name(change.period),
        change=change,
        causes=causes,
        waste=_waste(change),
        jobs=moved[:_ROWS],
        left=max(0, len(moved) - _ROWS),
        signed=signed,
        names=names,
    )


def _waste(change: PlanChange) -> list[tuple[str, list[object], int]]:
    """Return new and gone findings, those that put most at stake first, and how many more."""
    tables: list[tuple[str, list[object], int]] = []
    for what in ("new", "gone"):
        found = [row for row in change.waste if row.what == what]
        found.sort(key=lambda row: -(row.after or row.before or _ZERO))
        if found:
            shown: list[object] = [*found[:_ROWS]]
            tables.append((what, shown, max(0, len(found) - _ROWS)))
    return tables


def _moved(row: JobChange) -> Decimal:
    return abs((row.after or _ZERO) - (row.before or _ZERO))


def signed(usd: Decimal | None) -> str:
    """Return `+$12.00`, `-$3.50`; a dash for what is not known."""
    if usd is None:
        return "-"
    return f"{'-' if usd < 0 else '+'}{report_text.dollars(abs(usd))}"
