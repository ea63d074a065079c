"""Prints runs: the list with cost so far and burn rate, and one run with all that happened."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import click

from gpucost.views.output import Output, Table, print_json, print_table
from pricing.money import cents, show
from providers.interface import Deployment, JournaledResource
from providers.journal.ledger import RunCost, bill_machine, bill_run
from providers.lifecycle.presence import Presence

LIST_SCHEMA, RUN_SCHEMA = "gpucost.runs/v1", "gpucost.run/v1"
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


NONE_SEEN: Mapping[str, Presence] = MappingProxyType({})
"""No machine was asked about."""


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
        told = [run_json(run, now, seen) for run, _ in bills]
        print_json({"schema": LIST_SCHEMA, "asked": list(asked), "runs": told})
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
    output.say(f"{machines} machines burn ${show(rate)} an hour ({source}); ${show(spent)} so far.")


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
    """Behind the count: machines that are counted because nothing proves their end."""
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


def run_json(
    run: Deployment, now: datetime, seen: Mapping[str, Presence] = NONE_SEEN
) -> dict[str, Any]:
    """Return a run as JSON: predicted against actual, in dollars and billed seconds."""
    bill = bill_run(run, now)
    return {
        "run": run.marks.run,
        "owner": run.marks.owner,
        "plan": run.marks.plan,
        "provider": run.provider,
        "type": run.offer.instance_type if run.offer else None,
        "region": run.region or None,
        "state": run.state,
        "started_at": run.started_at.isoformat(),
        "deadline": run.marks.deadline.isoformat(),
        "ended_at": None if run.ended_at is None else run.ended_at.isoformat(),
        "machines": bill.machines,
        "billed_s": bill.billed_s,
        "usd": _json_dollars(bill.usd),
        "usd_per_hour": _json_dollars(bill.usd_per_hour),
        "predicted_usd": _json_dollars(run.predicted_usd),
        "reason": run.reason or None,
        "resources": [_resource(one, run, now, seen.get(one.id)) for one in run.resources],
    }


def _resource(
    one: JournaledResource, run: Deployment, now: datetime, seen: Presence | None
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "kind": one.kind,
        "name": one.name,
        "id": one.id or None,
        "region": one.region or None,
        "state": one.state,
    }
    if seen is not None:
        told["presence"] = seen.state
    if one.billed_from is not None:
        billed_s, usd = bill_machine(one, run.offer, now)
        until = None if one.billed_until is None else one.billed_until.isoformat()
        told |= {
            "address": one.address or None,
            "billed_from": one.billed_from.isoformat(),
            "billed_until": until,
            "billed_s": billed_s,
            "usd": _json_dollars(usd),
        }
    return told


def _json_dollars(amount: Decimal | None) -> str | None:
    return None if amount is None else str(cents(amount))


def show_run(
    run: Deployment,
    events: Iterable[tuple[datetime, str]],
    output: Output,
    now: datetime,
    seen: Mapping[str, Presence] = NONE_SEEN,
) -> None:
    """Print one run with its resources and events."""
    told = [{"at": at.isoformat(), "what": what} for at, what in events]
    if output.format == "json":
        print_json({"schema": RUN_SCHEMA, **run_json(run, now, seen), "events": told})
        return
    if output.format in ("csv", "md"):
        rows = tuple((event["at"], event["what"]) for event in told)
        print_table(Table(columns=("at", "what"), rows=rows), output)
        return
    for line in _lines(run, now, seen):
        click.echo(line)
    for event in told if output.verbose else told[-_SHOWN:]:
        click.echo(f"  {event['at']}  {event['what']}")


_SHOWN = 20


def _lines(run: Deployment, now: datetime, seen: Mapping[str, Presence]) -> list[str]:
    bill = bill_run(run, now)
    machines = f"{bill.machines} of {run.count} machines"
    spent = f"so far ${_dollars(bill.usd)} ({bill.billed_s} s billed)"
    rate = f"${_dollars(bill.usd_per_hour)}/h"
    lines = [
        f"{run.marks.run}: {run.state}, {_where(run)}, {machines}",
        f"owner {run.marks.owner}, plan {run.marks.plan}, until {_minute(run.marks.deadline)} UTC",
        f"{spent}, {rate}, predicted ${_dollars(run.predicted_usd)} by the deadline",
    ]
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
    return f"({answer.state}{f': {answer.why}' if answer.why else ''})"
