"""A comparison of plan and bill as `gpucost.reconciliation/v1`."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from planner.bills.bill import Bill
from planner.bills.reconcile import Compared, Key, Reconciliation, Side
from planner.documents.selection import Selection
from planner.plan_document.document import PlanDocument
from planner.plan_document.encode import plan_id
from pricing.money import EXACT, cents, without_zeros

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
    start: datetime | None
    end: datetime | None


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
    """What `gpucost reconcile -f json` prints; `planner.plan_document.encode` writes it.

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
    plan: PlanDocument,
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
            id=plan_id(plan),
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
