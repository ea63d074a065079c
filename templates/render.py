"""Fills the templates: one function per kind of text, the values of plan.json in, text out."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pricing.errors import NotBuiltYetError
from pricing.money import show
from templates import report_text
from templates.language.translate import LANGUAGES, _, use_language
from templates.page.whole_page import render_page
from templates.reports.fleet_rows import names
from templates.reports.whole import MOST_CHARACTERS, environment, markdown_report
from templates.strangers import for_markdown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.documents.plan_change import JobChange, PlanChange
    from planner.plan.plan import Plan
    from planner.proof.verify import Verification

STYLES = ("md", "html", "github-comment")


def render_report(
    plan: Plan,
    *,
    style: str = "md",
    lang: str = "en",
    change: PlanChange | None = None,
    over_time: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """Return the report of a plan.

    Args:
        plan: made now, or read back.
        style: `md`, `html` or `github-comment`.
        lang: `en` or `zh`.
        change: what changed since an earlier plan; a comment begins with it.
        over_time: what was recorded over time, by job, as the fields of a `TimeLine`; a page
            draws it.

    Raises:
        NotBuiltYetError: another style or language of the contract.
    """
    check_style(style, lang)
    if style != "html":
        plan, change = for_markdown(plan), for_markdown(change)
    with use_language(lang, plan):
        if style == "github-comment":
            return comment(plan, change)
        if style == "html":
            return render_page(plan, over_time or {})
        return markdown_report(plan)


def render_change(change: PlanChange, *, lang: str = "en") -> str:
    """Return what changed between two plans as a comment on GitHub, in `en` or `zh`."""
    with use_language(lang):
        return change_comment(for_markdown(change))


def check_style(style: str, lang: str) -> None:
    """Check that this version has a style and a language.

    Raises:
        NotBuiltYetError: it has not.
    """
    for name, value, choices in (("style", style, STYLES), ("lang", lang, LANGUAGES)):
        if value not in choices:
            raise NotBuiltYetError(
                f"--{name} {value} is not built yet; this version has {', '.join(choices)}."
            )


def render_proof(document: Verification) -> str:
    """Return the report of a verification, as markdown to attach to a pull request."""
    return environment().get_template("proof.md.j2").render(v=for_markdown(document), show=show)


MARKER = "<!-- gpucost report: this comment is updated in place -->"
_ROWS = 25  # of a table in a comment: our own choice
_ZERO = Decimal(0)


def comment(plan: Plan, change: PlanChange | None) -> str:
    """Return the report of a plan as a comment, what changed first where a base was given."""
    top = f"{MARKER}\n" + ("" if change is None else change_text(change))
    return top + markdown_report(plan, limit=MOST_CHARACTERS - len(top))


def change_comment(change: PlanChange) -> str:
    """Return what changed between two plans as a comment of its own."""
    return f"{MARKER}\n{change_text(change).rstrip()}\n"


def change_text(change: PlanChange) -> str:
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
    return (
        environment()
        .get_template("change.md.j2")
        .render(
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
    )


def _waste(change: PlanChange) -> list[tuple[str, list[object], int]]:
    """Return new and gone findings, those that put most at stake first, and how many more."""
    tables: list[tuple[str, list[object], int]] = []
    for change_kind in ("new", "gone"):
        rows = [row for row in change.waste if row.what == change_kind]
        rows.sort(key=lambda row: -(row.after or row.before or _ZERO))
        if rows:
            shown: list[object] = [*rows[:_ROWS]]
            tables.append((change_kind, shown, max(0, len(rows) - _ROWS)))
    return tables


def _moved(row: JobChange) -> Decimal:
    return abs((row.after or _ZERO) - (row.before or _ZERO))


def signed(usd: Decimal | None) -> str:
    """Return `+$12.00`, `-$3.50`; a dash for what is not known."""
    if usd is None:
        return "-"
    return f"{'-' if usd < 0 else '+'}{report_text.dollars(abs(usd))}"
