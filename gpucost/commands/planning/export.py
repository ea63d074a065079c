"""`gpucost export`: a plan in the form of another tool."""

from typing import Any

import click

from gpucost.arguments.parameters import DURATION, chosen_options
from gpucost.files.plan_file import DEFAULT_PLAN, load_plan
from gpucost.files.writing import write_file
from gpucost.launch.fleet_export import fleet_text
from gpucost.launch.framework_export import WORDS, config_text, what_is_left
from gpucost.launch.task_export import TOOLS, task_text, what_was_written
from gpucost.views.output import Output, common_options
from planner.documents.focus_export import VERSIONS, rows, to_csv
from planner.documents.selection import select
from planner.documents.shared_gpus import BY, CLUSTERS, By, FleetRequest
from planner.documents.task import AUTOSCALERS, TaskRequest
from planner.plan_document.document import PlanDocument

_FOCUS = "focus"
_SLURM = "slurm"
_FOR = (_FOCUS, *TOOLS, _SLURM, *WORDS)


@click.command(
    name="export", epilog="Example: gpucost export --to skypilot --run 'python train.py' --ttl 8h"
)
@click.argument("plan_path", default=DEFAULT_PLAN, metavar="[PLAN]")
@click.option(
    "--to",
    "tool",
    type=click.Choice(_FOR),
    required=True,
    help="For what.",
)
@chosen_options
@click.option("--run", "command", metavar="COMMAND", default="", help="What to run there.")
@click.option("--ttl", "ttl_s", type=DURATION, help="Longest life of what is started, such as 8h.")
@click.option(
    "--idle",
    "idle_s",
    type=DURATION,
    help="It also ends when no GPU has worked for so long, such as 30m.",
)
@click.option("--image", help="Container to run it in; Kubernetes needs one.")
@click.option(
    "--numeric",
    multiple=True,
    metavar="CODE",
    help="Also an action that may change results, such as mixed-precision (repeatable).",
)
@click.option(
    "--focus-version",
    type=click.Choice(VERSIONS),
    default=VERSIONS[0],
    show_default=True,
    help="Version of FOCUS.",
)
@click.option(
    "--fleet",
    is_flag=True,
    help="All jobs that share GPUs, for Kubernetes; {job} in --run and --image is each job's name.",
)
@click.option(
    "--by",
    type=click.Choice(BY),
    help="What shares a GPU on Kubernetes, with --fleet.  [default: device-plugin]",
)
@click.option(
    "--queue",
    metavar="NAME",
    help="Queue of the fleet: Kueue's with the device plugin, KAI's with kai.",
)
@click.option(
    "--autoscaler",
    type=click.Choice(AUTOSCALERS),
    help="What follows demand on Kubernetes: by the clock, or by the use of the GPU.  "
    "[default: keda, where copies follow demand]",
)
@click.option(
    "--tz", "zone", metavar="ZONE", help="Zone of the hours of the demand.  [default: Etc/UTC]"
)
@click.option("-o", "--output", "target", default="-", help="A file.  [default: standard output]")
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
    **asked: Any,
) -> None:
    """Write a plan for another tool.

    --to focus: its cost forecast as CSV. --to skypilot, dstack, terraform, kubernetes: a file from
    which that tool starts an option, with the plan's settings and an end. --to kubernetes --fleet,
    --to slurm: the jobs that share GPUs, where each goes and how. --to a framework: what an option
    sets in it, in the form that it reads.
    """
    _check_fleet(tool, by, queue, fleet=fleet)
    if (asked["autoscaler"] or asked["zone"]) and (fleet or tool not in TOOLS):
        raise click.UsageError("--autoscaler and --tz are of one service: --to kubernetes.")
    plan = load_plan(plan_path)
    if tool == _FOCUS:
        _forecast(plan, named, focus_version, target, output)
        return
    if tool in WORDS:
        config, text = config_text(tool, plan, named, numeric)
        _written(text, target, what_is_left(config, target), output)
        return
    if fleet or tool == _SLURM:
        if named:
            raise click.UsageError("--option is one job's; a fleet is exported whole.")
        common = {name: asked[name] for name in ("command", "image", "ttl_s")}
        shared = FleetRequest(**common, by=by, queue=queue)
        text, said = fleet_text(tool, plan, shared)
        _written(text, target, said if target == "-" else (f"wrote {target}.", *said), output)
        return
    task, text = task_text(tool, plan, named, TaskRequest(**asked), numeric)
    _written(text, target, what_was_written(tool, task, target), output)


def _check_fleet(tool: str, by: By | None, queue: str | None, *, fleet: bool) -> None:
    """Refuse what only a fleet has, where none is exported."""
    if fleet and tool not in CLUSTERS:
        clusters = " and --to ".join(CLUSTERS)
        raise click.UsageError(f"--fleet is for --to {clusters}, not for {tool}.")
    if (by or queue) and not (fleet or tool == _SLURM):
        raise click.UsageError("--by and --queue are of a fleet: give --to kubernetes --fleet.")


def _written(text: str, target: str, said: tuple[str, ...], output: Output) -> None:
    write_file(target, text)
    for sentence in said:
        output.say(sentence)


def _forecast(
    plan: PlanDocument, named: tuple[str, ...], version: str, target: str, output: Output
) -> None:
    chosen, unknown = select(plan, named)
    write_file(target, to_csv(rows(plan, chosen), version))
    for sentence in unknown:
        output.say(f"note: {sentence}")
    if target != "-":
        output.say(f"wrote {target}: a forecast; keep it apart from the rows of a bill.")
