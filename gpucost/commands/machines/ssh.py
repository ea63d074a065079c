"""`gpucost ssh RUN`: a shell, or one command, on a machine of a run."""

import os
import shlex
import shutil
import sys

import click

from gpucost.jobs.driving import machines_of
from gpucost.machines.state import open_journal
from gpucost.views.output import Output, common_options
from pricing.errors import InputError
from pricing.listing import counted
from providers.ssh.shell import destination_of, ssh_words


@click.command(
    name="ssh",
    epilog="Example: gpucost ssh k3f9xw2m -- nvidia-smi",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--node", type=click.IntRange(min=0), default=0, show_default=True, help="Rank of a machine."
)
@common_options
@click.argument("run", metavar="ID")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
def command(run: str, words: tuple[str, ...], node: int, output: Output) -> None:
    """Log in to a machine of a run, or run COMMAND there and end as it ended.

    It is the system's ssh, with the key and the host keys of the run.
    """
    _ = output
    with open_journal() as journal:
        found = journal.deployment(run)
    if found is None:
        raise InputError(f"{run}: the journal has no such run (gpucost list --all).")
    machines = machines_of(found)
    if node >= len(machines):
        raise InputError(
            f"--node {node}: {run} has {counted(len(machines), 'machine')}, counted from 0."
        )
    program = shutil.which("ssh")
    if program is None:
        raise InputError("there is no ssh here; on Debian: apt-get install openssh-client.")
    shell = machines[node].shell
    to, port = destination_of(shell.door, shell.address)
    asked = (shlex.join(words[1:] if words[:1] == ("--",) else words),) if words else ()
    sys.stdout.flush()
    os.execv(program, (*ssh_words(shell.door, asks=True), "-p", port, to, *asked))  # noqa: S606 - words of ours, and the user's own command
