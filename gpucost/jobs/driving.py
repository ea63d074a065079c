"""A job from its launched machines to its results here and the end of the machines.

Whoever calls again (`gpucost logs RUN -f`) goes on where the last one was cut off. A step or a
command that fails ends the machines, so that nothing burns unasked; results that do not come back
keep them until their deadline, because they would be lost.
"""

import sys
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import click
import msgspec

from gpucost.files.writing import state_folder
from gpucost.jobs.request import JobFolder, JobRequest, job_folder
from gpucost.jobs.results import PROFILE, Results, bring_back
from gpucost.jobs.stepping import RunningJob
from gpucost.jobs.steps import STEPS, JobMachine, StepFailedError, code_of, whole_folder
from gpucost.machines.ending import RunToTerminate, end
from gpucost.machines.state import door_of, open_cloud, session_with
from gpucost.views.launch import JobEndDocument, JobPreviewDocument, JobStepDocument
from gpucost.views.output import Output, print_json
from gpucost.views.runs import RUN_SCHEMA, run_document
from pricing.errors import (
    GpucostError,
    InputError,
    InterruptedByUserError,
    PartialError,
    RefusedError,
)
from pricing.money import show
from providers.interface import OWN, Deployment
from providers.journal.journal import Journal
from providers.ssh.shell import RemoteShell


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
        GpucostError: the command failed; its machines have ended.
        StepFailedError: a step did; its machines have ended.
        PartialError: a machine or results are left; the message says how to go on.
        InterruptedByUserError: interrupted; the job goes on without us.
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
            raise InterruptedByUserError(_detached(run)) from error


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
        raise GpucostError(_failed(run, code), InputError.exit_code)


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
