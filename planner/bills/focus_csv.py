"""Bills in FOCUS form, versions 1.0 to 1.4, as providers really export them.

Null may be written `NULL`, times without T or zone, columns of the provider's own may stand between
the rest (`Id`, `x_UsageType`), and Tags are JSON in doubled quotes: read as they are.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache

from planner.bills import bill as bills
from planner.bills.azure_export import vm_size
from pricing.hardware import find
from pricing.message import Message
from pricing.tables import names, read_csv

_NEEDED, _PROVIDERS = bills.WORDS["focus"]["needed"], bills.WORDS["focus"]["providers"]
_APART: Mapping[str, str] = bills.WORDS["focus"]["apart"]
_PURCHASES: Mapping[str, str] = bills.WORDS["focus"]["purchases"]
# Disks of databases and other services are billed in words like those of a machine's disks.
_DISK_OF = (None, "Storage", "Compute")
_FORECAST = "x_GpucostIsForecast"
_HOURS = re.compile(r"hours?|hrs", re.IGNORECASE)
_GPU_HOURS = re.compile(r"gpus?([ *_-]|[ -]per[ -])hours?", re.IGNORECASE)  # CoreWeave, Nebius, OCI
_TYPED = re.compile(r"(?:(?P<count>\d{1,3}) ?x )?(?P<gpu>.{2,40})", re.IGNORECASE)
_WORDS = ("x_UsageType", "SkuMeter", "ChargeDescription")
_Row = Mapping[str, str | None]


def is_focus(header: str) -> bool:
    """Return whether the first line of a file names FOCUS's columns."""
    return all(name in header for name in ("BilledCost", "ChargePeriodStart", "ChargeCategory"))


def read(name: str, text: str, rates: bills.Rates = bills.NO_RATES) -> bills.Bill:
    """Return a FOCUS file.

    What a commitment or an agreed discount covers counts with its EffectiveCost, and so does the
    commitment's own fee where what it covers is in the file; all else with its BilledCost, which is
    what the invoice says.

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
    covering = frozenset(
        use
        for _, row in records
        if row["ChargeCategory"] == "Usage" and (use := row.get("CommitmentDiscountId"))
    )
    lines, repeats = bills.read_charges(
        name,
        records,
        lambda row: (_line(row, rates, is_spread=_is_spread(row, covering)),),
        "",
        lambda row: row.get("ResourceId") and row["ChargePeriodStart"],
    )
    spread = sum(_is_spread(row, covering) for _, row in records)
    notes = (Message("invoice.fee-spread", file=name, count=spread),) if spread else ()
    return bills.Bill(name=name, format="FOCUS CSV", lines=lines, notes=notes + repeats)


def _is_spread(row: _Row, covering: frozenset[str]) -> bool:
    """Return whether a commitment's fee is in the EffectiveCost of what it covers.

    Azure names the order in the fee and one of its reservations, below it, in the use.
    """
    fee = row.get("CommitmentDiscountId")
    if row["ChargeCategory"] != "Purchase" or fee is None or row.get("EffectiveCost") is None:
        return False
    return any(covers == fee or covers.startswith(f"{fee}/") for covers in covering)


def _line(row: _Row, rates: bills.Rates, *, is_spread: bool) -> bills.BillLine:
    if (row.get(_FORECAST) or "").lower() == "true":
        raise ValueError(
            "a forecast that gpucost exported, no charge; give the provider's own export"
        )
    category = row["ChargeCategory"]
    if category != "Usage" and category not in _APART:
        raise ValueError(f"ChargeCategory is {category!r}, which FOCUS does not have")
    effective = is_spread or (category == "Usage" and _is_discounted(row))
    column = "EffectiveCost" if effective else "BilledCost"
    usage = _use(row)
    unused = row.get("CommitmentDiscountStatus") == "Unused"
    spare = bills.is_unused_capacity(row.get("x_UsageType") or "")
    if row.get("ChargeClass") == "Correction":
        kind = "credit"  # of an earlier bill
    elif unused:
        kind = "fee"
    else:
        kind = usage.kind if category == "Usage" else _APART[category or ""]
    machine = kind == bills.MACHINE
    return bills.BillLine(
        kind=kind,
        usd=bills.in_dollars(bills.dollars(row[column] or ""), row["BillingCurrency"], rates),
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
        zone=row.get("AvailabilityZone"),
        gpu=(_model(row) or _typed(row)[0]) if machine else None,
        gpus=(_gpus(row) or _typed(row)[1]) if machine else None,
        gpu_hours=_quantity(row, _GPU_HOURS) if machine else None,
        idle=unused or spare or bills.says_idle(kind, *(row.get(column) for column in _WORDS)),
    )


def _is_discounted(row: _Row) -> bool:
    """Return whether a use costs its EffectiveCost: by a commitment, or a contract's price."""
    effective = row.get("EffectiveCost")
    if effective is None:
        return False
    contracted, usd = row.get("ContractedCost"), bills.dollars(effective)
    agreed = contracted is not None and bills.dollars(contracted) == usd > 0
    return row.get("CommitmentDiscountId") is not None or agreed


def _use(row: _Row) -> bills.UsageType:
    """Return what a row is for: by AWS's usage type, the SKU's details, then words."""
    purchase = _PURCHASES.get(row.get("PricingCategory") or "")
    if (row.get("ServiceName") or "").lower() == "amazon elastic mapreduce":
        return bills.UsageType(
            "other", None, None
        )  # on top of the machine, which has a line of its own
    if _quantity(row, _GPU_HOURS) is not None:
        return bills.UsageType(bills.MACHINE, _detail(row, "InstanceType"), purchase)
    usage_type = row.get("x_UsageType")
    if usage_type:
        usage = bills.usage_of_type(usage_type)
        if usage.kind == bills.MACHINE:
            return usage._replace(purchase=purchase or usage.purchase)
        if usage.kind != "other":
            return usage
    description = row.get("ChargeDescription") or ""
    size = _detail(row, "InstanceType") or bills.described_size(description) or _azure_size(row)
    gpu = _typed(row)[0] if size is None else None
    if size is None and gpu is None and " " not in description and _is_of_hours(row):
        size = description or None
    if size is not None or gpu is not None:
        return bills.UsageType(bills.MACHINE, size, purchase)
    kind = bills.kind_of_words(row.get("SkuMeter"), description)
    kind = bills.kind_of_words(row.get("ServiceName")) if kind == "other" else kind
    if kind == "disk" and row.get("ServiceCategory") not in _DISK_OF:
        kind = "other"
    return bills.UsageType(kind if kind not in _APART.values() else "other", None, purchase)


def _azure_size(row: _Row) -> str | None:
    """Return the VM size in Azure's own columns."""
    if (row.get("ServiceName") or "").lower() != "virtual machines":
        return None
    own = {"additionalinfo": row.get("x_SkuDetails"), "metername": row.get("x_SkuMeterName")}
    return vm_size(own)


def _is_of_hours(row: _Row) -> bool:
    return row.get("ServiceCategory") == "Compute" and _quantity(row, _HOURS) is not None


def _typed(row: _Row) -> tuple[str | None, Decimal | None]:
    """Return GPU and number of a machine that is described by nothing else, as "8x H100 SXM"."""
    typed = _TYPED.fullmatch(row.get("ChargeDescription") or "")
    if typed is None or not _is_of_hours(row) or find(typed["gpu"]) is None:
        return None, None
    return typed["gpu"], Decimal(typed["count"] or 1)


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
    """Return how much of a unit a row counts."""
    for kind in ("Consumed", "Pricing"):
        unit, quantity = row.get(f"{kind}Unit"), row.get(f"{kind}Quantity")
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
