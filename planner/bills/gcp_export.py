"""Google Cloud's billing export from BigQuery: rows as JSON (lines or a list) or as flat CSV.

A machine is billed in parts: cores, memory and GPUs are rows of their own. Its hours are on the
rows of its cores, its GPU hours on those of its GPUs. What a row costs is its cost with the credits
that are a part of the price (Google Cloud, "Structure of Detailed data export").
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from planner.bills import bill as bills
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import EXACT
from pricing.tables import elements

PROVIDER = "gcp"
_COST_TYPES: Mapping[str, str] = bills.WORDS["gcp"]["cost_types"]
# Such as: Nvidia Tesla T4 GPU running in Iowa; Autopilot NVIDIA L4 Spot Pod GPU Requests (iowa);
# Vertex AI: Training/Pipelines on NVIDIA H100 80GB in Iowa; A4 Nvidia B200 (1 gpu slice) in Iowa.
_GPU = re.compile(
    r"^(?:reserved |(?:spot )?preemptible |autopilot |vertex ai: \S+(?: prediction)? (?:on )?"
    r"|a\d\w* )?(?:(.*?\S)(?: plus| mega| \(1)?(?: spot)?(?: pod)?\s+GPU\b(?! (?:spot )?pod)"
    r"|(?<=on )(NVIDIA .*?) in )",
    re.IGNORECASE,
)
_CORE = re.compile(r"\bcore\b", re.IGNORECASE)
_LABEL = "compute.googleapis.com/"
_Record = Mapping[str, object]


_CONSOLE: Mapping[str, str] = bills.WORDS["gcp"]["console"]


def is_gcp(head: str) -> bool:
    """Return whether the first characters of a file are of an export's rows or columns."""
    if all(column in head for column in _CONSOLE):
        return True
    return all(name in head for name in ("usage_start_time", "sku"))


def read(name: str, text: str, rates: bills.Rates = bills.NO_RATES) -> bills.Bill:
    """Return an export, standard or detailed, or the cost table of the console.

    What is billed in another currency is in dollars at the rate of the row.

    Raises:
        InputError: it is not one, its currency has no rate, or its values are not amounts or times;
            all are listed.
    """
    own: set[str] = set()

    def charges(record: _Record) -> Iterable[bills.BillLine]:
        currency = _value(record, "currency")
        if currency is not None and currency != "USD" and currency not in rates:
            own.add(currency)
        return _lines(record, rates)

    bill = bills.read_charges(
        name,
        "Google Cloud billing export",
        _records(name, text),
        charges,
        identified=lambda record: _resource(record) and _value(record, "usage_start_time"),
    )
    notes = (Message("invoice.own-rate", file=name, currency=c) for c in sorted(own))
    return replace(bill, notes=(*notes, *bill.notes))


def _records(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield each row with its place in the file."""
    start = text.lstrip()[:1]
    if start == "[":
        yield from ((f"{name}: [{i}]", row) for i, row in enumerate(_json(name, text)))
    elif start == "{":
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield f"{name}:{number}", _json(f"{name}:{number}", line)
    else:
        defaults = {"currency": "USD"} if "Unrounded Cost ($)" in text.partition("\n")[0] else {}
        for place, row in bills.csv_rows(name, text, lambda column: _CONSOLE.get(column, column)):
            yield place, defaults | row


def _json(where: str, text: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON ({error}); export the rows again.") from error


def _value(record: _Record, path: str) -> str | None:
    """Return a value by its path; CSV headings write it `sku.description` or `sku_description`."""
    for key in (path, path.replace(".", "_")):
        if key in record:
            return bills.present(record[key])
    value: Any = record
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return bills.present(value)


def _many(record: _Record, key: str) -> list[_Record]:
    """Return a repeated field; CSV has it as JSON in a cell, or not at all."""
    value = record.get(key)
    if isinstance(value, str):
        value = json.loads(value, parse_float=str) if value.strip() else []
    return [item for item in elements(value or []) if isinstance(item, Mapping)]


def _lines(record: _Record, rates: bills.Rates) -> Iterable[bills.BillLine]:
    currency, units = _value(record, "currency"), _value(record, "currency_conversion_rate")
    if currency is None:
        raise ValueError("the currency is missing")
    if currency != "USD" and currency not in rates and units and bills.dollars(units):
        rates = {currency: EXACT.divide(Decimal(1), bills.dollars(units))}
    cost_type = (_value(record, "cost_type") or "regular").lower()
    if cost_type not in _COST_TYPES:
        raise ValueError(f"cost_type is {cost_type!r}, which exports do not have")
    corrected = _value(record, "adjustment_info.id") is not None
    kind = _COST_TYPES[cost_type] or ("credit" if corrected else _kind(record))
    usd = bills.in_dollars(bills.dollars(_value(record, "cost") or ""), currency, rates)
    paid: list[tuple[str, Decimal]] = []
    covered = False
    for credit in _many(record, "credits"):
        type_, amount = str(credit.get("type") or ""), bills.dollars(str(credit["amount"]))
        amount = bills.in_dollars(amount, currency, rates)
        if type_ in bills.WORDS["gcp"]["price_credits"]:
            usd = EXACT.add(usd, amount)
            covered = covered or type_.startswith("COMMITTED")
        else:
            paid.append((str(credit.get("name") or type_), amount))
    yield _line(record, kind, usd, covered=covered)
    for name, amount in paid:
        yield bills.BillLine(kind="credit", usd=amount, provider=PROVIDER, description=name)


def _kind(record: _Record) -> str:
    description = (
        f"{_value(record, 'service.description')}/{_value(record, 'sku.description')}".lower()
    )
    return bills.kind_in("gcp", description)


def _line(record: _Record, kind: str, usd: Decimal, *, covered: bool) -> bills.BillLine:
    sku = _value(record, "sku.description") or ""
    labels = {str(item.get("key")): item.get("value") for item in _many(record, "system_labels")}
    machine = kind == bills.MACHINE
    gpu = _GPU.match(sku) if machine else None
    unused = str(labels.get(f"{_LABEL}is_unused_reservation")).lower() == "true"
    return bills.BillLine(
        kind=kind,
        usd=usd,
        provider=PROVIDER,
        description=sku or _value(record, "service.description") or "",
        instance_type=bills.present(labels.get(f"{_LABEL}machine_spec")) if machine else None,
        region=_value(record, "location.region"),
        purchase=_purchase(sku, covered=covered) if machine else None,
        hours=_hours(record, sku, labels) if machine else None,
        start=bills.moment_of(_value(record, "usage_start_time")),
        end=bills.moment_of(_value(record, "usage_end_time")),
        resource=_resource(record),
        account=_value(record, "project.id"),
        zone=_value(record, "location.zone"),
        gpu=(gpu[1] or gpu[2]) if gpu else None,
        gpu_hours=(_amount_h(record) if gpu else Decimal(0)) if machine else None,
        idle=(machine and unused) or bills.says_idle(kind, sku),
    )


def _resource(record: _Record) -> str | None:
    return _value(record, "resource.global_name") or _value(record, "resource.name")


def _purchase(sku: str, *, covered: bool) -> str:
    if "spot" in sku.lower() or "preemptible" in sku.lower():
        return "spot"
    return bills.RESERVED if covered else "on_demand"


def _hours(record: _Record, sku: str, labels: _Record) -> Decimal | None:
    """Return machine hours, from the rows of its cores; 0 for its other parts."""
    if not _CORE.search(sku):
        return Decimal(0)
    cores, amount = bills.present(labels.get(f"{_LABEL}cores")), _amount_h(record)
    if cores is None or amount is None or not bills.dollars(cores):
        return None
    return EXACT.divide(amount, bills.dollars(cores))


def _amount_h(record: _Record) -> Decimal | None:
    """Return the hours that a row counts, of cores or GPUs."""
    for amount, unit, per_hour in (
        ("usage.amount_in_pricing_units", "usage.pricing_unit", {"hour": 1}),
        ("usage.amount", "usage.unit", {"seconds": 3600, "hour": 1}),
    ):
        quantity, of = _value(record, amount), per_hour.get((_value(record, unit) or "").lower())
        if quantity and of:
            return EXACT.divide(bills.dollars(quantity), Decimal(of))
    return None
