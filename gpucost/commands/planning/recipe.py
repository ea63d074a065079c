"""`gpucost recipe`: what to set so that an option of a plan runs as the plan says."""

import click

from gpucost.files.plan_file import DEFAULT_PLAN, load_plan
from gpucost.files.writing import write_file
from gpucost.views.output import Output, common_options
from planner.documents.recipe import Recipe, make_recipe
from planner.plan_document.encode import to_text
from planner.plan_document.find import find_option, find_recommended


@click.command(name="recipe", epilog="Example: gpucost recipe plan.json -o recipe.json")
@click.argument("plan_path", default=DEFAULT_PLAN, metavar="[PLAN]")
@click.option(
    "--option",
    "named",
    metavar="JOB/ID",
    help="Which option.  [default: the recommended one of the only job]",
)
@click.option(
    "--numeric",
    multiple=True,
    metavar="CODE",
    help="Also an action that may change results, such as mixed-precision (repeatable).",
)
@click.option("-o", "--output", "target", default="-", help="A file.  [default: standard output]")
@common_options
def command(
    plan_path: str, named: str | None, numeric: tuple[str, ...], target: str, output: Output
) -> None:
    """Write what to set so that an option runs as planned: settings, environment, launcher."""
    plan = load_plan(plan_path)
    found = find_option(plan, named) if named is not None else find_recommended(plan)
    recipe = make_recipe(found, numeric)
    write_file(target, to_text(recipe.document))
    for sentence in _notes(recipe):
        output.say(sentence)
    if target != "-":
        output.say(f"wrote {target}")


def _notes(recipe: Recipe) -> list[str]:
    """Return what a person must know or do beside the file."""
    document = recipe.document
    by_hand = [one.code for one in document.actions if one.by == "code"]
    notes = []
    if not document.actions:
        notes.append(f"note: {recipe.job}/{recipe.option} changes nothing in the program.")
    if by_hand:
        notes.append(f"note: in the program itself: {', '.join(by_hand)}; see `how` in the recipe.")
    return notes
