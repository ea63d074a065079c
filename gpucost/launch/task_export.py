"""Options as files of other tools: which option, what it may need, what to say."""

from collections.abc import Mapping
from dataclasses import asdict
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from planner.documents.recipe import make_recipe
from planner.documents.task import Autoscaler, TaskRequest, ToolTask, make_task
from planner.documents.tools import tools
from planner.plan_document.document import PlanDocument
from planner.plan_document.find import find_option, find_recommended
from pricing.errors import InputError
from providers.registry import CLOUDS
from templates.bootstrap_deadline import NOTICES
from templates.task_files import FILES, render_task

TOOLS = tuple(FILES)


def task_text(
    tool: str,
    plan: PlanDocument,
    named: tuple[str, ...],
    asked: TaskRequest,
    numeric: tuple[str, ...],
) -> tuple[ToolTask, str]:
    """Return the task of an option, and the file from which a tool starts it.

    Args:
        tool: one of TOOLS.
        plan: read back.
        named: JOB/ID of one option; empty: what the plan recommends.
        asked: what to run.
        numeric: codes of actions that may change results.

    Raises:
        InputError: several options, no command, or the tool cannot start it.
    """
    problems = []
    if len(named) > 1:
        problems.append("one file starts one option: give --option once.")
    if not asked.command.strip():
        problems.append("what is to run there? Give --run, such as --run 'python train.py'.")
    if asked.zone is not None and not _is_zone(asked.zone):
        problems.append(
            f"--tz {asked.zone!r} is not a time zone; one is called like Europe/Berlin."
        )
    if problems:
        raise InputError(problems)
    found = find_option(plan, named[0]) if named else find_recommended(plan)
    task = make_task(tool, found, make_recipe(found, numeric), asked)
    return task, render_task(tool, task, _notices(task.offer.provider))


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _notices(provider: str) -> Mapping[str, str]:
    """Return where a spot machine reads that it is taken back; empty where nobody says it."""
    ours = CLOUDS[provider].notices if provider in CLOUDS else None
    return asdict(ours) if ours else NOTICES.get(provider, {})


def what_was_written(tool: str, task: ToolTask, target: str) -> tuple[str, ...]:
    """Return what to say beside the file."""
    said = [] if target == "-" else [f"wrote {target}: {task.option} for {tools()[tool].title}."]
    if task.copies > 1 and not task.serves:
        said.append(f"note: the job runs in {task.copies} copies; the file starts one.")
    if task.autoscaler is not None:
        said.append(f"note: {_follows(task.autoscaler)}")
    if task.by_code:
        said.append("note: some of the plan's actions are the program's own; the file names them.")
    said.append("note: gpucost does not watch what other tools start: no cap, no `gpucost down`.")
    return tuple(said)


def _follows(found: Autoscaler) -> str:
    """Return what has to be in the cluster for copies to follow demand."""
    span = f"{found.fewest} to {found.most} copies"
    if found.kind == "hpa":
        return f"{span} follow the use of the GPU; the cluster needs its metric for each pod."
    return f"{span} by the clock of {found.zone}; the cluster needs KEDA (keda.sh)."
