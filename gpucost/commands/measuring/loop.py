"""`gpucost loop`: measure, plan, run or rent, verify, and again until nothing pays."""

from pathlib import Path
from typing import Any

import click

from gpucost.arguments.parameters import options
from gpucost.loop.loop_steps import LoopRequest, run_step, steps_to_come
from gpucost.loop.looping import begin, print_loop
from gpucost.views.output import Output, output_options
from pricing.errors import InputError
from pricing.message import Message

_FETCHED = ("s3://", "https://", "http://")


@click.command(
    name="loop",
    epilog="Example: gpucost loop --budget 20 -- python train.py --epochs 1",
    context_settings={"allow_interspersed_args": False},
)
@options(
    "budget.loop folder rounds machine price hours-per-month provider.loop "
    "region.loop numeric ab.loop no-gpu no-metadata ttl.loop sync data dry-run.loop yes"
)
@output_options
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND ...")
def command(words: tuple[str, ...], output: Output, **options: Any) -> None:
    """Make COMMAND faster and prove it: profile, plan, run or rent, verify, until nothing pays.

    Every step is a command of its own and is shown before it runs. Interrupted, the same command
    goes on where it stopped. An experiment is made where it costs less than its option can save.
    Without --budget nothing is rented.
    """
    if not words:
        raise InputError("no COMMAND: put it behind --, such as gpucost loop -- python train.py.")
    if options["no_gpu"] and not options["current"]:
        raise InputError(Message("input.loop-no-gpu"))
    request = _request(words, output, options)
    if options["dry_run"]:
        for step in steps_to_come(request):
            click.echo(step)
        return
    loop = begin(
        request,
        output,
        lambda step: run_step(step, quiet=request.quiet, to_stderr=request.to_stderr),
    )
    print_loop(loop.go_on(), output)


def _request(words: tuple[str, ...], output: Output, options: dict[str, Any]) -> LoopRequest:
    measuring = [flag for flag in ("no_gpu", "no_metadata") if options[flag]]
    data = options["data"]
    renting = ["--sync", str(Path(options["sync"]).absolute())]
    if data:
        renting += ["--data", data if data.startswith(_FETCHED) else str(Path(data).absolute())]
    return LoopRequest(
        command=words,
        folder=Path(options["folder"]),
        budget_usd=options["budget"],
        measuring=tuple(f"--{flag.replace('_', '-')}" for flag in measuring),
        planning=_planning(options),
        renting=tuple(renting),
        numeric=options["numeric"],
        ttl_s=None if options["ttl"] is None else int(options["ttl"]),
        most_rounds=options["rounds"],
        ab=options["ab"],
        yes=options["yes"],
        quiet=output.quiet,
        to_stderr=output.format != "table",
    )


def _planning(options: dict[str, Any]) -> tuple[str, ...]:
    arguments: list[str] = []
    for name in ("current", "price", "hours_per_month", "provider", "region"):
        value = options[name]
        for item in value if isinstance(value, tuple) else () if value is None else (value,):
            arguments += [f"--{name.replace('_', '-')}", str(item)]
    return tuple(arguments)
