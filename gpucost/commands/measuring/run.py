"""`gpucost run`: a command with a recipe applied to it, measured as `profile` measures it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gpucost.files.plan_file import DEFAULT_PLAN, load_plan
from gpucost.views.output import Output, common_options
from pricing.errors import InputError

if TYPE_CHECKING:
    from planner.documents.application import Application
    from planner.documents.recipe_read import AskedRecipe

DEFAULT_TARGET = "after.json"
_WARMUP_STEPS = 60  # our choice: start-up, compilation and the first reads are over by then
_COMMAND = "gpucost.run.command"


class _BeforeTheCommand(click.Command):
    """Takes the words after the first `--` as they are; those before it are ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, command = args, []
        if "--" in args:
            at = args.index("--")
            own, command = args[:at], args[at + 1 :]
        ctx.meta[_COMMAND] = tuple(command)
        return super().parse_args(ctx, own)


@click.command(
    name="run",
    cls=_BeforeTheCommand,
    epilog="Example: gpucost run --recipe recipe.json -- python train.py",
    options_metavar="[OPTIONS]",
)
@click.argument("plan_path", required=False, metavar="[PLAN] -- COMMAND ...")
@click.option("--recipe", "recipe_path", metavar="FILE", help="What to apply.")
@click.option("--option", "named", metavar="JOB/ID", help="Of PLAN: what to apply.")
@click.option(
    "--numeric",
    multiple=True,
    metavar="CODE",
    help="Also an action that may change results, such as mixed-precision (repeatable).",
)
@click.option(
    "-o",
    "--output",
    "target",
    default=DEFAULT_TARGET,
    show_default=True,
    help="Where the profile of this run goes; series lie beside it.",
)
@click.option("--no-gpu", is_flag=True, help="Measure the host and the steps without a GPU.")
@click.option("--no-metadata", is_flag=True, help="Ask no cloud which machine this is.")
@click.option(
    "--ab", is_flag=True, help="Try the settings on and off in turns, and measure what they gain."
)
@click.option(
    "--find-workers",
    is_flag=True,
    help="Apply no recipe: find how many loader workers end the wait for data.",
)
@click.option(
    "--find-batch",
    is_flag=True,
    help="Run COMMAND in trials of a few steps each: find the largest batch that fits.",
)
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    plan_path: str | None,
    recipe_path: str | None,
    named: str | None,
    target: str,
    output: Output,
    **given: Any,
) -> int:
    """Run COMMAND with a recipe applied, without editing it, and measure it.

    What leaves results the same bit for bit is applied by itself, what may change them only by
    --numeric. What the program sets itself stays. COMMAND keeps its output, its signals and its
    exit code; at the end is said what was applied, what was left, and why. With --ab they are
    switched on and off within this one run, in blocks of steps in drawn order.
    """
    from gpucost.profiling.measurement import MeasureRequest, measure  # noqa: PLC0415 - lazy

    words: tuple[str, ...] = ctx.meta[_COMMAND]
    sources = (plan_path, recipe_path, named)
    _check(words, sources, target, _searching(given))
    if given["find_batch"]:
        is_named = ctx.get_parameter_source("target") is ParameterSource.COMMANDLINE
        return _find_batch(words, target if is_named else None, output, no_gpu=given["no_gpu"])
    applied = _applied(words, sources, given)
    asked = MeasureRequest(
        command=applied.command,
        pid=None,
        target=Path(target),
        interval_s=1.0,
        duration_s=None,
        gpus=None,
        no_gpu=given["no_gpu"],
        metadata=not given["no_metadata"],
        hints={},
        applied=applied,
    )
    return measure(asked, output)


def _searching(given: dict[str, Any]) -> tuple[str, ...]:
    """Return the options of a call that searches instead of applying; none where it does not."""
    names = ("--find-workers", "--find-batch")
    return tuple(each for each in names if given[each[2:].replace("-", "_")])


def _find_batch(words: tuple[str, ...], target: str | None, output: Output, *, no_gpu: bool) -> int:
    """Find the largest batch in trials, print what was found, and return the exit code."""
    from gpucost.files.writing import write_file  # noqa: PLC0415 - lazy
    from gpucost.profiling.batch_search import (  # noqa: PLC0415 - lazy
        attempt_in_child,
        free_gib,
        room_bytes,
        search,
    )
    from gpucost.profiling.surroundings import surroundings  # noqa: PLC0415 - lazy

    room = room_bytes(free_gib(), has_gpu=not no_gpu and bool(surroundings().gpus))
    found = search(attempt_in_child(words, os.environ, room), output.say)
    click.echo(f"largest batch that fits: {found.largest} (it has {found.own}); {found.why}")
    output.say(
        "the program itself has not run, and stays as it is. A larger batch changes what is "
        "learned: the learning rate goes with it."
    )
    if target is not None:
        write_file(target, found.document)
        output.say(f"wrote {target}")
    return 0


def _applied(
    words: tuple[str, ...], sources: tuple[str | None, ...], given: dict[str, Any]
) -> Application:
    """Return what is done with the command."""
    from gpucost.profiling.surroundings import surroundings  # noqa: PLC0415 - lazy
    from planner.documents.application import (  # noqa: PLC0415 - lazy
        application,
        finding_workers,
        in_turns,
    )

    if given["find_workers"]:
        return finding_workers(words)
    recipe = _recipe(*sources).also(given["numeric"])
    if given["ab"]:
        return in_turns(recipe, words, _experiment())
    return application(recipe, words, os.environ, surroundings())


def _experiment() -> dict[str, object]:
    """Return a design with an order of its own."""
    from planner.proof.experiment import hand_over  # noqa: PLC0415 - lazy
    from planner.proof.schedule import Design  # noqa: PLC0415 - lazy

    return hand_over(Design(warmup_steps=_WARMUP_STEPS, seed=secrets.randbits(32)))


def _check(
    words: tuple[str, ...],
    sources: tuple[str | None, ...],
    target: str,
    searching: tuple[str, ...],
) -> None:
    plan_path, recipe_path, named = sources
    problems = []
    if len(searching) > 1:
        problems.append(f"{' and '.join(searching)}: one at a time; leave one out.")
    if searching and any(sources):
        problems.append(f"{searching[0]} applies no recipe: leave out the recipe or the plan.")
    if not words:
        problems.append("no COMMAND: put it behind --, such as gpucost run ... -- python train.py.")
    if recipe_path is not None and (plan_path is not None or named is not None):
        problems.append("--recipe and a PLAN: one of the two says what to apply; leave one out.")
    if not searching and not any(sources):
        problems.append("nothing to apply: give --recipe FILE, or PLAN --option JOB/ID.")
    folder = Path(target).parent
    if target == "-" or target.endswith("/") or Path(target).is_dir():
        problems.append(f"-o {target}: name a file, such as {DEFAULT_TARGET}.")
    elif not folder.is_dir():
        problems.append(f"-o {target}: there is no folder {folder}; make it first.")
    elif not os.access(folder, os.W_OK | os.X_OK):
        problems.append(f"-o {target}: nothing can be written to {folder}.")
    if problems:
        raise InputError(problems)


def _recipe(plan_path: str | None, recipe_path: str | None, named: str | None) -> AskedRecipe:
    """Return what to apply.

    Raises:
        InputError: there is no such file, plan or option, or it cannot be read.
    """
    from planner.documents.recipe import make_recipe  # noqa: PLC0415 - lazy
    from planner.documents.recipe_read import read_recipe  # noqa: PLC0415 - lazy
    from planner.plan_document.encode import to_text  # noqa: PLC0415 - lazy
    from planner.plan_document.find import find_option, find_recommended  # noqa: PLC0415 - lazy

    if recipe_path is not None:
        return read_recipe(_text(recipe_path), recipe_path)
    path = plan_path or DEFAULT_PLAN
    plan = load_plan(path)
    found = find_option(plan, named) if named is not None else find_recommended(plan)
    return read_recipe(to_text(make_recipe(found).document), path)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"--recipe {path}: no such file. `gpucost recipe PLAN -o {path}` writes one."
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"--recipe {path}: cannot be read: {error}.") from error
