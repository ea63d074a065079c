"""Services that run machines: their GPUs are GPUs; what they cost on top has no machine hours.

The SKUs of Google are those of its catalog, as public price readers and bills name them; the GPU
hours of FOCUS are CoreWeave's unit (docs.coreweave.com/billing/focus-export-api).
"""

import csv
import io
from collections.abc import Sequence
from datetime import UTC
from decimal import Decimal

import pytest

from planner.bills.formats import read_bill
from planner.bills.leftovers import gpu_sizes
from planner.bills.review import Review, review
from pricing.catalog.catalog import load_catalog

SIZES = gpu_sizes(load_catalog())


def reviewed(header: Sequence[str], *rows: Sequence[str]) -> Review:
    """Return what is said of a bill of these rows."""
    text = io.StringIO()
    csv.writer(text).writerows((header, *rows))
    return review([read_bill("bill.csv", text.getvalue())], SIZES, zone=UTC)


GOOGLE = [
    "billing_account_id",
    "service.description",
    "sku.description",
    "usage_start_time",
    "usage_end_time",
    "cost",
    "currency",
    "usage.amount_in_pricing_units",
    "usage.pricing_unit",
]


def google(service: str, sku: str, usd: str, amount: str) -> tuple[str, ...]:
    """Return a row of Google's export, of an hour."""
    times = ("2026-10-01 00:00:00 UTC", "2026-10-01 01:00:00 UTC")
    return ("A", service, sku, *times, usd, "USD", amount, "hour")


VERTEX, GKE = "Vertex AI", "Kubernetes Engine"


# By hand: 8 H100s for an hour at 11.27 each (a bill of 2025-08) are 90.13 of 101.01 dollars and 8
# GPU hours; the fee on a machine that Compute Engine bills is 11.76 more, and no hour.
@pytest.mark.parametrize(
    ("rows", "gpu", "gpu_usd", "gpu_hours"),
    [
        ([(VERTEX, "Vertex AI: Training/Pipelines on NVIDIA H100 80GB in Iowa", "90.13", "8"),
          (VERTEX, "Vertex AI: Training/Pipelines on A3 Instance Core in Iowa", "6.10", "208"),
          (VERTEX, "Vertex AI: Training/Pipelines on A3 Instance RAM in Iowa", "4.78", "1872")],
         "H100-SXM-80GB", "90.13", 8.0),
        ([(VERTEX, "Vertex AI: Online/Batch Prediction Nvidia H100 80gb GPU running in Iowa",
           "11.27", "1")], "H100-SXM-80GB", "11.27", 1.0),
        ([(GKE, "Autopilot NVIDIA L4 Pod GPU Requests (us-central1)", "2.71", "4"),
          (GKE, "Autopilot NVIDIA L4 Pod mCPU Requests (us-central1)", "0.50", "8000")],
         "L4", "2.71", 4.0),
        ([("Compute Engine", "Nvidia H100 80GB GPU attached to DWS VMs in Americas", "33.61", "8"),
          (VERTEX, "Vertex AI: Training/Pipelines management fee on NVIDIA H100 80GB in Iowa",
           "11.76", "8"),
          (GKE, "Autopilot H100 80GB Premium (us-central1)", "4.95", "1")],
         "H100-SXM-80GB", "33.61", 8.0),
        ([("Compute Engine", "Nvidia H100 80GB Mega GPU running in Iowa", "9.00", "1"),
          ("Compute Engine", "Nvidia H100 80GB Plus GPU running in Iowa", "9.00", "1")],
         "H100-SXM-80GB", "18.00", 2.0),
        ([("Compute Engine", "A4 Nvidia B200 (1 gpu slice) in us-central1", "9.50", "1")],
         "B200-SXM", "9.50", 1.0),
    ],
)  # fmt: skip
def test_managed_gpus_of_google(
    rows: list[tuple[str, str, str, str]], gpu: str, gpu_usd: str, gpu_hours: float
) -> None:
    """Their GPUs and hours are on the list; fees and premiums are dollars of use, without hours."""
    found = reviewed(GOOGLE, *(google(*row) for row in rows))
    assert {machine.gpu for machine in found.machines} == {gpu}
    assert (found.totals.gpu_usd, found.totals.gpu_hours) == (Decimal(gpu_usd), gpu_hours)
    assert found.totals.usd == sum(Decimal(row[2]) for row in rows)


FOCUS = [
    "BilledCost",
    "EffectiveCost",
    "BillingCurrency",
    "ChargeCategory",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "ProviderName",
    "ServiceName",
    "SkuMeter",
    "ConsumedQuantity",
    "ConsumedUnit",
    "PricingCategory",
    "x_UsageType",
]


def focus(provider: str, meter: str, usd: str, amount: str, unit: str) -> list[str]:
    """Return a row of a FOCUS file, of an hour; AWS's meters are its services."""
    times = ("2026-10-01T00:00:00Z", "2026-10-01T01:00:00Z")
    use = "BoxUsage:p3.8xlarge" if provider == "AWS" else ""
    service = meter if use else "Compute"
    measured = (service, meter, amount, unit, "Standard", use)
    return [usd, usd, "USD", "Usage", *times, provider, *measured]


@pytest.mark.parametrize("unit", ["GPU-Hours", "GPU Hours", "GPU_HOUR", "GPU Per Hour"])
@pytest.mark.parametrize("provider", ["Oracle", "Nebius", "CoreWeave"])
def test_gpu_hours_of_focus(provider: str, unit: str) -> None:
    """16 GPU hours at 2.50 are 40 dollars of H100s, whoever counts them and however."""
    row = focus(provider, "GPU - H100 on demand", "40.00", "16", unit)
    found = reviewed(FOCUS, row)
    assert [machine.gpu for machine in found.machines] == ["H100-SXM-80GB"]
    assert (found.totals.gpu_usd, found.totals.gpu_hours) == (Decimal("40.00"), 16.0)


def test_a_surcharge_has_no_hours() -> None:
    """EMR beside EC2: 2 x 12.24 and 2 x 0.27 dollars are 2 machine hours, not 4."""
    rows = (
        focus("AWS", "Amazon Elastic Compute Cloud", "24.48", "2", "Hours"),
        focus("AWS", "Amazon Elastic MapReduce", "0.54", "2", "Hours"),
    )
    found = reviewed(FOCUS, *rows)
    assert (found.totals.usd, found.totals.gpu_usd) == (Decimal("25.02"), Decimal("24.48"))
    assert found.totals.gpu_hours == 8.0  # 4 V100s for 2 h
