"""A plan as FOCUS rows, 1.2 or 1.3: a forecast in the form of a bill, marked so in every row.

One row for each cost line of each job's option (one for each price tier of a line). All four costs
are the same: what the price list makes it, before any discount of the account. Dollars keep every
digit: ListCost is exactly ListUnitPrice x PricingQuantity, with times as hours to 12 decimals.
"""

import calendar
import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal
from functools import cache
from typing import NamedTuple

from planner.documents.selection import Selection
from planner.plan.bill import CostLine, PricedPart
from planner.plan.plan import Plan
from pricing.billing.lines import BY_TIME
from pricing.money import plain
from pricing.tables import for_csv, read_csv

VERSIONS = ("1.2", "1.3")
FORECAST_ACCOUNT = "gpucost-forecast"
"""The billing account of every row: a plan has none, and the column must not be empty."""
CONFIDENCE = "0.9"
"""Coverage of the low-high interval of every option's cost."""

CUSTOM = (
    "x_GpucostIsForecast",
    "x_GpucostPlanId",
    "x_GpucostJob",
    "x_GpucostOption",
    "x_GpucostLine",
    "x_GpucostHow",
    "x_GpucostConfidence",
    "x_GpucostOptionLowCost",
    "x_GpucostOptionMidCost",
    "x_GpucostOptionHighCost",
)
Row = dict[str, str | None]
_WIDE = Context(prec=100)
_PRICING = {"on_demand": "Standard", "spot": "Dynamic"}  # the rest are commitments


class _FocusService(NamedTuple):
    """Where a kind of cost belongs."""

    category: str
    subcategory: str


_MACHINES = _FocusService("Compute", "Virtual Machines")
_SERVICES = {
    **dict.fromkeys(BY_TIME, _MACHINES),
    "control-plane": _FocusService("Compute", "Containers"),
    "boot-disk": _FocusService("Storage", "Block Storage"),
    "disk": _FocusService("Storage", "Block Storage"),
    "snapshot": _FocusService("Storage", "Backup Storage"),
    "object-storage": _FocusService("Storage", "Object Storage"),
    "egress": _FocusService("Networking", "Network Connectivity"),
    "move": _FocusService("Networking", "Network Connectivity"),
    "address": _FocusService("Networking", "Network Infrastructure"),
}
_OTHER = _FocusService("Other", "Other (Other)")


@cache
def columns(version: str = VERSIONS[0]) -> tuple[str, ...]:
    """Return the columns of an export, in order: FOCUS's by name, then ours.

    Args:
        version: of VERSIONS. 1.3 adds who provides a service and who hosts it; the two names that
            it deprecates stay, as readers of 1.2 need them.
    """
    included = VERSIONS[: VERSIONS.index(version) + 1]
    of_focus = (row["column"] for row in read_csv("focus.csv") if row["since"] in included)
    return (*of_focus, *CUSTOM)


def rows(plan: Plan, chosen: tuple[Selection, ...]) -> tuple[Row, ...]:
    """Return the forecast as FOCUS rows of all versions, jobs and lines in the plan's order."""
    mark = plan.id
    return tuple(
        _row(selection, line, number, part)
        | _period(plan, selection)
        | _own_columns(selection, line, mark)
        for selection in chosen
        for line in selection.lines
        for number, part in enumerate(line.parts or (_whole(line),))
    )


def to_csv(table: tuple[Row, ...], version: str = VERSIONS[0]) -> str:
    """Return rows as CSV with the columns of a version; null is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(
        text, columns(version), restval="", extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(
        {name: None if cell is None else for_csv(cell) for name, cell in row.items()}
        for row in table
    )
    return text.getvalue()


@cache
def provider_names() -> Mapping[str, Mapping[str, str]]:
    """Return what bills call a provider, by our name for it."""
    return {row["provider"]: row for row in read_csv("focus_names.csv")}


def _whole(line: CostLine) -> PricedPart:
    """Return a line that is not a quantity at a price as one unit of itself."""
    return PricedPart(quantity=Decimal(1), unit="Units", unit_usd=line.usd)


def _row(selection: Selection, line: CostLine, number: int, part: PricedPart) -> Row:
    names = provider_names().get(selection.offer.provider, {})
    provider = names.get("name", selection.offer.provider)
    service = _SERVICES.get(line.what, _OTHER)
    machine = line.what in BY_TIME
    cost, price = plain(_WIDE.multiply(part.quantity, part.unit_usd)), plain(part.unit_usd)
    quantity = plain(part.quantity)
    sku = f"{selection.offer.provider}/{selection.offer.instance_type if machine else line.what}"
    tier = f"/{number + 1}" if len(line.parts or ()) > 1 else ""
    purchase = selection.offer.purchase if machine else "on_demand"
    return {
        **dict.fromkeys(("BilledCost", "EffectiveCost", "ContractedCost", "ListCost"), cost),
        **dict.fromkeys(("ListUnitPrice", "ContractedUnitPrice"), price),
        **dict.fromkeys(("PricingQuantity", "ConsumedQuantity"), quantity),
        **dict.fromkeys(("PricingUnit", "ConsumedUnit"), part.unit),
        **dict.fromkeys(("ProviderName", "ServiceProviderName", "HostProviderName"), provider),
        "BillingAccountId": FORECAST_ACCOUNT,
        "BillingAccountName": None,
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeDescription": f"Forecast: {line.what} of {selection.job}/{selection.option}",
        "ChargeFrequency": "Usage-Based",
        "InvoiceIssuerName": names.get("publisher", selection.offer.provider),
        "PricingCategory": _PRICING.get(purchase, "Committed"),
        "PublisherName": names.get("publisher", selection.offer.provider),
        "RegionId": selection.region,
        "ServiceCategory": service.category,
        "ServiceName": (names.get("compute_service") if service == _MACHINES else "")
        or service.subcategory,
        "ServiceSubcategory": service.subcategory,
        "SkuId": sku,
        "SkuMeter": "Compute Usage" if machine else line.what,
        "SkuPriceDetails": _details(selection) if machine else None,
        "SkuPriceId": f"{sku}/{selection.region or '*'}/{purchase}{tier}",
    }


def _details(selection: Selection) -> str:
    """Return what one machine-hour is of; FOCUS's own keys first, ours begin with x_."""
    details = {
        "GpuCount": selection.offer.gpu_count,
        "InstanceType": selection.offer.instance_type,
        "x_GpuModel": selection.offer.gpu,
        "x_Purchase": selection.offer.purchase,
    }
    return json.dumps(details, ensure_ascii=False)


def _period(plan: Plan, selection: Selection) -> Row:
    """Return the calendar month of the plan's day; a run begins on that day and takes its hours."""
    start = plan.as_of
    first = datetime(start.year, start.month, 1, tzinfo=UTC)
    days = calendar.monthrange(start.year, start.month)[1]
    after = first + timedelta(days=days)
    begin, end = first, after
    if plan.period == "run":
        begin = datetime(start.year, start.month, start.day, tzinfo=UTC)
        seconds = (selection.hours * 3600).to_integral_value(ROUND_CEILING)
        end = begin + timedelta(seconds=int(seconds))
    return {
        "BillingPeriodStart": _stamp(first),
        "BillingPeriodEnd": _stamp(after),
        "ChargePeriodStart": _stamp(begin),
        "ChargePeriodEnd": _stamp(end),
    }


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _own_columns(selection: Selection, line: CostLine, mark: str) -> Row:
    values: Iterator[str] = iter(
        (
            "true",
            mark,
            selection.job,
            selection.option,
            line.what,
            line.how,
            CONFIDENCE,
            *(plain(amount) for amount in (selection.low, selection.mid, selection.high)),
        )
    )
    return dict(zip(CUSTOM, values, strict=True))
