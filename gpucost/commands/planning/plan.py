"""`gpucost plan`: the cheapest, fastest or best-value way to run measured jobs."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from typing import Any

import click

from gpucost.api import make_plan
from gpucost.arguments.option_groups import GroupedCommand
from gpucost.arguments.parameters import (
    jobs_by_option,
    language_option,
    rate_option,
    today,
)
from gpucost.arguments.plan_options import PLAN_GROUPS, plan_options
from gpucost.cost_gate import Gate
from gpucost.files.large_plan import LargePlan
from gpucost.files.sources import read_sources
from gpucost.files.writing import write_file
from gpucost.prices.cache import load_catalog
from gpucost.requirements import requirements_of
from gpucost.views.output import PLANNING, READING, Output, output_options, print_json
from gpucost.views.plan_views.screen import print_plan
from planner.plan_document.document import PlanDocument
from planner.plan_document.from_plan import plan_document
from templates.language.translate import (
    ENGLISH,
    ExchangeRate,
    current_language,
    showing,
    use_language,
)


@click.command(
    name="plan",
    cls=GroupedCommand,
    groups=PLAN_GROUPS,
    epilog="Example: gpucost plan profile.json --provider aws -o plan.json --report report.md",
)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@plan_options
@jobs_by_option
@click.option("--all", "all_options", is_flag=True, help="Show every option, not one screen.")
@language_option
@rate_option
@output_options
def command(
    sources: tuple[str, ...],
    target: str | None,
    report_path: str | None,
    fail_over: Decimal | None,
    fail_over_increase: tuple[Decimal, bool] | None,
    base: str | None,
    as_of: date | None,
    jobs_by: str | None,
    lang: str,
    rate: ExchangeRate | None,
    output: Output,
    *,
    all_options: bool,
    **asked: Any,
) -> int:
    """Find the cheapest way to run measured jobs: what is wasted, why, what to run instead."""
    gate = Gate(limit_usd=fail_over, increase=fail_over_increase, base=base)
    day = as_of or today()
    catalog = load_catalog(day, say=output.say)
    one_screen = output.format == "table" and not (all_options or output.verbose or report_path)
    several, told = None if one_screen else 1, output.progress(PLANNING)
    with _without_collecting(), LargePlan(day, target, several, told) as large:
        profiles = read_sources(sources, output.say, jobs_by, output.progress(READING))
        wanted, spread, at_once = requirements_of(asked), large.spread, large.at_once
        plan = make_plan(profiles, catalog, wanted, as_of=day, spread=spread, at_once=at_once)
        document = plan_document(plan)
        large.write(document)
        _report(document, report_path, lang, rate)
        for path in (target, report_path):
            if path not in (None, "-"):
                output.say(f"wrote {path}")
        if target != "-":
            with _saying(lang, rate, output):
                _print(document, output, all_options=all_options)
    plan.check_feasible()
    return gate.check(plan, output)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Look for no garbage: a plan makes millions of values and no cycles of them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            # They are young to the collector, which would look through all of them at once: made
            # old, they are left alone until as many are new.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


@contextmanager
def _saying(lang: str, rate: ExchangeRate | None, output: Output) -> Iterator[None]:
    """Print for people in their language and currency; data for programs stay as they are."""
    for_people = output.format in ("table", "md")
    with use_language(lang if for_people else ENGLISH), showing(rate if for_people else None):
        yield


def _report(
    plan: PlanDocument, report_path: str | None, lang: str, rate: ExchangeRate | None
) -> None:
    if report_path is not None:
        from templates.render import render_report  # noqa: PLC0415 - jinja2 only for reports

        with showing(rate):
            text = render_report(plan, lang=lang)
        write_file(report_path, text)


def _print(plan: PlanDocument, output: Output, *, all_options: bool) -> None:
    if output.format == "json":
        print_json(plan)
    elif output.format == "md":
        from templates.render import render_report  # noqa: PLC0415 - jinja2 only for reports

        click.echo(render_report(plan, lang=current_language()), nl=False)
    else:
        print_plan(plan, output, all_options=all_options)
