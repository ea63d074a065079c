"""A program, or a notebook, that measures itself.

`with gpucost.measure("job") as m:` measures a block of a program; `%load_ext gpucost`, then
`%%gpucost [NAME]`, measures a cell of a notebook.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from gpucost.profiling.profile_target import ReservedName, reserve_name
from gpucost.profiling.sampling import Outcome, Sampling, Task, next_step
from pricing.errors import InputError
from telemetry.measure.driver import driver_problem
from telemetry.probe import FOLDER_VARIABLE, PATH, events_folder
from telemetry.readers.hints import Hints
from templates.strangers import printable

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

    from planner.profile.model import Profile

_LEAST_S, _MOST_S = 0.1, 60.0


class Measurement:
    """What is measured between `with` and its end; made by `measure`.

    Attributes:
        profile: what was measured, once the block has ended; None where nothing could be.
        path: the file that it lies in, None before it is written.
        verdict: its first finding in words, None without one.
        problems: what went wrong; the program goes on whatever it is.
    """

    def __init__(self, task: Task, *, quiet: bool) -> None:
        self.profile: Profile | None = None
        self.path: Path | None = None
        self.verdict: str | None = None
        self.problems: tuple[str, ...] = ()
        self._task = task
        self._quiet = quiet
        self._reserved: ReservedName | None = None
        self._sampling: Sampling | None = None
        self._probe: ModuleType | None = None

    def __enter__(self) -> Self:
        """Start measuring."""
        if FOLDER_VARIABLE in os.environ:
            self.problems = ("this program runs under `gpucost profile`, which measures it.",)
            self._say(self.problems[0])
            return self
        self._reserved = reserve_name(self._task.target, self._task.job, os.environ)
        if self._reserved.reason:
            self._say(self._reserved.reason)
        folder = _folder()
        if folder is not None:
            self._probe = _probe()
            self._probe.begin(folder)
        task = replace(self._task, target=self._reserved.path, run_name=self._reserved.run_name)
        self._sampling = Sampling(replace(task, probe_folder=folder))
        return self

    def step(self, n: int = 1, *, items: int | None = None) -> None:
        """Say that a step has ended, where it is not a step of a PyTorch or Keras optimizer.

        Args:
            n: steps that ended together.
            items: samples or tokens in them.
        """
        if self._probe is not None:
            self._probe.step(n, items)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the profile; an exception of the program goes on as it is."""
        if self._sampling is None:
            return
        try:
            self._end(self._sampling)
        except Exception as problem:  # noqa: BLE001 - the program matters, the measurement does not
            self.problems = (*self.problems, f"the profile could not be written: {problem!r}")
            self._say(self.problems[-1])
        finally:
            self._sampling = None
            if self._reserved is not None:
                self._reserved.release()

    def _end(self, sampling: Sampling) -> None:
        if self._probe is not None:
            self._probe.end()
            self._probe = None
        outcome = sampling.finish()
        sampling.close()
        self.problems = outcome.problems
        for problem in outcome.problems:
            self._say(problem)
        if outcome.capture is not None and outcome.problems:
            self._say(f"what was measured is in {outcome.capture}: gpucost import it.")
        if outcome.target is not None:
            self._written(outcome, outcome.target)

    def _written(self, outcome: Outcome, path: Path) -> None:
        from gpucost.api import load_profile  # noqa: PLC0415 - once, at the end

        self.path, self.profile = path, load_profile(path)
        if outcome.part is not None:
            self._say(outcome.part)
            return
        for note in outcome.notes:
            self._say(f"note: {note}")
        if outcome.finding:
            self.verdict = outcome.finding
            self._say(self.verdict)
        unseen = self.profile is not None and not self.profile.gpus
        self._say(f"wrote {path.name}; {next_step(path.name, no_gpu=unseen)}")

    def _say(self, sentence: str) -> None:
        if not self._quiet:
            print(f"gpucost: {printable(sentence)}", file=sys.stderr)  # noqa: T201 - for people


def measure(  # noqa: PLR0913 - options of a measurement, all but the name by keyword
    name: str = "job",
    *,
    target: str | Path | None = None,
    interval_s: float = 1.0,
    gpus: tuple[int, ...] | None = None,
    gpu: bool = True,
    quiet: bool = False,
    **hints: Any,  # noqa: ANN401 - see Hints
) -> Measurement:
    """Measure a block of a program, in the same way as `gpucost profile` does from outside.

    GPUs and host are read by a process beside this one. Steps of PyTorch and Keras are found by
    themselves, whether they were imported before or are later; others are told by `m.step()`. When
    the block ends, also by an exception, the profile is written and is `m.profile`.

    Args:
        name: of the job.
        target: the file; `profile.json` where None, or a name of its own beside others' profiles.
        interval_s: seconds between readings, 0.1 to 60.
        gpus: the driver's indices, None for all that the program works on.
        gpu: whether to read GPUs; without a driver the host and the steps alone are measured.
        quiet: print nothing.
        hints: what cannot be seen: `kind`, `precision`, `batch`; see `telemetry.readers.hints`.

    Returns:
        To be used in `with`; measuring begins there.

    Raises:
        InputError: an argument is wrong.
    """
    job_hints = Hints(name=name, **hints)
    if not _LEAST_S <= interval_s <= _MOST_S:
        raise InputError(f"interval_s={interval_s:g}: readings can lie 0.1 to 60 s apart.")
    problem = driver_problem() if gpu else None
    task = Task(
        target=None if target is None else Path(target),
        interval_s=interval_s,
        pid=os.getpid(),
        is_child=True,
        gpus=gpus,
        no_gpu=not gpu or problem is not None,
        hints=job_hints,
    )
    measurement = Measurement(task, quiet=quiet)
    if problem is not None:
        measurement._say(f"{problem} The host and the steps alone are measured.")  # noqa: SLF001
    return measurement


def _folder() -> str | None:
    try:
        return events_folder(os.environ)
    except OSError:
        return None


def _probe() -> ModuleType:
    """Return the probe's door for programs that measure themselves; its folder is on no path."""
    from importlib import import_module  # noqa: PLC0415 - where something is measured

    sys.path.insert(0, str(PATH))
    try:
        return import_module("gpucost_probe.by_hand")
    finally:
        sys.path.remove(str(PATH))


_USAGE = "usage: %%gpucost [NAME] [--no-gpu] [--quiet] [-o FILE] [--interval SECONDS]"
_MAGIC = click.Command(
    "%%gpucost",
    params=[
        click.Argument(["name"], default="notebook"),
        click.Option(["gpu", "--no-gpu"], flag_value=False, default=True),
        click.Option(["-q", "--quiet"], is_flag=True),
        click.Option(["target", "-o", "--output"]),
        click.Option(["interval_s", "--interval"], default="1s"),
    ],
    add_help_option=False,
)


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 - IPython has no types
    """Add the cell magic to a shell; IPython calls this at `%load_ext gpucost`."""

    def gpucost(line: str, cell: str) -> Measurement | None:
        """Measure a cell: GPUs, host, and the steps of PyTorch and Keras in it."""
        try:
            measurement = measure(**arguments(line))
        except InputError as error:
            print("\n".join(error.problems))  # noqa: T201 - as the cell's output
            return None
        with measurement:
            result = shell.run_cell(cell)
        shell.user_ns["_gpucost"] = measurement
        result.raise_error()
        return measurement

    shell.register_magic_function(gpucost, magic_kind="cell", magic_name="gpucost")


def arguments(line: str) -> dict[str, Any]:
    """Return what the words behind the magic ask of `measure`.

    Raises:
        InputError: they are not understood.
    """
    try:
        options = _MAGIC.make_context("%%gpucost", shlex.split(line)).params
        return {**options, "interval_s": float(options["interval_s"].removesuffix("s"))}
    except (ValueError, click.UsageError) as error:
        raise InputError(f"{getattr(error, 'message', error)}; {_USAGE}") from None
