"""`gpucost demo`: a bundled measured job, planned; no GPU, account or network needed."""

from importlib import resources
from pathlib import Path

import click

from gpucost.api import make_plan
from gpucost.arguments.parameters import today
from gpucost.files.writing import write_file
from gpucost.views.output import Output, output_options, print_json
from gpucost.views.plan_views.screen import print_plan
from planner.choice.requirements import Requirements
from planner.plan_document.from_plan import plan_document
from planner.profile.codec import parse_profiles
from pricing.catalog.catalog import load_catalog

EXAMPLE = "visual-search.json"
_TITLE = "# GPU cost report"


@click.command(name="demo", epilog="Example: gpucost demo")
@click.option(
    "--report", "report_path", default="report.md", show_default=True, help="Where the report goes."
)
@output_options
def command(report_path: str, output: Output) -> None:
    """Plan a bundled measured job and write report.md."""
    from templates.render import render_report  # noqa: PLC0415 - jinja2 only for reports

    data = resources.files("gpucost.examples").joinpath(EXAMPLE).read_bytes()
    day = today()
    plan = plan_document(
        make_plan(
            parse_profiles(data, EXAMPLE),
            load_catalog(day),
            Requirements(),
            as_of=day,
        )
    )
    ours = _may_write(report_path)
    if ours:
        write_file(report_path, render_report(plan))
    if output.format == "json":
        print_json(plan)
    elif output.format == "md":
        click.echo(render_report(plan), nl=False)
    else:
        print_plan(plan, output)
    if ours:
        output.say(f"wrote {report_path}. Yours: gpucost import LOG, then gpucost plan.")
    else:
        output.say(f"{report_path} holds something else and was left alone; see --report FILE.")


def _may_write(path: str) -> bool:
    """Return whether the file is ours to write: new, or an earlier report."""
    try:
        return path == "-" or Path(path).read_text(encoding="utf-8").startswith(_TITLE)
    except FileNotFoundError:
        return True
    except (OSError, UnicodeDecodeError):
        return False
