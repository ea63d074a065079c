"""`gpucost list`: what was launched, what it costs an hour and has cost so far."""

from dataclasses import dataclass, field

import click

from gpucost.machines.state import CLOCK, open_journal, sessions, this_owner
from gpucost.views.output import Output, output_options
from gpucost.views.runs import show_list
from pricing.errors import PartialError
from pricing.listing import counted
from providers.interface import Deployment, Presence
from providers.journal.journal import Journal
from providers.lifecycle.presence import Survey, found_run, survey, unknown_runs
from providers.lifecycle.readiness import ask_again
from providers.lifecycle.session import Session
from providers.ownership_tags import owns


@dataclass(kw_only=True)
class _Seen:
    """What the providers told.

    Attributes:
        machines: what is known of each, by id.
        unknown: runs of this owner that no journal knows.
        asked: providers.
        doubts: what is not known, in words.
    """

    machines: dict[str, Presence] = field(default_factory=dict)
    unknown: list[Deployment] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@click.command(name="list", epilog="Example: gpucost list --all")
@click.option("--all", "everything", is_flag=True, help="Ended runs, too.")
@click.option("--offline", is_flag=True, help="From the journal alone; no provider is asked.")
@output_options
def command(everything: bool, offline: bool, output: Output) -> None:  # noqa: FBT001 - click's flags
    """List launches with cost so far, burn rate and the predicted total.

    Machines are asked for by their id, at providers whose credentials are there; where the journal
    has no open run, every such provider is asked before it is said that nothing burns. A machine
    that is not shown counts until its end is proved. Machines of a run that is not-proved are asked
    what ends them; with that proof it is ready. Exit 6: something could not be asked.
    """
    with open_journal(go_on=output.say) as journal:
        seen = _Seen() if offline else _ask(journal, output)
        seen.doubts += journal.doubts
        runs = journal.deployments() if everything else journal.open_deployments()
        show_list([*runs, *seen.unknown], output, CLOCK.at(0.0), seen.machines, tuple(seen.asked))
    if seen.doubts:
        raise PartialError(seen.doubts)


def _ask(journal: Journal, output: Output) -> _Seen:
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
        _ask_for_proof(session, found, open_)
        _tell_of_unknown(session, found, seen, output)
    return seen


def _ask_for_proof(session: Session, found: Survey, runs: tuple[Deployment, ...]) -> None:
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
