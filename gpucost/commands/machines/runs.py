"""`gpucost list` and `gpucost show`: launches, their machines, and what they have cost so far."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import click

from gpucost.arguments.parameters import options
from gpucost.arguments.settings import is_offline
from gpucost.files.writing import state_folder
from gpucost.machines.ending import recover as rebuild
from gpucost.machines.ending import tell_of_lost
from gpucost.machines.state import CLOCK, door_of, open_journal, sessions, this_owner
from gpucost.views.output import Output, output_options
from gpucost.views.runs import NONE_SEEN, show_list, show_run
from pricing.errors import InputError, PartialError, ProviderError
from pricing.listing import counted
from pricing.message import Message
from providers.interface import Deployment, ExistenceCheck, Resource
from providers.journal.journal import Journal
from providers.lifecycle.presence import Survey, found_run, presence_of, survey, unknown_runs
from providers.lifecycle.readiness import ask_again
from providers.lifecycle.session import Session
from providers.ownership_tags import owns
from providers.ssh.connection import Login


@dataclass(kw_only=True)
class _ProviderAnswers:
    """What the providers told.

    Attributes:
        machines: what is known of each, by id.
        unjournaled: runs of this owner that no journal knows.
        complete: providers, and whether each told all of its machines.
        foreign: whether a machine of another owner runs.
        doubts: what is not known, in words.
    """

    machines: dict[str, ExistenceCheck] = field(default_factory=dict)
    unjournaled: list[Deployment] = field(default_factory=list)
    complete: dict[str, bool] = field(default_factory=dict)
    foreign: bool = False
    doubts: list[str] = field(default_factory=list)


@click.command(name="list", epilog="Example: gpucost list --all")
@click.argument("run", required=False, metavar="[ID]")
@options("log all.list offline.list recover")
@output_options
def list_(
    run: str | None, output: Output, *, log: bool, everything: bool, offline: bool, recover: bool
) -> None:
    """List launches with cost so far, burn rate and the predicted total.

    With an ID one launch is shown: machines with addresses, events in order, how to log in.

    Machines are looked up by id at the providers whose credentials are set. If the journal has no
    open run, all of those providers are checked for machines. A machine that its provider does not
    list counts until its end is proved. Machines of a run in state not-proved are asked what ends
    them; once they prove it, the run is ready. Exit 6: a provider could not be asked.
    """
    if run is not None:
        _show(run, output, log=log)
        return
    with open_journal(go_on=output.say) as journal:
        doubts = rebuild(journal, output) if recover else []
        answers = _ProviderAnswers() if offline or is_offline() else _ask_all(journal, output)
        answers.doubts += (*doubts, *journal.doubts)
        runs = journal.deployments() if everything else journal.open_deployments()
        show_list(
            [*runs, *answers.unjournaled],
            output,
            CLOCK.at(0.0),
            answers.machines,
            answers.complete,
            foreign=answers.foreign,
        )
    if answers.doubts:
        raise PartialError(dict.fromkeys(answers.doubts))


def _ask_all(journal: Journal, output: Output) -> _ProviderAnswers:
    """Ask the providers of open runs; all that can be asked, where there is none."""
    open_ = journal.open_deployments()
    providers = {run.provider for run in open_}
    reached = sessions(journal, output, providers) if providers else sessions(journal, output)
    missed = reached.missed(open_)
    complete = dict.fromkeys(reached.queried, True) | {item.provider: False for item in missed}
    answers = _ProviderAnswers(complete=complete, doubts=[item.text for item in missed])
    if not complete:
        output.say(Message("machine.nobody-asked"))
    for session in reached.sessions:
        inventory = survey(session)
        answers.machines.update(inventory.machines)
        answers.doubts += inventory.doubts
        if inventory.doubts and session.cloud.name in complete:
            complete[session.cloud.name] = False
        for run in open_:
            _ask_for_proof(session, run, inventory.resources)
        _tell_of_unknown(session, inventory, answers, output)
    return answers


def _tell_of_unknown(
    session: Session, inventory: Survey, answers: _ProviderAnswers, output: Output
) -> None:
    """List this owner's runs that only the provider knows, and count those of others."""
    owner, foreign = this_owner(), 0
    tell_of_lost(inventory.resources, output)
    for run in unknown_runs(session, inventory.resources):
        deployment = found_run(session, inventory.resources, run)
        if owns(owner, deployment.marks.owner):
            answers.unjournaled.append(deployment)
            output.say(f"note: {run} is not in the journal: gpucost reap adopts or removes it")
        else:
            foreign += len(deployment.machines)
    if foreign:
        answers.foreign = True
        output.say(f"note: {session.cloud.name} has {counted(foreign, 'machine')} of other owners")


def _show(run: str, output: Output, *, log: bool) -> None:
    with open_journal() as journal:
        deployment = journal.deployment(run)
        if deployment is None:
            raise InputError(f"{run}: the journal has no such run; {_open_runs(journal)}.")
        presence = _ask_one(journal, deployment, output)
        deployment = journal.deployment(run) or deployment
        show_run(deployment, journal.events(run), output, CLOCK.at(0.0), presence)
        door = door_of(deployment, state_folder())
        for machine in deployment.machines:
            if machine.state != "made" or not machine.address:
                continue
            if door.key is not None:
                output.say(f"log in: ssh -i {door.key} {door.user}@{machine.address}")
            if log:
                _print_log(Login(door=door), machine.name, machine.address)


def _ask_one(journal: Journal, run: Deployment, output: Output) -> Mapping[str, ExistenceCheck]:
    """Return what the provider answers about each machine, by id; note where it cannot be asked."""
    machines = [(item, run) for item in run.computing if item.state == "made"]
    if not machines:
        return NONE_SEEN
    reached = sessions(journal, output, (run.provider,))
    for item in reached.unreached:
        output.say(f"note: {item.text}")
    if not reached.sessions:
        return NONE_SEEN
    presence = presence_of(reached.sessions[0], machines)
    shown = [check.resource for check in presence.values() if check.resource is not None]
    _ask_for_proof(reached.sessions[0], run, shown)
    return presence


def _ask_for_proof(session: Session, run: Deployment, resources: Iterable[Resource]) -> None:
    """Ask the machines of a run of which nothing is proved yet; it ends none."""
    machines = tuple(o for o in resources if o.computes and o.marks.run == run.marks.run)
    if run.state == "not-proved" and machines:
        with session.journal.working_on(run.marks.run) as locked:
            if locked:
                ask_again(session, run, machines)


def _print_log(login: Login, name: str, address: str) -> None:
    try:
        text = login.log(address)
    except ProviderError as error:
        text = error.problems[0]
    click.echo(f"bootstrap of {name}:")
    click.echo(text)


def _open_runs(journal: Journal) -> str:
    runs = [
        deployment.marks.run for deployment in journal.deployments() if deployment.state != "ended"
    ]
    return f"known: {', '.join(runs)}" if runs else "it has no open one (gpucost list --all)"
