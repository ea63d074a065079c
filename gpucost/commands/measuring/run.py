"""`gpucost run`: a command with a recipe applied to it, measured as `profile` measures it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gpucost.arguments.parameters import options
from gpucost.profiling.run_request import DEFAULT_TARGET, applied_to, check, find_batch
from gpucost.views.output import Output, common_options

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
@options(
    "recipe option.run numeric output.run gpu-index no-gpu no-metadata ab find-batch",
    output={"default": DEFAULT_TARGET},
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
    **options: Any,
) -> int:
    """Run COMMAND with a recipe applied, without editing it, and measure it.

    What leaves results the same bit for bit is applied by itself, what may change them only by
    --numeric. What the program sets itself stays. COMMAND keeps its output, its signals and its
    exit code; at the end is said what was applied, what was left, and why. With --ab they are
    switched on and off within this one run, in blocks of steps in drawn order.
    """
    from gpucost.profiling.measurement import measure  # noqa: PLC0415 - lazy
    from gpucost.profiling.sampling import Task, gpu_indices  # noqa: PLC0415 - lazy

    argv: tuple[str, ...] = ctx.meta[_COMMAND]
    sources = (plan_path, recipe_path, named)
    check(argv, sources, target, find_batch=options["find_batch"])
    if options["find_batch"]:
        is_named = ctx.get_parameter_source("target") is ParameterSource.COMMANDLINE
        return find_batch(argv, target if is_named else None, output, no_gpu=options["no_gpu"])
    applied = applied_to(argv, sources, options)
    task = Task(
        command=applied.command,
        target=Path(target),
        gpus=gpu_indices(options["gpus"]),
        no_gpu=options["no_gpu"],
        metadata=not options["no_metadata"],
    )
    return measure(task, output, applied)
