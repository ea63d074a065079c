"""A review of an invoice as `gpucost.bill/v1`."""

import shlex
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from decimal import Decimal
from typing import Any

from planner.bills.bill import Bill, BillLine
from planner.bills.invoice.leftovers import Leftover
from planner.bills.invoice.review import Review, Spent
from pricing.money import EXACT, cents, plain

SCHEMA = "gpucost.bill/v1"
_Json = dict[str, Any]
_ZERO = Decimal(0)

# How to ask a provider what is attached to nothing; the words of their own command lines.
_LOOK_UP = {
    ("aws", "disk"): "aws ec2 describe-volumes --filters Name=status,Values=available",
    ("aws", "address"): "aws ec2 describe-addresses --query 'Addresses[?!AssociationId]'",
    ("azure", "disk"): "az disk list --query '[?!managedBy]' -o table",
    ("azure", "address"): "az network public-ip list --query '[?!ipConfiguration]' -o table",
    ("digitalocean", "disk"): "doctl compute volume list",
    ("digitalocean", "address"): "doctl compute reserved-ip list",
    ("gcp", "disk"): "gcloud compute disks list --filter='-users:*'",
    ("gcp", "address"): "gcloud compute addresses list --filter='status=RESERVED'",
}


def to_json(bills: Sequence[Bill], found: Review, zone: tzinfo) -> _Json:
    """Return the review as JSON values; money as text, every digit kept."""
    gpu_usd = _sum(one.usd for one in found.spent)
    return {
        "schema": SCHEMA,
        "currency": "USD",
        "zone": str(zone),
        "bill": {
            "files": [{"name": b.name, "format": b.format, "lines": len(b.lines)} for b in bills],
            "start": _moment(found.start),
            "end": _moment(found.end),
        },
        "totals": {
            "usd": str(cents(found.usd)),
            "gpu_usd": str(cents(gpu_usd)),
            "gpu_hours": _hours_of_all(found.spent),
            "leftover_usd": str(cents(_sum(one.usd for one in found.leftovers))),
            "undecided_usd": str(cents(_sum(one.usd for one in found.undecided))),
        },
        "machines": [_machine(one) for one in found.spent],
        "by_day": _by_day(found.spent),
        "by_part": _by_part(found.spent, gpu_usd),
        "findings": [_finding(one) for one in found.leftovers],
        "undecided": [
            {
                "what": one.kind,
                "provider": one.provider,
                "usd": plain(one.usd),
                "lines": one.lines,
                "look_up": _LOOK_UP.get((one.provider, one.kind)),
            }
            for one in found.undecided
        ],
        "measure_first": None if found.first is None else _measure(found.first),
        "notes": list(found.notes),
    }


def _machine(one: Spent) -> _Json:
    return {
        "provider": one.provider,
        "instance_type": one.instance_type,
        "gpu": one.gpu,
        "region": one.region,
        "purchase": one.purchase,
        "usd": plain(one.usd),
        "hours": _number(one.hours),
        "gpu_hours": _number(one.gpu_hours),
        "machines": one.machines,
        "measured": one.measured,
        "lines": [line.source for line in one.lines],
    }


def _by_day(spent: Iterable[Spent]) -> list[_Json]:
    """Return GPU dollars by day, of all machines; what no day is known of is not in it."""
    sums: dict[str, Decimal] = {}
    for one in spent:
        for day, usd in one.by_day:
            sums[day.isoformat()] = EXACT.add(sums.get(day.isoformat(), _ZERO), usd)
    return [{"day": day, "usd": plain(usd)} for day, usd in sorted(sums.items())]


def _by_part(spent: Iterable[Spent], whole: Decimal) -> _Json:
    """Return GPU dollars by part of the week; `unknown_usd` is what the bill has no hours of."""
    sums = {"workday": _ZERO, "night": _ZERO, "weekend": _ZERO}
    for one in spent:
        for part, usd in one.by_part:
            sums[part] = EXACT.add(sums[part], usd)
    unknown = EXACT.subtract(whole, _sum(sums.values()))
    return {f"{part}_usd": plain(usd) for part, usd in {**sums, "unknown": unknown}.items()}


def _finding(one: Leftover) -> _Json:
    return {
        "code": one.code,
        "provider": one.provider,
        "what": one.what,
        "region": one.region,
        "usd": plain(one.usd),
        "proof": one.proof,
        "lines": [_line(line) for line in one.lines],
    }


def _line(line: BillLine) -> _Json:
    return {"source": line.source, "usd": plain(line.usd)}


def _measure(one: Spent) -> _Json:
    """Return what to measure first, and the commands that measure it and plan what it should be."""
    name = one.instance_type or one.gpu or one.provider
    file = f"{name.replace('/', '-')}.json"
    place = "/".join(part for part in (one.provider, one.instance_type, one.region) if part)
    current = ["--current", place] if one.instance_type else []
    return {
        "machine": place,
        "usd": plain(one.usd),
        "commands": [
            f"gpucost profile --duration 10m -o {shlex.quote(file)}",
            shlex.join(["gpucost", "plan", file, *current]),
        ],
    }


def _hours_of_all(spent: Iterable[Spent]) -> float | None:
    hours = [one.gpu_hours for one in spent]
    return None if None in hours else _number(_sum(h for h in hours if h is not None))


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    total = _ZERO
    for amount in amounts:
        total = EXACT.add(total, amount)
    return total


def _number(value: Decimal | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _moment(when: Any) -> str | None:  # noqa: ANN401 - a time, or None
    return None if when is None else f"{when:%Y-%m-%dT%H:%M:%SZ}"
