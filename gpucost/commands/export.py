"""`gpucost export`: a plan in the form of another tool."""

import click

from gpucost.arguments.later import BuiltChoice
from gpucost.arguments.parameters import chosen_options
from gpucost.files.plan_file import DEFAULT_PLAN, load_plan
from gpucost.files.writing import write_file
from gpucost.views.output import Output, common_options
from planner.documents.focus_export import VERSIONS, rows, to_csv
from planner.documents.selection import select

_BUILT = ("focus",)
_LATER = ("skypilot", "dstack", "kubernetes", "slurm", "terraform")


@click.command(name="export", epilog="Example: gpucost export plan.json --to focus -o forecast.csv")
@click.argument("plan_path", default=DEFAULT_PLAN, metavar="[PLAN]")
@click.option("--to", "tool", type=BuiltChoice(_BUILT, _LATER), required=True, help="For what.")
@chosen_options
@click.option(
    "--focus-version",
    type=click.Choice(VERSIONS),
    default=VERSIONS[0],
    show_default=True,
    help="Version of FOCUS.",
)
@click.option("-o", "--output", "target", default="-", help="A file.  [default: standard output]")
@common_options
def command(
    plan_path: str,
    tool: str,  # noqa: ARG001 - one tool so far; click has checked it
    named: tuple[str, ...],
    focus_version: str,
    target: str,
    output: Output,
) -> None:
    """Write a plan for another tool: its cost forecast as FOCUS CSV."""
    plan = load_plan(plan_path)
    chosen, unknown = select(plan, named)
    write_file(target, to_csv(rows(plan, chosen), focus_version))
    for sentence in unknown:
        output.say(f"note: {sentence}")
    if target != "-":
        output.say(f"wrote {target}: a forecast; keep it apart from the rows of a bill.")
