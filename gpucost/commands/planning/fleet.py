"""`gpucost fleet`: a fleet's plan against last week's."""

import click

from gpucost.files.kept_plans import two_to_compare
from gpucost.files.plan_file import load_plan
from gpucost.views.output import Output, output_options, print_json
from gpucost.views.plan_views.change import print_change
from gpucost.views.plan_views.screen import print_plan
from planner.documents.plan_change import plan_change


@click.command(name="fleet", epilog="Example: gpucost fleet plans/ --weekly")
@click.argument("where", metavar="PLAN|FOLDER")
@click.option("--weekly", is_flag=True, help="The newest plan of FOLDER against last week's.")
@click.option("--base", metavar="PLAN", help="The plan to compare with.")
@output_options
def command(where: str, base: str | None, output: Output, *, weekly: bool) -> None:
    """Show the plan of a fleet, or what changed since last week: new waste, gone waste, prices.

    FOLDER holds plans that `gpucost plan -o` wrote, one a week or more often, by any name.
    """
    if weekly and base is not None:
        raise click.UsageError("give --weekly with a FOLDER, or --base with a PLAN, not both.")
    if weekly:
        old, new = two_to_compare(where)
        output.say(f"{new.name} against {old.name}")
        print_change(plan_change(old.plan, new.plan), output)
    elif base is not None:
        print_change(plan_change(load_plan(base), load_plan(where)), output)
    elif output.format == "json":
        print_json(load_plan(where))
    else:
        print_plan(load_plan(where), output)
