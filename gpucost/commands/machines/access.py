"""`gpucost logs` and `gpucost ssh`: what a job prints, and a shell on its machine."""

import os
import shlex
import shutil
import sys

import click

from gpucost.arguments.parameters import options
from gpucost.jobs.driving import drive, machines_of, show_log
from gpucost.jobs.request import job_folder
from gpucost.jobs.steps import JOB, STEPS, JobMachine
from gpucost.machines.state import open_journal
from gpucost.views.output import Output, common_options
from pricing.errors import InputError
from pricing.listing import counted
from providers.interface import Deployment
from providers.journal.journal import Journal
from providers.ssh.shell import destination_of, ssh_words

_STEPS = tuple(step.name for step in STEPS)


@click.command(name="logs", epilog="Example: gpucost logs k3f9xw2m -f")
@click.argument("run", metavar="ID")
@options("follow stage node", stage={"type": click.Choice(_STEPS), "default": JOB})
@common_options
def logs(run: str, follow: bool, step: str, node: int, output: Output) -> None:  # noqa: FBT001 - click's flag
    """Print the log of a job, from its machine or, once that has ended, from the local copy.

    With -f the rest of `gpucost provision --run` is carried out: remaining steps, log, results, end
    of the machines. Without it nothing is changed.
    """
    with open_journal() as journal:
        deployment = _deployment(journal, run)
        if follow and deployment.state != "ended":
            if step != JOB or node:
                raise InputError("-f follows the job itself; leave --step and --node out.")
            drive(deployment, journal, output)
            return
    if deployment.state == "ended":
        _print_kept(run, step, node)
    else:
        _print_there(_machine(deployment, node), step)


def _deployment(journal: Journal, run: str) -> Deployment:
    deployment = journal.deployment(run)
    if deployment is None:
        raise InputError(f"{run}: the journal has no such run (gpucost list --all).")
    return deployment


def _machine(run: Deployment, node: int) -> JobMachine:
    machines = machines_of(run)
    if node >= len(machines):
        has = f"{run.marks.run} has {counted(len(machines), 'machine')}"
        raise InputError(f"--node {node}: {has}, counted from 0.")
    return machines[node]


def _print_there(machine: JobMachine, step: str) -> None:
    length = 0
    while True:
        _, log = machine.read(step, length)
        if not log:
            break
        show_log(log.decode("utf-8", "replace"))
        length += len(log)


def _print_kept(run: str, step: str, node: int) -> None:
    path = job_folder(run).log_file(step, node)
    try:
        show_log(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        raise InputError(f"{run}: no log of {step} was kept here, and the run has ended.") from None


@click.command(
    name="ssh",
    epilog="Example: gpucost ssh k3f9xw2m -- nvidia-smi",
    context_settings={"allow_interspersed_args": False},
)
@options("node")
@common_options
@click.argument("run", metavar="ID")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
def ssh(run: str, words: tuple[str, ...], node: int, output: Output) -> None:
    """Log in to a machine of a run, or run COMMAND there and return its exit code.

    Uses the system's ssh with the key and the host keys of the run.
    """
    _ = output
    with open_journal() as journal:
        deployment = _deployment(journal, run)
    shell = _machine(deployment, node).shell
    program = shutil.which("ssh")
    if program is None:
        raise InputError("ssh is not installed; on Debian: apt-get install openssh-client.")
    to, port = destination_of(shell.door, shell.address)
    command = (shlex.join(words[1:] if words[:1] == ("--",) else words),) if words else ()
    sys.stdout.flush()
    os.execv(program, (*ssh_words(shell.door, asks=True), "-p", port, to, *command))  # noqa: S606 - words of ours, and the user's own command
