"""`gpucost report`: the report of a plan."""

import click

from gpucost.arguments.later import BuiltChoice
from gpucost.files.plan_file import DEFAULT_PLAN, load_plan
from gpucost.files.writing import write_file
from gpucost.views.output import Output, common_options


@click.command(name="report", epilog="Example: gpucost report plan.json -o report.md")
@click.argument("plan_path", default=DEFAULT_PLAN, metavar="[PLAN]")
@click.option("-o", "--output", "target", default="-", help="A file.  [default: standard output]")
@click.option(
    "--style",
    type=BuiltChoice(("md",), ("html", "github-comment")),
    default="md",
    show_default=True,
    help="What kind of report.",
)
@click.option(
    "--lang",
    type=BuiltChoice(("en",), ("zh",)),
    default="en",
    show_default=True,
    help="Its language.",
)
@common_options
def command(plan_path: str, target: str, style: str, lang: str, output: Output) -> None:
    """Write the report of a plan."""
    from templates.render import render_report  # noqa: PLC0415 - jinja2 only here

    write_file(target, render_report(load_plan(plan_path), style=style, lang=lang))
    if target != "-":
        output.say(f"wrote {target}")
