"""The steps of a loop as commands of their own: how they run and show; and its record."""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal

import msgspec

from gpucost.files.writing import write_file
from gpucost.jobs.request import job_folder
from gpucost.machines.state import CLOCK, open_journal
from planner.models.document import convert, to_text
from planner.models.estimate import Interval
from pricing.errors import InputError, InterruptedByUserError, RefusedError
from pricing.message import Message
from pricing.money import Amount
from providers.interface import Deployment
from providers.journal.ledger import bill_run

NAME = "loop.json"
SCHEMA = "gpucost.loop/v1"
HERE = "here"
"""Where a round ran that rented nothing."""

Verdict = Literal["proved", "not-proved", "worse"]
Done = Literal["chosen", "measured", "verified"]


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment.

    Attributes:
        folder: of its files, below the loop's; "" is the loop's own.
        before: profile that it is held against, below the loop's folder.
        option: JOB/ID in its plan.json.
        where: `here`, or PROVIDER/TYPE that is rented.
        settings: what it adds, in words, such as `dataloader-workers (num_workers 3)`.
        costs_usd: what the experiment was expected to cost; None without a price.
        can_save_usd: what the option saves at best over the plan's horizon.
        done: the last step that is done: chosen (plan.json and recipe.json are there), measured
            (after.json), verified (proof.json).
        verdict: of the verification.
        why: of the verdict, one sentence.
        speedup: measured, a 95 % interval.
        saves_usd: as measured, of the plan's period; None where unknown.
        period: of `saves_usd`.
    """

    folder: str
    before: str
    option: str
    where: str
    settings: tuple[str, ...]
    costs_usd: Amount | None = None
    can_save_usd: Amount | None = None
    done: Done = "chosen"
    verdict: Verdict | None = None
    why: str = ""
    speedup: Interval | None = None
    saves_usd: Amount | None = None
    period: Literal["month", "run"] | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has its verdict."""
        return self.done == "verified"

    @property
    def key(self) -> tuple[str, ...]:
        """What was tried where, so that nothing is tried twice."""
        return (self.where, *self.settings)


class LoopRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A loop.

    Attributes:
        command: that is made faster.
        profiled: whether before.json is measured.
        rounds: experiments in order; the last one may be under way.
        spent_usd: on all that was rented, as the ledger counts it.
        ended: why it stopped, in sentences; empty while it goes on.
    """

    schema: str = SCHEMA
    command: tuple[str, ...]
    profiled: bool = False
    rounds: tuple[Round, ...] = ()
    spent_usd: Amount = Decimal(0)
    ended: tuple[str, ...] = ()

    @property
    def under_way(self) -> Round | None:
        """The round without a verdict yet."""
        return self.rounds[-1] if self.rounds and not self.rounds[-1].is_over else None

    @property
    def proved(self) -> Round | None:
        """The last round that was proved here: what the next one is held against."""
        won = (step for step in reversed(self.rounds) if step.verdict == "proved")
        return next((step for step in won if step.where == HERE), None)

    @property
    def next_folder(self) -> str:
        """Where the next round lies, below the loop's folder; the first lies in it."""
        return f"round-{len(self.rounds) + 1}" if self.rounds else ""

    @property
    def best_profile(self) -> str:
        """The profile that the next round begins from: of the last change that was proved here."""
        return f"{self.proved.folder}/{AFTER}".lstrip("/") if self.proved else BEFORE

    def with_round(self, step: Round) -> "LoopRecord":
        """Return the record with its last round replaced, or with one more after a verdict."""
        earlier = self.rounds[:-1] if self.under_way else self.rounds
        return msgspec.structs.replace(self, rounds=(*earlier, step))


def read_record(folder: Path, command: tuple[str, ...]) -> LoopRecord:
    """Return what is done in a folder; nothing yet where it holds no loop.

    Raises:
        InputError: its loop is of another command, or the file is damaged.
    """
    path = folder / NAME
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return LoopRecord(command=command)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}; {_ANEW}.") from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise InputError(f"{path}: not the record of a loop ({SCHEMA}); {_ANEW}.")
    try:
        record = convert(LoopRecord, raw)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: some of its values cannot be; {_ANEW}.") from error
    if record.command != command:
        command_line = " ".join(record.command)
        raise InputError(Message("input.other-loop", folder=str(folder), command=command_line))
    return record


_ANEW = "give --folder another name, or remove the folder, to begin anew"


def write_record(folder: Path, record: LoopRecord) -> None:
    """Write the record whole, or not at all."""
    write_file(str(folder / NAME), to_text(record))


BEFORE, PLAN, RECIPE = "before.json", "plan.json", "recipe.json"
AFTER, PROOF, REPORT = "after.json", "proof.json", "proof.md"
_TOLD = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRequest:
    """What a loop is asked for.

    Attributes:
        command: the program and its arguments.
        folder: of its files.
        budget_usd: for all that is rented; 0: nothing is.
        measuring: options of `profile` and `run`, such as --no-gpu.
        planning: options of `plan`, such as --current.
        renting: options of `provision`, such as --data; paths are absolute.
        numeric: codes of actions that may change results.
        ttl_s: longest life of a rented machine; None: worked out from the first run.
        most_rounds: experiments at most.
        ab: the first settings that are tried here are switched on and off within their run.
        yes: nothing is asked.
        quiet: steps print no messages.
        to_stderr: steps print to standard error, as standard output holds a document.
    """

    command: tuple[str, ...]
    folder: Path
    budget_usd: Decimal
    measuring: tuple[str, ...] = ()
    planning: tuple[str, ...] = ()
    renting: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    ttl_s: int | None = None
    most_rounds: int = 5
    ab: bool = False
    yes: bool = False
    quiet: bool = False
    to_stderr: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStep:
    """One command.

    Attributes:
        words: behind `gpucost`.
        cwd: folder that it stands in; None: the caller's.
        shown: whether what it prints is; what it writes is enough where it is not.
    """

    words: tuple[str, ...]
    cwd: Path | None = None
    shown: bool = True

    @property
    def text(self) -> str:
        """The command as a person types it."""
        typed = shlex.join(("gpucost", *self.words))
        return f"(cd {shlex.quote(str(self.cwd))} && {typed})" if self.cwd else typed


TakeStep = Callable[[LoopStep], int]


def profile_step(request: LoopRequest) -> LoopStep:
    """Return how the job is measured as it is."""
    target = str(request.folder / BEFORE)
    return LoopStep(words=("profile", *request.measuring, "-o", target, "--", *request.command))


def plan_step(request: LoopRequest, before: str, folder: str) -> LoopStep:
    """Return how a measured run is planned; `before` and `folder` are below the loop's folder."""
    source, target = request.folder / before, request.folder / folder / PLAN
    written = ("-o", str(target), "--report", str(target.with_suffix(".md")))
    return LoopStep(words=("plan", str(source), *request.planning, "-q", *written), shown=False)


def try_step(
    request: LoopRequest, attempt: Round, left_usd: Decimal, rent_s: int, *, ab: bool = False
) -> LoopStep:
    """Return how an option is tried, here (`ab`: in turns within one run) or on rented machines."""
    folder = request.folder / attempt.folder
    if attempt.where == HERE:
        recipe, after = str(folder / RECIPE), str(folder / AFTER)
        own = (*(("--ab",) if ab else ()), "--recipe", recipe, *request.measuring, "-o", after)
        return LoopStep(words=("run", *own, "--", *request.command))
    limits = ("--ttl", f"{rent_s}s", "--max-cost", f"{left_usd:f}")
    job = ("--run", shlex.join(request.command), "--recipe", RECIPE)
    argv = ("provision", PLAN, "--option", attempt.option, *limits, *job, *request.renting)
    return LoopStep(words=(*argv, *(("--yes",) if request.yes else ())), cwd=folder.absolute())


def verify_step(request: LoopRequest, attempt: Round) -> LoopStep:
    """Return how the run after is held against the run before."""
    folder = request.folder / attempt.folder
    runs = (str(request.folder / attempt.before), str(folder / AFTER))
    against = ("--plan", str(folder / PLAN), "--option", attempt.option)
    written = ("-o", str(folder / PROOF), "--report", str(folder / REPORT))
    return LoopStep(words=("verify", *runs, *against, *written))


def run_step(step: LoopStep, *, quiet: bool = False, to_stderr: bool = False) -> int:
    """Run a step as a command of its own, and return its exit code.

    Ctrl-C reaches it through the terminal, as it does us; a signal that only we got is passed on.

    Raises:
        InterruptedByUserError: we were interrupted; the step has ended.
    """
    argv = [sys.executable, "-P", "-m", "gpucost", *_quietly(step.words, quiet=quiet)]
    where = (sys.stderr if to_stderr else None) if step.shown else subprocess.DEVNULL
    child = subprocess.Popen(argv, cwd=step.cwd, stdout=where)  # noqa: S603 - ourselves
    interrupted = False
    while True:
        try:
            code = child.wait()
        except KeyboardInterrupt as error:
            interrupted = True
            for number in _TOLD:
                if error.args == (number.name,):
                    child.send_signal(number)
        else:
            break
    if interrupted:
        raise InterruptedByUserError("interrupted; the same command goes on where it stopped.")
    return code


def _quietly(argv: Sequence[str], *, quiet: bool) -> Sequence[str]:
    own = argv[: argv.index("--")] if "--" in argv else argv  # the others are the command's
    return (argv[0], "-q", *argv[1:]) if quiet and "-q" not in own else argv


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedRun:
    """A launch of a loop.

    Attributes:
        run: its id.
        is_open: whether something of it may be there.
        usd: its bill so far; while it is open what it costs at its deadline.
        launched_nothing: whether no machine of it was ever made.
    """

    run: str
    is_open: bool
    usd: Decimal
    launched_nothing: bool


def rented(folders: Iterable[Path]) -> tuple[RentedRun, ...]:
    """Return the launches whose results come to one of the folders, in the order of their start.

    Raises:
        JournalError: the journal cannot be used.
        RefusedError: what one costs is not known.
    """
    targets = {str(folder.resolve()) for folder in folders}
    with open_journal() as journal:
        runs = journal.deployments()
    rentals = [run for run in runs if _folder_of(run) in targets]
    return tuple(_rented(run) for run in sorted(rentals, key=lambda run: run.started_at))


def _folder_of(run: Deployment) -> str | None:
    request = job_folder(run.marks.run).request()
    return None if request is None else str(Path(request.folder).resolve())


def _rented(run: Deployment) -> RentedRun:
    is_open = run.ended_at is None
    usd = run.predicted_usd if is_open else bill_run(run, CLOCK.at(0.0)).usd
    if usd is None:
        raise RefusedError(Message("input.spent-unknown", run=run.marks.run))
    launched = any(machine.billed_from is not None for machine in run.machines)
    return RentedRun(run=run.marks.run, is_open=is_open, usd=usd, launched_nothing=not launched)


_UNKNOWN = "JOB/ID"
_HOUR_S = 3600


def steps_to_come(request: LoopRequest) -> Iterator[str]:
    """Yield the commands of the next round; what is not known yet is written as JOB/ID.

    Raises:
        InputError: the folder holds the loop of another command.
    """
    record = read_record(request.folder, request.command)
    attempt = record.under_way
    if not record.profiled:
        yield profile_step(request).text
    if attempt is None:
        folder, before = record.next_folder, record.best_profile
        yield plan_step(request, before, folder).text
        attempt = Round(folder=folder, before=before, option=_UNKNOWN, where=HERE, settings=())
        plan, recipe = (str(request.folder / folder / name) for name in (PLAN, RECIPE))
        yield LoopStep(words=("recipe", plan, "--option", attempt.option, "-o", recipe)).text
    if attempt.done == "chosen":
        ab = request.ab and attempt.before == BEFORE
        yield try_step(request, attempt, request.budget_usd, _rent_s(request), ab=ab).text
        if attempt.option == _UNKNOWN and request.budget_usd:
            yield f"  or, for at most ${request.budget_usd:f} in all, where the plan moves the job:"
            remote = msgspec.structs.replace(attempt, where="rented")
            yield f"  {try_step(request, remote, request.budget_usd, _rent_s(request)).text}"
    yield verify_step(request, attempt).text
    yield "and again from the plan, until no experiment costs less than it can save"


def _rent_s(request: LoopRequest) -> int:
    return request.ttl_s or _HOUR_S
