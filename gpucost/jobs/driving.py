"""A job from its launched machines to its results here and the end of the machines.

Whoever calls again (`gpucost logs RUN -f`) goes on where the last one was cut off. A step or a
command that fails ends the machines, so that nothing burns unasked; results that do not come back
keep them until their deadline, because they would be lost.
"""

import codecs
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from gpucost.files.writing import state_folder
from gpucost.jobs.request import JobFolder, JobRequest, job_folder
from gpucost.jobs.results import PROFILE, Results, bring_back
from gpucost.jobs.steps import (
    JOB,
    STEPS,
    JobMachine,
    JobStep,
    StepFailedError,
    TaskState,
    code_of,
    whole_folder,
)
from gpucost.machines.ending import RunToTerminate, end
from gpucost.machines.state import door_of, open_cloud, session_with
from gpucost.views.launch import JobEndDocument, JobPreviewDocument, JobStepDocument
from gpucost.views.output import Output, print_json
from gpucost.views.runs import RUN_SCHEMA, run_document
from pricing.errors import (
    GpucostError,
    InputError,
    LaunchInterruptedError,
    PartialError,
    RefusedError,
)
from pricing.money import show
from providers.interface import OWN, Deployment
from providers.journal.journal import Journal
from providers.lifecycle.session import Session, Stopwatch
from providers.ssh.shell import LostConnectionError, RemoteShell

PERSEVERES_S = 300.0
"""For how long a machine that cannot be reached is tried again."""

_LOOK_S = 5
_OTHERS_S = 60.0  # after the first process failed, the others have so long to notice
_LAST_LINES = 15
_T = TypeVar("_T")


@dataclass(slots=True, kw_only=True)
class RunningJob:
    """A job on its machines.

    Attributes:
        run: id of the run.
        request: what was asked for.
        machines: in the order of their ranks.
        folder: what is kept of it here.
        session: the journal, the time.
        output: how to print.
    """

    run: str
    request: JobRequest
    machines: tuple[JobMachine, ...]
    folder: JobFolder
    session: Session
    output: Output
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def take_steps(self) -> None:
        """Do every step that is not done, up to the started command.

        Raises:
            StepFailedError: one went wrong; the last lines of its log are in it.
            PartialError: a machine cannot be reached any more.
        """
        for machine in self.machines:
            self.persevere(machine.prepare)
        for step in (job_step for job_step in STEPS if job_step.needed(self.request)):
            begun = [self._start(step, machine) for machine in self.machines]
            if step.name == JOB:
                return
            for machine in self.machines:
                self._await(step, machine)
            if any(begun):
                self.note(f"job: {step.name}: done")

    def _start(self, step: JobStep, machine: JobMachine) -> bool:
        """Start a step where it is to be started; return whether it was."""
        state, _ = self.persevere(lambda: machine.read(step.name))
        if state.is_done or state.word == "running" or (step.once and state.word != "absent"):
            return False
        self.note(f"job: about to {step.title} on {machine.name}")
        self.output.say(f"{machine.name}: {step.title} ...")
        self.persevere(lambda: step.send(self.request, machine))
        script = step.script(self.request, machine, self.run)
        self.persevere(lambda: machine.start(step.name, script, once=step.once))
        return True

    def _await(self, step: JobStep, machine: JobMachine) -> None:
        log = b""
        while True:
            state, more = self._read(step.name, machine, len(log), _LOOK_S)
            log += more
            if state.word != "running" and not more:
                break
        if not state.is_done:
            raise StepFailedError(_why(step.name, machine.name, state, log))
        self.output.say(f"{machine.name}: {_last_lines(log, 1)}")

    def _read(
        self, step: str, machine: JobMachine, offset: int, wait_s: int
    ) -> tuple[TaskState, bytes]:
        """Return how far a step is and what is new in its log, which is kept here, too."""
        state, more = self.persevere(lambda: machine.read(step, offset, wait_s))
        self.folder.write_log(step, machine.rank, offset, more)
        return state, more

    def follow(self, show: Callable[[str], None]) -> int:
        """Pass the command's output on until it has ended everywhere; return its exit status.

        That is of the first that failed; what we end has no say. What is left of a job whose first
        process failed is ended a minute later.

        Raises:
            StepFailedError: its end is not known: the machine was restarted, or it was killed.
            PartialError: a machine cannot be reached any more.
        """
        first, ends, watch = self.machines[0], dict[int, TaskState](), None
        failed: int | None = None
        offsets = [0] * len(self.machines)
        wait_s = _LOOK_S if len(self.machines) == 1 else 1
        while True:
            for machine in self.machines:
                at = offsets[machine.rank]
                state, more = self._read(JOB, machine, at, wait_s)
                offsets[machine.rank] = at + len(more)
                if machine is first:
                    show(self._decoder.decode(more))
                if state.word != "running" and not more:
                    ends[machine.rank] = state
            if len(ends) == len(self.machines):
                break
            if watch is None and any(not state.is_done for state in ends.values()):
                watch = Stopwatch(self.session.clock)
                failed = next((state.code for state in ends.values() if state.code), None)
            elif watch is not None and watch.elapsed_s > _OTHERS_S:
                for machine in self.machines:
                    machine.stop()
        return failed or self._exit_status(ends)

    def _exit_status(self, ends: dict[int, TaskState]) -> int:
        codes = [ends[machine.rank].code for machine in self.machines]
        failed_codes = [code for code in codes if code]
        if not failed_codes and None in codes:
            machine = self.machines[codes.index(None)]
            raise StepFailedError(_why(JOB, machine.name, ends[machine.rank], b""))
        return failed_codes[0] if failed_codes else 0

    def persevere(self, action: Callable[[], _T]) -> _T:
        """Do what may be done twice, and again where the connection broke meanwhile.

        Raises:
            PartialError: it could not be had for `PERSEVERES_S` seconds.
        """
        watch = Stopwatch(self.session.clock)
        reported = False
        while True:
            try:
                return action()
            except LostConnectionError as error:
                if watch.elapsed_s >= PERSEVERES_S:
                    raise PartialError(self._given_up(error)) from error
                if not reported:
                    self.output.say(f"{error.problems[0]} Trying again ...")
                    reported = True
                watch.pause(self.session.patience.pause_s)

    def _given_up(self, error: LostConnectionError) -> tuple[str, str]:
        goes_on = f"The job goes on if its machine does: `gpucost logs {self.run} -f` picks it up, "
        return (
            f"{error.problems[0]} It was tried for {PERSEVERES_S:g} s.",
            f"{goes_on}`gpucost show {self.run}` asks the provider.",
        )

    def note(self, event: str) -> None:
        """Write down what happens; without a journal the job goes on."""
        self.session.try_writing(
            lambda: self.session.journal.note(self.run, self.session.now(), event)
        )


def _why(step: str, machine: str, state: TaskState, log: bytes) -> list[str]:
    how = f"ended with {state.code}" if state.word == "ended" else "was killed, or its machine was"
    reasons = [f"step {step} failed on {machine}: it {how}."]
    lines = _last_lines(log, _LAST_LINES)
    return [*reasons, f"its last lines:\n{lines}"] if lines else reasons


def _last_lines(log: bytes, count: int) -> str:
    lines = log.decode("utf-8", "replace").strip().splitlines()
    return "\n".join(lines[-count:])


def preview_job(request: JobRequest) -> JobPreviewDocument:
    """Return the steps of a job that is about to be launched, what is sent and what comes back."""
    steps = (step for step in STEPS if step.needed(request))
    return JobPreviewDocument(
        steps=tuple(
            JobStepDocument(step=step.name, does=step.title, what=step.summary(request))
            for step in steps
        ),
        collect=(*request.collect, PROFILE),
        notes=tuple(_notes(request)),
    )


def _notes(request: JobRequest) -> Iterator[str]:
    if request.sync:
        yield from code_of(Path(request.sync)).notes()
    if request.data and not request.fetches:
        yield from whole_folder(Path(request.data)).notes()
    if request.data.startswith("s3://"):
        yield "the machine reads the bucket with rights of its own; no credentials are sent"
    if request.container:
        yield "in a container the GPUs are measured, and not the steps of the program"
    if not request.collect:
        yield "what the job writes goes with the machine; --collect outputs/ brings it back"


def _show_end(run: Deployment, code: int, results: Results, output: Output, now: datetime) -> None:
    """Print how a job ended: as JSON with its run, else in a sentence for people."""
    if output.format == "json":
        end = JobEndDocument(
            exit_status=code,
            collected=tuple(str(path) for path in results.files),
            profile=None if results.profile is None else str(results.profile),
            left_behind=results.left_behind,
        )
        print_json(msgspec.structs.replace(run_document(run, now), schema=RUN_SCHEMA, job=end))
        return
    output.say(f"{run.marks.run}: the job ended with exit status {code}")
    if results.profile is not None:
        output.say(f"next: gpucost diagnose {results.profile}")


class JobFailedError(GpucostError):
    """The command itself ended with another status than 0; it is named in the message."""

    exit_code = InputError.exit_code


def machines_of(run: Deployment, *, progress: bool = False) -> tuple[JobMachine, ...]:
    """Return the machines of a run that are there, as a job sees them, by rank.

    Raises:
        InputError: there are none.
    """
    door = door_of(run, state_folder())
    reachable = [
        machine_entry
        for machine_entry in run.machines
        if machine_entry.state == "made" and machine_entry.address
    ]
    if not reachable:
        raise InputError(f"{run.marks.run}: none of its machines is there ({run.state}).")
    return tuple(
        JobMachine(
            rank=rank,
            name=machine.name,
            shell=RemoteShell(door=door, address=machine.address),
            progress=progress,
        )
        for rank, machine in enumerate(
            sorted(reachable, key=lambda machine_entry: _number(machine_entry.name))
        )
    )


def _number(name: str) -> int:
    last = name.rpartition("-")[2]
    return int(last) if last.isdecimal() else 0


def drive(run: Deployment, journal: Journal, output: Output) -> None:
    """Take a job to its end, wherever it is, and print the run.

    Raises:
        InputError: the run has no job.
        RefusedError: another process does this already.
        JobFailedError: the command did; its machines have ended.
        StepFailedError: a step did; its machines have ended.
        PartialError: a machine or results are left; the message says how to go on.
        LaunchInterruptedError: interrupted; the job goes on without us.
    """
    name = run.marks.run
    folder = job_folder(name)
    request = folder.request()
    if request is None:
        raise InputError(f"{name} has no job: it was launched without --run.")
    with journal.working_on(f"{name}-job") as locked:
        if not locked:
            raise RefusedError(f"{name}: another gpucost follows its job; `gpucost logs {name}`.")
        try:
            _drive(run, request, folder, journal, output)
        except KeyboardInterrupt as error:
            raise LaunchInterruptedError(_detached(run)) from error


def _drive(
    run: Deployment, request: JobRequest, folder: JobFolder, journal: Journal, output: Output
) -> None:
    session = session_with(open_cloud(run.provider), journal, output)
    job = RunningJob(
        run=run.marks.run,
        request=request,
        machines=machines_of(run, progress=not output.quiet and sys.stderr.isatty()),
        folder=folder,
        session=session,
        output=output,
    )
    try:
        job.take_steps()
        code = job.follow(partial(show_log, to_stderr=output.format == "json"))
    except StepFailedError as error:
        job.note(f"job: {error.problems[0]}")
        raise StepFailedError((*error.problems, *_end(job, run, journal))) from error
    job.note(f"job: its command ended with {code}")
    results = bring_back(job)
    if results.problems:
        raise PartialError((*results.problems, *_left_running(run, code)))
    for path in (*results.files, *((results.profile,) if results.profile else ())):
        output.say(f"fetched {path}")
        job.note(f"job: {path.name} came back")
    for item in results.left_behind:
        output.say(f"left behind: {item}")
    if results.profile is None:
        output.say("note: no profile came back: gpucost could not be installed on that machine.")
    troubles = _end(job, run, journal)
    _show_end(journal.deployment(run.marks.run) or run, code, results, output, session.now())
    if troubles:
        raise PartialError((*_failed(run, code), *troubles))
    if code:
        raise JobFailedError(_failed(run, code))


def show_log(text: str, *, to_stderr: bool = False) -> None:
    """Pass a job's output on as it is; `to_stderr`, where standard output holds a document."""
    if text:
        click.echo(text, nl=False, err=to_stderr)


def _end(job: RunningJob, run: Deployment, journal: Journal) -> list[str]:
    """End the machines as `gpucost down` does; return what is left, in sentences."""
    for machine in job.machines:
        machine.stop()
        machine.shell.close()
    target = RunToTerminate(marks=run.marks, session=job.session, recorded=run, listed=())
    return [problem for error in end(target, journal, job.output) for problem in error.problems]


def _failed(run: Deployment, code: int) -> list[str]:
    if not code:
        return []
    return [f"the job of {run.marks.run} ended with exit status {code}."]


def _left_running(run: Deployment, code: int) -> list[str]:
    name = run.marks.run
    stays = f"So that they are not lost, {name} keeps running {_burning(run)}."
    ways = f"`gpucost ssh {name}` looks, `gpucost logs {name} -f` tries again, "
    return [*_failed(run, code), stays, f"{ways}`gpucost down {name}` ends it."]


def _detached(run: Deployment) -> list[str]:
    name = run.marks.run
    back = f"`gpucost logs {name} -f` reconnects, fetches its results and ends it; "
    return [
        f"{name} keeps running without this computer, {_burning(run)}.",
        f"{back}`gpucost down {name}` ends it now.",
    ]


def _burning(run: Deployment) -> str:
    deadline = f"{run.marks.deadline:%Y-%m-%d %H:%M} UTC"
    if run.provider == OWN or run.offer is None:
        return f"on a machine of yours, where its job is ended at its deadline, {deadline}"
    return f"at ${show(run.offer.usd_per_hour * run.count)} an hour, until {deadline} at most"
