"""Which file is which bill: recognised by content, one row a format."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from planner.bills import aws_cur, azure_export, digitalocean, focus_csv, gcp_export
from planner.bills.bill import NO_RATES, WORDS, Bill, Rates
from pricing.errors import InputError

_HEAD = 4096
_WRITE = (
    "Export one of these, or write the lines as FOCUS CSV: ProviderName, BilledCost, "
    "BillingCurrency, ChargeCategory (Usage, Tax, Credit), ChargePeriodStart, ChargePeriodEnd, "
    "ChargeDescription (8x H100 SXM), ServiceCategory (Compute), ConsumedQuantity, ConsumedUnit."
)
_COST_EXPLORER = '"ResultsByTime"'
_DOCUMENT = r'\s*\{\s*"(invoice_items|billing_history|invoices|data_points)"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _BillFormat:
    """A form in which bills come.

    Attributes:
        title: for people.
        fits: whether the first characters of a file are of it.
        read: the reader.
    """

    title: str
    fits: Callable[[str], bool]
    read: Callable[[str, str, Rates], Bill]


def _is_invoice(head: str) -> bool:
    first = head.partition("\n")[0].split(",")
    return all(column in (cell.strip() for cell in first) for column in digitalocean.CSV_COLUMNS)


FORMATS = (
    _BillFormat(title="FOCUS CSV", fits=focus_csv.is_focus, read=focus_csv.read),
    _BillFormat(title="AWS Cost and Usage Report", fits=aws_cur.is_cur, read=aws_cur.read),
    _BillFormat(title="Azure cost details", fits=azure_export.is_azure, read=azure_export.read),
    _BillFormat(title="Google Cloud billing export", fits=gcp_export.is_gcp, read=gcp_export.read),
    _BillFormat(
        title="DigitalOcean invoice CSV",
        fits=_is_invoice,
        read=lambda name, text, _: digitalocean.read_csv(name, text),
    ),
    _BillFormat(
        title="DigitalOcean invoice or billing insights JSON",
        fits=lambda head: head.lstrip().startswith("{") and _COST_EXPLORER not in head,
        read=lambda name, text, _: digitalocean.read_json(name, text),
    ),
)


def is_bill(head: str) -> bool:
    """Return whether the first characters of a file are of a bill, and of no telemetry."""
    *tables, documents = FORMATS
    return any(form.fits(head) for form in tables) or (
        documents.fits(head) and bool(re.match(_DOCUMENT, head))
    )


def read_bill(name: str, text: str, rates: Rates = NO_RATES) -> Bill:
    """Return the bill in a file.

    Args:
        name: of the file, for messages.
        text: all of it.
        rates: of currencies other than the US dollar.

    Raises:
        InputError: it is not a bill that is read here, has no lines, or its lines have problems.
    """
    head = text[:_HEAD]
    matching = next((form for form in FORMATS if form.fits(head)), None)
    if matching is None:
        for table in WORDS["refused"]:
            if all(column in head for column in table["columns"]):
                title, mend = table["title"], table["mend"]
                why = table.get("why", "names no machine hours")
                raise InputError(f"{name}: {title}, which {why}; {mend}.")
        if head.startswith("%PDF"):
            raise InputError(
                f"{name}: a PDF is not read: download the CSV of the same invoice, on the billing "
                "page of the provider."
            )
        titles = ", ".join(form.title for form in FORMATS)
        raise InputError(f"{name}: not a bill that gpucost reads; it reads: {titles}. {_WRITE}")
    bill = matching.read(name, text, rates)
    if not bill.lines:
        raise InputError(f"{name}: {bill.format} without a single charge; nothing to compare.")
    return bill
