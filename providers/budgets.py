"""Budgets of teams and owners for a calendar month (UTC), and what counts against them.

What a run costs is spread evenly over its time, so that one over midnight of the first counts in
both months with its part. An open run counts to its deadline, an ended one with its bill.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import inf

from msgspec import Struct

from pricing.errors import InputError
from pricing.message import Message
from pricing.money import EXACT, Amount, cents, show, sum_exactly, usd
from providers.interface import Deployment
from providers.journal.ledger import bill_run

_KEYS = ("usd-per-month", "owners")
_MONTH = timedelta(days=32)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthlyBudget:
    """What a team or an owner may spend in a calendar month.

    Attributes:
        name: of the team or owner, as tags and GPUCOST_OWNER have it, in lower case.
        usd: the limit of a month, > 0.
        names: of all whose launches and machines count, its own included, in lower case.
        source: the file.
    """

    name: str
    usd: Decimal
    names: frozenset[str]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Dollars that are spent evenly over a time.

    Attributes:
        names: owners and teams that they count for, in lower case.
        begins: from when, aware.
        ends: until when.
        usd: in all; exact.
        run: the launch of gpucost; empty: something else.
    """

    names: frozenset[str]
    begins: datetime
    ends: datetime
    usd: Decimal
    run: str = ""

    def within(self, first: datetime, last: datetime) -> Decimal:
        """Return the dollars between two moments."""
        lived_s = (self.ends - self.begins).total_seconds()
        part_s = (min(self.ends, last) - max(self.begins, first)).total_seconds()
        if part_s <= 0:
            return self.usd if lived_s <= 0 and first <= self.begins < last else Decimal(0)
        share = EXACT.divide(Decimal(str(part_s)), Decimal(str(lived_s)))
        return EXACT.multiply(self.usd, share)


class BudgetUse(Struct, frozen=True, kw_only=True):
    """What of a budget is spent, as far as it is seen: what ended elsewhere is not.

    Attributes:
        name: of the team or owner.
        month: as 2026-12.
        limit_usd: of that month.
        spent_usd: until now, at list prices, in cents.
        month_end_usd: by its end, in cents: what runs now runs on, a launch to its deadline.
    """

    name: str
    month: str
    limit_usd: Amount
    spent_usd: Amount
    month_end_usd: Amount


def read_budgets(document: Mapping[str, object], source: str) -> tuple[MonthlyBudget, ...]:
    """Return the budgets of a parsed budget.toml: a table for each team or owner.

    Raises:
        InputError: every problem of the file.
    """
    problems = [text for name, row in document.items() for text in _problems(name, row, source)]
    if problems:
        raise InputError(problems)
    return tuple(
        MonthlyBudget(
            name=name.lower(),
            usd=usd(str(row["usd-per-month"])),
            names=frozenset(map(str.lower, (name, *row.get("owners", ())))),
            source=source,
        )
        for name, row in document.items()
        if isinstance(row, dict)
    )


def _problems(name: str, row: object, source: str) -> Iterator[str]:
    if not isinstance(row, dict):
        yield Message("launch.budget-form", source=source, name=name)
        return
    for key in row:
        if key not in _KEYS:
            yield Message("launch.budget-key", source=source, name=name, key=key)
    amount, owners = row.get("usd-per-month"), row.get("owners", [])
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < inf:
        yield Message("launch.budget-amount", source=source, name=name)
    if not isinstance(owners, list) or not all(isinstance(owner, str) for owner in owners):
        yield Message("launch.budget-owners", source=source, name=name)


def names_of(*texts: str | None) -> frozenset[str]:
    """Return owners in lower case; of one that gpucost named, its readable name, too."""
    owners = {text.lower() for text in texts if text}
    return frozenset(owners | {text.rpartition("--")[0] for text in owners if "--" in text})


def run_spending(run: Deployment, now: datetime) -> Spending:
    """Return what a run of the journal has cost, or may yet by its deadline."""
    marks, ends = run.marks, run.ended_at or max(now, run.marks.deadline)
    cost = bill_run(run, ends).usd or Decimal(0)
    if run.ended_at is None:
        cost = max(cost, run.predicted_usd or Decimal(0))
    names = names_of(marks.owner)
    return Spending(names=names, begins=run.started_at, ends=ends, usd=cost, run=marks.run)


def months(begins: datetime, ends: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the first and last moment of each calendar month that a time touches."""
    first = begins.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while first < ends or first <= begins:
        last = (first + _MONTH).replace(day=1)
        yield first, last
        first = last


def over_budget(
    budgets: Iterable[MonthlyBudget], spent: Collection[Spending], launch: Spending
) -> Iterator[Message]:
    """Yield why a launch is refused: which budget it would exceed in which month, and by what."""
    for budget in budgets:
        if not budget.names & launch.names:
            continue
        for first, last in months(launch.begins, launch.ends):
            own = launch.within(first, last)
            used = _sum(budget, spent, first, last)
            if own and own + used > budget.usd:
                yield Message(
                    "launch.over-budget",
                    name=budget.name,
                    source=budget.source,
                    month=f"{first:%Y-%m}",
                    limit=show(budget.usd),
                    used=show(used),
                    launch=show(own),
                    over=show(own + used - budget.usd),
                )


def budget_uses(
    budgets: Iterable[MonthlyBudget], spent: Collection[Spending], now: datetime
) -> tuple[BudgetUse, ...]:
    """Return how much of each budget is used in the month of a moment, until then and by its end.

    Args:
        budgets: the limits.
        spent: before that moment and after it.
        now: the moment.
    """
    first, last = next(months(now, now))
    return tuple(
        BudgetUse(
            name=budget.name,
            month=f"{first:%Y-%m}",
            limit_usd=budget.usd,
            spent_usd=cents(_sum(budget, spent, first, now)),
            month_end_usd=cents(_sum(budget, spent, first, last)),
        )
        for budget in budgets
    )


def _sum(
    budget: MonthlyBudget, spent: Iterable[Spending], first: datetime, last: datetime
) -> Decimal:
    return sum_exactly(part.within(first, last) for part in spent if part.names & budget.names)
