"""Which runs to end, and their end: done when each id of theirs is proved to be gone."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpucost.files.writing import state_folder
from gpucost.machines.state import ReachableProviders, job_request_file, sessions, this_owner
from gpucost.views.output import Output
from pricing.errors import (
    GpucostError,
    InputError,
    InterruptedByUserError,
    PartialError,
    RefusedError,
)
from pricing.message import Message
from pricing.money import show
from providers.interface import Deployment, JournaledResource, Resource
from providers.journal.journal import Journal
from providers.journal.ledger import bill_run
from providers.lifecycle.end import end_run, regions_of
from providers.lifecycle.presence import found_run, survey, unknown_runs
from providers.lifecycle.reap import adopt
from providers.lifecycle.session import Session
from providers.ownership_tags import OwnershipTags, has_same_name, latest, owns, restore_owner
from providers.ssh.connection import drop_key, runs_with_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class RunToTerminate:
    """A run to end.

    Attributes:
        marks: whose, until when.
        session: with its provider.
        recorded: what the journal knows of it; None: nothing.
        listed: what the provider lists of it.
    """

    marks: OwnershipTags
    session: Session
    recorded: Deployment | None
    listed: tuple[Resource, ...]


RunsToTerminate = tuple[list[RunToTerminate], list[str], bool]
"""Runs to end; what keeps us from knowing all of them, in sentences; whether anybody was asked."""


def find_runs(journal: Journal, runs: tuple[str, ...], output: Output) -> RunsToTerminate:
    """Return the named runs, or all of this owner where none is named.

    Raises:
        InputError: a run is not known anywhere.
        RefusedError: a run is another owner's.
    """
    named = [journal.deployment(run) for run in dict.fromkeys(runs)]
    recorded = [deployment for deployment in named if deployment is not None]
    if runs and len(recorded) == len(named):
        return _recorded_runs(journal, recorded, output)
    return _search(journal, runs, output)


def _recorded_runs(
    journal: Journal, deployments: list[Deployment], output: Output
) -> RunsToTerminate:
    """Return runs of the journal: only their providers are opened, and nothing is listed."""
    owner = this_owner()
    for run in deployments:
        refuse_others(run.marks, owner)
    names = dict.fromkeys(run.provider for run in deployments)
    reached = sessions(journal, output, names, must_ask=True)
    by_name = {session.cloud.name: session for session in reached.sessions}
    targets = [
        RunToTerminate(marks=run.marks, session=by_name[run.provider], recorded=run, listed=())
        for run in deployments
        if run.provider in by_name
    ]
    return targets, _unreached(reached, deployments), bool(targets)


def _unreached(reached: ReachableProviders, deployments: list[Deployment]) -> list[str]:
    """Return what is not ended because its provider could not be opened."""
    messages = []
    for provider in reached.missed(deployments):
        runs = ", ".join(run.marks.run for run in deployments if run.provider == provider.provider)
        messages.append(f"{provider.text}{f' So {runs} may still be there.' if runs else ''}")
    return messages


def tell_of_lost(resources: Iterable[Resource], output: Output) -> None:
    """Say that there is something of this user's name, launched from another state folder."""
    owner = this_owner()
    lost = {
        resource.marks.run: resource.marks.owner
        for resource in resources
        if has_same_name(owner, resource.marks.owner) and not owns(owner, resource.marks.owner)
    }
    if lost:
        owners = ", ".join(dict.fromkeys(lost.values()))
        output.say(Message("machine.lost-state", owners=owners, runs=", ".join(lost)))


def recover(journal: Journal, output: Output) -> list[str]:
    """Write down again what a lost state folder of this user's name has launched.

    Returns:
        what could not be asked, in sentences.

    Raises:
        InputError: there are several such folders, or the journal has runs of this one.
    """
    reached, owner = sessions(journal, output, forgotten=True), this_owner()
    inventories = [(session, survey(session)) for session in reached.sessions]
    lost = [
        (session, run, run.marks.owner)
        for session, inventory in inventories
        for name in unknown_runs(session, inventory.resources)
        if has_same_name(owner, (run := found_run(session, inventory.resources, name)).marks.owner)
    ]
    owners = sorted({tagged for _, _, tagged in lost} - {owner})
    if owners and (len(owners) > 1 or journal.deployments()):
        details = {"owners": ", ".join(owners), "owner": owner, "first": owners[0]}
        raise InputError(Message("machine.choose-owner", **details))
    for tagged in owners:
        restore_owner(state_folder(), tagged)
    for session, run, _ in lost:
        resources = [
            resource
            for inventory in (answer for at, answer in inventories if at is session)
            for resource in inventory.resources
            if resource.marks.run == run.marks.run
        ]
        adopt(session, run.marks, tuple(resources))
        output.say(f"{run.marks.run} is written down again; its key is gone, so none can log in.")
    doubts = [doubt for _, inventory in inventories for doubt in inventory.doubts]
    return [*doubts, *(provider.text for provider in reached.missed(()))]


def refuse_others(marks: OwnershipTags, owner: str) -> None:
    """Refuse to change what another owner launched.

    Raises:
        RefusedError: it is another owner's.
    """
    if not owns(owner, marks.owner):
        details = {"run": marks.run, "owner": marks.owner, "me": owner}
        raise RefusedError(Message("machine.not-yours", **details))


def _search(journal: Journal, runs: tuple[str, ...], output: Output) -> RunsToTerminate:
    """Return the runs that providers list and those of the journal; without names, the owner's."""
    owner = this_owner()
    named = [item for item in map(journal.deployment, runs) if item is not None]
    recorded = {item.marks.run: item for item in (*journal.open_deployments(), *named)}
    open_ = tuple(recorded.values())
    reached = sessions(journal, output, must_ask=True)
    targets: list[RunToTerminate] = []
    doubts = _unreached(reached, [item for item in open_ if not runs or item.marks.run in runs])
    for session in reached.sessions:
        inventory = survey(session)
        doubts += inventory.doubts
        tell_of_lost(inventory.resources, output)
        local = {item.marks.run: item for item in open_ if item.provider == session.cloud.name}
        for run in dict.fromkeys((*local, *(item.marks.run for item in inventory.resources))):
            resources = tuple(item for item in inventory.resources if item.marks.run == run)
            own = (local[run].marks,) if run in local else ()
            marks = latest((*(item.marks for item in resources), *own))
            if run in runs:
                refuse_others(marks, owner)
            if run in runs or (not runs and owns(owner, marks.owner)):
                recorded_run = local.get(run)
                target = RunToTerminate(
                    marks=marks, session=session, recorded=recorded_run, listed=resources
                )
                targets.append(target)
    listed_runs = {item.marks.run for item in targets} | set(recorded)
    missing = [run for run in runs if run not in listed_runs]
    if missing and not doubts:
        raise InputError(f"{run}: no such run, in the journal or at a provider." for run in missing)
    return targets, doubts, bool(reached.queried)


def tell(targets: list[RunToTerminate], output: Output) -> None:
    """Say what each run has that would be ended."""
    for target in targets:
        recorded = () if target.recorded is None else target.recorded.resources
        things: tuple[JournaledResource | Resource, ...] = target.listed or tuple(
            resource for resource in recorded if resource.state in ("intended", "made")
        )
        names = (
            ", ".join(f"{resource.kind} {resource.name}" for resource in things) or "nothing known"
        )
        output.say(f"{target.marks.run} ({target.session.cloud.name}): {names}")


def drop_leftover_keys(journal: Journal) -> None:
    """Remove key pairs of runs that ended or never began: a process died before it did so."""
    for run in runs_with_keys(state_folder()):
        with journal.working_on(run) as locked:
            deployment = journal.deployment(run) if locked else None
            if locked and (deployment is None or deployment.state == "ended"):
                drop_key(state_folder(), run)


def end(target: RunToTerminate, journal: Journal, output: Output) -> list[GpucostError]:
    """End a run and say what it has cost; what went wrong is returned.

    Raises:
        InterruptedByUserError: interrupted meanwhile; a next `gpucost down` goes on.
    """
    run, session = target.marks.run, target.session
    with journal.working_on(run) as locked:
        if not locked:
            return [PartialError(Message("machine.busy", run=run))]
        adopt(session, target.marks, target.listed)
        recorded = journal.deployment(run)
        regions = None if recorded is None else regions_of(recorded)
        try:
            session.try_writing(lambda: journal.mark_run(run, "ending", session.now()))
            end_run(session, target.marks, regions)
        except KeyboardInterrupt as error:
            message = f"interrupted while {run} was ended; `gpucost down {run}` goes on."
            raise InterruptedByUserError(message) from error
        except GpucostError as error:
            return [error]
    drop_key(state_folder(), run)
    job_request_file(run).unlink(missing_ok=True)  # its command may hold a secret
    ended = journal.deployment(run)
    if ended is not None:
        bill = bill_run(ended, session.now())
        cost = "unknown" if bill.usd is None else f"${show(bill.usd)}"
        output.say(f"{run} is gone: {bill.billed_s} s billed, {cost}")
    return []
