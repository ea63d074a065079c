"""The values of `gpucost list` and `show` as JSON: money in cents, times with their offset."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType

from gpucost.views.job_documents import JobEndDocument
from planner.plan_document.encode import IF_KNOWN
from pricing.money import cents
from providers.interface import Deployment, JournaledResource, Presence
from providers.journal.ledger import bill_machine, bill_run

LIST_SCHEMA, RUN_SCHEMA = "gpucost.runs/v1", "gpucost.run/v1"

NONE_SEEN: Mapping[str, Presence] = MappingProxyType({})
"""No machine was asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDocument:
    """What a run made.

    Attributes:
        kind: such as "machine" or "key-pair".
        name: as the run gave it.
        id: as the provider gave it; None while it is not known.
        region: where it is; None where the kind has none.
        state: as the journal has it.
        presence: what the provider answered about it; left out where it was not asked.
        fault: what the provider says is wrong with it; left out where nothing.
    """

    kind: str
    name: str
    id: str | None
    region: str | None
    state: str
    presence: str | None = field(default=None, metadata=IF_KNOWN)
    fault: str | None = field(default=None, metadata=IF_KNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledResource(ResourceDocument):
    """A machine, with its bill.

    Attributes:
        address: None while it has none.
        billed_from: when its bill began.
        billed_until: when it ended; None while it goes on.
        billed_s: billed seconds.
        usd: dollars so far; None where no price is known.
    """

    address: str | None
    billed_from: str
    billed_until: str | None
    billed_s: int
    usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDocument:
    """What happened to a run, and when.

    Attributes:
        at: when, with the offset from UTC.
        what: one sentence.
    """

    at: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentDocument:
    """A run: predicted against actual, in dollars and billed seconds.

    Attributes:
        schema: of the document; left out in a list.
        run: its name.
        owner: who launched it.
        plan: the plan that it follows.
        provider: where it runs.
        type: the provider's size; None where no offer is known.
        region: None where it is not known.
        state: as the journal has it.
        started_at: when it was launched.
        deadline: when its machines end themselves.
        idle_s: or once no GPU has worked for so long; None: no such rule.
        ended_at: None while it has not ended.
        machines: that are billed now.
        billed_s: billed seconds of all machines.
        usd: dollars so far; None where no price is known.
        usd_per_hour: of the machines that are billed now.
        predicted_usd: by the deadline, as it was told before the launch.
        reason: why it is in its state.
        resources: what it made.
        events: what happened, the oldest first; left out in a list.
        job: how its command ended; left out but where that is told.
    """

    schema: str | None = field(default=None, metadata=IF_KNOWN)
    run: str
    owner: str
    plan: str
    provider: str
    type: str | None
    region: str | None
    state: str
    started_at: str
    deadline: str
    idle_s: int | None
    ended_at: str | None
    machines: int
    billed_s: int
    usd: Decimal | None
    usd_per_hour: Decimal | None
    predicted_usd: Decimal | None
    reason: str | None
    resources: tuple[ResourceDocument | BilledResource, ...]
    events: tuple[EventDocument, ...] | None = field(default=None, metadata=IF_KNOWN)
    job: JobEndDocument | None = field(default=None, metadata=IF_KNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentListDocument:
    """Runs, and the providers that were asked about them.

    Attributes:
        schema: `gpucost.runs/v1`.
        asked: providers that were; none: this is what the journal knows.
        runs: with their cost so far.
    """

    schema: str
    asked: tuple[str, ...]
    runs: tuple[DeploymentDocument, ...]


def run_document(
    run: Deployment, now: datetime, seen: Mapping[str, Presence] = NONE_SEEN
) -> DeploymentDocument:
    """Return a run as it is listed.

    Args:
        run: of the journal, or one that only a provider knows.
        now: the end of billing so far.
        seen: what providers answered about machines, by id.
    """
    bill = bill_run(run, now)
    return DeploymentDocument(
        run=run.marks.run,
        owner=run.marks.owner,
        plan=run.marks.plan,
        provider=run.provider,
        type=run.offer.instance_type if run.offer else None,
        region=run.region or None,
        state=run.state,
        started_at=run.started_at.isoformat(),
        deadline=run.marks.deadline.isoformat(),
        idle_s=None if run.terms is None else run.terms.idle_s,
        ended_at=_text(run.ended_at),
        machines=bill.machines,
        billed_s=bill.billed_s,
        usd=_cents(bill.usd),
        usd_per_hour=_cents(bill.usd_per_hour),
        predicted_usd=_cents(run.predicted_usd),
        reason=run.reason or None,
        resources=tuple(_resource(one, run, now, seen.get(one.id)) for one in run.resources),
    )


def event_documents(events: Iterable[tuple[datetime, str]]) -> tuple[EventDocument, ...]:
    """Return what happened to a run, in the order given."""
    return tuple(EventDocument(at=at.isoformat(), what=what) for at, what in events)


def _resource(
    one: JournaledResource, run: Deployment, now: datetime, seen: Presence | None
) -> ResourceDocument:
    presence = None if seen is None else seen.state
    found = None if seen is None else seen.resource
    fault = None if found is None else found.fault or None
    made = ResourceDocument(
        kind=one.kind,
        name=one.name,
        id=one.id or None,
        region=one.region or None,
        state=one.state,
        presence=presence,
        fault=fault,
    )
    if one.billed_from is None:
        return made
    billed_s, usd = bill_machine(one, run.offer, now)
    return BilledResource(
        kind=made.kind,
        name=made.name,
        id=made.id,
        region=made.region,
        state=made.state,
        presence=presence,
        fault=fault,
        address=one.address or None,
        billed_from=one.billed_from.isoformat(),
        billed_until=_text(one.billed_until),
        billed_s=billed_s,
        usd=_cents(usd),
    )


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _cents(amount: Decimal | None) -> Decimal | None:
    return None if amount is None else cents(amount)
