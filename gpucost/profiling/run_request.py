"""What `gpucost run` was asked: checked, read, and turned into what is done with the command."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucost.files.plan_file import DEFAULT_PLAN, load_plan
from pricing.errors import InputError

if TYPE_CHECKING:
    from gpucost.views.output import Output
    from planner.documents.application import Application
    from planner.documents.recipe_read import AskedRecipe

DEFAULT_TARGET = "after.json"
_WARMUP_STEPS = 60  # our choice: start-up, compilation and the first reads are over by then


def searching(given: dict[str, Any]) -> tuple[str, ...]:
    """Return the options of a call that searches instead of applying; none where it does not."""
    names = ("--find-workers", "--find-batch")
    return tuple(each for each in names if given[each[2:].replace("-", "_")])


def find_batch(words: tuple[str, ...], target: str | None, output: Output, *, no_gpu: bool) -> int:
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


def applied_to(
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
    from planner.proof.experiment import (  # noqa: PLC0415 - lazy
        Design,
        hand_over,
    )

    return hand_over(Design(warmup_steps=_WARMUP_STEPS, seed=secrets.randbits(32)))


def check(
    words: tuple[str, ...],
    sources: tuple[str | None, ...],
    target: str,
    searching: tuple[str, ...],
) -> None:
    """Refuse a call that cannot be, with every reason at once.

    Raises:
        InputError: no command, nothing to apply, several things to apply, or nowhere to write.
    """
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
