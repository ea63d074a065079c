"""`gpucost report` and `gpucost recipe`: documents made of a plan."""

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import click

from gpucost.arguments.parameters import options
from gpucost.cost_gate import CostGate
from gpucost.files.plan_file import DEFAULT_PLAN, load_plan
from gpucost.files.writing import kind_of_file
from gpucost.profiling.series_read import time_lines
from gpucost.views.output import Output, common_options, save_file
from planner.documents.plan_change import plan_change
from planner.plan.plan import Plan
from pricing.errors import InputError
from pricing.message import Message
from templates.language.translate import ExchangeRate, reading_plan, showing


@click.command(name="report", epilog="Example: gpucost report plan.json -o report.md")
@click.argument("plan_path", default=DEFAULT_PLAN, metavar="[PLAN]")
@options("output style lang fx series base.report fail-over fail-over-increase")
@common_options
def report(
    plan_path: str,
    target: str,
    style: str | None,
    lang: str,
    rate: ExchangeRate | None,
    series: tuple[str, ...],
    base: str | None,
    fail_over: Decimal | None,
    fail_over_increase: tuple[Decimal, bool] | None,
    output: Output,
) -> int:
    """Write the report of a plan; with --fail-over or --fail-over-increase also check its cost.

    A GitHub comment starts with a hidden marker, so that later runs find and update it.
    """
    from templates.render import render_report  # noqa: PLC0415 - jinja2 only here

    kind = kind_of_file(target, "html" if style == "html" else "md", ("md", "html"))
    style = style or kind
    if (style == "html") != (kind == "html"):
        raise InputError(f"{target}: its suffix contradicts --style {style}; change one of them.")
    against = base if fail_over_increase is not None else None
    gate = CostGate(limit_usd=fail_over, increase=fail_over_increase, base=against)
    plan = load_plan(plan_path)
    compared = base if style == "github-comment" else None
    change = plan_change(load_plan(compared), plan) if compared else None
    over_time = _over_time(plan_path, series, plan, style)
    with showing(rate), reading_plan(plan_path):
        text = render_report(plan, style=style, lang=lang, change=change, over_time=over_time)
    save_file(target, [text], output)
    return gate.check(plan, output)


def _over_time(
    path: str, series: Sequence[str], plan: Plan, style: str
) -> dict[str, dict[str, Any]]:
    """Return what was recorded over time, for the page.

    Raises:
        InputError: series are given and the style draws none, or they cannot be read.
    """
    if style != "html":
        if series:
            raise InputError(Message("input.series-not-drawn", style=style))
        return {}
    lines = time_lines(path, series, [job.name for job in plan.jobs])
    return {name: asdict(line) for name, line in lines.items()}
