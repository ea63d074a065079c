"""`gpucost recipe`: what to set so that an option of a plan runs as the plan says."""

import json
from typing import Any

import click

from gpucost.files.plan_file import DEFAULT_PLAN, find_option, load_plan
from gpucost.files.writing import write_file
from gpucost.views.output import Output, common_options
from planner.documents.recipe import Recipe, make_recipe
from pricing.errors import InputError

_STAY = "o0"


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
    job, option = _chosen(plan, named)
    recipe = make_recipe(job, option, numeric)
    text = json.dumps(recipe.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_file(target, text)
    for sentence in _notes(recipe):
        output.say(sentence)
    if target != "-":
        output.say(f"wrote {target}")


def _chosen(
    plan: dict[str, Any], named: str | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the job and its option; None for the job as it runs today."""
    jobs = plan["jobs"]
    if named is None:
        if len(jobs) != 1:
            names = ", ".join(f"{job['name']}/{job['recommended']}" for job in jobs)
            raise InputError(f"the plan has {len(jobs)} jobs; say --option JOB/ID, of: {names}.")
        named = f"{jobs[0]['name']}/{jobs[0]['recommended']}"
    job_name, _, option_id = named.rpartition("/")
    today = [job for job in jobs if job["name"] == job_name or (not job_name and len(jobs) == 1)]
    if option_id == _STAY and len(today) == 1:
        return today[0], None
    option = find_option(plan, named)
    return next(job for job in jobs if any(o is option for o in job["options"])), option


def _notes(recipe: Recipe) -> list[str]:
    """Return what a person must know or do beside the file."""
    document = recipe.to_json()
    by_hand = [one["code"] for one in document["actions"] if one["by"] == "code"]
    notes = []
    if not document["actions"]:
        notes.append(f"note: {recipe.job}/{recipe.option} changes nothing in the program.")
    if by_hand:
        notes.append(f"note: in the program itself: {', '.join(by_hand)}; see `how` in the recipe.")
    return notes
