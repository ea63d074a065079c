"""A comparison of plan and bill as `gpucost.reconciliation/v1`."""

from decimal import Decimal
from typing import Any

from planner.bills.bill import Bill
from planner.bills.reconcile import Compared, Key, Reconciliation, Side
from planner.documents.selection import Selection
from planner.plan_document.document import PlanDocument
from planner.plan_document.encode import plan_id
from pricing.money import EXACT, cents, plain

SCHEMA = "gpucost.reconciliation/v1"
_Json = dict[str, Any]


def to_json(
    plan: PlanDocument,
    chosen: tuple[Selection, ...],
    bills: tuple[Bill, ...],
    result: Reconciliation,
) -> _Json:
    """Return the comparison as JSON values; money as text, every digit kept on lines."""
    groups = (
        ("both", result.matched),
        ("plan", result.only_planned),
        ("bill", result.only_billed),
        ("apart", result.apart),
    )
    return {
        "schema": SCHEMA,
        "currency": "USD",
        "plan": {
            "id": plan_id(plan),
            "as_of": plan.as_of.isoformat(),
            "period": plan.period,
            "options": [f"{one.job}/{one.option}" for one in chosen],
        },
        "bill": {
            "files": [{"name": b.name, "format": b.format, "lines": len(b.lines)} for b in bills],
            "start": _moment(result.start),
            "end": _moment(result.end),
        },
        "lines": [_line(match, one) for match, found in groups for one in found],
        "totals": _totals(result),
        "notes": list(result.notes),
    }


def fraction(one: Compared) -> Decimal | None:
    """Return the difference as a share of what was predicted, to 4 decimals."""
    if one.difference is None or one.predicted is None or not one.predicted.usd:
        return None
    share = EXACT.divide(one.difference, one.predicted.usd)
    return share.quantize(Decimal("0.0001"), context=EXACT)


def _totals(result: Reconciliation) -> _Json:
    everything = (*result.matched, *result.only_planned, *result.only_billed)
    matched = _both(result.matched)
    return {
        "predicted_usd": _sum(one.predicted for one in everything),
        "actual_usd": _sum(one.actual for one in everything),
        "apart_usd": _sum(one.actual for one in result.apart),
        "matched": {
            "predicted_usd": _sum(one.predicted for one in result.matched),
            "actual_usd": _sum(one.actual for one in result.matched),
            "difference_usd": None
            if matched is None
            else str(cents(matched.difference or Decimal(0))),
            "difference_fraction": _number(fraction(matched)) if matched else None,
        },
    }


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


def _sum(sides: Any) -> str:  # noqa: ANN401 - sides, or None where there is none
    total = Decimal(0)
    for side in sides:
        total = EXACT.add(total, side.usd if side else Decimal(0))
    return str(cents(total))


def _line(match: str, one: Compared) -> _Json:
    key = one.keys[0]
    return {
        "match": match,
        "what": key.kind,
        "provider": key.provider,
        "instance_type": key.instance_type,
        "region": _agreed(one.keys, "region"),
        "purchase": _agreed(one.keys, "purchase"),
        "jobs": list(one.jobs),
        "predicted_usd": plain(one.predicted.usd) if one.predicted else None,
        "actual_usd": plain(one.actual.usd) if one.actual else None,
        "difference_usd": None if one.difference is None else plain(one.difference),
        "difference_fraction": _number(fraction(one)),
        "hours": {"predicted": _hours(one.predicted), "actual": _hours(one.actual)},
        "bill_lines": one.actual.lines if one.actual else 0,
    }


def _agreed(keys: tuple[Key, ...], name: str) -> str | None:
    """Return what all that say something say; None where they differ or nobody does."""
    said = {getattr(key, name) for key in keys} - {None}
    return said.pop() if len(said) == 1 else None


def _hours(side: Side | None) -> float | None:
    return None if side is None else _number(side.hours)


def _number(value: Decimal | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _moment(when: Any) -> str | None:  # noqa: ANN401 - a time, or None
    return None if when is None else f"{when:%Y-%m-%dT%H:%M:%SZ}"
