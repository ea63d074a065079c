"""Holds a plan against bills, line by line: what was predicted, what was charged.

Lines are put together by what both sides say of them: provider, kind and, for machines, size,
region and way of buying. Where one side does not say (an invoice without regions, a price that is
the same everywhere) it fits all; lines that cannot be told apart so are compared as one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import msgspec

from planner.bills.bill import APART, MACHINE, RESERVED, Bill, BillLine
from planner.profile.fields import Instant
from pricing.message import Message
from pricing.money import EXACT, Amount, cents, sum_exactly, without_zeros

if TYPE_CHECKING:
    from planner.documents.selection import Selection
    from planner.plan.plan import Plan

_ZERO = Decimal(0)
# A bill knows machine hours only; a plan knows what they were spent on.
_BILLED_AS = {
    **dict.fromkeys(("boot", "lost-work", "checkpoint", "idle-tail"), MACHINE),
    "boot-disk": "disk",
    "move": "egress",
}
_DAY = timedelta(days=1)


Match = Literal["both", "plan", "bill", "apart"]
"""Which side has a line; what is apart are taxes, credits and fees."""


class ComparedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan that is compared.

    Attributes:
        id: SHA-256 of its values.
        as_of: day of its prices.
        period: every dollar of it is for a `month` or a `run`.
        options: JOB/ID of those that are compared.
    """

    id: str
    as_of: date
    period: str
    options: tuple[str, ...]


class BillFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the bill: its name, its form, how many lines it has.

    Attributes:
        name: of the file.
        format: its form.
        lines: how many it has.
    """

    name: str
    format: str
    lines: int


class ComparedBill(msgspec.Struct, frozen=True, kw_only=True):
    """The bill that is compared; first instant and the one after the last, None: it says none.

    Attributes:
        files: of the bill.
        start: first instant; None: it says none.
        end: the instant after the last; None: it says none.
    """

    files: tuple[BillFile, ...]
    start: Instant | None
    end: Instant | None


class ComparedHours(msgspec.Struct, frozen=True, kw_only=True):
    """Machine hours of both sides; None where a side says none.

    Attributes:
        predicted: by the plan [h].
        actual: on the bill [h].
    """

    predicted: float | None
    actual: float | None


class ComparedLine(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a service, as both sides have it.

    Attributes:
        match: which side has it.
        what: as on a bill.
        provider: our name for it.
        instance_type: for machines.
        region: None where the sides differ or say none.
        purchase: for machines; the same.
        jobs: of the plan.
        predicted_usd: every digit; None where only the bill has it.
        actual_usd: None where only the plan has it.
        difference_usd: actual less predicted; None without a counterpart.
        difference_fraction: of what was predicted, to 4 decimals.
        hours: of machines.
        bill_lines: how many lines of the bill it is.
    """

    match: Match
    what: str
    provider: str
    instance_type: str | None
    region: str | None
    purchase: str | None
    jobs: tuple[str, ...]
    predicted_usd: Amount | None
    actual_usd: Amount | None
    difference_usd: Amount | None
    difference_fraction: float | None
    hours: ComparedHours
    bill_lines: int


class MatchedTotal(msgspec.Struct, frozen=True, kw_only=True):
    """All that both sides have, in cents; no difference where nothing matched.

    Attributes:
        predicted_usd: by the plan.
        actual_usd: on the bill.
        difference_usd: actual less predicted.
        difference_fraction: of what was predicted.
    """

    predicted_usd: Amount
    actual_usd: Amount
    difference_usd: Amount | None
    difference_fraction: float | None


class ReconciliationTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars in all, in cents: planned, billed for use, billed apart, and what matched.

    Attributes:
        predicted_usd: by the plan.
        actual_usd: billed for use.
        apart_usd: taxes, credits and fees.
        matched: what both sides have.
    """

    predicted_usd: Amount
    actual_usd: Amount
    apart_usd: Amount
    matched: MatchedTotal


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """What `gpucost reconcile -f json` prints.

    Attributes:
        schema: `gpucost.reconciliation/v1`.
        currency: of every amount.
        plan: that is compared.
        bill: that is compared.
        lines: uses of services, as both sides have them.
        totals: of all lines.
        notes: what a reader must know.
    """

    schema: str = "gpucost.reconciliation/v1"
    currency: str = "USD"
    plan: ComparedPlan
    bill: ComparedBill
    lines: tuple[ComparedLine, ...]
    totals: ReconciliationTotals
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What was planned held against what was billed.

    Attributes:
        lines: those of both sides first, the greatest difference leading; then what only the plan
            has, what only the bill has (the dearest first), and taxes, credits and fees.
        start: first instant of the use on the bill; None where it does not say.
        end: the instant after the last.
        notes: what a reader must know.
    """

    lines: tuple[ComparedLine, ...]
    start: datetime | None
    end: datetime | None
    notes: tuple[str, ...]

    def of(self, match: Match) -> tuple[ComparedLine, ...]:
        """Return the lines that these sides have."""
        return tuple(line for line in self.lines if line.match == match)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What lines are put together by; None fits everything.

    Attributes:
        provider: our name for it.
        kind: as on a bill.
        instance_type: for machines.
        region: the provider's name for it.
        purchase: for machines.
    """

    provider: str
    kind: str
    instance_type: str | None
    region: str | None
    purchase: str | None

    def fits(self, key: "Key") -> bool:
        """Return whether both can be the same use of a service."""
        return (
            (self.provider, self.kind) == (key.provider, key.kind)
            and (self.instance_type or "").lower() == (key.instance_type or "").lower()
            and _agree(self.region, key.region)
            and _agree(_bought(self.purchase), _bought(key.purchase))
        )

    @property
    def order(self) -> tuple[str, ...]:
        """Return what keys are sorted by."""
        details = (self.instance_type, self.region, self.purchase)
        return (self.provider, self.kind, *(part or "" for part in details))


def _agree(predicted: str | None, charged: str | None) -> bool:
    return predicted is None or charged is None or predicted == charged


def _bought(purchase: str | None) -> str | None:
    """Return a way of buying as bills know it: they do not say for how long."""
    return RESERVED if purchase and purchase.startswith(RESERVED) else purchase


@dataclass(slots=True, kw_only=True)
class _Group:
    """Lines with one key."""

    key: Key
    usd: Decimal = _ZERO
    hours: Decimal | None = _ZERO
    lines: int = 0
    jobs: tuple[str, ...] = ()

    def add(self, usd: Decimal, hours: Decimal | None, job: str | None = None) -> None:
        self.usd = EXACT.add(self.usd, usd)
        untold = hours is None or self.hours is None
        self.hours = None if untold else EXACT.add(self.hours or _ZERO, hours or _ZERO)
        self.lines += 1
        if job is not None and job not in self.jobs:
            self.jobs += (job,)


@dataclass(slots=True, kw_only=True)
class _Use:
    """Groups of both sides that are the same use of a service."""

    planned: list[_Group]
    billed: list[_Group]

    @property
    def keys(self) -> list[Key]:
        return [group.key for group in (*self.planned, *self.billed)]

    @property
    def billed_usd(self) -> Decimal:
        return sum_exactly(group.usd for group in self.billed)

    @property
    def difference(self) -> Decimal:
        return EXACT.subtract(self.billed_usd, sum_exactly(group.usd for group in self.planned))


def compare_dollars(
    chosen: "Iterable[Selection]", bills: Sequence[Bill], *, period: str
) -> Comparison:
    """Return the comparison.

    Args:
        chosen: what each job was planned to run on.
        bills: every file of the bill.
        period: `month` or `run`, what the plan's dollars are for.
    """
    lines = [line for bill in bills for line in bill.lines]
    used = [line for line in lines if line.kind not in APART]
    uses = _together(_planned(chosen), _billed(used))
    matched = [use for use in uses if use.planned and use.billed]
    unbilled = [use for use in uses if not use.billed]
    unplanned = [use for use in uses if not use.planned]
    matched.sort(key=lambda use: (-abs(use.difference), use.keys[0].order))
    unplanned.sort(key=lambda use: (-use.billed_usd, use.keys[0].order))
    separate = _billed(line for line in lines if line.kind in APART)
    start, end = _span(used)
    return Comparison(
        lines=(
            *(_line("both", use) for use in matched),
            *(_line("plan", use) for use in unbilled),
            *(_line("bill", use) for use in unplanned),
            *(_line("apart", _Use(planned=[], billed=[group])) for group in separate),
        ),
        start=start,
        end=end,
        notes=(
            *(note for bill in bills for note in bill.notes),
            *_period_notes(start, end, period),
            *_scope_notes(matched),
            *_elsewhere_notes(unbilled, unplanned),
        ),
    )


def reconcile(
    plan: "Plan", chosen: "Sequence[Selection]", bills: Sequence[Bill], notes: Iterable[str] = ()
) -> Reconciliation:
    """Return a plan held against bills, as it is printed.

    Args:
        plan: whose options were selected.
        chosen: the selected options.
        bills: every file of the bill.
        notes: more that a reader must know.
    """
    comparison = compare_dollars(chosen, bills, period=plan.period)
    return Reconciliation(
        plan=ComparedPlan(
            id=plan.id,
            as_of=plan.as_of,
            period=plan.period,
            options=tuple(f"{choice.job}/{choice.option}" for choice in chosen),
        ),
        bill=compared_bill(bills, comparison.start, comparison.end),
        lines=comparison.lines,
        totals=_totals(comparison),
        notes=(*comparison.notes, *notes),
    )


def compared_bill(
    bills: Iterable[Bill], start: datetime | None, end: datetime | None
) -> ComparedBill:
    """Return which files a bill is of, and its first instant and the one after its last."""
    files = (BillFile(name=bill.name, format=bill.format, lines=len(bill.lines)) for bill in bills)
    return ComparedBill(files=tuple(files), start=start, end=end)


def _planned(chosen: "Iterable[Selection]") -> list[_Group]:
    groups: dict[Key, _Group] = {}
    for choice in chosen:
        for line in choice.lines:
            kind = _BILLED_AS.get(line.what, line.what)
            machine = kind == MACHINE
            key = Key(
                provider=choice.offer.provider,
                kind=kind,
                instance_type=choice.offer.instance_type if machine else None,
                region=choice.region,
                purchase=choice.offer.purchase if machine else None,
            )
            hourly = machine and line.parts and all(p.unit == "Hours" for p in line.parts)
            hours = sum((p.quantity for p in line.parts or ()), _ZERO) if hourly else None
            groups.setdefault(key, _Group(key=key)).add(line.usd, hours, choice.job)
    return sorted(groups.values(), key=lambda group: group.key.order)


def _billed(lines: Iterable[BillLine]) -> list[_Group]:
    groups: dict[Key, _Group] = {}
    for line in lines:
        key = Key(
            provider=line.provider,
            kind=line.kind,
            instance_type=line.instance_type,
            region=None if line.kind in APART else line.region,
            purchase=line.purchase,
        )
        groups.setdefault(key, _Group(key=key)).add(line.usd, line.hours)
    return sorted(groups.values(), key=lambda group: group.key.order)


def _together(planned: Sequence[_Group], billed: Sequence[_Group]) -> list[_Use]:
    """Return the groups of both sides, those that fit one another as one use."""
    free = set(range(len(billed)))
    waiting = list(planned)
    uses = []
    while waiting:
        use = _Use(planned=[waiting.pop(0)], billed=[])
        grown = True
        while grown:
            fitting = [
                i for i in sorted(free) if any(g.key.fits(billed[i].key) for g in use.planned)
            ]
            free.difference_update(fitting)
            use.billed += (billed[i] for i in fitting)
            joining = [g for g in waiting if any(g.key.fits(billed[i].key) for i in fitting)]
            use.planned += joining
            waiting = [group for group in waiting if group not in joining]
            grown = bool(joining)
        uses.append(use)
    return uses + [_Use(planned=[], billed=[billed[i]]) for i in sorted(free)]


def _line(match: Match, use: _Use) -> ComparedLine:
    keys, planned, billed = use.keys, use.planned, use.billed
    predicted_usd = without_zeros(sum_exactly(g.usd for g in planned)) if planned else None
    actual_usd = without_zeros(use.billed_usd) if billed else None
    return ComparedLine(
        match=match,
        what=keys[0].kind,
        provider=keys[0].provider,
        instance_type=keys[0].instance_type,
        region=_agreed(key.region for key in keys),
        purchase=_agreed(key.purchase for key in keys),
        jobs=tuple(dict.fromkeys(job for group in planned for job in group.jobs)),
        predicted_usd=predicted_usd,
        actual_usd=actual_usd,
        difference_usd=without_zeros(use.difference) if planned and billed else None,
        difference_fraction=_fraction(predicted_usd, actual_usd),
        hours=ComparedHours(predicted=_hours(planned), actual=_hours(billed)),
        bill_lines=sum(group.lines for group in billed),
    )


def _agreed(values: Iterable[str | None]) -> str | None:
    """Return the value that all share that say one; None where they differ or none says one."""
    different = set(values) - {None}
    return different.pop() if len(different) == 1 else None


def _hours(groups: Sequence[_Group]) -> float | None:
    hours = [group.hours for group in groups if group.hours is not None]
    return six_digits(sum(hours, _ZERO)) if groups and len(hours) == len(groups) else None


def _fraction(predicted: Decimal | None, actual: Decimal | None) -> float | None:
    """Return the difference as a share of what was predicted, to 4 decimals."""
    if not predicted or actual is None:
        return None
    share = EXACT.divide(EXACT.subtract(actual, predicted), predicted)
    return six_digits(share.quantize(Decimal("0.0001"), context=EXACT))


def _totals(comparison: Comparison) -> ReconciliationTotals:
    matched, separate = comparison.of("both"), comparison.of("apart")
    use = [line for line in comparison.lines if line.match != "apart"]
    predicted, actual = (
        sum_exactly(usd for line in matched if (usd := getattr(line, side)) is not None)
        for side in ("predicted_usd", "actual_usd")
    )
    difference = EXACT.subtract(actual, predicted)
    return ReconciliationTotals(
        predicted_usd=sum_usd(line.predicted_usd for line in use),
        actual_usd=sum_usd(line.actual_usd for line in use),
        apart_usd=sum_usd(line.actual_usd for line in separate),
        matched=MatchedTotal(
            predicted_usd=cents(predicted),
            actual_usd=cents(actual),
            difference_usd=cents(difference) if matched else None,
            difference_fraction=_fraction(predicted, actual) if matched else None,
        ),
    )


def sum_usd(amounts: Iterable[Decimal | None]) -> Decimal:
    """Return the sum of these dollars in cents; what is missing counts nothing."""
    return cents(sum_exactly(amount for amount in amounts if amount is not None))


def six_digits(value: Decimal | None) -> float | None:
    """Return hours or a fraction with six significant digits; None where it is not known."""
    return None if value is None else float(f"{value:.6g}")


def _span(lines: Iterable[BillLine]) -> tuple[datetime | None, datetime | None]:
    lines = list(lines)
    starts = [line.start for line in lines if line.start is not None]
    ends = [line.end for line in lines if line.end is not None]
    return min(starts, default=None), max(ends, default=None)


def _period_notes(start: datetime | None, end: datetime | None, period: str) -> list[str]:
    """Return what there is to say where the bill is of no single whole month."""
    if start is None or end is None:
        return [Message("invoice.no-days")]
    days = f"{(end - start) / _DAY:.1f}".removesuffix(".0")
    last = end - timedelta(seconds=1)
    covers = {"first": f"{start:%Y-%m-%d}", "last": f"{last:%Y-%m-%d}"}
    if period == "run":
        return [Message("invoice.of-a-run", **covers)]
    first = start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    after = (first + 32 * _DAY).replace(day=1)
    if end > after:
        return [Message("invoice.over-a-month", **covers, days=days)]
    if start > first or end < after - timedelta(seconds=1):
        return [Message("invoice.part", **covers, days=days, of=(after - first).days)]
    return []


def _scope_notes(matched: Sequence[_Use]) -> list[str]:
    if not matched:
        return [Message("invoice.nothing-fits")]
    notes: list[str] = [Message("invoice.whole-account")]
    if any(len({key.order for key in use.keys}) > 2 for use in matched):  # noqa: PLR2004 - one each
        notes.append(Message("invoice.as-one"))
    return notes


def _elsewhere_notes(unbilled: Iterable[_Use], unplanned: Sequence[_Use]) -> list[str]:
    """Return which planned machines were billed in another region or bought another way."""
    notes: list[str] = []
    for plan in (use.keys[0] for use in unbilled):
        for bill in (use.keys[0] for use in unplanned if plan.kind == MACHINE):
            machine = (plan.provider, plan.kind, (plan.instance_type or "").lower())
            if machine == (bill.provider, bill.kind, (bill.instance_type or "").lower()):
                names = {"planned": _terms(plan), "billed": _terms(bill)}
                notes.append(Message("invoice.elsewhere", type=plan.instance_type or "", **names))
    return notes


def _terms(key: Key) -> str:
    return f"{key.purchase or ''} in {key.region or 'any region'}".strip()
