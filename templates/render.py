"""Fills the templates: one function per kind of text, the values of plan.json in, text out."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from pricing.errors import NotBuiltYetError
from templates import advice, report_text
from templates.markdown import cell, command
from templates.totals import total

if TYPE_CHECKING:
    from planner.plan_document.document import PlanDocument
    from planner.plan_document.jobs import JobDocument, RejectedDocument
    from planner.plan_document.options import BaselineDocument, OptionDocument

STYLES = ("md",)
LANGUAGES = ("en",)
_EXAMPLES_A_REASON = 3


def render_report(plan: PlanDocument, *, style: str = "md", lang: str = "en") -> str:
    """Return the report of a plan.

    Args:
        plan: made now, or read back.
        style: `md`.
        lang: `en`.

    Raises:
        NotBuiltYetError: another style or language of the contract.
    """
    check_style(style, lang)
    template = environment().get_template(f"report.{style}.j2")
    return template.render(
        plan=plan,
        w=report_text,
        advice=advice,
        total=total,
        why_not=why_not,
        next_steps=next_steps,
        has_energy=has_energy,
    )


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
    filled.filters["cell"] = cell
    return filled


def has_energy(today: BaselineDocument, columns: list[tuple[str, OptionDocument]]) -> bool:
    """Return whether the energy of any column is known."""
    known = (report_text.energy(option) for _, option in columns)
    return report_text.energy(today) is not None or any(known)


def why_not(job: JobDocument) -> list[RejectedDocument]:
    """Return the rejections worth reading: a few examples of each reason, by reason."""
    shown: list[RejectedDocument] = []
    for rejected in sorted(job.rejected, key=lambda r: (r.reason, r.offer)):
        alike = sum(r.reason == rejected.reason for r in shown)
        if alike < _EXAMPLES_A_REASON:
            shown.append(rejected)
    return shown


def next_steps(job: JobDocument, plan: PlanDocument) -> list[str]:
    """Return commands that can be run now."""
    option = job.choice
    steps = []
    if option is not None:
        quote = command("gpucost", "quote", "--option", f"{job.name}/{option.id}")
        steps.append(f"{quote}, once the plan is saved with `gpucost plan ... -o plan.json`")
    first = job.verdict
    if first is not None:
        steps.append(command("gpucost", "explain", first.code))
    if plan.fleet is None and option is None:
        steps.append(command("gpucost", "prices", "--sort", "gpu-price"))
    return steps
