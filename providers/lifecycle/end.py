"""The end of a run: machines by id until each is proved gone, then side resources, the tag last.

What belongs to a run is what the journal knows by id and what the provider lists of it; neither
hides the other. Every id, kind and region is on its own: one that fails stops no other, and what
could not be asked is said. Asking for an end can do no harm twice, so it is asked for until it is
proved (`providers.lifecycle.presence`), and again by whoever calls next.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from pricing.errors import PartialError, ProviderError
from providers import interface
from providers.journal.journal import JournalError
from providers.lifecycle.presence import Evidence, ask, evidence_of, in_other_accounts, why_unproved
from providers.lifecycle.session import Session, Stopwatch
from providers.ownership_tags import OwnershipTags

_OLDEST = datetime.min.replace(tzinfo=UTC)


def in_order(resources: Iterable[interface.Resource]) -> list[interface.Resource]:
    """Sort by age, the oldest first; ids decide among those of one second."""
    return sorted(resources, key=lambda o: (o.created_at or _OLDEST, len(o.id), o.id))


def duplicates(
    resources: Iterable[interface.Resource], deployment: interface.Deployment | None = None
) -> list[interface.Resource]:
    """Return machines and pools whose name another of the same run has.

    The one that the journal knows stays, else the oldest.
    """
    recorded = [entry.id for entry in deployment.computing] if deployment is not None else []
    named: dict[tuple[str, str], list[interface.Resource]] = defaultdict(list)
    for resource in resources:
        if resource.kind in (interface.MACHINE, interface.POOL) and resource.state != "ending":
            named[resource.marks.run, resource.name].append(resource)
    return [
        more
        for same in named.values()
        for more in sorted(
            in_order(same), key=lambda machine: [*recorded, machine.id].index(machine.id)
        )[1:]
    ]


def end_duplicates(session: Session, more: Iterable[interface.Resource]) -> None:
    """Say and write down that they are there, and ask for their end; what is left is `down`'s."""
    for resource in more:
        session.say(f"warning: {resource.name} was made twice; ending the second, {resource.id}")
        session.try_writing(partial(session.journal.record, resource, session.now()))
        try:
            session.cloud.destroy(resource)
        except ProviderError as error:
            session.say(f"warning: {resource.id} is not ended yet: {error.problems[0]}")


_OPEN = ("intended", "made")
_MADE_WITHIN, _CLOCKS = timedelta(minutes=5), timedelta(seconds=5)
"""How long after our call a machine may have been made by it, where the answer was lost; ours."""

_MAY_BE_IT = (
    ", made in the minutes after that call, has none of our marks and may be it; it is left. End "
    "it at the provider if it is yours; else the run can be closed a day after its launch."
)

_DOUBTED = timedelta(days=1)
"""How long a machine without marks that was made then keeps a run from being closed; ours."""

_Id = tuple[str, str]  # kind, id
_Name = tuple[str, str, str]  # kind, name, region


def end_run(
    session: Session,
    marks: OwnershipTags,
    regions: interface.Regions,
    *,
    doing: str = "asked to end",
    closes: bool = True,
) -> int:
    """Destroy everything of a run and return how many resources were destroyed.

    Args:
        session: provider, journal, time.
        marks: of the run.
        regions: where to look, where listing is by region; None: everywhere.
        doing: why, for the journal.
        closes: whether the run has ended then; a launch goes on at its next place.

    Raises:
        PartialError: something is still there, or could not be asked; the message names it.
    """
    run = marks.run
    session.try_writing(partial(session.journal.note, run, session.now(), doing))
    first = tuple(kind for kind in session.cloud.kinds if kind in interface.COMPUTING)
    machines = _EndingPart(session=session, marks=marks, kinds=first, regions=regions)
    machines.end()
    sides = _EndingPart(session=session, marks=marks, kinds=_side_kinds(machines), regions=regions)
    if machines.is_over:
        sides.end()
    if machines.is_over and sides.is_over and not (machines.gaps or sides.gaps):
        if closes:
            write = partial(session.journal.mark_run, run, "ended", session.now())
            session.try_writing(write)
        ended = (*machines.targets.values(), *sides.targets.values())
        return sum(target.evidence.accepted for target in ended)
    raise PartialError(_problems(run, machines, sides))


def _side_kinds(machines: "_EndingPart") -> tuple[str, ...]:
    """Return side resources to end; a run's tag stays while a machine may be known by it alone."""
    kinds = machines.session.cloud.kinds
    sides = tuple(kind for kind in kinds if kind not in interface.COMPUTING)
    return sides if not machines.gaps else tuple(kind for kind in sides if kind != TAG)


TAG = "tag"
"""The kind of resource whose end takes the marks off machines."""


@dataclass(kw_only=True)
class _Target:
    """Something to end, and what was answered about it."""

    entry: interface.JournaledResource
    resource: interface.Resource
    evidence: Evidence
    is_left: bool = False  # it is not ours any more, and may not be ended


@dataclass(kw_only=True)
class _EndingPart:
    """The machines of a run, or its side resources, on their way out.

    Attributes:
        targets: what has an id.
        intents: what may have been made without our knowing, by name, with looks that missed it.
        gaps: what could not be asked in the newest round.
        trouble: the newest refusal.
        is_elsewhere: the credentials are of another account, as far as is known; ids are asked for
            once all the same, because a mistake about that must not keep a machine alive.
        doubtful: whether a machine without our marks may be what an intent made.
        instance_type: of the machines.
    """

    session: Session
    marks: OwnershipTags
    kinds: tuple[str, ...]
    regions: interface.Regions
    targets: dict[_Id, _Target] = field(default_factory=dict)
    intents: dict[_Name, tuple[interface.JournaledResource, Evidence]] = field(default_factory=dict)
    gaps: tuple[interface.NotQueried, ...] = ()
    trouble: str = ""
    is_elsewhere: bool = False
    doubtful: bool = False
    instance_type: str = ""

    @property
    def remaining(self) -> list[_Target]:
        """What is not proved gone."""
        return [target for target in self.targets.values() if not target.evidence.is_gone]

    @property
    def is_over(self) -> bool:
        """Whether every id is proved gone, and every intent has proved to be nothing."""
        return not self.remaining and not self.intents

    def end(self) -> None:
        """Ask for the end of everything until it is over, or patience is."""
        patience, watch = self.session.patience, Stopwatch(self.session.clock)
        self._know()
        while True:
            self._list(watch.elapsed_s)
            for target in self.remaining:
                self._end_one(target, watch.elapsed_s)
            if self.is_over and (not self.gaps or watch.elapsed_s >= patience.unasked_s):
                return
            looks = self.intents and not self.doubtful
            if not looks and all(target.is_left for target in self.remaining):
                return
            if self.is_elsewhere and not any(target.evidence.accepted for target in self.remaining):
                return
            if watch.elapsed_s >= patience.gone_s:
                return
            self._tell_of_waiting(watch)
            watch.pause(patience.pause_after(watch.elapsed_s))

    def _know(self) -> None:
        """Take everything open that the journal knows, by id, or by name where it has none."""
        deployment = _deployment_of(self.session, self.marks.run)
        if deployment is None:
            return
        self.trouble = in_other_accounts(self.session, [deployment]).get(self.marks.run, "")
        self.is_elsewhere = bool(self.trouble)
        self.instance_type = deployment.offer.instance_type if deployment.offer else ""
        doubt = partial(why_unproved, self.session, deployment.account)
        for entry in _to_ask(deployment):
            if entry.kind not in self.kinds:
                continue
            evidence = evidence_of(self.session, entry, doubt)
            if entry.id:
                self._target(entry, as_resource(entry, self.marks), evidence)
            else:
                self.intents[entry.kind, entry.name, entry.region] = (entry, evidence)

    def _target(
        self, entry: interface.JournaledResource, resource: interface.Resource, evidence: Evidence
    ) -> None:
        self.targets[entry.kind, entry.id] = _Target(
            entry=entry, resource=resource, evidence=evidence
        )

    def _list(self, at_s: float) -> None:
        """Take what is listed of the run; a full list without an intent is a look for it."""
        run = self.marks.run
        listing = self.session.cloud.list_owned(self.regions, self.kinds, {run: self.marks})
        self.gaps = listing.gaps
        owned = [resource for resource in listing.resources if resource.marks.run == run]
        for resource in owned:
            self._take(resource)
        self.doubtful = False
        for name, (entry, evidence) in tuple(self.intents.items()):
            if candidates := self._candidates(listing, entry):
                self.doubtful, self.trouble = True, f"{candidates}{_MAY_BE_IT}"
            elif _is_asked(listing, name):
                evidence.add(_MISSED, at_s)
            if evidence.is_gone:
                del self.intents[name]
                self._write_gone(entry)

    def _candidates(self, listing: interface.Listing, entry: interface.JournaledResource) -> str:
        """Name what somebody may have renamed and retagged before its id was known here."""
        like = (entry.kind, entry.region, self.instance_type)
        return ", ".join(
            f"{o.name!r} ({o.id})"
            for o in listing.unmarked
            if (o.kind, o.region, o.instance_type) == like
            and (o.kind, o.id) not in self.targets
            and -_CLOCKS < (o.created_at or _OLDEST) - entry.intended_at < _MADE_WITHIN
            and self.session.now() - entry.intended_at < _DOUBTED
        )

    def _take(self, resource: interface.Resource) -> None:
        self.intents.pop((resource.kind, resource.name, resource.region), None)
        target = self.targets.get((resource.kind, resource.id))
        if target is not None and target.evidence.is_gone:
            return  # a list lags: the answer about the id counts
        if target is None:
            session = self.session
            session.try_writing(partial(session.journal.record, resource, session.now()))
            entry = interface.as_kept(resource, session.now())
            self._target(entry, resource, evidence_of(session, entry))
        else:
            target.resource = resource

    def _end_one(self, target: _Target, at_s: float) -> None:
        """Ask about one id, and for its end; what no read shows yet is ended by its id, too."""
        answer = target.evidence.add(ask(self.session, target.entry, self.marks), at_s)
        if answer.state == "gone":
            self._write_gone(target.entry)
            return
        if answer.resource is not None and target.entry.state == "gone":
            session = self.session  # the journal was wrong about it
            session.try_writing(partial(session.journal.record, answer.resource, session.now()))
        if answer.state == "not-asked":
            self.trouble = answer.why
        if not (answer.is_ours or target.is_left or target.evidence.accepted):
            label = f"{target.entry.kind} {target.entry.name} ({target.entry.id}): {answer.why}"
            target.is_left = not self.session.may_end(label)
        if target.is_left:
            self.trouble = f"{answer.why}; it is left, and `gpucost down` without --yes asks."
            return
        if answer.resource is not None and answer.resource.state == "ending":
            target.evidence.accepted = True
        if target.evidence.accepted and (
            answer.resource is None or answer.resource.state == "ending"
        ):
            return
        try:
            accepted = self.session.cloud.destroy(target.resource)
        except ProviderError as error:
            self.trouble = error.problems[0]
            return
        accepted = accepted or answer.state == "present"  # shown, and unknown at once: on its way
        if accepted and not target.evidence.accepted:
            self.session.say(f"ending {target.entry.kind} {target.entry.name} ({target.entry.id})")
        target.evidence.accepted = target.evidence.accepted or accepted

    def _write_gone(self, entry: interface.JournaledResource) -> None:
        session = self.session
        write = partial(session.journal.mark_gone, self.marks.run, entry, session.now())
        session.try_writing(write)

    def _tell_of_waiting(self, watch: Stopwatch) -> None:
        """Say once why this takes long: what nobody sees may still be on its way."""
        if watch.elapsed_s > 0 or not self.intents:
            return
        names = ", ".join(sorted(name for _, name, _ in self.intents))
        self.session.say(
            f"it is not known whether {names} was made; looking for up to "
            f"{self.session.cloud.lag_s:g} s, because the provider may not show it yet ..."
        )


_MISSED = interface.ExistenceCheck.not_shown("a complete list does not show it")


def _is_asked(listing: interface.Listing, name: _Name) -> bool:
    """Return whether the list would have shown a resource of that kind there."""
    kind, _, region = name
    return not any(
        gap.kind in ("", kind) and (not region or gap.region in ("", region))
        for gap in listing.gaps
    )


def _deployment_of(session: Session, run: str) -> interface.Deployment | None:
    """Return a run as the journal has it; None where it has none, or cannot be read."""
    try:
        return session.journal.deployment(run)
    except JournalError:
        return None


def _to_ask(deployment: interface.Deployment) -> tuple[interface.JournaledResource, ...]:
    """Return what the journal knows of a run and has not seen the end of.

    Of a run that ended, its machines: whoever ends it again doubts what the journal says.
    """
    ended = deployment.computing if deployment.ended_at is not None else ()
    return tuple(o for o in deployment.resources if o.state in _OPEN or (o.id and o in ended))


def as_resource(entry: interface.JournaledResource, marks: OwnershipTags) -> interface.Resource:
    """Return what the journal knows, as a provider takes it."""
    return interface.Resource(
        kind=entry.kind, id=entry.id, name=entry.name, region=entry.region, marks=marks
    )


def _problems(run: str, machines: _EndingPart, sides: _EndingPart) -> list[str]:
    """Return what is left, what is not known, and how to go on."""
    remaining = [
        f"{o.entry.kind} {o.entry.name} ({o.entry.id})"
        for o in (*machines.remaining, *sides.remaining)
    ]
    remaining += [
        f"{k} {name}, if it was made" for k, name, _ in (*machines.intents, *sides.intents)
    ]
    status = "every machine known of it is gone" if machines.is_over else "it may still cost money"
    trouble = machines.trouble or sides.trouble
    problems = (
        [f"{run} is not gone: {', '.join(remaining)}. {trouble}".strip()] if remaining else []
    )
    problems += [gap.text for gap in (*machines.gaps, *sides.gaps)]
    return [*problems, f"{run}: {status}; `gpucost down {run}` goes on."]


def regions_of(deployment: interface.Deployment) -> tuple[str, ...] | None:
    """Return where a run of the journal may have resources; None where it does not say."""
    regions = {resource.region for resource in deployment.resources} | {deployment.region}
    return tuple(sorted(regions - {""})) or None
