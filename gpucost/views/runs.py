"""Prints runs: the list with cost so far and burn rate, and one run with all that happened."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import click

from gpucost.views.launch import idle_told
from gpucost.views.output import Output, Table, print_json, print_table
from gpucost.views.run_documents import (
    LIST_SCHEMA,
    NONE_SEEN,
    RUN_SCHEMA,
    DeploymentListDocument,
    event_documents,
    run_document,
)
from pricing.listing import counted
from pricing.money import show
from providers.interface import Deployment, JournaledResource, Presence
from providers.journal.ledger import RunCost, bill_run

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


def show_list(
    runs: Iterable[Deployment],
    output: Output,
    now: datetime,
    seen: Mapping[str, Presence] = NONE_SEEN,
    asked: tuple[str, ...] = (),
) -> None:
    """Print runs, and what they burn together.

    Args:
        runs: of the journal, and those that only a provider knows.
        output: how.
        now: the end of billing so far.
        seen: what providers answered about machines, by id.
        asked: providers that were.
    """
    bills = [(run, bill_run(run, now)) for run in runs]
    if output.format == "json":
        told = tuple(run_document(run, now, seen) for run, _ in bills)
        print_json(DeploymentListDocument(schema=LIST_SCHEMA, asked=asked, runs=told))
        return
    shown = _newest(bills) if output.format == "table" else bills
    rows = tuple(_row(run, bill, seen) for run, bill in shown)
    right = frozenset(("machines", "USD/h", "so far", "predicted"))
    print_table(Table(columns=_COLUMNS, rows=rows, right=right), output)
    if len(shown) < len(bills):
        more = len(bills) - len(shown)
        output.say(f"and {more} more that ended: `gpucost list --all -f json` (or csv) has all.")
    alive = [bill for _, bill in bills if bill.machines]
    rate = sum((bill.usd_per_hour or Decimal(0) for bill in alive), Decimal(0))
    spent = sum((bill.usd or Decimal(0) for _, bill in bills), Decimal(0))
    machines = sum(bill.machines for bill in alive)
    source = f"as {', '.join(asked)} answered" if asked else "by the journal; no provider was asked"
    burn = f"{counted(machines, 'machine')} {'burns' if machines == 1 else 'burn'}"
    output.say(f"{burn} ${show(rate)} an hour ({source}); ${show(spent)} so far.")


_MOST_ENDED = 50
"""Ended runs that a table shows; nobody reads more, and drawing thousands takes many seconds."""


def _newest(bills: list[tuple[Deployment, RunCost]]) -> list[tuple[Deployment, RunCost]]:
    """Return every run that has not ended, or has a machine, and the newest that ended.

    In their order.
    """
    over = [at for at, (run, bill) in enumerate(bills) if run.ended_at and not bill.machines]
    left_out = set(over[:-_MOST_ENDED])
    return [one for at, one in enumerate(bills) if at not in left_out]


def _row(run: Deployment, bill: RunCost, seen: Mapping[str, Presence]) -> tuple[str, ...]:
    return (
        run.marks.run,
        run.marks.plan,
        _where(run),
        f"{bill.machines}{_unproved(run, seen)}",
        run.state,
        _minute(run.started_at),
        _minute(run.marks.deadline),
        _dollars(bill.usd_per_hour),
        _dollars(bill.usd),
        _dollars(run.predicted_usd),
    )


def _unproved(run: Deployment, seen: Mapping[str, Presence]) -> str:
    """Return the words behind the count: machines that count as nothing proves their end."""
    states = [seen[one.id].state for one in run.machines if one.id in seen and one.state == "made"]
    words = ((states.count("not-shown"), "not shown"), (states.count("not-asked"), "not asked"))
    told = ", ".join(f"{count} {word}" for count, word in words if count)
    return f" ({told})" if told else ""


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
    seen: Mapping[str, Presence] = NONE_SEEN,
) -> None:
    """Print one run with its resources and events."""
    told = event_documents(events)
    if output.format == "json":
        print_json(replace(run_document(run, now, seen), schema=RUN_SCHEMA, events=told))
        return
    if output.format in ("csv", "md"):
        rows = tuple((event.at, event.what) for event in told)
        print_table(Table(columns=("at", "what"), rows=rows), output)
        return
    for line in _lines(run, now, seen):
        click.echo(line)
    for event in told if output.verbose else told[-_SHOWN:]:
        click.echo(f"  {event.at}  {event.what}")


_SHOWN = 20


def _lines(run: Deployment, now: datetime, seen: Mapping[str, Presence]) -> list[str]:
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
        f"  {one.kind} {one.name} {one.id} {one.state} {one.address} {_answer(one, seen)}"
        for one in run.resources
    ]
    return [line.rstrip() for line in lines] + ["events:"]


def _answer(one: JournaledResource, seen: Mapping[str, Presence]) -> str:
    """Return what the provider answered about a machine that the journal believes to be there."""
    answer = seen.get(one.id)
    if answer is None or one.state != "made":
        return ""
    why = answer.why or ("" if answer.resource is None else answer.resource.fault)
    return f"({answer.state}{f': {why}' if why else ''})"
