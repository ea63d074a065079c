"""Bills in FOCUS form, versions 1.0 to 1.4, as providers really export them.

Null may be written `NULL`, times without T or zone, columns of the provider's own may stand between
the rest (`Id`, `x_UsageType`), and Tags are JSON in doubled quotes: read as they are.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache

from planner.bills import bill as bills
from planner.bills.azure_export import vm_size
from pricing.hardware import find
from pricing.message import Message
from pricing.money import EXACT, cents, quantity_text, show, sum_exactly
from pricing.tables import names, read_csv

_NEEDED, _PROVIDERS = bills.WORDS["focus"]["needed"], bills.WORDS["focus"]["providers"]
_APART: Mapping[str, str] = bills.WORDS["focus"]["apart"]
_PURCHASES: Mapping[str, str] = bills.WORDS["focus"]["purchases"]
# Disks of databases and other services are billed in words like those of a machine's disks.
_DISK_OF = (None, "Storage", "Compute")
_BILLED, _EFFECTIVE = "BilledCost", "EffectiveCost"
_NUMBER = re.compile(r"[\d.]+")  # of a price in the wrong column, no place
_FORECAST = "x_GpucostIsForecast"
_HOURS = re.compile(r"(?:instance[ -])?hours?|hrs", re.IGNORECASE)
_GPU_HOURS = re.compile(r"gpus?([ *_-]|[ -]per[ -])hours?", re.IGNORECASE)  # CoreWeave, Nebius, OCI
_TYPED = re.compile(r"(?:(?P<count>\d{1,3}) ?x )?(?P<gpu>.{2,40})", re.IGNORECASE)
_WORDS = ("x_UsageType", "SkuMeter", "ChargeDescription")
_NAMING = ("ChargeDescription", "SkuMeter", "SkuId", "ResourceType", "ResourceName")
_Row = Mapping[str, str | None]


def is_focus(header: str) -> bool:
    """Return whether the first line of a file names FOCUS's columns."""
    return all(name in header for name in ("BilledCost", "ChargePeriodStart", "ChargeCategory"))


def read(name: str, text: str, rates: bills.Rates = bills.NO_RATES) -> bills.Bill:
    """Return a FOCUS file.

    All rows count with one column: EffectiveCost where commitments cover use, else BilledCost.

    Raises:
        InputError: columns are missing, rows are forecasts of ours, the currency has no rate, or
            cells are not amounts or times; all are listed.
    """
    rows = list(bills.csv_rows(name, text))
    columns = frozenset(rows[0][1]) if rows else frozenset((*_NEEDED, *_PROVIDERS))
    missing = [column for column in _NEEDED if column not in columns]
    if columns.isdisjoint(_PROVIDERS):
        missing.append(" or ".join(_PROVIDERS))
    bills.refuse(
        f"{name}:1: FOCUS 1.0 to 1.4 needs the column {column}; export it, too."
        for column in missing
    )
    records = [
        (source, {column: bills.present(cell) for column, cell in row.items()})
        for source, row in rows
    ]
    if records and not any(row[_BILLED] or row.get(_EFFECTIVE) for _, row in records):
        hours = sum_exactly(_quantity(row, _GPU_HOURS) or Decimal(0) for _, row in records)
        empty = f"BilledCost is empty in all {len(records)} rows ({quantity_text(hours)} GPU hours)"
        todo = "what they cost is not known. Give the invoice, or an export that has the amounts."
        bills.refuse((f"{name}: usage without amounts: {empty}, so {todo}",))
    basis = _basis([row for _, row in records])
    bill = bills.read_charges(
        name,
        "FOCUS CSV",
        records,
        lambda row: (_line(row, rates, basis),),
        identified=lambda row: row.get("ResourceId") and row["ChargePeriodStart"],
        invoiced=lambda row: _usd(row, _BILLED, rates),
    )
    billed = bill.invoice_usd or Decimal(0)
    by_use = sum_exactly(line.usd for line in bill.lines)
    if basis == _BILLED or billed == by_use:
        return bill
    sums = {"billed": show(billed), "effective": show(by_use)}
    return replace(bill, notes=(Message("invoice.basis", file=name, **sums), *bill.notes))


def _basis(rows: Iterable[_Row]) -> str:
    """Return the column that all rows count with.

    EffectiveCost where it spreads the fees of commitments over what they cover, or comes to the
    invoice's sum; else BilledCost, which is what the invoice says.
    """
    billed, effective, is_spread = Decimal(0), Decimal(0), False
    for row in rows:
        try:
            usd, cost = (
                bills.dollars(row.get(c) or row[_BILLED] or "") for c in (_BILLED, _EFFECTIVE)
            )
        except ValueError:
            continue  # it is listed where the row is read
        billed, effective = EXACT.add(billed, usd), EXACT.add(effective, cost)
        covered = row.get("CommitmentDiscountId") and row["ChargeCategory"] == "Usage"
        is_spread = is_spread or bool(covered and cost != usd)
    return _EFFECTIVE if is_spread or cents(billed) == cents(effective) else _BILLED


def _usd(row: _Row, column: str, rates: bills.Rates) -> Decimal:
    """Return a cost in dollars; what was billed where the column is empty."""
    amount = row.get(column) or row[_BILLED] or ""
    return bills.in_dollars(bills.dollars(amount), row["BillingCurrency"], rates)


def _line(row: _Row, rates: bills.Rates, basis: str) -> bills.BillLine:
    if (row.get(_FORECAST) or "").lower() == "true":
        raise ValueError(
            "a forecast that gpucost exported, no charge; give the provider's own export"
        )
    category = row["ChargeCategory"]
    if category != "Usage" and category not in _APART:
        raise ValueError(f"ChargeCategory is {category!r}, which FOCUS does not have")
    usage, zone = _use(row), row.get("AvailabilityZone") or ""
    unused = row.get("CommitmentDiscountStatus") == "Unused"
    spare = bills.is_unused_capacity(row.get("x_UsageType") or "")
    if row.get("ChargeClass") == "Correction":
        kind = "credit"  # of an earlier bill
    elif unused:
        kind = "fee"
    else:
        kind = usage.kind if category == "Usage" else _APART[category or ""]
    machine = kind == bills.MACHINE
    typed = _typed(row) if _typed(row)[0] else _in_words(row)
    return bills.BillLine(
        kind=kind,
        usd=_usd(row, basis, rates),
        provider=_provider(bills.first_of(row, _PROVIDERS)),
        description=row.get("ChargeDescription") or row.get("ServiceName") or "",
        instance_type=usage.instance_type if machine else None,
        region=row.get("RegionId"),
        purchase=usage.purchase if machine else None,
        hours=_quantity(row, _HOURS) if machine else None,
        start=bills.moment_of(row["ChargePeriodStart"]),
        end=bills.moment_of(row["ChargePeriodEnd"]),
        resource=row.get("ResourceId") or row.get("ResourceName"),
        account=row.get("SubAccountId") or row.get("BillingAccountId"),
        zone=None if _NUMBER.fullmatch(zone) else zone or None,
        gpu=(_model(row) or typed[0]) if machine else None,
        gpus=(_gpus(row) or typed[1]) if machine else None,
        gpu_hours=_quantity(row, _GPU_HOURS) if machine else None,
        idle=unused or spare or bills.says_idle(kind, *(row.get(column) for column in _WORDS)),
    )


def _use(row: _Row) -> bills.UsageType:
    """Return what a row is for: by AWS's usage type, the SKU's details, then words."""
    purchase = _PURCHASES.get(row.get("PricingCategory") or "")
    if (row.get("ServiceName") or "").lower() == "amazon elastic mapreduce":
        # On top of the machine, which has a line of its own.
        return bills.UsageType("other", None, None)
    if _quantity(row, _GPU_HOURS) is not None:
        return bills.UsageType(bills.MACHINE, _detail(row, "InstanceType"), purchase)
    usage, meter = (bills.usage_of_type(row.get(c) or "") for c in ("x_UsageType", "SkuMeter"))
    if usage.kind == "other" and meter.kind == bills.MACHINE:
        usage = meter
    if usage.kind == bills.MACHINE:
        return usage._replace(purchase=purchase or usage.purchase)
    if usage.kind != "other":
        return usage
    description = row.get("ChargeDescription") or ""
    size = _detail(row, "InstanceType") or bills.described_size(description) or _azure_size(row)
    gpu = _typed(row)[0] if size is None else None
    if size is None and gpu is None and _is_of_hours(row):
        size = bills.size_in_words(_naming_text(row))
        gpu = bills.gpu_in_words(_naming_text(row))[0] if size is None else None
        if size is None and " " not in description:
            size = description or None
    if size is not None or gpu is not None:
        return bills.UsageType(bills.MACHINE, size, purchase)
    kind = bills.kind_of_words(row.get("SkuMeter"), description)
    kind = bills.kind_of_words(row.get("ServiceName")) if kind == "other" else kind
    if kind == "disk" and row.get("ServiceCategory") not in _DISK_OF:
        kind = "other"
    return bills.UsageType(kind if kind not in _APART.values() else "other", None, purchase)


def _azure_size(row: _Row) -> str | None:
    """Return the VM size in Azure's own columns, or in FOCUS's column of meters since 1.1."""
    if (row.get("ServiceName") or "").lower() != "virtual machines":
        return None
    meter = row.get("x_SkuMeterName") or row.get("SkuMeter")
    return vm_size({"additionalinfo": row.get("x_SkuDetails"), "metername": meter})


def _is_of_hours(row: _Row) -> bool:
    return row.get("ServiceCategory") == "Compute" and _quantity(row, _HOURS) is not None


def _typed(row: _Row) -> tuple[str | None, Decimal | None]:
    """Return GPU and number of a machine that is described by nothing else, as "8x H100 SXM"."""
    typed = _TYPED.fullmatch(row.get("ChargeDescription") or "")
    if typed is None or not _is_of_hours(row) or find(typed["gpu"]) is None:
        return None, None
    return typed["gpu"], Decimal(typed["count"] or 1)


def _naming_text(row: _Row) -> str:
    return " ".join(row.get(column) or "" for column in _NAMING)


def _in_words(row: _Row) -> tuple[str | None, Decimal | None]:
    """Return GPU and number that the columns that name a machine have, where it is of hours."""
    return bills.gpu_in_words(_naming_text(row)) if _is_of_hours(row) else (None, None)


def _gpus(row: _Row) -> Decimal | None:
    """Return the GPUs of a machine, as SkuPriceDetails counts them."""
    count = _detail(row, "GpuCount")
    try:
        return None if count is None else bills.dollars(count)
    except ValueError:
        return None


def _detail(row: _Row, key: str) -> str | None:
    """Return a value of SkuPriceDetails; drafts of FOCUS put F_ before its keys."""
    try:
        details = json.loads(row.get("SkuPriceDetails") or "{}")
    except (ValueError, RecursionError):
        return None
    value = details.get(key, details.get(f"F_{key}")) if isinstance(details, dict) else None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _quantity(row: _Row, units: re.Pattern[str]) -> Decimal | None:
    """Return how much of a unit a row counts; AWS's words name it where no column does."""
    of_hours = bills.described_size(row.get("ChargeDescription") or "") and "Hours"
    for kind in ("Consumed", "Pricing"):
        unit, quantity = row.get(f"{kind}Unit") or of_hours, row.get(f"{kind}Quantity")
        if unit and quantity and units.fullmatch(unit):
            return bills.dollars(quantity)
    return None


def _model(row: _Row) -> str | None:
    """Return the GPU that the words of a row of GPU hours name."""
    if _quantity(row, _GPU_HOURS) is None:
        return None
    text = " ".join(row.get(column) or "" for column in _WORDS)
    return next((word for word in re.findall(r"[A-Z]+\d+\w*", text) if find(word)), None)


def _provider(name: str | None) -> str:
    return _names().get((name or "").lower(), name or "unknown")


@cache
def _names() -> Mapping[str, str]:
    """Return our names of providers by what bills call them, in lower case."""
    sellers = [name.removeprefix("offers/").removesuffix(".csv") for name in names("offers/*.csv")]
    return {spelling: name for name in sellers for spelling in (name, name.replace("-", " "))} | {
        spelling.lower(): row["provider"]
        for row in read_csv("focus_names.csv")
        for spelling in (row["provider"], row["name"], row["publisher"], *row["also"].split("|"))
        if spelling
    }
