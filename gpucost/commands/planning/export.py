"""`gpucost export`: a plan, an option of it, or its shared GPUs in the form of another tool."""

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from gpucost.arguments.parameters import options
from gpucost.files.plan_file import DEFAULT_PLAN, load_plan
from gpucost.files.writing import write_file
from gpucost.views.output import Output, common_options, save_file
from planner.actions.action import FRAMEWORKS
from planner.documents.focus_export import VERSIONS, rows, to_csv
from planner.documents.framework_config import FrameworkConfig, framework_config
from planner.documents.recipe import Recipe, make_recipe
from planner.documents.selection import BY, CLUSTERS, By, FleetRequest, select, shared_gpus
from planner.documents.task import AUTOSCALERS, Autoscaler, TaskRequest, ToolTask, make_task
from planner.models.document import to_text
from planner.plan.bill import tools
from planner.plan.plan import Plan
from planner.plan.read import find_option, find_recommended
from pricing.errors import InputError
from pricing.listing import counted
from providers.registry import CLOUDS
from templates.bootstrap_deadline import NOTICES
from templates.report_text import period_words
from templates.task_files import FILES, render_config, render_fleet, render_task


def fleet_text(tool: str, plan: Plan, request: FleetRequest) -> tuple[str, tuple[str, ...]]:
    """Return the file, and what to say beside it.

    Raises:
        InputError: another tool, nothing is shared, or something was not said.
    """
    if tool not in CLUSTERS:
        raise InputError(f"--fleet is for --to {' and --to '.join(CLUSTERS)}, not for {tool}.")
    gpus = shared_gpus(plan, tool, request)
    ttl_s = None if request.ttl_s is None else round(request.ttl_s)
    way = tool if tool != "kubernetes" else request.by or BY[0]
    text = render_fleet(way, gpus, period_words(plan), ttl_s, request.queue)
    jobs = sum(len(gpu.jobs) for gpu in gpus)
    summary = f"{counted(jobs, 'job')} on {counted(len(gpus), 'GPU')}"
    unsuited = [str(p.id) for p in plan.placements if len(p.jobs) > 1 and not p.is_exportable]
    kinds = "rented containers and GPUs held by a timetable"
    excluded = f", nor are {kinds} (GPU {', '.join(unsuited)})" if unsuited else ""
    return text, (
        f"{summary}; jobs that keep a GPU of their own are not in it{excluded}.",
        "note: gpucost does not watch what other tools start: no cap, no `gpucost down`.",
    )


WORDS = (*FRAMEWORKS, "xgboost")
_READ_BY = {
    "transformers": "HfArgumentParser(TrainingArguments).parse_json_file(...) reads it",
    "accelerate": "accelerate launch --config_file ... reads it",
    "lightning": "LightningCLI reads it with --config, or Trainer(**...['trainer'])",
    "keras": "import it, and pass each on: model.compile(**COMPILE)",
    "pytorch": "import it, and pass each on: DataLoader(..., **DATA_LOADER)",
}


def config_text(
    framework: str, plan: Plan, named: tuple[str, ...], numeric: tuple[str, ...]
) -> tuple[FrameworkConfig, str]:
    """Return what an option sets in a framework, and the file that the framework reads.

    Args:
        framework: one of WORDS.
        plan: read back.
        named: JOB/ID of one option; empty: what the plan recommends.
        numeric: codes of actions that may change results.

    Raises:
        InputError: several options, or there is no such one.
    """
    config = framework_config(framework, _one_recipe(plan, named, numeric))
    return config, render_config(config)


def _one_recipe(plan: Plan, named: Sequence[str], numeric: tuple[str, ...]) -> Recipe:
    if len(named) > 1:
        raise InputError("one file holds one option: give --option once.")
    return make_recipe(find_option(plan, named[0]) if named else find_recommended(plan), numeric)


def what_is_left(config: FrameworkConfig, target: str) -> tuple[str, ...]:
    """Return what to say beside the file: how it is read, and what it does not hold."""
    lines = [] if target == "-" else [f"wrote {target}: {config.option} for {config.framework}."]
    read = _READ_BY.get(config.framework)
    if config.settings and read:
        lines.append(f"note: {read}.")
    if not config.settings:
        lines.append(f"note: nothing of {config.option} is a setting of {config.framework}.")
    lines += [f"note: set {name}={value}" for name, value in config.environment.items()]
    lines += [f"note: {code}: {how}" for code, how in config.manual_steps.items()]
    return tuple(lines)


TOOLS = tuple(FILES)


def task_text(
    tool: str, plan: Plan, named: tuple[str, ...], request: TaskRequest, numeric: tuple[str, ...]
) -> tuple[ToolTask, str]:
    """Return the task of an option, and the file from which a tool starts it.

    Args:
        tool: one of TOOLS.
        plan: read back.
        named: JOB/ID of one option; empty: what the plan recommends.
        request: what to run.
        numeric: codes of actions that may change results.

    Raises:
        InputError: several options, no command, or the tool cannot start it.
    """
    problems = []
    if len(named) > 1:
        problems.append("one file starts one option: give --option once.")
    if not request.command.strip():
        problems.append("what is to run there? Give --run, such as --run 'python train.py'.")
    if request.zone is not None and not _is_zone(request.zone):
        problems.append(
            f"--tz {request.zone!r} is not a time zone; one is called like Europe/Berlin."
        )
    if problems:
        raise InputError(problems)
    option = find_option(plan, named[0]) if named else find_recommended(plan)
    task = make_task(tool, option, make_recipe(option, numeric), request)
    return task, render_task(tool, task, _notices(task.offer.provider))


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _notices(provider: str) -> Mapping[str, str]:
    """Return where a spot machine reads that it is taken back; empty where nobody says it."""
    notices = CLOUDS[provider].notices if provider in CLOUDS else {}
    return notices or NOTICES.get(provider, {})


def what_was_written(tool: str, task: ToolTask, target: str) -> tuple[str, ...]:
    """Return what to say beside the file."""
    lines = [] if target == "-" else [f"wrote {target}: {task.option} for {tools()[tool].title}."]
    if task.copies > 1 and not task.serves:
        lines.append(f"note: the job runs in {task.copies} copies; the file starts one.")
    if task.autoscaler is not None:
        lines.append(f"note: {_follows(task.autoscaler)}")
    if task.by_code:
        lines.append("note: some of the plan's actions are the program's own; the file names them.")
    lines.append("note: gpucost does not watch what other tools start: no cap, no `gpucost down`.")
    return tuple(lines)


def _follows(autoscaler: Autoscaler) -> str:
    """Return what has to be in the cluster for copies to follow demand."""
    span = f"{autoscaler.fewest} to {autoscaler.most} copies"
    if autoscaler.kind == "hpa":
        return f"{span} follow the use of the GPU; the cluster needs its metric for each pod."
    return f"{span} by the clock of {autoscaler.zone}; the cluster needs KEDA (keda.sh)."


_FOCUS = "focus"
_SLURM = "slurm"
_RECIPE = "recipe"
_FOR = (_FOCUS, _RECIPE, *TOOLS, _SLURM, *WORDS)


@click.command(
    name="export", epilog="Example: gpucost export --to skypilot --run 'python train.py' --ttl 8h"
)
@click.argument("plan_path", default=DEFAULT_PLAN, metavar="[PLAN]")
@options(
    "to option run ttl.export idle.export image.export numeric focus-version fleet by queue "
    "autoscaler tz.export output",
    to={"type": click.Choice(_FOR)},
    focus_version={"type": click.Choice(VERSIONS), "default": VERSIONS[0]},
    by={"type": click.Choice(BY)},
    autoscaler={"type": click.Choice(AUTOSCALERS)},
)
@common_options
def command(
    plan_path: str,
    tool: str,
    named: tuple[str, ...],
    numeric: tuple[str, ...],
    focus_version: str,
    by: By | None,
    queue: str | None,
    target: str,
    output: Output,
    *,
    fleet: bool,
    **typed: Any,
) -> None:
    """Write a plan for another tool.

    --to focus: the cost forecast as CSV. --to recipe: the settings that make an option run as
    planned. --to skypilot, dstack, terraform, kubernetes: a file that lets the tool launch an
    option with the plan's settings and a time limit. --to kubernetes --fleet, --to slurm: the jobs
    that share GPUs, and where each one runs. --to a framework: the settings of an option in the
    framework's own format.
    """
    _check_fleet(tool, by, queue, fleet=fleet)
    if (typed["autoscaler"] or typed["zone"]) and (fleet or tool not in TOOLS):
        raise click.UsageError("--autoscaler and --tz are of one service: --to kubernetes.")
    plan = load_plan(plan_path)
    if tool == _FOCUS:
        _forecast(plan, named, focus_version, target, output)
        return
    if tool == _RECIPE:
        _write_recipe(plan, named, numeric, target, output)
        return
    if tool in WORDS:
        config, text = config_text(tool, plan, named, numeric)
        _written(text, target, what_is_left(config, target), output)
        return
    if fleet or tool == _SLURM:
        if named:
            raise click.UsageError("--option is one job's; a fleet is exported whole.")
        common = {name: typed[name] for name in ("command", "image", "ttl_s")}
        shared = FleetRequest(**common, by=by, queue=queue)
        text, lines = fleet_text(tool, plan, shared)
        _written(text, target, lines if target == "-" else (f"wrote {target}.", *lines), output)
        return
    task, text = task_text(tool, plan, named, TaskRequest(**typed), numeric)
    _written(text, target, what_was_written(tool, task, target), output)


def _check_fleet(tool: str, by: By | None, queue: str | None, *, fleet: bool) -> None:
    """Refuse what only a fleet has, where none is exported."""
    if fleet and tool not in CLUSTERS:
        clusters = " and --to ".join(CLUSTERS)
        raise click.UsageError(f"--fleet is for --to {clusters}, not for {tool}.")
    if (by or queue) and not (fleet or tool == _SLURM):
        raise click.UsageError("--by and --queue are of a fleet: give --to kubernetes --fleet.")


def _written(text: str, target: str, lines: tuple[str, ...], output: Output) -> None:
    write_file(target, text)
    for sentence in lines:
        output.say(sentence)


def _forecast(
    plan: Plan, named: tuple[str, ...], version: str, target: str, output: Output
) -> None:
    chosen, missing = select(plan, named)
    write_file(target, to_csv(rows(plan, chosen), version))
    for sentence in missing:
        output.say(f"note: {sentence}")
    if target != "-":
        output.say(f"wrote {target}: a forecast; keep it apart from the rows of a bill.")


def _write_recipe(
    plan: Plan, named: Sequence[str], numeric: tuple[str, ...], target: str, output: Output
) -> None:
    """Write the recipe of an option, and say what it leaves to a person."""
    recipe = _one_recipe(plan, named, numeric)
    save_file(target, [to_text(recipe)], output)
    for sentence in _recipe_notes(recipe):
        output.say(sentence)


def _recipe_notes(recipe: Recipe) -> list[str]:
    """Return what a person must know or do beside the file."""
    by_hand = [action.code for action in recipe.actions if action.by == "code"]
    notes = []
    if not recipe.actions:
        notes.append(f"note: {recipe.job}/{recipe.option} changes nothing in the program.")
    if by_hand:
        notes.append(f"note: in the program itself: {', '.join(by_hand)}; see `how` in the recipe.")
    return notes
