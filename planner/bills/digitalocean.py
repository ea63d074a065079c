"""DigitalOcean's bills: the invoice as CSV, invoice items and billing insights as JSON.

Field names and forms are those of the examples in DigitalOcean's OpenAPI description.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from planner.bills import bill as bills
from pricing.errors import InputError
from pricing.message import Message

PROVIDER = "digitalocean"
CSV_COLUMNS = ("product", "description", "hours", "start", "end")
_CURRENCY = re.compile(r"[A-Z]{3}")
_Record = Mapping[str, Any]


def read_csv(name: str, text: str) -> bills.Bill:
    """Return an invoice downloaded as CSV.

    Raises:
        InputError: its currency is not USD, or cells are not amounts or times; all are listed.
    """
    rows = list(bills.csv_rows(name, text))
    if rows and "USD" not in rows[0][1]:
        currencies = ", ".join(cell for cell in rows[0][1] if _CURRENCY.fullmatch(cell)) or "none"
        raise InputError(
            f"{name}:1: the column of amounts is {currencies}, not USD; prices are compared in US "
            "dollars, and nothing is converted."
        )
    return _bill(name, "DigitalOcean invoice CSV", rows, _csv_line)


def read_json(name: str, text: str) -> bills.Bill:
    """Return invoice items or billing insights as the API answers them.

    Raises:
        InputError: it is not such an answer, or values are not amounts or times; all are listed.
    """
    try:
        document = json.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: no valid JSON ({error}); download it again.") from error
    if not isinstance(document, dict):
        raise InputError(f"{name}: no answer of the billing API; it is a JSON object.")
    key = next((k for k in _JSON if isinstance(document.get(k), list)), None)
    if key is None:
        raise InputError(
            f"{name}: has neither invoice_items nor data_points, so no lines to compare. Get "
            "/v2/customers/my/invoices/UUID, or the billing insights of a month."
        )
    title, make = _JSON[key]
    items = ((f"{name}: {key}[{i}]", item) for i, item in enumerate(document[key]))
    bill = _bill(name, title, items, make)
    pages = _missing_pages(name, document, len(document[key]))
    return replace(bill, notes=bill.notes + pages, whole=not pages)


def _missing_pages(name: str, document: _Record, read: int) -> tuple[Message, ...]:
    """Return what says that there are more pages; nothing where there are none."""
    links, meta = document.get("links"), document.get("meta")
    pages = links.get("pages") if isinstance(links, dict) else None
    total = document.get("total_items") or (meta.get("total") if isinstance(meta, dict) else None)
    more = isinstance(pages, dict) and pages.get("next")
    if not more and not (isinstance(total, int) and total > read):
        return ()
    if isinstance(total, int):
        return (Message("invoice.page-of", file=name, lines=read, total=total),)
    return (Message("invoice.page", file=name, lines=read),)


def _bill(
    name: str,
    title: str,
    records: Iterable[tuple[str, Any]],
    make: Callable[[_Record], bills.BillLine],
) -> bills.Bill:
    bill = bills.read_charges(
        name, title, records, lambda record: (make(record),), identified=_resource
    )
    return replace(bill, whole=True)


def _resource(record: _Record) -> str | None:
    return bills.first_of(record, ("resource_uuid", "resource_id"))


def _csv_line(row: _Record) -> bills.BillLine:
    hours = bills.present(row["hours"])
    return _line(
        row["product"],
        row["description"],
        bills.dollars(row["USD"]),
        hours=None if hours is None else bills.dollars(hours),
        times=(bills.moment_of(row["start"]), bills.moment_of(row["end"])),
    )


def _item_line(item: _Record) -> bills.BillLine:
    hours = bills.present(item.get("duration"))
    counted = str(item.get("duration_unit", "Hours")).lower().startswith("hour")
    return _line(
        item["product"],
        item.get("description") or "",
        bills.dollars(str(item["amount"])),
        hours=bills.dollars(hours) if hours and counted else None,
        times=(bills.moment_of(item.get("start_time")), bills.moment_of(item.get("end_time"))),
        resource=_resource(item),
    )


def _point_line(point: _Record) -> bills.BillLine:
    """Return the change of one day: insights have neither hours nor an end."""
    day = bills.moment(point["start_date"])
    sku = str(point.get("sku") or "")
    product = "Droplets" if "-DROP-" in sku else ""
    return _line(
        product,
        point.get("description") or "",
        bills.dollars(str(point["total_amount"])),
        times=(day, day + timedelta(days=1)),
        region=bills.present(point.get("region")),
    )


def _line(  # noqa: PLR0913 - the three forms have these in common
    product: str,
    description: str,
    amount: Decimal,
    *,
    hours: Decimal | None = None,
    times: tuple[datetime | None, ...],
    region: str | None = None,
    resource: str | None = None,
) -> bills.BillLine:
    """Return one charge: its kind from the product's name, else from the description.

    A row is of one thing, which its description names where the bill has no id.
    """
    kind = bills.kind_of_words(product)
    kind = bills.kind_of_words(description) if kind == "other" and not product else kind
    size = bills.size_in_parentheses(description) if kind in (bills.MACHINE, "other") else None
    if size is not None and "gpu" in f"{product} {size}".lower():
        kind = bills.MACHINE
    machine = kind == bills.MACHINE
    return bills.BillLine(
        kind=kind,
        usd=amount,
        provider=PROVIDER,
        description=f"{product} {description}".strip(),
        instance_type=size if machine else None,
        region=region,
        hours=hours if machine else None,
        start=times[0],
        end=times[1],
        resource=resource or description or None,
        idle=bills.says_idle(kind, description),
    )


_JSON: dict[str, tuple[str, Callable[[_Record], bills.BillLine]]] = {
    "invoice_items": ("DigitalOcean invoice JSON", _item_line),
    "data_points": ("DigitalOcean billing insights JSON", _point_line),
}
