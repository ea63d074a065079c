"""`gpucost list` and `gpucost show`: launches, their machines, and what they have cost so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import click

from gpucost.files.writing import state_folder
from gpucost.machines.state import CLOCK, door_of, open_journal, sessions, this_owner
from gpucost.views.output import Output, output_options
from gpucost.views.runs import NONE_SEEN, show_list, show_run
from pricing.errors import InputError, PartialError, ProviderError
from pricing.listing import counted
from providers.interface import Deployment, ExistenceCheck
from providers.journal.journal import Journal
from providers.lifecycle.presence import Survey, found_run, presence_of, survey, unknown_runs
from providers.lifecycle.readiness import ask_again
from providers.lifecycle.session import Session
from providers.ownership_tags import owns
from providers.ssh.connection import SshLogin


@dataclass(kw_only=True)
class _Seen:
    """What the providers told.

    Attributes:
        machines: what is known of each, by id.
        unknown: runs of this owner that no journal knows.
        asked: providers.
        doubts: what is not known, in words.
    """

    machines: dict[str, ExistenceCheck] = field(default_factory=dict)
    unknown: list[Deployment] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@click.command(name="list", epilog="Example: gpucost list --all")
@click.option("--all", "everything", is_flag=True, help="Include ended runs.")
@click.option("--offline", is_flag=True, help="Read only the journal; do not contact providers.")
@output_options
def list_(everything: bool, offline: bool, output: Output) -> None:  # noqa: FBT001 - click's flags
    """List launches with cost so far, burn rate and the predicted total.

    Machines are looked up by id at the providers whose credentials are set. If the journal has no
    open run, all of those providers are checked for machines. A machine that its provider does not
    list counts until its end is proved. Machines of a run in state not-proved are asked what ends
    them; once they prove it, the run is ready. Exit 6: a provider could not be asked.
    """
    with open_journal(go_on=output.say) as journal:
        seen = _Seen() if offline else _ask_all(journal, output)
        seen.doubts += journal.doubts
        runs = journal.deployments() if everything else journal.open_deployments()
        show_list([*runs, *seen.unknown], output, CLOCK.at(0.0), seen.machines, tuple(seen.asked))
    if seen.doubts:
        raise PartialError(seen.doubts)


def _ask_all(journal: Journal, output: Output) -> _Seen:
    """Ask the providers of open runs; all that can be asked, where there is none."""
    open_ = journal.open_deployments()
    wanted = {run.provider for run in open_}
    reached = sessions(journal, output, wanted) if wanted else sessions(journal, output)
    seen = _Seen(asked=list(reached.asked))
    seen.doubts += (one.text for one in reached.missed(open_))
    for session in reached.sessions:
        found = survey(session)
        seen.machines.update(found.machines)
        seen.doubts += found.doubts
        _prove(session, found, open_)
        _tell_of_unknown(session, found, seen, output)
    return seen


def _prove(session: Session, found: Survey, runs: tuple[Deployment, ...]) -> None:
    """Ask the machines of runs of which nothing is proved yet; it ends none."""
    for run in runs:
        there = tuple(o for o in found.resources if o.computes and o.marks.run == run.marks.run)
        if run.state == "not-proved" and there:
            with session.journal.working_on(run.marks.run) as mine:
                if mine:
                    ask_again(session, run, there)


def _tell_of_unknown(session: Session, found: Survey, seen: _Seen, output: Output) -> None:
    """List this owner's runs that only the provider knows, and count those of others."""
    owner, others = this_owner(), 0
    for run in unknown_runs(session, found.resources):
        one = found_run(session, found, run)
        if owns(owner, one.marks.owner):
            seen.unknown.append(one)
            output.say(f"note: {run} is not in the journal: gpucost reap adopts or removes it")
        else:
            others += len(one.machines)
    if others:
        output.say(f"note: {session.cloud.name} has {counted(others, 'machine')} of other owners")


@click.command(name="show", epilog="Example: gpucost show k3f9xw2m --log")
@click.argument("run", metavar="ID")
@click.option("--log", is_flag=True, help="Fetch the bootstrap log over SSH.")
@output_options
def show(run: str, log: bool, output: Output) -> None:  # noqa: FBT001 - click's flag
    """Show one launch: machines with addresses, events in order, how to log in.

    Each machine is looked up by id at its provider. Machines of a run in state not-proved are asked
    what ends them; once they prove it, the run is ready.
    """
    with open_journal() as journal:
        found = journal.deployment(run)
        if found is None:
            raise InputError(f"{run}: the journal has no such run; {_known(journal)}.")
        seen = _ask_one(journal, found, output)
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


def _ask_one(journal: Journal, run: Deployment, output: Output) -> Mapping[str, ExistenceCheck]:
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


def _ask_for_proof(session: Session, run: Deployment, seen: Mapping[str, ExistenceCheck]) -> None:
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
