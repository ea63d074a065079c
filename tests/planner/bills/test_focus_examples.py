"""Commitments as the FOCUS specification works them out: each dollar is in one sum.

Facts of github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec at 04f8bb3d (2025-05-30),
specification/data/commitment_discount_scenarios and commitment_discount_flexibility; the machine is
ours, a p3.8xlarge, and the columns that the examples leave out have one value.
"""

from decimal import Decimal

import pytest

from tests.planner.bills.test_managed import reviewed

HEADER = [
    "ChargeCategory", "BilledCost", "EffectiveCost", "CommitmentDiscountStatus", "ResourceId",
    "CommitmentDiscountId", "PricingCategory", "ConsumedQuantity", "ConsumedUnit", "x_UsageType",
    "ChargePeriodStart", "ChargePeriodEnd", "BillingCurrency", "ProviderName", "ServiceName",
]  # fmt: skip
HOUR = ("2023-01-01T00:00:00Z", "2023-01-01T01:00:00Z")
YEAR = ("2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z")


def bought(usd: str, hour: int | None = 0) -> list[str]:
    """Return the row of a commitment's fee of an hour; of None, of the year."""
    period = YEAR if hour is None else (f"2023-01-01T{h:02}:00:00Z" for h in (hour, hour + 1))
    row = ["Purchase", usd, "0.00", "", "commitment", "commitment", "Standard", "", "", ""]
    return [*row, *period, "USD", "AWS", "Amazon Elastic Compute Cloud"]


def used(billed: str, effective: str, status: str = "", machine: str = "i-1") -> list[str]:
    """Return the row of an hour of a machine, or of what no machine used of the commitment."""
    nobody = status == "Unused"
    plan = ["commitment", "Committed"] if status else ["", "Standard"]
    ran = ["", ""] if nobody else ["1.00", "Hour"]
    resource = "commitment" if nobody else machine
    row = ["Usage", billed, effective, status, resource, *plan, *ran, "BoxUsage:p3.8xlarge"]
    return [*row, *HOUR, "USD", "AWS", "Amazon Elastic Compute Cloud"]


# What is expected: the invoice, machines with GPUs, what nobody used, fees.
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([bought("8760.00", None)], "8760.00 0.00 0.00 8760.00"),
        ([bought("1.00", hour) for hour in range(3)], "3.00 0.00 0.00 3.00"),
        ([bought("4380.00", None), *(bought("0.50", hour) for hour in range(3))],
         "4381.50 0.00 0.00 4381.50"),
        ([used("0.00", "1.00", "Used")], "0.00 1.00 0.00 0.00"),
        ([used("0.00", "1.00", "Unused")], "0.00 0.00 1.00 1.00"),
        ([used("0.00", "0.75", "Used"), used("0.00", "0.25", "Unused")], "0.00 0.75 0.25 0.25"),
        ([used("0.00", "1.00", "Used"), used("0.50", "0.50")], "0.50 1.50 0.00 0.00"),
        ([bought("0.50"), used("0.00", "0.50", "Used"), used("2.25", "2.25")],
         "2.75 2.75 0.00 0.00"),
        ([bought("2.00"), used("0.00", "1.00", "Used"), used("0.00", "1.00", "Used", "i-2")],
         "2.00 2.00 0.00 0.00"),
        ([bought("1.50"), used("0.00", "1.50", "Used")], "1.50 1.50 0.00 0.00"),
        ([bought("1.50"), used("0.00", "1.50", "Unused"), used("2.00", "2.00")],
         "3.50 2.00 1.50 1.50"),
    ],
)  # fmt: skip
def test_commitments_of_the_specification(rows: list[list[str]], expected: str) -> None:
    """A fee is owed once, its unused part is a fee that nobody used, the rest is use."""
    totals = reviewed(HEADER, *rows).totals
    sums = (totals.invoice_usd, totals.gpu_usd, totals.leftover_usd, totals.fee_usd)
    assert [Decimal(amount) for amount in expected.split()] == list(sums)
