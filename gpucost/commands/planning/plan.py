"""`gpucost plan`: the cheapest, fastest or best-value way to run measured jobs."""

import contextlib
import gc
import io
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import structs

from gpucost.api import with_launchable
from gpucost.arguments.command_group import GroupedCommand
from gpucost.arguments.parameters import HINT_OPTIONS, HINTS, options, today
from gpucost.arguments.settings import load_budgets
from gpucost.cost_gate import CostGate
from gpucost.files.executors import planning_executor
from gpucost.files.outcomes import read_history
from gpucost.files.writing import kind_of_file
from gpucost.live.sources import SourceReading, read_sources, read_trace
from gpucost.prices.cache import load_catalog, refreshing_prices
from gpucost.views.output import (
    PLANNING,
    Output,
    folder_options,
    output_options,
    print_json,
    save_file,
    speaking,
)
from gpucost.views.plan import brief, print_plan
from planner.bills.leftovers import gpu_sizes
from planner.choice.requirements import (
    BOOT_DISK_GIB,
    ENGINEER_USD_PER_HOUR,
    INCLUDABLE,
    OBJECTIVES,
    Requirements,
    Site,
)
from planner.models.interruption import CheckpointCosts
from planner.pipeline import draft_plan
from planner.plan.job import Now, Proof
from planner.plan.making import plan_text, to_plan
from planner.plan.plan import Plan
from planner.profile.model import Profile
from planner.signals.program_places import has_guessed_times
from pricing.catalog.catalog import Catalog
from pricing.errors import InputError, NotBuiltYetError
from pricing.listing import as_typed, listed
from pricing.message import Message
from pricing.money import show
from providers.registry import CLOUDS
from telemetry.readers.hints import Hints
from templates.language.translate import (
    ExchangeRate,
    _,
    current_language,
    reading_plan,
    showing,
    translate_text,
)
from templates.reports.first_screen import first_screen

_HOURS_PER_DAY = 24
_ONE_MINUTE_H = 1 / 60
_Step = TypeVar("_Step", Now, Proof)


def _refuse_unbuilt(context: click.Context, option: click.Parameter, value: object) -> None:
    if value and not context.resilient_parsing:
        raise NotBuiltYetError(f"{option.opts[0]} is not built yet; leave it out.")


plan_options = options(
    "objective deadline budget provider region gpu gpus purchase.plan "
    "hours-per-month work-total egress egress-to storage boot-disk "
    "public-address slo-ms consolidate max-slowdown max-moves time-limit machine cluster "
    "price.plan owned paid-until action without whole-machine machine-only include "
    "launchable spot-trace checkpoint-time restart-time engineer-rate horizon "
    "grid-g-per-kwh pue host-power-share as-of output.plan report fail-over "
    "fail-over-increase base allow-gpu-change history probe",
    objective={"type": click.Choice(OBJECTIVES)},
    boot_disk={"default": f"{BOOT_DISK_GIB}GiB"},
    consolidate={"default": None},
    include={"type": click.Choice(INCLUDABLE)},
    engineer_rate={"default": str(ENGINEER_USD_PER_HOUR)},
    allow_gpu_change={"callback": _refuse_unbuilt},
)


_LEAST_CHECKPOINT_S = 0.001  # a checkpoint that costs nothing would be written all the time


def requirements_of(typed: dict[str, Any]) -> Requirements:
    """Return what is asked of a plan, the files that its options name read.

    Args:
        typed: the options of `gpucost plan` by name; it is used up.

    Raises:
        InputError: a file of them cannot be read.
    """
    deadline, trace = typed.pop("deadline"), typed.pop("spot_trace")
    probes, history = typed.pop("probes"), typed.pop("history")
    if (limit := typed.pop("time_limit")) is not None:
        typed["ends_search"] = _TimeLimit(float(limit))
    objective = typed.pop("objective")
    checkpoints = CheckpointCosts(
        write_s=max(float(typed.pop("checkpoint_time")), _LEAST_CHECKPOINT_S),
        restart_s=float(typed.pop("restart_time")),
    )
    return Requirements(
        objective=objective or "cost",
        accepts_slower=objective == "cost",
        site=Site(
            grid_g_per_kwh=typed.pop("grid_g_per_kwh"),
            pue=typed.pop("pue"),
            host_fraction=typed.pop("host_power_share"),
        ),
        spot_trace=None if trace is None else read_trace(trace),
        checkpoints=checkpoints,
        deadline_h=None if deadline is None else float(deadline) / 3600.0,
        budget_usd=typed.pop("budget"),
        purchases=typed.pop("purchases"),
        egress_bytes=typed.pop("egress"),
        egress_to=typed.pop("egress_to") or "",
        storage_bytes=typed.pop("storage"),
        boot_disk_bytes=typed.pop("boot_disk"),
        include=frozenset(typed.pop("include")),
        engineer_usd_per_hour=typed.pop("engineer_rate"),
        probes=read_sources(probes) if probes else (),
        history=None if history is None else read_history(history),
        **typed,
    )


class _TimeLimit:
    """Says whether a limit has passed since it was first asked."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._first: float | None = None

    def __call__(self) -> bool:
        """Return whether it has."""
        now = time.monotonic()
        self._first = now if self._first is None else self._first
        return now - self._first >= self._limit_s


@click.command(
    name="plan",
    cls=GroupedCommand,
    listed="plan",
    epilog="Example: gpucost plan profile.json --provider aws -o plan.json --report report.md",
)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@plan_options
@options(f"{HINT_OPTIONS} dask all brief lang fx")
@output_options
@refreshing_prices
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
    dask: str | None,
    output: Output,
    *,
    all_options: bool,
    is_brief: bool,
    **typed: Any,
) -> int:
    """Find the cheapest way to run measured jobs: what is wasted, why, what to run instead."""
    _check_brief(output, is_brief=is_brief)
    gate = CostGate(limit_usd=fail_over, increase=fail_over_increase, base=base)
    kinds = _kinds(target, report_path)
    day = as_of or today()
    load = cache(partial(load_catalog, day, say=output.say))
    one_screen = output.format == "table" and not (all_options or output.verbose or report_path)
    profiles, catalog = _measured(sources, jobs_by, typed, load, output), load()
    gc.freeze()  # no garbage is in the catalog and the profiles: the collector passes over them
    with planning_executor(len(profiles), dask) as executor:
        plan = draft_plan(
            profiles,
            catalog,
            with_launchable(requirements_of(typed)),
            as_of=day,
            executor=executor,
            summarizes=one_screen and executor is not None,
            on_progress=output.progress(PLANNING),
        )
    document, saved_as = (
        to_plan(plan),
        next((p for p, kind in kinds.items() if kind == "json"), None),
    )
    shown = _naming_files(document, saved_as, sources)
    with reading_plan(saved_as):
        for path, kind in kinds.items():
            text = partial(_text, shown, kind, (lang, rate), output)
            save_file(path, plan_text(document, plan.jobs) if kind == "json" else [text()], output)
        if target != "-":
            view = "brief" if is_brief else "all" if all_options else ""
            with speaking(lang, rate, output):
                read_from = _read_from(profiles) + _hours_assumed(document)
                _print(document, shown, output, read_from, view)
    plan.check_feasible()
    return gate.check(document, output)


def _check_brief(output: Output, *, is_brief: bool) -> None:
    if is_brief and output.format != "json":
        raise InputError("--brief is a short JSON document: add -f json, or leave it out.")


def _naming_files(plan: Plan, saved_as: str | None, sources: tuple[str, ...]) -> Plan:
    """Return a plan to show: its commands name the files that it was read from and written to.

    What is saved names none: it is the same wherever it is written, and may be moved.
    """
    is_file = len(sources) == 1 and Path(sources[0]).is_file()
    before = sources[0] if is_file else "BEFORE" if sources else "profile.json"
    plan_file = {"plan.json": saved_as} if saved_as and saved_as != "-" else {}
    files = {**plan_file, "profile.json": before}

    def named(step: _Step | None) -> _Step | None:
        if step is None or step.command is None:
            return step
        argv = shlex.split(step.command)  # a job's name may hold what a file is called
        names = files if "verify" in argv else plan_file
        typed = [word if word == "&&" else as_typed(names.get(word, word)) for word in argv]
        return structs.replace(step, command=" ".join(typed))

    return structs.replace(
        plan,
        jobs=tuple(
            structs.replace(
                job,
                answer=structs.replace(
                    job.answer, now=named(job.answer.now), proof=named(job.answer.proof)
                ),
            )
            for job in plan.jobs
        ),
    )


def _measured(
    sources: tuple[str, ...],
    jobs_by: str | None,
    typed: dict[str, Any],
    load: Callable[[], Catalog],
    output: Output,
) -> tuple[Profile, ...]:
    """Return what was measured; hints are taken out of the options, a billed price put in.

    The catalog is loaded where a source needs it, else after all of them: newer prices are fetched
    meanwhile.
    """
    billed: list[Decimal] = []
    if typed["current"] is not None:
        typed["current"] = load().full_place(typed["current"])
    how = SourceReading(
        folders=folder_options(jobs_by, output),
        hints=Hints(machine=typed["current"], **{name: typed.pop(name) for name in HINTS}),
        sizes=lambda: gpu_sizes(load()),
        machine=typed["current"],
        on_price=billed.append,
    )
    profiles = read_sources(sources, output.say, how)
    if typed["price_usd_per_hour"] is None and typed["current"] is None and billed:
        typed["price_usd_per_hour"] = billed[0]
    return _with_gpus(profiles, output)


def _with_gpus(profiles: tuple[Profile, ...], output: Output) -> tuple[Profile, ...]:
    """Return the jobs; beside jobs with GPUs one that read none has nothing to be priced by."""
    on_gpus = tuple(p for p in profiles if p.gpus or p.hardware.gpu or p.hardware.instance_type)
    left_out = [p.job.name for p in profiles if p not in on_gpus] if on_gpus else []
    if left_out:
        joins = "Of the same run? `gpucost import SOURCE... -o profile.json` joins it."
        output.say(f"left out, as no GPU was read there: {listed(left_out)}. {joins}")
    return on_gpus or profiles


def _kinds(target: str | None, report_path: str | None) -> dict[str, str]:
    """Return what each file that is asked for holds, by its suffix."""
    kinds = {}
    if target is not None:
        kinds[target] = kind_of_file(target, "json", ("json", "md", "html", "csv"))
    if report_path is not None:
        kinds[report_path] = kind_of_file(report_path, "md", ("md", "html"))
    return kinds


def _text(plan: Plan, kind: str, extras: tuple[str, ExchangeRate | None], output: Output) -> str:
    """Return the plan as Markdown, as a page, or as a table of its options in CSV."""
    if kind == "csv":
        with contextlib.redirect_stdout(io.StringIO()) as text:
            print_plan(plan, replace(output, format="csv"))
        return text.getvalue()
    from templates.render import render_report  # noqa: PLC0415 - jinja2 only for reports

    lang, rate = extras
    with showing(rate):
        return render_report(plan, style=kind, lang=lang)


def _without_own_end(plan: Plan) -> Iterator[Message]:
    """Yield what nobody ends of what is recommended and can be launched from here, and its cost."""
    for job in plan.jobs:
        option = job.choice
        provider = CLOUDS.get(option.offer.provider) if option and option.provisionable else None
        if option and provider and provider.end.token:
            usd = show(option.offer.usd_per_hour * option.count * _HOURS_PER_DAY)
            names = {"provider": provider.title, "token": provider.end.token}
            yield Message("note.no-own-end", job=job.name, usd=usd, **names)


def _budget_notes(plan: Plan) -> Iterator[Message]:
    """Yield what the jobs of a team or owner with a budget take of it, today and as recommended."""
    labeled = plan.teams if plan.teams and plan.period == "month" else ()
    for budget in load_budgets() if labeled else ():
        rows = [row for row in labeled if row.name and row.name.lower() in budget.names]
        rows = [row for row in rows if row.by == rows[0].by]
        recommended = sum((row.recommended_usd for row in rows), Decimal(0))
        if rows:
            code = "note.over-budget" if recommended > budget.usd else "note.budget"
            shown = {"limit": show(budget.usd), "usd": show(recommended)}
            today_usd = sum((row.usd for row in rows), Decimal(0))
            yield Message(code, name=budget.name, today=show(today_usd), **shown)


def _read_from(profiles: tuple[Profile, ...]) -> str:
    """Return what was measured, in words: files and their length."""
    files = {Path(s.path).name: s for p in profiles for s in p.provenance.sources if s.path}
    names = list(files)
    windows = [profile.window for profile in profiles if profile.window]
    hours = max((w.recorded_s for w in windows), default=0.0) / 3600.0
    if not names:
        return ""
    shown = names[0] if len(names) == 1 else _("{n} files", n=len(names))
    if not hours or any(has_guessed_times(profile) for profile in profiles):
        return _(", from {files}", files=shown)
    if hours < 1:
        if hours < _ONE_MINUTE_H:
            return _(", from {files} ({seconds} s)", files=shown, seconds=f"{3600 * hours:.0f}")
        return _(", from {files} ({minutes} min)", files=shown, minutes=f"{60 * hours:.2g}")
    return _(", from {files} ({hours} h)", files=shown, hours=f"{Decimal(f'{hours:.3g}'):,f}")


def _hours_assumed(plan: Plan) -> str:
    """Return that nobody said how many hours a month a job runs, in words; empty where one did."""
    codes = {note.code for note in plan.assumptions if isinstance(note, Message)}
    return _("; 730 h a month assumed") if "note.no-hours" in codes else ""


def _print(document: Plan, plan: Plan, output: Output, read_from: str, view: str) -> None:
    """Print a plan, as it is written or as it is shown."""
    if output.format == "json":
        print_json(brief(plan, first_screen(plan, read_from)) if view == "brief" else document)
    elif output.format == "md":
        from templates.render import render_report  # noqa: PLC0415 - jinja2 only for reports

        click.echo(render_report(plan, lang=current_language()), nl=False)
    else:
        print_plan(plan, output, read_from, all_options=view == "all")
    for note in (*_without_own_end(plan), *_budget_notes(plan)):
        output.say(_("note: {note}", note=translate_text(note)))
