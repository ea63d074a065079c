"""`gpucost plan`: the cheapest, fastest or best-value way to run measured jobs."""

import gc
import time
from collections.abc import Callable, Iterator
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
from gpucost.files.outcomes import read_history
from gpucost.files.sources import read_sources, read_trace
from gpucost.files.writing import write_file
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output, output_options, print_json
from gpucost.views.plan_views.screen import print_plan
from planner.baseline.requirements import (
    Requirements,
)
from planner.baseline.site import Site
from planner.models.interruption import CheckpointCosts
from planner.plan_document.document import PlanDocument
from planner.plan_document.from_plan import plan_document
from templates.language.currency import ExchangeRate, showing
from templates.language.speech import ENGLISH, speaking, spoken

_LEAST_CHECKPOINT_S = 0.001  # a checkpoint that costs nothing would be written all the time


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
    with _without_collecting(), LargePlan(day, target, None if one_screen else 1) as large:
        profiles = read_sources(sources, output.say, jobs_by)
        plan = make_plan(profiles, catalog, _requirements(asked), as_of=day, spread=large.spread)
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
            gc.enable()


def _requirements(asked: dict[str, Any]) -> Requirements:
    deadline, trace = asked.pop("deadline"), asked.pop("spot_trace")
    probes, history = asked.pop("probes"), asked.pop("history")
    limit = asked.pop("time_limit")
    checkpoints = CheckpointCosts(
        write_s=max(float(asked.pop("checkpoint_time")), _LEAST_CHECKPOINT_S),
        restart_s=float(asked.pop("restart_time")),
    )
    return Requirements(
        site=Site(
            grid_g_per_kwh=asked.pop("grid_g_per_kwh"),
            pue=asked.pop("pue"),
            host_fraction=asked.pop("host_power_share"),
        ),
        spot_trace=None if trace is None else read_trace(trace),
        checkpoints=checkpoints,
        deadline_h=None if deadline is None else float(deadline) / 3600.0,
        budget_usd=asked.pop("budget"),
        purchases=asked.pop("purchases"),
        egress_bytes=asked.pop("egress"),
        egress_to=asked.pop("egress_to") or "",
        storage_bytes=asked.pop("storage"),
        boot_disk_bytes=asked.pop("boot_disk"),
        include=frozenset(asked.pop("include")),
        engineer_usd_per_hour=asked.pop("engineer_rate"),
        probes=read_sources(probes) if probes else (),
        history=None if history is None else read_history(history),
        ends_search=_never if limit is None else _after(float(limit)),
        **asked,
    )


def _never() -> bool:
    return False


def _after(limit_s: float) -> Callable[[], bool]:
    """Return what says whether the limit has passed since it was first asked."""
    first: list[float] = []

    def passed() -> bool:
        now = time.monotonic()
        first[:] = first or [now]
        return now - first[0] >= limit_s

    return passed


@contextmanager
def _saying(lang: str, rate: ExchangeRate | None, output: Output) -> Iterator[None]:
    """Print for people in their language and currency; data for programs stay as they are."""
    for_people = output.format in ("table", "md")
    with speaking(lang if for_people else ENGLISH), showing(rate if for_people else None):
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

        click.echo(render_report(plan, lang=spoken()), nl=False)
    else:
        print_plan(plan, output, all_options=all_options)
