"""Services that run machines: their GPUs are GPUs; what they cost on top has no machine hours.

The SKUs of Google are those of its catalog, as public price readers and bills name them; the GPU
hours of FOCUS are CoreWeave's unit (docs.coreweave.com/billing/focus-export-api).
"""

import csv
import io
from collections.abc import Sequence
from datetime import UTC, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from planner.bills.formats import read_bill
from planner.bills.leftovers import gpu_sizes
from planner.bills.review import Review, review
from pricing.catalog.catalog import load_catalog
from pricing.message import Message
from tests.planner.factories import a_profile, plan, sold

SIZES = gpu_sizes(load_catalog())


def reviewed(header: Sequence[str], *rows: Sequence[str], zone: tzinfo = UTC) -> Review:
    """Return what is said of a bill of these rows."""
    text = io.StringIO()
    csv.writer(text).writerows((header, *rows))
    return review([read_bill("bill.csv", text.getvalue())], SIZES, zone=zone)


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


def test_google_rows_are_read_without_the_billing_account() -> None:
    """Nothing of a row needs it: 289.80 dollars and 720 GPU hours stay what they are."""
    row = google(VERTEX, "Vertex AI: Online/Batch Prediction NVIDIA Tesla T4 GPU", "289.80", "720")
    got = reviewed(GOOGLE[1:], row[1:])
    assert (got.totals.usd, got.totals.gpu_hours) == (Decimal("289.80"), 720)


REPORT = [
    "lineItem/LineItemType", "lineItem/UsageStartDate", "lineItem/UsageEndDate",
    "lineItem/UsageType", "lineItem/UsageAmount", "lineItem/CurrencyCode",
    "lineItem/UnblendedCost", "product/regionCode", "lineItem/ResourceId",
]  # fmt: skip


# By hand: 720 h of the notebook at 1.515 are 1,090.80; 1,440 h of the endpoint in the 720 h of
# November are two machines; the month is AWS's, which begins on 31 October in New York.
def test_a_sagemaker_bill_of_one_month() -> None:
    """Its endpoint has as many machines as its hours need, and its command names what it costs."""
    month = ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z")
    got = reviewed(
        REPORT,
        ("Usage", *month, "USE1-Notebk:ml.g5.2xlarge", "720", "USD", "1090.80", "us-east-1", "n"),
        ("Usage", *month, "USE1-Host:ml.g4dn.xlarge", "1440", "USD", "1059.84", "us-east-1", "e"),
        zone=ZoneInfo("America/New_York"),
    )
    assert [(m.instance_type, m.machines) for m in got.machines] == [
        ("ml.g5.2xlarge", 1),
        ("ml.g4dn.xlarge", 2),
    ]
    assert not any(note.code == "invoice.months" for note in got.notes if isinstance(note, Message))
    assert got.measure_first is not None
    command = "--current aws/ml.g5.2xlarge/us-east-1 --price 1.515"
    assert got.measure_first.commands[1].endswith(command)


@pytest.mark.parametrize(("usd", "hourly"), [(None, "1.00"), (Decimal("1.515"), "1.515")])
def test_a_sagemaker_type_is_its_host_type_and_is_said_to_cost_more(
    usd: Decimal | None, hourly: str
) -> None:
    """A command with `ml.g5.2xlarge` works: at EC2's price, or at what is stated."""
    offer = sold("g5.2xlarge", provider="aws", region="us-east-1")
    asked = {"current": "aws/ml.g5.2xlarge/us-east-1", "price_usd_per_hour": usd}
    made = plan(a_profile(), offers=(offer,), **asked)
    today = made.jobs[0].baseline.offer
    assert today is not None
    assert (today.instance_type, today.usd_per_hour) == ("g5.2xlarge", Decimal(hourly))
    assert any("SageMaker bills more" in note for note in made.assumptions)
