"""Fills the templates: one function per kind of text, the values of plan.json in, text out."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pricing.errors import NotBuiltYetError
from pricing.money import show
from templates.language.translate import LANGUAGES, _, gap, translate_text, use_language, word
from templates.markdown import cell, unbroken, with_commands
from templates.page.whole_page import render_page
from templates.reports.comment import change_comment, comment
from templates.reports.fleet_rows import short
from templates.reports.whole import markdown_report
from templates.strangers import for_markdown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.documents.plan_change import PlanChange
    from planner.plan.plan import Plan
    from planner.proof.verify import Verification

STYLES = ("md", "html", "github-comment")


def render_report(  # noqa: PLR0913 - what a style is made of
    plan: Plan,
    *,
    style: str = "md",
    lang: str = "en",
    change: PlanChange | None = None,
    table: Mapping[str, Any] | None = None,
    over_time: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """Return the report of a plan.

    Args:
        plan: made now, or read back.
        style: `md`, `html` or `github-comment`.
        lang: `en` or `zh`.
        change: what changed since an earlier plan; a comment begins with it.
        table: the figures that a page works out again; needed for `html`.
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
            return comment(plan, change, environment())
        if style == "html":
            figures = table or {"period": plan.period, "jobs": []}
            return render_page(plan, figures, over_time or {})
        return markdown_report(plan, environment())


def render_change(change: PlanChange, *, lang: str = "en") -> str:
    """Return what changed between two plans as a comment on GitHub, in `en` or `zh`."""
    with use_language(lang):
        return change_comment(for_markdown(change), environment())


def check_style(style: str, lang: str) -> None:
    """Check that this version has a style and a language.

    Raises:
        NotBuiltYetError: it has not.
    """
    for name, value, known in (("style", style, STYLES), ("lang", lang, LANGUAGES)):
        if value not in known:
            raise NotBuiltYetError(
                f"--{name} {value} is not built yet; this version has {', '.join(known)}."
            )


@cache
def environment() -> Environment:
    """Return what fills the templates of reports."""
    filled = Environment(
        loader=PackageLoader("templates", "reports"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - markdown; `cell` keeps data from breaking tables
    )
    filled.globals.update(_=_, translate_text=translate_text, word=word, gap=gap)
    filled.filters["cell"] = cell
    filled.filters["unbroken"] = unbroken
    filled.filters["with_commands"] = with_commands
    filled.filters["name"] = lambda text: cell(short(str(text)))
    return filled


def render_proof(document: Verification) -> str:
    """Return the report of a verification, as markdown to attach to a pull request."""
    return environment().get_template("proof.md.j2").render(v=for_markdown(document), show=show)
