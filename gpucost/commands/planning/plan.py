"""`gpucost plan`: the cheapest, fastest or best-value way to run measured jobs."""

import contextlib
import gc
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import click

from gpucost.api import draft_plan
from gpucost.arguments.command_group import GroupedCommand
from gpucost.arguments.parameters import (
    AMOUNT,
    BOOT_DISK,
    COUNTS,
    DAY,
    DESTINATION,
    DOLLARS,
    DURATION,
    EGRESS_TO,
    GRID,
    HINTS,
    HORIZON,
    HOST_SHARE,
    HOURS_A_MONTH,
    INCREASE,
    PUE,
    SIZE,
    SLOWDOWN,
    hint_options,
    jobs_by_option,
    language_option,
    rate_option,
    today,
)
from gpucost.cost_gate import CostGate
from gpucost.files.executors import planning_executor
from gpucost.files.outcomes import read_history
from gpucost.files.writing import kind_of_file, write_file, write_pieces
from gpucost.live.sources import SourceReading, read_sources, read_trace
from gpucost.prices.cache import load_catalog, refreshing_prices
from gpucost.views.output import PLANNING, Output, folder_options, output_options, print_json
from gpucost.views.plan import print_plan
from planner.bills.leftovers import gpu_sizes
from planner.choice.requirements import (
    BOOT_DISK_GIB,
    ENGINEER_USD_PER_HOUR,
    HORIZON_MONTHS,
    INCLUDABLE,
    OBJECTIVES,
    Requirements,
    Site,
)
from planner.models.interruption import CheckpointCosts
from planner.plan.making import plan_text, to_plan
from planner.plan.plan import Plan
from planner.profile.model import Profile
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import PURCHASES
from pricing.errors import NotBuiltYetError
from pricing.listing import listed
from pricing.message import Message
from pricing.money import show
from providers.registry import CLOUDS
from telemetry.readers.hints import Hints
from templates.language.translate import (
    ENGLISH,
    ExchangeRate,
    _,
    current_language,
    showing,
    translate_text,
    use_language,
)

_HOURS_PER_DAY = 24


def _refuse_unbuilt(context: click.Context, option: click.Parameter, value: object) -> None:
    if value and not context.resilient_parsing:
        raise NotBuiltYetError(f"{option.opts[0]} is not built yet; leave it out.")


def plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add every option of `gpucost plan` but what is printed."""
    declared = (
        click.option(
            "--objective",
            type=click.Choice(OBJECTIVES),
            help="What to minimize; naming cost accepts machines on which the work takes longer.  "
            "[default: cost]",
        ),
        click.option(
            "--deadline",
            type=DURATION,
            help="Latest finish of a run, met with 95 % confidence, e.g. 24h.",
        ),
        click.option(
            "--budget", type=DOLLARS, help="Maximum cost per period, met with 95 % confidence."
        ),
        click.option(
            "--provider", "providers", multiple=True, help="Use only this provider (repeatable)."
        ),
        click.option(
            "--region",
            "regions",
            multiple=True,
            help="Keep the data in this region: its name, eu, us, apac or a country (repeatable).",
        ),
        click.option("--gpu", "gpus", multiple=True, help="Use only this GPU model (repeatable)."),
        click.option(
            "--gpus", "gpu_counts", type=COUNTS, help="Number of GPUs to use, e.g. 8 or 1..8."
        ),
        click.option(
            "--purchase",
            "purchases",
            type=click.Choice(PURCHASES),
            multiple=True,
            help="Purchase type (repeatable).  [default: on_demand]",
        ),
        click.option(
            "--hours-per-month",
            type=HOURS_A_MONTH,
            help="Hours per month that the machine is rented.",
        ),
        click.option(
            "--work-total",
            type=AMOUNT,
            help="Units of work in one run; makes the plan per run instead of per month.",
        ),
        click.option("--egress", type=SIZE, help="Data sent out per period, e.g. 500GiB."),
        click.option("--egress-to", type=DESTINATION, help=EGRESS_TO),
        click.option("--storage", type=SIZE, help="Data stored per period, e.g. 2TiB."),
        click.option(
            "--boot-disk",
            type=BOOT_DISK,
            default=f"{BOOT_DISK_GIB}GiB",
            show_default=True,
            help="Boot disk of each machine, including the current one; `none` leaves it out.",
        ),
        click.option(
            "--public-address/--no-public-address",
            default=True,
            show_default=True,
            help="Whether each machine, including the current one, has a public IPv4 address.",
        ),
        click.option("--slo-ms", type=AMOUNT, help="Latency target in milliseconds."),
        click.option(
            "--consolidate/--no-consolidate",
            default=None,
            help="Pack jobs onto fewer GPUs.  [default: if there are several jobs]",
        ),
        click.option(
            "--max-slowdown",
            type=SLOWDOWN,
            default=1.2,
            show_default=True,
            help="Maximum slowdown of a job.",
        ),
        click.option(
            "--max-moves",
            type=click.IntRange(min=0),
            help="Maximum number of jobs moved to share a GPU.",
        ),
        click.option(
            "--time-limit",
            type=DURATION,
            help="Stop searching for a better packing after this time and use the best one found.",
        ),
        click.option(
            "--machine",
            "--current",
            "current",
            metavar="[PROVIDER/]TYPE[/REGION]",
            help="Machine that runs the jobs today.",
        ),
        click.option(
            "--price",
            "price_usd_per_hour",
            type=DOLLARS,
            help="Hourly price of one current machine, instead of the list price.",
        ),
        click.option(
            "--owned",
            is_flag=True,
            help="The current machines are paid for already; leaving them saves nothing of that.",
        ),
        click.option(
            "--paid-until",
            type=DAY,
            help="Last day that is paid for on the current machines (a reservation).",
        ),
        click.option(
            "--action",
            "actions",
            multiple=True,
            metavar="CODE",
            help="Take this action in every option, whatever it gains (repeatable).",
        ),
        click.option(
            "--without", multiple=True, metavar="CODE", help="Leave this action out (repeatable)."
        ),
        click.option(
            "--whole-machine",
            is_flag=True,
            help="Charge a job that uses part of a machine for the whole machine.",
        ),
        click.option(
            "--machine-only",
            is_flag=True,
            help="Exclude boot disks, addresses and the data set's disk from every bill.",
        ),
        click.option(
            "--include",
            type=click.Choice(INCLUDABLE),
            multiple=True,
            help="Include community hosts, any GPU vendor or any CPU architecture (repeatable).",
        ),
        click.option(
            "--launchable",
            "launchable_only",
            is_flag=True,
            help="Show only options that `gpucost provision` can launch.",
        ),
        click.option(
            "--spot-trace",
            type=click.Path(dir_okay=False),
            help="Spot availability trace, used for lost work, run time and deadlines.",
        ),
        click.option(
            "--checkpoint-time",
            type=DURATION,
            default="2m",
            show_default=True,
            help="Time to write one checkpoint.",
        ),
        click.option(
            "--restart-time",
            type=DURATION,
            default="6m",
            show_default=True,
            help="Time from a new machine until the job is running again.",
        ),
        click.option(
            "--engineer-rate",
            type=DOLLARS,
            default=str(ENGINEER_USD_PER_HOUR),
            show_default=True,
            help="Cost of an engineer hour in USD; changes must pay it back.",
        ),
        click.option(
            "--horizon",
            "horizon_months",
            type=HORIZON,
            metavar="DURATION",
            help=f"Payback horizon, e.g. 3mo or 1y.  [default: {HORIZON_MONTHS}mo, or one run]",
        ),
        click.option(
            "--grid-g-per-kwh", type=GRID, help="Grid carbon intensity in grams of CO2e per kWh."
        ),
        click.option(
            "--pue",
            type=PUE,
            help="Power usage effectiveness: energy of the site divided by that of its machines.",
        ),
        click.option(
            "--host-power-share",
            type=HOST_SHARE,
            help="Share of a node's power not drawn by its GPUs, 0.2 to 0.4.",
        ),
        click.option(
            "--as-of",
            type=DAY,
            help="Use the prices and billing rules of this day.  [default: today]",
        ),
        click.option(
            "-o",
            "--output",
            "target",
            help="Write the plan to this file: .json, .md, .html or .csv; - is JSON on standard "
            "output.",
        ),
        click.option("--report", "report_path", help="Write the report to this file: .md, .html."),
        click.option(
            "--fail-over",
            type=DOLLARS,
            help="Exit with 7 if the recommended cost exceeds this amount.",
        ),
        click.option(
            "--fail-over-increase",
            type=INCREASE,
            help="Exit with 7 if the cost exceeds that of --base by more than this: 500 or 10%.",
        ),
        click.option(
            "--base", type=click.Path(dir_okay=False), help="Earlier plan.json to compare with."
        ),
        click.option(
            "--allow-gpu-change",
            is_flag=True,
            hidden=True,
            expose_value=False,
            callback=_refuse_unbuilt,
        ),
        click.option(
            "--history",
            type=click.Path(dir_okay=False),
            help="File of past results (`gpucost accuracy --mine`) used to calibrate predictions.",
        ),
        click.option(
            "--probe",
            "probes",
            multiple=True,
            metavar="FILE",
            type=click.Path(dir_okay=False),
            help="Profile of the same job on other GPUs or another number of them (repeatable).",
        ),
    )
    for option in reversed(declared):
        command = option(command)
    return command


PLAN_GROUPS = {
    "Job": "--hours-per-month --work-total --deadline --slo-ms --egress --egress-to --storage "
    "--checkpoint-time --restart-time --machine --kind --precision --cores --cpu --probe --history "
    "--jobs-by",
    "Machine": "--provider --region --gpu --gpus --include --launchable --boot-disk "
    "--public-address --machine-only --spot-trace --grid-g-per-kwh --pue --host-power-share",
    "Money": "--objective --budget --purchase --price --owned --paid-until --action --without "
    "--whole-machine --engineer-rate --horizon --as-of --offline --refresh "
    "--fail-over --fail-over-increase --base",
    "Fleet": "--consolidate --max-slowdown --max-moves --time-limit --allow-gpu-change --dask",
    "Output": "--output --report --lang --fx --all --format --quiet --verbose --no-color --help "
    "--help-all",
}
RARE = (
    "--owned --paid-until --action --without --slo-ms --egress --egress-to --storage "
    "--checkpoint-time --restart-time --probe --history "
    "--precision --cores --cpu --jobs-by --gpus --include --launchable --boot-disk "
    "--public-address --machine-only --spot-trace --grid-g-per-kwh --pue --host-power-share "
    "--objective --whole-machine --engineer-rate --horizon --as-of --offline --refresh "
    "--fail-over-increase --base --max-slowdown --max-moves --time-limit --dask --fx --work-total"
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
    groups=PLAN_GROUPS,
    rare=RARE,
    epilog="Example: gpucost plan profile.json --provider aws -o plan.json --report report.md",
)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@plan_options
@hint_options
@jobs_by_option
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Plan a large fleet on a Dask cluster: its scheduler, tcp://HOST:8786.",
)
@click.option("--all", "all_options", is_flag=True, help="Show every option instead of one screen.")
@language_option
@rate_option
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
    **typed: Any,
) -> int:
    """Find the cheapest way to run measured jobs: what is wasted, why, what to run instead."""
    gate = CostGate(limit_usd=fail_over, increase=fail_over_increase, base=base)
    kinds = _kinds(target, report_path)
    day = as_of or today()
    load = cache(partial(load_catalog, day, say=output.say))
    one_screen = output.format == "table" and not (all_options or output.verbose or report_path)
    profiles = _measured(sources, jobs_by, typed, load, output)
    catalog = load()
    gc.freeze()  # no garbage is in the catalog and the profiles: the collector passes over them
    with planning_executor(len(profiles), dask) as executor:
        plan = draft_plan(
            profiles,
            catalog,
            requirements_of(typed),
            as_of=day,
            executor=executor,
            summarizes=one_screen and executor is not None,
            on_progress=output.progress(PLANNING),
        )
    document = to_plan(plan)
    for path, kind in kinds.items():
        if kind == "json":
            write_pieces(path, plan_text(document, plan.jobs))
        else:
            write_file(path, _text(document, kind, (lang, rate), output))
        if path != "-":
            output.say(f"wrote {path}")
    if target != "-":
        with _saying(lang, rate, output):
            saved_as = next((path for path, kind in kinds.items() if kind == "json"), None)
            _print(document, output, (_read_from(profiles), saved_as), all_options=all_options)
    plan.check_feasible()
    return gate.check(plan, output)


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
    how = SourceReading(
        folders=folder_options(jobs_by, output),
        hints=Hints(**{name: typed.pop(name) for name in HINTS}),
        sizes=lambda: gpu_sizes(load()),
        on_price=billed.append,
    )
    profiles = read_sources(sources, output.say, how)
    if typed["current"] is not None:
        typed["current"] = load().full_place(typed["current"])
    if typed["price_usd_per_hour"] is None and typed["current"] is None and billed:
        typed["price_usd_per_hour"] = billed[0]
    return _with_gpus(profiles, output)


def _with_gpus(profiles: tuple[Profile, ...], output: Output) -> tuple[Profile, ...]:
    """Return the jobs; beside jobs with GPUs one that read none has nothing to be priced by."""
    on_gpus = tuple(p for p in profiles if p.gpus or p.hardware.gpu or p.hardware.instance_type)
    left_out = [p.job.name for p in profiles if p not in on_gpus] if on_gpus else []
    if left_out:
        output.say(f"left out, as no GPU was read there: {listed(left_out)}.")
    return on_gpus or profiles


@contextmanager
def _saying(lang: str, rate: ExchangeRate | None, output: Output) -> Iterator[None]:
    """Print for people in their language and currency; data for programs stay as they are."""
    for_people = output.format in ("table", "md")
    with use_language(lang if for_people else ENGLISH), showing(rate if for_people else None):
        yield


def _kinds(target: str | None, report_path: str | None) -> dict[str, str]:
    """Return what each file that is asked for holds, by its suffix."""
    kinds = {}
    if target is not None:
        kinds[target] = kind_of_file(target, "json", ("json", "md", "html", "csv"))
    if report_path is not None:
        kinds[report_path] = kind_of_file(report_path, "md", ("md", "html"))
    return kinds


def _text(plan: Plan, kind: str, words: tuple[str, ExchangeRate | None], output: Output) -> str:
    """Return the plan as Markdown, as a page, or as a table of its options in CSV."""
    if kind == "csv":
        with contextlib.redirect_stdout(io.StringIO()) as text:
            print_plan(plan, replace(output, format="csv"))
        return text.getvalue()
    from templates.render import render_report  # noqa: PLC0415 - jinja2 only for reports

    lang, rate = words
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


def _read_from(profiles: tuple[Profile, ...]) -> str:
    """Return what was measured, in words: files and their length."""
    files = {Path(s.path).name: s for p in profiles for s in p.provenance.sources if s.path}
    names = list(files)
    hours = sum(p.window.duration_s or 0.0 for p in profiles if p.window) / 3600.0
    if not names:
        return ""
    shown = names[0] if len(names) == 1 else _("{n} files", n=len(names))
    return _(", from {files} ({hours} h)", files=shown, hours=f"{hours:.3g}")


def _print(plan: Plan, output: Output, words: tuple[str, str | None], *, all_options: bool) -> None:
    if output.format == "json":
        print_json(plan)
    elif output.format == "md":
        from templates.render import render_report  # noqa: PLC0415 - jinja2 only for reports

        click.echo(render_report(plan, lang=current_language()), nl=False)
    else:
        read_from, saved_as = words
        print_plan(plan, output, all_options=all_options, read_from=read_from, saved_as=saved_as)
    for note in _without_own_end(plan):
        output.say(_("note: {note}", note=translate_text(note)))
