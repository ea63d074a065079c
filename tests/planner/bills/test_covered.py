"""A bill beside telemetry says in dollars what of its GPU machines was recorded, and what not."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from msgspec.structs import replace

from planner.bills.formats import read_bill
from planner.bills.review import Review, review, with_machines
from planner.profile.model import Hardware, Window
from tests.planner.factories import a_profile

_COLUMNS = (
    "BilledCost,BillingCurrency,ChargeCategory,ChargeDescription,ChargePeriodStart,ChargePeriodEnd,"
    "ConsumedQuantity,ConsumedUnit,EffectiveCost,PricingCategory,ProviderName,RegionId,ServiceName,"
    "ResourceId,SkuPriceDetails"
)
_OCTOBER, _FIRST = "2026-10-01T00:00:00Z,2026-11-01T00:00:00Z", datetime(2026, 10, 1, tzinfo=UTC)


def billed(*machines: tuple[str, str, int, int]) -> Review:
    """October's bill: the size, the dollars, the hours and the GPUs of each machine."""
    rows = [
        f"{usd},USD,Usage,{size} hour,{_OCTOBER},{hours},Hours,{usd},Standard,AWS,us-east-1,"
        f'Amazon EC2,i-{n},"{{""InstanceType"": ""{size}"", ""GpuCount"": {gpus}}}"'
        for n, (size, usd, hours, gpus) in enumerate(machines)
    ]
    bill = read_bill("october.csv", "\n".join((_COLUMNS, *rows)) + "\n")
    return review((bill,), SIZES, zone=UTC)


SIZES = {
    ("aws", "p4d.24xlarge"): ("A100-SXM-40GB", Decimal(8)),
    ("aws", "g5.2xlarge"): ("A10G", Decimal(1)),
}
BILL = billed(("p4d.24xlarge", "16368.00", 744, 8), ("g5.2xlarge", "901.73", 744, 1))


@pytest.mark.parametrize(
    ("day", "hours", "covered", "rest"),
    [
        (1, 240, "5,280.00", "11,989.73"),
        (29, 240, "1,584.00", "15,685.73"),
        (1, 0, "0.00", "17,269.73"),
    ],
    ids=["ten days", "three of ten days lie in October", "no length"],
)
@pytest.mark.parametrize("stated", [None, "aws/p4d.24xlarge/us-east-1"])
def test_dollars_without_telemetry_are_said(
    day: int, hours: int, covered: str, rest: str, stated: str | None
) -> None:
    """At $22 an hour 240 h are $5,280 of $17,269.73; what is after the bill's end is not in it."""
    start = _FIRST.replace(day=day)
    window = Window(start=start, duration_s=hours * 3600.0) if hours else None
    hardware = Hardware(gpu="A100-SXM-40GB", gpu_count=8)
    made = replace(a_profile(gpu_count=8), hardware=hardware, window=window)
    (placed,), _, _ = with_machines([made], BILL, stated)
    (note,) = placed.provenance.notes
    assert f"$17,269.73 of GPU machines: telemetry covers ${covered} of it, and not ${rest}" in note
    assert "aws/g5.2xlarge 744 h" in note


def test_a_bill_that_is_covered_needs_no_line() -> None:
    """Every hour of its only machine was recorded."""
    bill = billed(("p4d.24xlarge", "16368.00", 744, 8))
    hardware = Hardware(gpu="A100-SXM-40GB", gpu_count=8)
    window = Window(start=_FIRST, duration_s=744 * 3600.0)
    made = replace(a_profile(gpu_count=8), hardware=hardware, window=window)
    (placed,), _, _ = with_machines([made], bill)
    assert placed.provenance.notes == ()
