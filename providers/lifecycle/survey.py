"""What a provider has of ours: its lists, joined with the machines of the journal asked by id.

The list finds what the journal does not know; the id finds what the list leaves out. Machines whose
end is proved on the way are written down, so they are no longer billed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from providers.interface import COMPUTING, Deployment, JournaledResource, Resource
from providers.lifecycle.accounts import account_of, elsewhere, why_unproved
from providers.lifecycle.presence import Presence, Unasked, as_kept, settled
from providers.lifecycle.session import Session
from providers.ownership_tags import latest
from providers.pools.node_pool import NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What one provider has of ours.

    Attributes:
        resources: everything that is there, of every run and owner.
        machines: what is known of each machine of the journal's open runs, by id.
        unsure: run -> its machines that the provider neither shows nor proves gone, in words.
        unasked: parts of the provider of which nothing is known.
        strangers: what looks like ours and is not provably so, in words.
    """

    resources: tuple[Resource, ...]
    machines: Mapping[str, Presence]
    unsure: Mapping[str, tuple[str, ...]]
    unasked: tuple[Unasked, ...]
    strangers: tuple[str, ...]

    @property
    def machines_are_complete(self) -> bool:
        """Whether every machine of ours that the provider shows is in it."""
        return not any(one.kind in ("", *COMPUTING) for one in self.unasked)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Everything that it does not know, in words."""
        unsure = (one for several in self.unsure.values() for one in several)
        return (*unsure, *(one.text for one in self.unasked), *self.strangers)


def survey(session: Session, regions: tuple[str, ...] | None = None) -> Survey:
    """Ask a provider what there is.

    Raises:
        JournalError: the journal cannot be read.
    """
    journal, provider = session.journal, session.cloud.name
    open_ = [one for one in journal.open_deployments() if one.provider == provider]
    seen = session.cloud.ours(regions, None, {one.marks.run: one.marks for one in open_})
    _record_new(session, open_, seen.resources)
    known = {one.id: Presence(state="present", resource=one) for one in seen.resources}
    wanted = [
        (machine, run)
        for run in open_
        for machine in run.computing
        if machine.state == "made" and machine.id not in known
    ]
    asked = presence_of(session, wanted)
    present = {one.marks.run for one in seen.resources}
    present |= {run.marks.run for machine, run in wanted if asked[machine.id].state == "present"}
    others = elsewhere(session, [run for run in open_ if run.marks.run not in present])
    unsure = {run: (f"{run} is not known here: {why}",) for run, why in others.items()}
    for machine, run in wanted:
        answer = asked[machine.id]
        if answer.state in _WORDS and run.marks.run not in others:
            words = f"{machine.name} ({machine.id}) is {_WORDS[answer.state]}: {answer.why}"
            unsure[run.marks.run] = (*unsure.get(run.marks.run, ()), words)
    there = (one.resource for one in asked.values() if one.resource is not None)
    return Survey(
        resources=(*seen.resources, *there),
        machines={**known, **asked},
        unsure=unsure,
        unasked=seen.unasked,
        strangers=seen.strangers,
    )


def _record_new(session: Session, runs: Iterable[Deployment], there: Iterable[Resource]) -> None:
    """Write down nodes that a cluster's autoscaler has added to the pool of a run: they cost."""
    known = {run.marks.run: {one.id for one in run.machines} for run in runs}
    for one in there:
        if one.kind == NODE and one.id not in known.get(one.marks.run, {one.id}):
            session.try_writing(partial(session.journal.record, one, session.now()))


_WORDS = {"not-shown": "not shown, which does not prove its end", "not-asked": "not asked about"}


def presence_of(
    session: Session, wanted: Collection[tuple[JournaledResource, Deployment]]
) -> Mapping[str, Presence]:
    """Return what is known of machines of the journal, by id; write down what is proved gone."""
    asked = settled(
        session,
        (
            (machine, run.marks, partial(why_unproved, session, run.account))
            for machine, run in wanted
        ),
    )
    for machine, run in wanted:
        if asked[machine.id].state == "gone":
            write = partial(session.journal.gone, run.marks.run, machine, session.now())
            session.try_writing(write)
    return asked


def unknown_runs(session: Session, there: tuple[Resource, ...]) -> tuple[str, ...]:
    """Return runs that the provider lists and the journal does not know, or believes ended."""
    known = {one.marks.run for one in session.journal.open_deployments()}
    return tuple(dict.fromkeys(o.marks.run for o in there if o.marks.run not in known))


def found_run(session: Session, seen: Survey, run: str) -> Deployment:
    """Return a run that only the provider knows, as the journal would know it once adopted."""
    there = [one for one in seen.resources if one.marks.run == run]
    machines = [one for one in there if one.is_machine]
    return Deployment(
        marks=latest(one.marks for one in there),
        provider=session.cloud.name,
        offer=session.price(machines[0]) if machines else None,
        region=machines[0].region if machines else "",
        count=len(machines),
        state="unknown",
        started_at=min((o.created_at for o in machines if o.created_at), default=session.now()),
        ended_at=None,
        predicted_usd=None,
        resources=tuple(as_kept(one, session.now()) for one in there),
        reason="not in the journal",
        account=account_of(session),
    )
