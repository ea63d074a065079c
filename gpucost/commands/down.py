"""`gpucost down`: end launches; done when the provider says that everything is gone."""

import os
from dataclasses import dataclass

import click

from gpucost.launch.confirm import confirm
from gpucost.launch.state import open_journal, sessions, state_folder
from gpucost.views.output import Output, common_options
from pricing.errors import (
    GpucostError,
    InputError,
    LaunchInterruptedError,
    PartialError,
    ProviderError,
    RefusedError,
)
from pricing.money import show
from providers.interface import Deployment, Resource
from providers.lifecycle.end import end_run, regions_of
from providers.lifecycle.journal import Journal
from providers.lifecycle.ledger import bill_run
from providers.lifecycle.reap import adopt
from providers.lifecycle.session import Session
from providers.ownership_tags import Marks, owner_of
from providers.ssh.keys import drop_key


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """A run to end: what the journal knows of it and what the provider lists."""

    marks: Marks
    session: Session
    known: Deployment | None
    there: tuple[Resource, ...]


@click.command(name="down", epilog="Example: gpucost down k3f9xw2m")
@click.argument("runs", nargs=-1, metavar="ID...")
@click.option("--all", "everything", is_flag=True, help="Everything of this owner.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def command(runs: tuple[str, ...], everything: bool, yes: bool, output: Output) -> None:  # noqa: FBT001 - click's flags
    """End launches: machines, then keys, firewalls and whatever else they have.

    With --all also what carries this owner's tag and is not in the journal; an unreadable journal
    is set aside first.
    """
    if bool(runs) == everything:
        raise InputError("end what? Give the ID of a run (gpucost list), or --all.")
    with open_journal(go_on=output.say, mend=everything) as journal:
        targets, troubles = _targets(journal, runs, output, everything=everything)
        if targets:
            _tell(targets, output)
            confirm(f"End {len(targets)} runs?", yes=yes)
        for target in targets:
            troubles += _end(target, journal, output)
    if troubles:
        raise troubles[0] if len(troubles) == 1 else _joined(troubles)
    if not targets:
        output.say("nothing is there to end.")


def _joined(troubles: list[GpucostError]) -> GpucostError:
    worst = next((one for one in troubles if isinstance(one, PartialError)), troubles[0])
    return type(worst)(problem for one in troubles for problem in one.problems)


def _targets(
    journal: Journal, runs: tuple[str, ...], output: Output, *, everything: bool
) -> tuple[list[_Target], list[GpucostError]]:
    """What is to be ended, and what keeps us from knowing all of it."""
    owner = owner_of(os.environ)
    known = {one.marks.run: one for one in journal.deployments()}
    found, skipped, missing = sessions(journal, output)
    targets: list[_Target] = []
    troubles: list[GpucostError] = []
    for session in found:
        name = session.cloud.name
        try:
            listed = session.cloud.ours(None)
        except ProviderError as error:
            troubles.append(error)
            continue
        here = {r: one for r, one in known.items() if one.provider == name and one.state != "ended"}
        for run in dict.fromkeys((*here, *(one.marks.run for one in listed))):
            there = tuple(one for one in listed if one.marks.run == run)
            marks = there[0].marks if there else here[run].marks
            if run in runs and marks.owner != owner:
                raise RefusedError(
                    f"{run} belongs to {marks.owner}, and this is {owner} "
                    f"(GPUCOST_OWNER names another)."
                )
            if run in runs or (everything and marks.owner == owner):
                one = _Target(marks=marks, session=session, known=here.get(run), there=there)
                targets.append(one)
    lost = [r for r, one in known.items() if one.provider in missing and one.state != "ended"]
    if any(run in runs or everything for run in lost):
        troubles.append(ProviderError(note for note in skipped if _concerns(note, known, lost)))
    ended = {target.marks.run for target in targets} | {*lost}
    unknown = [run for run in runs if run not in ended and run not in known]
    if unknown and not troubles:
        raise InputError(f"{run}: no such run, in the journal or at a provider." for run in unknown)
    return targets, troubles


def _concerns(note: str, known: dict[str, Deployment], lost: list[str]) -> bool:
    return note.partition(" ")[0] in {known[run].provider for run in lost}


def _tell(targets: list[_Target], output: Output) -> None:
    for target in targets:
        things = ", ".join(f"{one.kind} {one.name}" for one in target.there) or "nothing listed"
        output.say(f"{target.marks.run} ({target.session.cloud.name}): {things}")


def _end(target: _Target, journal: Journal, output: Output) -> list[GpucostError]:
    run, session = target.marks.run, target.session
    with journal.working_on(run) as mine:
        if not mine:
            return [PartialError(f"{run}: another gpucost is working on it; try again after it.")]
        adopt(session, target.marks, target.there)
        known = journal.deployment(run)
        regions = None if known is None else regions_of(known)
        try:
            session.try_writing(lambda: journal.mark_run(run, "ending", session.now()))
            end_run(session, target.marks, regions)
        except KeyboardInterrupt as error:
            told = f"interrupted while {run} was ended; `gpucost down {run}` goes on."
            raise LaunchInterruptedError(told) from error
        except GpucostError as error:
            return [error]
    drop_key(state_folder(), run)
    ended = journal.deployment(run)
    if ended is not None:
        bill = bill_run(ended, session.now())
        cost = "unknown" if bill.usd is None else f"${show(bill.usd)}"
        output.say(f"{run} is gone: {bill.billed_s} s billed, {cost}")
    return []
