"""Azure cost details: actual and amortised, in the headings of EA, MCA and pay-as-you-go.

The headings differ in capitals and words only; rows are of one day. An amortised export has what a
reservation covers at its cost and the unused rest as rows of their own; in an actual one it costs
nothing, and the purchase is a row (Microsoft, "Understand cost details fields").
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from planner.bills import bill as bills
from pricing.message import Message

PROVIDER = "azure"
_WORDS = bills.WORDS["cost_details"]
_CHARGES: Mapping[str, str] = _WORDS["charges"]
_TAIL = re.compile(r"\s+(?:spot|low priority)$", re.IGNORECASE)
_AMERICAN = "%m/%d/%Y"
_DAY = timedelta(days=1)
_Row = Mapping[str, str | None]


def is_azure(header: str) -> bool:
    """Return whether the first line of a file names the columns of cost details."""
    columns = {_plain(cell) for cell in header.partition("\n")[0].split(",")}
    return "metercategory" in columns and bool(columns.intersection(_WORDS["costs"]))


def read(name: str, text: str, rates: bills.Rates = bills.NO_RATES) -> bills.Bill:
    """Return an export.

    Where the billing currency is another, the export's own dollars (`costInUsd` of an MCA) count.

    Raises:
        InputError: columns are missing, the currency has no rate, or cells are not amounts or
            times; all are listed.
    """
    bill = bills.read_charges(
        name,
        "Azure cost details",
        bills.csv_rows(name, text, _plain),
        lambda row: (_line({column: bills.present(cell) for column, cell in row.items()}, rates),),
        identified=lambda row: all(
            bills.first_of(row, _WORDS[columns]) for columns in ("resources", "dates")
        ),
    )
    free = sum(line.purchase == bills.RESERVED and not line.usd for line in bill.lines)
    notes = (Message("invoice.actual-costs", file=name, count=free),) if free else ()
    return replace(bill, notes=(*notes, *bill.notes))


def _plain(column: str) -> str:
    return "".join(c for c in column.strip().lower() if c.isalnum())


def _line(row: _Row, rates: bills.Rates) -> bills.BillLine:
    charge = _plain(row.get("chargetype") or "usage")
    if charge not in _CHARGES:
        raise ValueError(f"ChargeType is {row.get('chargetype')!r}, which cost details do not have")
    meter = "/".join((row.get(column) or "") for column in _WORDS["meter"]).lower()
    use = bills.kind_in("azure", meter)
    kind = _CHARGES[charge] or use
    machine = kind == bills.MACHINE
    day = bills.first_of(row, _WORDS["dates"])
    start = None if day is None else _day(day)
    unused = charge.startswith("unused")
    described = row.get("productname") or row.get("product")
    return bills.BillLine(
        kind=kind,
        usd=_usd(row, rates),
        provider=PROVIDER,
        description=described or " ".join(row.get(column) or "" for column in _WORDS["meter"]),
        instance_type=vm_size(row) if use == bills.MACHINE else None,
        region=(row.get("resourcelocation") or "").replace(" ", "").lower() or None,
        purchase=_purchase(row) if machine else None,
        hours=_hours(row) if machine else None,
        start=start,
        end=None if start is None else start + _DAY,
        resource=bills.first_of(row, (*_WORDS["resources"], "benefitid")),
        account=row.get("subscriptionid") or row.get("subscriptionguid"),
        idle=unused or bills.says_idle(kind, meter),
    )


def _usd(row: _Row, rates: bills.Rates) -> Decimal:
    """Return the cost in dollars, from the column that has them, else at a rate that was given."""
    if row.get("costinusd"):
        return bills.dollars(row["costinusd"] or "")
    return bills.in_dollars(
        bills.dollars(bills.first_of(row, _WORDS["costs"]) or ""),
        bills.first_of(row, _WORDS["currencies"]),
        rates,
    )


def _day(text: str) -> datetime:
    """Return the day of a row, written month first or as ISO has it."""
    try:
        return datetime.strptime(text, _AMERICAN).replace(tzinfo=UTC)
    except ValueError:
        return bills.moment(text)


def vm_size(row: _Row) -> str | None:
    """Return the VM size: of the additional information, else as the meter names it."""
    try:
        details = json.loads(row.get("additionalinfo") or "{}")
    except (ValueError, RecursionError):
        details = {}
    service_type = details.get("ServiceType") if isinstance(details, dict) else None
    if isinstance(service_type, str) and service_type:
        return service_type
    meter = _TAIL.sub("", row.get("metername") or "")
    if not meter or "/" in meter:
        return None  # one meter of several sizes
    return f"Standard_{meter.replace(' ', '_')}"


def _purchase(row: _Row) -> str | None:
    if (row.get("metername") or "").lower().endswith(" spot"):
        return "spot"
    purchases: Mapping[str, str] = _WORDS["purchases"]
    return purchases.get(_plain(row.get("pricingmodel") or ""))


def _hours(row: _Row) -> Decimal | None:
    """Return the hours; None where the unit is not one hour, as exports count blocks unlike."""
    quantity = row.get("quantity") or row.get("usagequantity")
    unit = _plain(row.get("unitofmeasure") or "")
    return bills.dollars(quantity) if quantity and unit in ("1hour", "hour", "hours") else None
