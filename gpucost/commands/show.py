"""`gpucost show ID`: one launch, its machines, what happened, and the log of its bootstrap."""

import click

from gpucost.launch.ssh_access import door_of
from gpucost.launch.state import CLOCK, open_journal, state_folder
from gpucost.views.output import Output, output_options
from gpucost.views.runs import show_run
from pricing.errors import InputError, ProviderError
from providers.lifecycle.journal import Journal
from providers.ssh.connection import SshLogin


@click.command(name="show", epilog="Example: gpucost show k3f9xw2m --log")
@click.argument("run", metavar="ID")
@click.option("--log", is_flag=True, help="Fetch the log of the bootstrap over SSH.")
@output_options
def command(run: str, log: bool, output: Output) -> None:  # noqa: FBT001 - click's flag
    """Show one launch: machines with addresses, events in order, how to log in."""
    with open_journal() as journal:
        found = journal.deployment(run)
        if found is None:
            raise InputError(f"{run}: the journal has no such run; {_known(journal)}.")
        show_run(found, journal.events(run), output, CLOCK.at(0.0))
        door = door_of(found, state_folder())
        for machine in found.machines:
            if machine.state != "made" or not machine.address:
                continue
            if door.key is not None:
                output.say(f"log in: ssh -i {door.key} {door.user}@{machine.address}")
            if log:
                _print_log(SshLogin(door=door), machine.name, machine.address)


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
