"""`gpucost profile`: put it in front of a command and get a job profile, without code changes."""

from pathlib import Path
from typing import Any

import click

from gpucost.arguments.parameters import options
from gpucost.profiling.profile_target import target_problems
from gpucost.views.output import Output, common_options
from pricing.errors import InputError

_SHORTEST_S, _LONGEST_S = 0.1, 60.0


@click.command(
    name="profile",
    epilog="Example: gpucost profile --interval 0.5s -- python train.py --epochs 1",
    context_settings={"allow_interspersed_args": False},
)
@options(
    "output.profile interval.profile duration.profile gpu-index pid no-gpu metrics "
    "trace no-metadata name kind precision batch"
)
@common_options
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
def command(words: tuple[str, ...], target: str | None, output: Output, **options: Any) -> int:
    """Measure a GPU job: run COMMAND, or watch --pid or the whole machine.

    GPUs (NVML), host and, in Python programs that use PyTorch or Keras, the steps themselves.
    COMMAND keeps its output, its signals and its exit code.
    """
    from gpucost.profiling.measurement import measure  # noqa: PLC0415 - not on `gpucost --help`
    from gpucost.profiling.sampling import Task, gpu_indices  # noqa: PLC0415 - the same
    from telemetry.readers.hints import Hints  # noqa: PLC0415 - the same

    interval_s, duration = float(options.pop("interval")), options.pop("duration")
    metrics = _addresses(options.pop("metrics"))
    pid, no_gpu, gpus = options.pop("pid"), options.pop("no_gpu"), options.pop("gpus")
    trace_steps = options.pop("trace_steps")
    _check(words, pid, target, interval_s)
    if trace_steps and not words:
        raise InputError("--trace: needs a COMMAND; a program that runs already is not changed.")
    task = Task(
        command=words,
        pid=pid,
        target=None if target is None else Path(target),
        interval_s=interval_s,
        duration_s=None if duration is None else float(duration),
        gpus=gpu_indices(gpus),
        no_gpu=no_gpu,
        metadata=not options.pop("no_metadata"),
        metrics=metrics,
        trace_steps=trace_steps,
        hints=Hints(**options),
    )
    return measure(task, output)


def _check(argv: tuple[str, ...], pid: int | None, target: str | None, interval_s: float) -> None:
    problems = []
    if argv and pid is not None:
        problems.append("--pid and a COMMAND: only one of the two can be measured; leave one out.")
    if not _SHORTEST_S <= interval_s <= _LONGEST_S:
        problems.append(f"--interval {interval_s:g}s: must be between 0.1s and 60s.")
    if target is not None:
        problems += target_problems(target, "profile.json; series lie beside it")
    if problems:
        raise InputError(problems)


def _addresses(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts:
        return ()
    from telemetry.measure.serving_thread import metrics_address  # noqa: PLC0415 - lazy

    return tuple(dict.fromkeys(metrics_address(text) for text in texts))
