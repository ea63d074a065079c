"""`gpucost show ID`: one launch, its machines, what happened, and the log of its bootstrap."""

from collections.abc import Mapping

import click

from gpucost.files.user_folders import state_folder
from gpucost.machines.ssh_access import door_of
from gpucost.machines.state import CLOCK, open_journal, sessions
from gpucost.views.output import Output, output_options
from gpucost.views.run_documents import NONE_SEEN
from gpucost.views.runs import show_run
from pricing.errors import InputError, ProviderError
from providers.interface import Deployment, Presence
from providers.journal.journal import Journal
from providers.lifecycle.presence import presence_of
from providers.lifecycle.readiness import ask_again
from providers.lifecycle.session import Session
from providers.ssh.connection import SshLogin


@click.command(name="show", epilog="Example: gpucost show k3f9xw2m --log")
@click.argument("run", metavar="ID")
@click.option("--log", is_flag=True, help="Fetch the log of the bootstrap over SSH.")
@output_options
def command(run: str, log: bool, output: Output) -> None:  # noqa: FBT001 - click's flag
    """Show one launch: machines with addresses, events in order, how to log in.

    Each machine that the journal believes to be there is asked for by its id; those of a run that
    is not-proved are asked what ends them, and with that proof it is ready.
    """
    with open_journal() as journal:
        found = journal.deployment(run)
        if found is None:
            raise InputError(f"{run}: the journal has no such run; {_known(journal)}.")
        seen = _ask(journal, found, output)
        found = journal.deployment(run) or found
        show_run(found, journal.events(run), output, CLOCK.at(0.0), seen)
        door = door_of(found, state_folder())
        for machine in found.machines:
            if machine.state != "made" or not machine.address:
                continue
            if door.key is not None:
                output.say(f"log in: ssh -i {door.key} {door.user}@{machine.address}")
            if log:
                _print_log(SshLogin(door=door), machine.name, machine.address)


def _ask(journal: Journal, run: Deployment, output: Output) -> Mapping[str, Presence]:
    """Return what the provider answers about each machine, by id; note where it cannot be asked."""
    wanted = [(one, run) for one in run.computing if one.state == "made"]
    if not wanted:
        return NONE_SEEN
    reached = sessions(journal, output, (run.provider,))
    for one in reached.unreached:
        output.say(f"note: {one.text}")
    if not reached.sessions:
        return NONE_SEEN
    seen = presence_of(reached.sessions[0], wanted)
    _ask_for_proof(reached.sessions[0], run, seen)
    return seen


def _ask_for_proof(session: Session, run: Deployment, seen: Mapping[str, Presence]) -> None:
    """Ask the machines of a run of which nothing is proved yet; it ends none."""
    there = tuple(one.resource for one in seen.values() if one.resource is not None)
    if run.state == "not-proved" and there:
        with session.journal.working_on(run.marks.run) as mine:
            if mine:
                ask_again(session, run, there)


def _print_log(login: SshLogin, name: str, address: str) -> None:
    try:
        text = login.log(address)
    except ProviderError as error:
        text = error.problems[0]
    click.echo(f"bootstrap of {name}:")
    click.echo(text)


def _known(journal: Journal) -> str:
    runs = [one.marks.run for one in journal.deployments() if one.state != "ended"]
    return f"known: {', '.join(runs)}" if runs else "it has no open one (gpucost list --all)"
