"""What `gpucost run` was asked for: checked, read, and turned into what is done with the command.

Also the search for the largest batch that fits, by trials in processes that are started for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucost.files.plan_file import DEFAULT_PLAN, load_plan
from gpucost.profiling.profile_target import target_problems
from planner.documents.launcher import Surroundings
from pricing.errors import InputError
from pricing.message import Message
from telemetry.measure.host import ControlGroup, ram_gib
from telemetry.measure.processes import kernel_text
from telemetry.probe import APPLY, child_environment, events_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpucost.views.output import Output
    from planner.documents.application import Application
    from planner.documents.recipe import AskedRecipe

DEFAULT_TARGET = "after.json"
_WARMUP_STEPS = 60  # our choice: start-up, compilation and the first reads are over by then


def find_batch(argv: tuple[str, ...], target: str | None, output: Output, *, no_gpu: bool) -> int:
    """Find the largest batch in trials, print what was found, and return the exit code."""
    from gpucost.files.writing import write_file  # noqa: PLC0415 - lazy

    room = room_bytes(free_gib(), has_gpu=not no_gpu and bool(surroundings().gpus))
    result = search(attempt_in_child(argv, os.environ, room), output.say)
    if result.fastest is not None:
        click.echo(
            f"fastest batch: {result.fastest}; smallest within {_AS_FAST:.0%} of its throughput: "
            f"{result.smallest} (it has {result.own})"
        )
    click.echo(f"largest batch that fits: {result.largest} (it has {result.own}); {result.why}")
    output.say(
        "the program itself has not run, and stays as it is. A larger batch changes what is "
        "learned: the learning rate goes with it."
    )
    if target is not None:
        write_file(target, result.document)
        output.say(f"wrote {target}")
    return 0


def applied_to(
    argv: tuple[str, ...], sources: tuple[str | None, ...], options: dict[str, Any]
) -> Application:
    """Return what is done with the command."""
    from planner.documents.application import application, in_turns  # noqa: PLC0415 - lazy

    recipe = _recipe(*sources).also(options["numeric"])
    if options["ab"]:
        return in_turns(recipe, argv, _experiment())
    return application(recipe, argv, os.environ, surroundings())


def _experiment() -> dict[str, object]:
    """Return a design with an order of its own."""
    from planner.proof.experiment import Design, hand_over  # noqa: PLC0415 - lazy

    return hand_over(Design(warmup_steps=_WARMUP_STEPS, seed=secrets.randbits(32)))


def check(
    argv: tuple[str, ...], sources: tuple[str | None, ...], target: str, *, find_batch: bool
) -> None:
    """Refuse a call that cannot be, with every reason at once.

    Raises:
        InputError: no command, nothing to apply, several things to apply, or nowhere to write.
    """
    plan_path, recipe_path, named = sources
    problems = []
    if find_batch and any(sources):
        problems.append("--find-batch applies no recipe: leave out the recipe or the plan.")
    if not argv:
        problems.append("no COMMAND: put it behind --, such as gpucost run ... -- python train.py.")
    if recipe_path is not None and (plan_path is not None or named is not None):
        problems.append("--recipe and a PLAN: one of the two says what to apply; leave one out.")
    if not find_batch and not any(sources):
        problems.append("nothing to apply: give --recipe FILE, or PLAN --option JOB/ID.")
    problems += target_problems(target, DEFAULT_TARGET)
    if problems:
        raise InputError(problems)


def _recipe(plan_path: str | None, recipe_path: str | None, named: str | None) -> AskedRecipe:
    """Return what to apply.

    Raises:
        InputError: there is no such file, plan or option, or it cannot be read.
    """
    from planner.documents.recipe import make_recipe, read_recipe  # noqa: PLC0415 - lazy
    from planner.models.document import to_text  # noqa: PLC0415 - lazy
    from planner.plan.read import find_option, find_recommended  # noqa: PLC0415 - lazy

    if recipe_path is not None:
        return read_recipe(_text(recipe_path), recipe_path)
    path = plan_path or DEFAULT_PLAN
    plan = load_plan(path)
    option = find_option(plan, named) if named is not None else find_recommended(plan)
    return read_recipe(to_text(make_recipe(option)), path)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(Message("input.no-recipe", path=path)) from error
    except (OSError, ValueError) as error:
        raise InputError(f"--recipe {path}: cannot be read: {error}.") from error


_GPUS = Path("/proc/driver/nvidia/gpus")
_PCI = Path("/sys/bus/pci/devices")
_NODES = Path("/sys/devices/system/node")


def surroundings() -> Surroundings:
    """Return this machine, as the kernel's files tell it."""
    gpus = _listed(_GPUS)
    several_nodes = sum(name.startswith("node") for name in _listed(_NODES) or ()) > 1
    node = kernel_text(_PCI / gpus[0].lower() / "numa_node") if gpus and several_nodes else ""
    return Surroundings(
        exists=os.path.exists,
        installed=lambda name: shutil.which(name) is not None,
        text_of=lambda path: kernel_text(Path(path)) or None,
        gpus=None if gpus is None else len(gpus),
        gpu_node=int(node) if node.isdecimal() else None,
    )


def _listed(folder: Path) -> list[str] | None:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except OSError:
        return None


SCHEMA = "gpucost.batch-search/v1"
STEPS = 4
_MOST_DOUBLINGS = 12
_FINENESS = 16  # it is known to a sixteenth: our choice
_LOOK_S = 0.05
_LONGEST_S = 900.0  # until a trial must have made its steps
_OUT_OF_MEMORY = {"gpu": "out of GPU memory", "host": "out of host memory"}
_KILLED = (signal.SIGKILL, signal.SIGABRT, signal.SIGBUS)
_GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTried:
    """One batch size that was tried.

    Attributes:
        batch: items a step, of one loader; None where nobody says.
        fits: whether its steps were made; None: it ended of something else than memory.
        why: it does not; empty where it does.
        items: that the data set has; None where nobody says.
        step_s: of a step without the first, median; None where none was timed.
        host_gib: most host memory of the process; None where unknown.
        gpu_gib: most GPU memory that PyTorch held; None without a GPU.
    """

    batch: int | None
    fits: bool | None
    why: str = ""
    items: int | None = None
    step_s: float | None = None
    host_gib: float | None = None
    gpu_gib: float | None = None

    @property
    def sentence(self) -> str:
        """What it came to, in words."""
        if not self.fits:
            return f"batch {self.batch}: {self.why}"
        parts = [f"batch {self.batch}: fits"]
        if self.step_s and self.batch:
            parts.append(f"{self.step_s * 1000:.3g} ms a step, {self.batch / self.step_s:.4g}/s")
        for name, gib in (("GPU", self.gpu_gib), ("host", self.host_gib)):
            if gib is not None:
                parts.append(f"{gib:.3g} GiB of {name} memory")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearch:
    """What was found.

    Attributes:
        schema: `gpucost.batch-search/v1`.
        own: the program's own batch size.
        fastest: the one with the most items a second; None where no step was timed.
        smallest: that is within 2 % of it.
        largest: that was seen to fit.
        why: nothing larger was.
        tried: in the order of the trials.
    """

    schema: str = SCHEMA
    own: int
    fastest: int | None = None
    smallest: int | None = None
    largest: int
    why: str
    tried: tuple[BatchTried, ...]

    @property
    def document(self) -> str:
        """The search as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"


def search(
    attempt: Callable[[int | None, int | None], BatchTried],
    say: Callable[[str], None] = lambda _: None,
) -> BatchSearch:
    """Return the largest batch that fits: doubled until one does not, then halved in between.

    Args:
        attempt: tries a batch in place of the program's own; both None for that one itself.
        say: told each trial.

    Raises:
        InputError: the program makes no steps, or nobody knows its batch.
    """
    first = attempt(None, None)
    if not first.fits or not first.batch:
        raise InputError(first.why or "no batch size is known: its loader has none.")
    say(first.sentence)
    own = low = first.batch
    tried, high, why = [first], None, f"{own << _MOST_DOUBLINGS} was not tried"
    while low < own << _MOST_DOUBLINGS:
        batch = 2 * low if high is None else (low + high) // 2
        if high is not None and high - low <= max(1, low // _FINENESS):
            break
        if first.items is not None and batch > first.items:
            why = f"the data set has {first.items} items"
            break
        trial = attempt(batch, own)
        tried.append(trial)
        say(trial.sentence)
        if trial.fits:
            low = batch
        else:
            high, why = batch, f"{batch}: {trial.why}"
    rates = {t.batch: t.batch / t.step_s for t in tried if t.fits and t.batch and t.step_s}
    peak = max(rates.values(), default=None)
    as_fast = [batch for batch, rate in rates.items() if rate >= (1.0 - _AS_FAST) * (peak or 0.0)]
    return BatchSearch(
        own=own,
        fastest=max(rates, key=lambda batch: rates[batch], default=None),
        smallest=min(as_fast, default=None),
        largest=low,
        why=why,
        tried=tuple(tried),
    )


_AS_FAST = 0.02  # trials of a few steps repeat to about that


def attempt_in_child(
    command: Sequence[str], environ: Mapping[str, str], limit_bytes: int | None
) -> Callable[[int | None, int | None], BatchTried]:
    """Return what tries a batch in a process of its own, which ends with its session.

    Args:
        command: the program and its arguments.
        environ: the caller's.
        limit_bytes: of its data in memory; None without a limit of ours.
    """

    def limited() -> None:
        if limit_bytes is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))

    def attempt(batch: int | None, own: int | None) -> BatchTried:
        folder = Path(events_folder(environ))
        try:
            orders = {"actions": {}, "trial": {"steps": STEPS, "batch": batch, "own": own}}
            (folder / APPLY).write_text(json.dumps(orders), encoding="utf-8")
            with (folder / "errors").open("wb") as errors:
                child = subprocess.Popen(  # noqa: S603 - the user's own words
                    list(command),
                    env={**environ, **child_environment(environ, folder)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                    preexec_fn=limited,  # noqa: PLW1509 - one thread runs here
                )
            return _watched(child, folder, batch)
        except OSError as error:
            return BatchTried(batch=batch, fits=None, why=f"{command[0]}: {error.strerror}.")
        finally:
            shutil.rmtree(folder.parent, ignore_errors=True)

    return attempt


def _watched(child: subprocess.Popen[bytes], folder: Path, batch: int | None) -> BatchTried:
    """Wait until a trial made its steps, or ended; then end all of it."""
    until_s = time.monotonic() + _LONGEST_S
    try:
        while True:
            code = child.poll()
            events = _events(folder)
            report = next((event for event in events if event.get("event") == "tried"), None)
            if report is not None:
                return _fits(report, batch)
            if code is not None:
                return _does_not(code, events, folder, batch)
            if time.monotonic() > until_s:
                why = f"no {STEPS} optimizer steps within {_LONGEST_S / 60:.0f} min"
                return BatchTried(batch=batch, fits=None, why=why)
            time.sleep(_LOOK_S)
    finally:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _fits(report: Mapping[str, object], batch: int | None) -> BatchTried:
    batch_seen = report.get("batch")
    own = batch_seen if isinstance(batch_seen, int) else None
    if batch is not None and own != batch:
        why = f"the program went on with {own}: it sets its batch otherwise than by DataLoader"
        return BatchTried(batch=batch, fits=None, why=why)
    figures = {name: report.get(name) for name in ("items", "step_s", "host_gib", "gpu_gib")}
    return BatchTried(batch=own, fits=True, **figures)  # type: ignore[arg-type] # our own words


def _does_not(
    code: int, events: Sequence[Mapping[str, object]], folder: Path, batch: int | None
) -> BatchTried:
    kinds = [str(event["out_of_memory"]) for event in events if event.get("out_of_memory")]
    if kinds:
        return BatchTried(batch=batch, fits=False, why=_OUT_OF_MEMORY.get(kinds[0], kinds[0]))
    text = (folder / "errors").read_text(encoding="utf-8", errors="replace")
    last = (text.strip().splitlines() or [""])[-1][:300]
    if -code in _KILLED:
        return BatchTried(batch=batch, fits=False, why=f"ended by {signal.Signals(-code).name}")
    if "MemoryError" in text or "bad_alloc" in text or "allocate memory" in text:
        return BatchTried(batch=batch, fits=False, why=_OUT_OF_MEMORY["host"])
    why = f"it ended with {code} before {STEPS} optimizer steps were seen"
    return BatchTried(batch=batch, fits=None, why=f"{why}: {last}" if last else why)


def _events(folder: Path) -> list[Mapping[str, object]]:
    events: list[Mapping[str, object]] = []
    for path in folder.glob("*.jsonl"):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        events += [json.loads(line) for line in lines if '"tried"' in line or '"bye"' in line]
    return events


def free_gib() -> float:
    """Return the host memory that is free here, and allowed to us."""
    group = ControlGroup("self")
    limit, used = group.limit_gib, group.used_gib() or 0.0
    total, used_total = ram_gib()
    free = total - used_total
    return free if limit is None else min(free, limit - used)


def room_bytes(machine_gib: float, *, has_gpu: bool) -> int | None:
    """Return how much host memory a trial may take; None where a GPU is what it must fit into.

    Args:
        machine_gib: memory that is free for it.
        has_gpu: the drivers of a GPU reserve far more addresses than they use.
    """
    if has_gpu:
        return None
    own = resource.getrlimit(resource.RLIMIT_DATA)[0]
    room = int(machine_gib * _GIB)
    return room if own == resource.RLIM_INFINITY else min(room, own)
