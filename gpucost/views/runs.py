"""Runs on screen and as JSON: cost so far, burn rate, resources, events."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType

import click
import msgspec
from msgspec import UNSET, UnsetType

from gpucost.views.launch import JobEndDocument, idle_told
from gpucost.views.output import Output, Table, print_if_json, print_table
from pricing.listing import counted
from pricing.money import Amount, in_cents, show
from providers.interface import Deployment, ExistenceCheck, JournaledResource
from providers.journal.ledger import RunCost, bill_machine, bill_run
from templates.strangers import printable

LIST_SCHEMA, RUN_SCHEMA = "gpucost.runs/v1", "gpucost.run/v1"

NONE_SEEN: Mapping[str, ExistenceCheck] = MappingProxyType({})
"""No machine was asked about."""


class ResourceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a run made.

    Attributes:
        kind: such as "machine" or "key-pair".
        name: as the run gave it.
        id: as the provider gave it; None while it is not known.
        region: where it is; None where the kind has none.
        state: as the journal has it.
        presence: what the provider answered about it; left out where it was not asked.
        fault: what the provider says is wrong with it; left out where nothing.
        address: of a machine, None while it has none; left out of others, as what follows.
        billed_from: when its bill began.
        billed_until: when it ended; None while it goes on.
        billed_s: billed seconds.
        usd: dollars so far; None where no price is known.
    """

    kind: str
    name: str
    id: str | None
    region: str | None
    state: str
    presence: str | UnsetType = UNSET
    fault: str | UnsetType = UNSET
    address: str | UnsetType | None = UNSET
    billed_from: str | UnsetType = UNSET
    billed_until: str | UnsetType | None = UNSET
    billed_s: int | UnsetType = UNSET
    usd: Amount | UnsetType | None = UNSET


class EventDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a run, and when.

    Attributes:
        at: when, with the offset from UTC.
        what: one sentence.
    """

    at: str
    what: str


class DeploymentDocument(msgspec.Struct, frozen=True, kw_only=True):
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

    schema: str | UnsetType = UNSET
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
    usd: Amount | None
    usd_per_hour: Amount | None
    predicted_usd: Amount | None
    reason: str | None
    resources: tuple[ResourceDocument, ...]
    events: tuple[EventDocument, ...] | UnsetType = UNSET
    job: JobEndDocument | UnsetType = UNSET


class DeploymentListDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, and the providers that were asked about them.

    Attributes:
        schema: `gpucost.runs/v1`.
        asked: providers that were, and told all; none: this is what the journal knows.
        runs: with their cost so far.
    """

    schema: str = LIST_SCHEMA
    asked: tuple[str, ...]
    runs: tuple[DeploymentDocument, ...]


def run_document(
    run: Deployment, now: datetime, presence: Mapping[str, ExistenceCheck] = NONE_SEEN
) -> DeploymentDocument:
    """Return a run as it is listed.

    Args:
        run: of the journal, or one that only a provider knows.
        now: the end of billing so far.
        presence: what providers answered about machines, by id.
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
        usd=in_cents(bill.usd),
        usd_per_hour=in_cents(bill.usd_per_hour),
        predicted_usd=in_cents(run.predicted_usd),
        reason=run.reason or None,
        resources=tuple(
            _resource(resource, run, now, presence.get(resource.id)) for resource in run.resources
        ),
    )


def event_documents(events: Iterable[tuple[datetime, str]]) -> tuple[EventDocument, ...]:
    """Return what happened to a run, in the order given."""
    return tuple(EventDocument(at=at.isoformat(), what=text) for at, text in events)


def _resource(
    resource: JournaledResource, run: Deployment, now: datetime, presence: ExistenceCheck | None
) -> ResourceDocument:
    live = None if presence is None else presence.resource
    document = ResourceDocument(
        kind=resource.kind,
        name=resource.name,
        id=resource.id or None,
        region=resource.region or None,
        state=resource.state,
        presence=UNSET if presence is None else presence.state,
        fault=UNSET if live is None else live.fault or UNSET,
    )
    if resource.billed_from is None:
        return document
    billed_s, usd = bill_machine(resource, run.offer, now)
    return msgspec.structs.replace(
        document,
        address=resource.address or None,
        billed_from=resource.billed_from.isoformat(),
        billed_until=_text(resource.billed_until),
        billed_s=billed_s,
        usd=in_cents(usd),
    )


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


_COLUMNS = (
    "run",
    "plan",
    "where",
    "machines",
    "state",
    "started",
    "deadline",
    "USD/h",
    "so far",
    "predicted",
)


def show_list(  # noqa: PLR0913 - what was seen of others, by keyword
    runs: Iterable[Deployment],
    output: Output,
    now: datetime,
    presence: Mapping[str, ExistenceCheck] = NONE_SEEN,
    providers: Mapping[str, bool] = MappingProxyType({}),
    *,
    foreign: bool = False,
) -> None:
    """Print runs, and what they burn together.

    Args:
        runs: of the journal, and those that only a provider knows.
        output: how.
        now: the end of billing so far.
        presence: what providers answered about machines, by id.
        providers: that were asked, and whether each told all of its machines.
        foreign: whether machines that another state folder launched were seen.
    """
    bills = [(run, bill_run(run, now)) for run in runs]
    documents = tuple(run_document(run, now, presence) for run, _ in bills)
    answered = tuple(name for name, complete in providers.items() if complete)
    if print_if_json(DeploymentListDocument(asked=answered, runs=documents), output):
        return
    shown = _newest(bills) if output.format == "table" else bills
    rows = tuple(_row(run, bill, presence) for run, bill in shown)
    right = frozenset(("machines", "USD/h", "so far", "predicted"))
    print_table(Table(columns=_COLUMNS, rows=rows, right=right), output)
    if len(shown) < len(bills):
        more = len(bills) - len(shown)
        output.say(f"and {more} more that ended: `gpucost list --all -f json` (or csv) has all.")
    alive = [bill for _, bill in bills if bill.machines]
    rate = sum((bill.usd_per_hour or Decimal(0) for bill in alive), Decimal(0))
    spent = sum((bill.usd or Decimal(0) for _, bill in bills), Decimal(0))
    machines = sum(bill.machines for bill in alive)
    state = f"{counted(machines, 'machine')} running at ${show(rate)} an hour"
    if not machines:
        state = "no machine of this state folder running" if foreign else "no machines running"
        state = "machines running: unknown" if False in providers.values() else state
    output.say(f"{state} ({_source(providers)}); ${show(spent)} so far.")


def _source(providers: Mapping[str, bool]) -> str:
    """Return who was asked what runs, and who did not answer."""
    if not providers:
        return "local record; providers not contacted"
    answered = ", ".join(name for name, complete in providers.items() if complete)
    silent = ", ".join(name for name, complete in providers.items() if not complete)
    parts = (answered and f"checked at {answered}", silent and f"no answer from {silent}")
    return "; ".join(filter(None, parts))


_MOST_ENDED = 50
"""Ended runs that a table shows; nobody reads more, and drawing thousands takes many seconds."""


def _newest(bills: list[tuple[Deployment, RunCost]]) -> list[tuple[Deployment, RunCost]]:
    """Return every run that has not ended, or has a machine, and the newest that ended.

    In their order.
    """
    over = [at for at, (run, bill) in enumerate(bills) if run.ended_at and not bill.machines]
    left_out = set(over[:-_MOST_ENDED])
    return [entry for at, entry in enumerate(bills) if at not in left_out]


def _row(run: Deployment, bill: RunCost, presence: Mapping[str, ExistenceCheck]) -> tuple[str, ...]:
    return (
        run.marks.run,
        run.marks.plan,
        _where(run),
        f"{bill.machines}{_unproved(run, presence)}",
        run.state,
        _minute(run.started_at),
        _minute(run.marks.deadline),
        _dollars(bill.usd_per_hour),
        _dollars(bill.usd),
        _dollars(run.predicted_usd),
    )


def _unproved(run: Deployment, presence: Mapping[str, ExistenceCheck]) -> str:
    """Return the words behind the count: machines that count as nothing proves their end."""
    states = [
        presence[machine.id].state
        for machine in run.machines
        if machine.id in presence and machine.state == "made"
    ]
    labels = ((states.count("not-shown"), "not shown"), (states.count("not-asked"), "not asked"))
    parts_text = ", ".join(f"{count} {word}" for count, word in labels if count)
    return f" ({parts_text})" if parts_text else ""


def _where(run: Deployment) -> str:
    kind = run.offer.instance_type if run.offer else next((m.id for m in run.machines), "")
    return "/".join(filter(None, (run.provider, kind, run.region)))


def _minute(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M}"


def _dollars(amount: Decimal | None) -> str:
    return "unknown" if amount is None else show(amount)


def show_run(
    run: Deployment,
    events: Iterable[tuple[datetime, str]],
    output: Output,
    now: datetime,
    presence: Mapping[str, ExistenceCheck] = NONE_SEEN,
) -> None:
    """Print one run with its resources and events."""
    documents = event_documents(events)
    document = run_document(run, now, presence)
    if print_if_json(
        msgspec.structs.replace(document, schema=RUN_SCHEMA, events=documents), output
    ):
        return
    if output.format in ("csv", "md"):
        rows = tuple((event.at, event.what) for event in documents)
        print_table(Table(columns=("at", "what"), rows=rows), output)
        return
    shown = documents if output.verbose else documents[-_SHOWN:]
    for line in (*_lines(run, now, presence), *(f"  {event.at}  {event.what}" for event in shown)):
        click.echo(printable(line))


_SHOWN = 20


def _lines(run: Deployment, now: datetime, presence: Mapping[str, ExistenceCheck]) -> list[str]:
    bill = bill_run(run, now)
    machines = f"{bill.machines} of {counted(run.count, 'machine')}"
    spent = f"so far ${_dollars(bill.usd)} ({bill.billed_s} s billed)"
    rate = f"${_dollars(bill.usd_per_hour)}/h"
    lines = [
        f"{run.marks.run}: {run.state}, {_where(run)}, {machines}",
        f"owner {run.marks.owner}, plan {run.marks.plan}, until {_minute(run.marks.deadline)} UTC",
        f"{spent}, {rate}, predicted ${_dollars(run.predicted_usd)} by the deadline",
    ]
    idle_s = None if run.terms is None else run.terms.idle_s
    if idle_s is not None:
        lines.append(idle_told(idle_s))
    if run.reason:
        lines.append(f"why: {run.reason}")
    lines += [
        f"  {resource.kind} {resource.name} {resource.id} {resource.state} {resource.address} "
        f"{_answer(resource, presence)}"
        for resource in run.resources
    ]
    return [line.rstrip() for line in lines] + ["events:"]


def _answer(resource: JournaledResource, presence: Mapping[str, ExistenceCheck]) -> str:
    """Return what the provider answered about a machine that the journal believes to be there."""
    answer = presence.get(resource.id)
    if answer is None or resource.state != "made":
        return ""
    why = answer.why or ("" if answer.resource is None else answer.resource.fault)
    return f"({answer.state}{f': {why}' if why else ''})"
