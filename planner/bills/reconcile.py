"""Holds a plan against bills, line by line: what was predicted, what was charged.

Lines are put together by what both sides say of them: provider, kind and, for machines, size,
region and way of buying. Where one side does not say (an invoice without regions, a price that is
the same everywhere) it fits all; lines that cannot be told apart so are compared as one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal

from planner.bills.bill import APART, MACHINE, RESERVED, Bill, BillLine
from planner.documents.selection import Selection
from planner.models.document import Instant
from planner.plan.plan import Plan
from pricing.money import EXACT, cents, without_zeros

_ZERO = Decimal(0)
# A bill knows machine hours only; a plan knows what they were spent on.
_BILLED_AS = {
    **dict.fromkeys(("boot", "lost-work", "checkpoint", "idle-tail"), MACHINE),
    "boot-disk": "disk",
    "move": "egress",
}
_DAY = timedelta(days=1)


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

    def fits(self, other: "Key") -> bool:
        """Return whether both can be the same use of a service."""
        return (
            (self.provider, self.kind) == (other.provider, other.kind)
            and (self.instance_type or "").lower() == (other.instance_type or "").lower()
            and _agree(self.region, other.region)
            and _agree(_bought(self.purchase), _bought(other.purchase))
        )

    @property
    def order(self) -> tuple[str, ...]:
        """Return what keys are sorted by."""
        rest = (self.instance_type, self.region, self.purchase)
        return (self.provider, self.kind, *(part or "" for part in rest))


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def _bought(purchase: str | None) -> str | None:
    """Return a way of buying as bills know it: they do not say for how long."""
    return RESERVED if purchase and purchase.startswith(RESERVED) else purchase


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison.

    Attributes:
        usd: exact.
        hours: of machines; None where it is not said.
        lines: how many.
    """

    usd: Decimal
    hours: Decimal | None
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Lines of the plan and of the bill that are the same use, or that have no counterpart.

    Attributes:
        keys: what they are, the plan's words first.
        jobs: of the plan.
        predicted: None where only the bill has it.
        actual: None where only the plan has it.
    """

    keys: tuple[Key, ...]
    jobs: tuple[str, ...]
    predicted: Side | None
    actual: Side | None

    @property
    def difference(self) -> Decimal | None:
        """Return actual less predicted dollars; None without a counterpart."""
        if self.predicted is None or self.actual is None:
            return None
        return EXACT.subtract(self.actual.usd, self.predicted.usd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The answer.

    Attributes:
        matched: with both sides, the greatest difference first.
        only_planned: nothing on the bill fits.
        only_billed: nothing in the plan fits, the dearest first.
        apart: taxes, credits and fees, by provider and kind.
        start: first instant of the use on the bill; None where it does not say.
        end: the instant after the last.
        notes: what a reader must know.
    """

    matched: tuple[Compared, ...]
    only_planned: tuple[Compared, ...]
    only_billed: tuple[Compared, ...]
    apart: tuple[Compared, ...]
    start: Instant | None
    end: Instant | None
    notes: tuple[str, ...]


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
        unknown = hours is None or self.hours is None
        self.hours = None if unknown else EXACT.add(self.hours or _ZERO, hours or _ZERO)
        self.lines += 1
        if job is not None and job not in self.jobs:
            self.jobs += (job,)


def reconcile(
    chosen: tuple[Selection, ...], bills: tuple[Bill, ...], *, period: str
) -> Reconciliation:
    """Return the comparison.

    Args:
        chosen: what each job was planned to run on.
        bills: every file of the bill.
        period: `month` or `run`, what the plan's dollars are for.
    """
    lines = [line for bill in bills for line in bill.lines]
    used = [line for line in lines if line.kind not in APART]
    planned, billed = _planned(chosen), _billed(used)
    together = _together(planned, billed)
    matched = [one for one in together if one.predicted and one.actual]
    alone = [one for one in together if one.actual is None]
    strange = [one for one in together if one.predicted is None]
    start, end = _span(used)
    return Reconciliation(
        matched=tuple(
            sorted(matched, key=lambda m: (-abs(m.difference or _ZERO), m.keys[0].order))
        ),
        only_planned=tuple(alone),
        only_billed=tuple(sorted(strange, key=_dearest)),
        apart=tuple(
            _one([], [group]) for group in _billed(line for line in lines if line.kind in APART)
        ),
        start=start,
        end=end,
        notes=(
            *(note for bill in bills for note in bill.notes),
            *_period_notes(start, end, period),
            *_scope_notes(matched),
            *_elsewhere_notes(alone, strange),
        ),
    )


def _dearest(one: Compared) -> tuple[Decimal, tuple[str, ...]]:
    return (-(one.actual.usd if one.actual else _ZERO), one.keys[0].order)


def _planned(chosen: Iterable[Selection]) -> list[_Group]:
    groups: dict[Key, _Group] = {}
    for one in chosen:
        for line in one.lines:
            kind = _BILLED_AS.get(line.what, line.what)
            machine = kind == MACHINE
            key = Key(
                provider=one.offer.provider,
                kind=kind,
                instance_type=one.offer.instance_type if machine else None,
                region=one.region,
                purchase=one.offer.purchase if machine else None,
            )
            hourly = machine and line.parts and all(p.unit == "Hours" for p in line.parts)
            hours = sum((p.quantity for p in line.parts or ()), _ZERO) if hourly else None
            groups.setdefault(key, _Group(key=key)).add(line.usd, hours, one.job)
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


def _together(planned: Sequence[_Group], billed: Sequence[_Group]) -> list[Compared]:
    """Return the groups of both sides, those that fit one another as one."""
    left = set(range(len(billed)))
    waiting = list(planned)
    found = []
    while waiting:
        ours, theirs = [waiting.pop(0)], list[int]()
        grown = True
        while grown:
            fitting = [
                i for i in sorted(left) if any(group.key.fits(billed[i].key) for group in ours)
            ]
            left.difference_update(fitting)
            theirs += fitting
            joining = [g for g in waiting if any(g.key.fits(billed[i].key) for i in fitting)]
            ours += joining
            waiting = [g for g in waiting if g not in joining]
            grown = bool(joining)
        found.append(_one(ours, [billed[i] for i in theirs]))
    return found + [_one([], [billed[i]]) for i in sorted(left)]


def _one(ours: Sequence[_Group], theirs: Sequence[_Group]) -> Compared:
    jobs = dict.fromkeys(job for group in ours for job in group.jobs)
    return Compared(
        keys=tuple(group.key for group in (*ours, *theirs)),
        jobs=tuple(jobs),
        predicted=_side(ours),
        actual=_side(theirs),
    )


def _side(groups: Sequence[_Group]) -> Side | None:
    if not groups:
        return None
    hours = [group.hours for group in groups]
    known = [h for h in hours if h is not None]
    usd = _ZERO
    for group in groups:
        usd = EXACT.add(usd, group.usd)
    return Side(
        usd=usd,
        hours=sum(known, _ZERO) if len(known) == len(hours) else None,
        lines=sum(group.lines for group in groups),
    )


def _span(lines: Iterable[BillLine]) -> tuple[datetime | None, datetime | None]:
    lines = list(lines)
    starts = [line.start for line in lines if line.start is not None]
    ends = [line.end for line in lines if line.end is not None]
    return min(starts, default=None), max(ends, default=None)


def _period_notes(start: datetime | None, end: datetime | None, period: str) -> list[str]:
    """Return what there is to say where the bill is of no single whole month."""
    if start is None or end is None:
        return ["the bill does not say which days it covers."]
    days = f"{(end - start) / _DAY:.1f}".removesuffix(".0")
    covers = f"the bill covers {start:%Y-%m-%d} to {end - timedelta(seconds=1):%Y-%m-%d}"
    if period == "run":
        return [f"{covers}; the plan is for one run."]
    first = start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    after = (first + 32 * _DAY).replace(day=1)
    if end > after:
        return [f"{covers}, more than one month ({days} days); the plan is for a month."]
    if start > first or end < after - timedelta(seconds=1):
        of = (after - first).days
        text = "a part of a month; the plan is for a whole one, and nothing is scaled."
        return [f"{covers}, {days} of {of} days: {text}"]
    return []


def _scope_notes(matched: Sequence[Compared]) -> list[str]:
    if not matched:
        return ["nothing on the bill fits the plan: another account, another month, or not run."]
    notes = ["the bill is of the whole account: what other jobs used on the same lines is in it."]
    if any(len({key.order for key in one.keys}) > 2 for one in matched):  # noqa: PLR2004 - one each
        notes.append("lines that the bill does not tell apart are compared as one.")
    return notes


def _elsewhere_notes(alone: Iterable[Compared], strange: Sequence[Compared]) -> list[str]:
    """Return which planned machines were billed in another region or bought another way."""
    notes = []
    for one in alone:
        ours = one.keys[0]
        for theirs in (two.keys[0] for two in strange if ours.kind == MACHINE):
            place = (ours.provider, ours.kind, (ours.instance_type or "").lower())
            if place == (theirs.provider, theirs.kind, (theirs.instance_type or "").lower()):
                notes.append(
                    f"{ours.instance_type} was planned {_terms(ours)}; the bill has it "
                    f"{_terms(theirs)}."
                )
    return notes


def _terms(key: Key) -> str:
    return f"{key.purchase or ''} in {key.region or 'any region'}".strip()


Match = Literal["both", "plan", "bill", "apart"]
"""Which side has a line; what is apart are taxes, credits and fees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlan:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BillFile:
    """A file of the bill: its name, its form, how many lines it has.

    Attributes:
        name: of the file.
        format: its form.
        lines: how many it has.
    """

    name: str
    format: str
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedBill:
    """The bill that is compared; first instant and the one after the last, None: it says none.

    Attributes:
        files: of the bill.
        start: first instant; None: it says none.
        end: the instant after the last; None: it says none.
    """

    files: tuple[BillFile, ...]
    start: Instant | None
    end: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedHours:
    """Machine hours of both sides; None where a side says none.

    Attributes:
        predicted: by the plan [h].
        actual: on the bill [h].
    """

    predicted: float | None
    actual: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLine:
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
    predicted_usd: Decimal | None
    actual_usd: Decimal | None
    difference_usd: Decimal | None
    difference_fraction: float | None
    hours: ComparedHours
    bill_lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedTotal:
    """All that both sides have, in cents; no difference where nothing matched.

    Attributes:
        predicted_usd: by the plan.
        actual_usd: on the bill.
        difference_usd: actual less predicted.
        difference_fraction: of what was predicted.
    """

    predicted_usd: Decimal
    actual_usd: Decimal
    difference_usd: Decimal | None
    difference_fraction: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciliationTotals:
    """Dollars in all, in cents: planned, billed for use, billed apart, and what matched.

    Attributes:
        predicted_usd: by the plan.
        actual_usd: billed for use.
        apart_usd: taxes, credits and fees.
        matched: what both sides have.
    """

    predicted_usd: Decimal
    actual_usd: Decimal
    apart_usd: Decimal
    matched: MatchedTotal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciliationDocument:
    """What `gpucost reconcile -f json` prints; `planner.models.document` writes it.

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


def reconciliation_document(
    plan: Plan,
    chosen: tuple[Selection, ...],
    bills: tuple[Bill, ...],
    result: Reconciliation,
    notes: Iterable[str] = (),
) -> ReconciliationDocument:
    """Return the comparison as it is printed.

    Args:
        plan: whose options were selected.
        chosen: the selected options.
        bills: every file of the bill.
        result: the comparison.
        notes: more that a reader must know.
    """
    groups: tuple[tuple[Match, tuple[Compared, ...]], ...] = (
        ("both", result.matched),
        ("plan", result.only_planned),
        ("bill", result.only_billed),
        ("apart", result.apart),
    )
    return ReconciliationDocument(
        plan=ComparedPlan(
            id=plan.id,
            as_of=plan.as_of,
            period=plan.period,
            options=tuple(f"{one.job}/{one.option}" for one in chosen),
        ),
        bill=ComparedBill(
            files=tuple(BillFile(name=b.name, format=b.format, lines=len(b.lines)) for b in bills),
            start=result.start,
            end=result.end,
        ),
        lines=tuple(_line(match, one) for match, found in groups for one in found),
        totals=_totals(result),
        notes=(*result.notes, *notes),
    )


def fraction(one: Compared) -> Decimal | None:
    """Return the difference as a share of what was predicted, to 4 decimals."""
    if one.difference is None or one.predicted is None or not one.predicted.usd:
        return None
    share = EXACT.divide(one.difference, one.predicted.usd)
    return share.quantize(Decimal("0.0001"), context=EXACT)


def _totals(result: Reconciliation) -> ReconciliationTotals:
    everything = (*result.matched, *result.only_planned, *result.only_billed)
    matched = _both(result.matched)
    return ReconciliationTotals(
        predicted_usd=sum_usd(one.predicted for one in everything),
        actual_usd=sum_usd(one.actual for one in everything),
        apart_usd=sum_usd(one.actual for one in result.apart),
        matched=MatchedTotal(
            predicted_usd=sum_usd(one.predicted for one in result.matched),
            actual_usd=sum_usd(one.actual for one in result.matched),
            difference_usd=None if matched is None else cents(matched.difference or Decimal(0)),
            difference_fraction=six_digits(fraction(matched)) if matched else None,
        ),
    )


def _both(matched: tuple[Compared, ...]) -> Compared | None:
    """Return all that has two sides as one."""
    if not matched:
        return None
    predicted, actual = Decimal(0), Decimal(0)
    for one in matched:
        predicted = EXACT.add(predicted, one.predicted.usd if one.predicted else Decimal(0))
        actual = EXACT.add(actual, one.actual.usd if one.actual else Decimal(0))
    sides = (Side(usd=usd, hours=None, lines=len(matched)) for usd in (predicted, actual))
    return Compared(keys=matched[0].keys, jobs=(), predicted=next(sides), actual=next(sides))


def sum_usd(sides: Iterable[Side | None]) -> Decimal:
    """Return the dollars of these sides in cents; what is missing counts nothing."""
    total = Decimal(0)
    for side in sides:
        total = EXACT.add(total, side.usd if side else Decimal(0))
    return cents(total)


def _line(match: Match, one: Compared) -> ComparedLine:
    key = one.keys[0]
    return ComparedLine(
        match=match,
        what=key.kind,
        provider=key.provider,
        instance_type=key.instance_type,
        region=_agreed(one.keys, "region"),
        purchase=_agreed(one.keys, "purchase"),
        jobs=one.jobs,
        predicted_usd=without_zeros(one.predicted.usd) if one.predicted else None,
        actual_usd=without_zeros(one.actual.usd) if one.actual else None,
        difference_usd=None if one.difference is None else without_zeros(one.difference),
        difference_fraction=six_digits(fraction(one)),
        hours=ComparedHours(predicted=_hours(one.predicted), actual=_hours(one.actual)),
        bill_lines=one.actual.lines if one.actual else 0,
    )


def _agreed(keys: tuple[Key, ...], name: str) -> str | None:
    """Return the value that all known ones share; None where they differ or none is known."""
    said = {getattr(key, name) for key in keys} - {None}
    return said.pop() if len(said) == 1 else None


def _hours(side: Side | None) -> float | None:
    return None if side is None else six_digits(side.hours)


def six_digits(value: Decimal | None) -> float | None:
    """Return hours or a fraction with six significant digits; None where it is not known."""
    return None if value is None else float(f"{value:.6g}")
