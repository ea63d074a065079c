"""`gpucost logs RUN`: what the job of a run says; with -f on to its results and its end."""

import click

from gpucost.jobs.driving import drive, machines_of, show_log
from gpucost.jobs.job_folder import job_folder
from gpucost.jobs.remote_tasks import JobMachine
from gpucost.jobs.steps import JOB, STEPS
from gpucost.machines.state import open_journal
from gpucost.views.output import Output, common_options
from pricing.errors import InputError
from pricing.listing import counted
from providers.interface import Deployment

_STEPS = tuple(step.name for step in STEPS)


@click.command(name="logs", epilog="Example: gpucost logs k3f9xw2m -f")
@click.argument("run", metavar="ID")
@click.option(
    "-f", "--follow", is_flag=True, help="On to the end: results come back, the machines end."
)
@click.option("--step", type=click.Choice(_STEPS), default=JOB, show_default=True, help="Of it.")
@click.option(
    "--node", type=click.IntRange(min=0), default=0, show_default=True, help="Rank of a machine."
)
@common_options
def command(run: str, follow: bool, step: str, node: int, output: Output) -> None:  # noqa: FBT001 - click's flag
    """Print the log of a job: from its machine while that is there, else as it was kept here.

    With -f whatever is left of `gpucost provision --run` is done, as if its connection had never
    broken: steps, the log, results, the end of the machines. Without it nothing is changed.
    """
    with open_journal() as journal:
        found = journal.deployment(run)
        if found is None:
            raise InputError(f"{run}: the journal has no such run (gpucost list --all).")
        if follow and found.state != "ended":
            if step != JOB or node:
                raise InputError("-f follows the job itself; leave --step and --node out.")
            drive(found, journal, output)
            return
    if found.state == "ended":
        _print_kept(run, step, node)
    else:
        _print_there(_machine(found, node), step)


def _machine(run: Deployment, node: int) -> JobMachine:
    machines = machines_of(run)
    if node >= len(machines):
        raise InputError(
            f"--node {node}: {run.marks.run} has {counted(len(machines), 'machine')}, from 0 on."
        )
    return machines[node]


def _print_there(machine: JobMachine, step: str) -> None:
    seen = 0
    while True:
        _, log = machine.read(step, seen)
        if not log:
            break
        show_log(log.decode("utf-8", "replace"))
        seen += len(log)


def _print_kept(run: str, step: str, node: int) -> None:
    path = job_folder(run).log_file(step, node)
    try:
        show_log(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        raise InputError(f"{run}: no log of {step} was kept here, and the run has ended.") from None
