"""Every form of bill becomes the same lines; whatever is wrong is named with its line."""

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bills.bill import Bill, BillLine, usage_of_type
from planner.bills.formats import FORMATS, read_bill
from pricing.errors import InputError
from tests.conftest import ROOT

BILLS = ROOT / "tests" / "fixtures" / "bills"
FILES = {
    "aws_cur_2.csv": "AWS Cost and Usage Report",
    "aws_cur_legacy.csv": "AWS Cost and Usage Report",
    "azure_ea_actual.csv": "Azure cost details",
    "azure_mca_amortised.csv": "Azure cost details",
    "digitalocean_insights.json": "DigitalOcean billing insights JSON",
    "digitalocean_invoice.csv": "DigitalOcean invoice CSV",
    "digitalocean_invoice.json": "DigitalOcean invoice JSON",
    "focus_1_0.csv": "FOCUS CSV",
    "focus_1_2.csv": "FOCUS CSV",
    "gcp_detailed.jsonl": "Google Cloud billing export",
    "gcp_standard.csv": "Google Cloud billing export",
}


def text_of(name: str) -> str:
    """The text of a bill of ours."""
    return (BILLS / name).read_text(encoding="utf-8")


def read(name: str) -> Bill:
    """A bill of ours."""
    return read_bill(name, text_of(name))


def told(lines: tuple[BillLine, ...]) -> list[tuple[Any, ...]]:
    """What is said of each line, but for its times."""
    return [
        (one.kind, one.instance_type, one.region, one.purchase, str(one.hours), str(one.usd))
        for one in lines
    ]


@pytest.mark.parametrize("name", FILES)
def test_a_bill_is_recognised_by_content(name: str) -> None:
    """Each fixture is read as what it is, whatever it is called."""
    assert read_bill("whatever", text_of(name)).format == FILES[name]


def test_every_format_that_is_read_has_a_fixture() -> None:
    """Nothing is read that no test reads."""
    titles = {format_.title.partition(" or ")[0] for format_ in FORMATS}
    assert titles <= {title.removesuffix(" JSON") for title in FILES.values()} | set(FILES.values())


EXPECTED = {
    "digitalocean_invoice.csv": [
        ("compute", "gpu-h100x1-80gb", None, None, "730", "3219.30"),
        ("compute", "s-1vcpu-1gb", None, None, "672", "6.00"),
        ("disk", None, None, None, "None", "50.00"),
        ("address", None, None, None, "None", "3.11"),
        ("tax", None, None, None, "None", "0.16"),
        ("credit", None, None, None, "None", "-25.00"),
    ],
    "digitalocean_invoice.json": [
        ("compute", "gpu-h100x1-80gb", None, None, "340", "1499.40"),
        ("object-storage", None, None, None, "None", "5.00"),
    ],
    "digitalocean_insights.json": [
        ("compute", "gpu-h100x1-80gb", "nyc2", None, "None", "105.84"),
        ("compute", "gpu-h100x1-80gb", "nyc2", None, "None", "105.84"),
        ("other", None, "nyc3", None, "None", "2.57"),
    ],
    "aws_cur_legacy.csv": [
        ("compute", "g4dn.xlarge", "us-east-1", "on_demand", "360.0", "189.36"),
        ("compute", "g4dn.xlarge", "us-east-1", "on_demand", "370.0", "194.62"),
        ("compute", "g4dn.xlarge", "us-west-2", "spot", "100.0", "15.780000000000"),
        ("disk", None, "us-east-1", None, "None", "40.0"),
        ("egress", None, "us-east-1", None, "None", "0.00000536870"),
        ("other", None, "ca-central-1", None, "None", "0"),
        ("tax", None, None, None, "None", "26.37"),
        ("credit", None, None, None, "None", "-100.00"),
    ],
    "aws_cur_2.csv": [
        ("compute", "g4dn.xlarge", "us-east-1", "on_demand", "730", "383.98"),
        ("compute", "p5.48xlarge", "us-east-2", "reserved", "730", "24000.5"),
        ("compute", "g5.xlarge", "us-east-1", "reserved", "730", "480.12"),
        ("tax", None, None, None, "None", "12.5"),
    ],
    "azure_ea_actual.csv": [
        ("compute", "Standard_NC24ads_A100_v4", "eastus", "on_demand", "24", "88.152"),
        ("compute", "Standard_NC4as_T4_v3", "eastus", "spot", "10", "0.526"),
        ("compute", "Standard_NC24ads_A100_v4", "eastus", "reserved", "None", "0"),
        ("disk", None, "eastus", None, "None", "2.440666"),
        ("egress", None, "eastus", None, "None", "1.0875"),
        ("address", None, "eastus", None, "None", "0.12"),
        ("fee", None, None, None, "None", "1500"),
        ("tax", None, None, None, "None", "9.5"),
    ],
    "azure_mca_amortised.csv": [
        ("compute", "Standard_NC24ads_A100_v4", "westeurope", "reserved", "24", "60.00"),
        ("fee", "Standard_NC24ads_A100_v4", "westeurope", None, "None", "35.00"),
        ("disk", None, "northeurope", None, "None", "2.56"),
        ("credit", None, "westeurope", None, "None", "-5"),
    ],
    "gcp_detailed.jsonl": [
        ("compute", "a2-highgpu-1g", "us-central1", "on_demand", "1", "0.37932"),
        ("compute", "a2-highgpu-1g", "us-central1", "on_demand", "0", "0.36"),
        ("compute", "a2-highgpu-1g", "us-central1", "reserved", "0", "1.933900"),
        ("credit", None, None, None, "None", "-0.5"),
        ("disk", None, "us-central1", None, "None", "0.05"),
        ("egress", None, "us-central1", None, "None", "0.12"),
        ("fee", None, "us-central1", None, "None", "0.24"),
        ("compute", "a2-highgpu-1g", "us-central1", "on_demand", "1", "0.37932"),
        ("tax", None, None, None, "None", "0.9"),
    ],
    "gcp_standard.csv": [
        ("compute", None, "us-west1", "spot", "0", "0.11"),
        ("compute", "n1-standard-4", "us-west1", "on_demand", "1", "0.100"),
        ("object-storage", None, "us", None, "None", "0.4"),
    ],
    "focus_1_0.csv": [
        ("compute", "g4dn.xlarge", "us-east-1", "on_demand", "730.000000000000000",
         "383.98000000000"),
        ("egress", None, "us-east-1", None, "None", "8.0000E-7"),
        ("disk", None, "us-east-1", None, "None", "40.00000000000"),
    ],
    "focus_1_2.csv": [
        ("compute", "g4dn.xlarge", "us-east-1", "spot", "730", "115.2"),
        ("compute", "p5.48xlarge", "us-east-2", "reserved", "730", "24000.5"),
        ("fee", None, "us-east-2", None, "None", "7.25"),
        ("tax", None, None, None, "None", "30.5"),
        ("credit", None, "us-east-1", None, "None", "-4"),
        ("address", None, "us-east-1", None, "None", "3.65"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_every_line_is_what_the_bill_says(name: str) -> None:
    """Kind, size, region, way of buying, hours and the exact amount of each line."""
    assert told(read(name).lines) == EXPECTED[name]


def test_times_are_kept() -> None:
    """An invoice's offset times, and a day of insights, are instants in UTC."""
    invoice, insight = read("digitalocean_invoice.csv"), read("digitalocean_insights.json")
    assert invoice.lines[0].start == datetime(2026, 11, 1, tzinfo=UTC)
    assert invoice.lines[0].end == datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
    assert insight.lines[1].end == datetime(2026, 11, 3, tzinfo=UTC)


def test_commitments_are_counted_once() -> None:
    """Fees and negations of a commitment are left out by name: its use carries its cost."""
    notes = read("aws_cur_2.csv").notes
    assert len(notes) == 2
    assert "not known: export reservation/UnusedAmortizedUpfrontFeeForBillingPeriod" in notes[0]
    assert "RIFee 1, SavingsPlanNegation 1 lines" in notes[1]


def test_what_the_bill_calls_unused_is_so() -> None:
    """Unused parts of commitments and unassigned addresses are marked; other lines are open."""
    marked = {name: [line.source for line in read(name).lines if line.idle] for name in FILES}
    assert {name: sources for name, sources in marked.items() if sources} == {
        "azure_mca_amortised.csv": ["azure_mca_amortised.csv:3"],
        "digitalocean_invoice.csv": ["digitalocean_invoice.csv:5"],
        "focus_1_2.csv": ["focus_1_2.csv:4"],
        "gcp_detailed.jsonl": ["gcp_detailed.jsonl:7"],
    }
    (in_use,) = (line for line in read("focus_1_2.csv").lines if line.kind == "address")
    assert in_use.idle is False


def test_reservations_in_actual_costs_are_said_to_be_free() -> None:
    """An export of actual costs has covered use at 0: the note says which one has its dollars."""
    assert "1 lines" in read("azure_ea_actual.csv").notes[0]
    assert "amortised" in read("azure_ea_actual.csv").notes[0]
    assert read("azure_mca_amortised.csv").notes == ()


def test_focus_1_4_has_another_name_of_the_provider() -> None:
    """Without ProviderName the service's provider is read; a file with both has the newer one."""
    text = text_of("focus_1_2.csv")
    renamed = read_bill("f.csv", text.replace("ProviderName", "ServiceProviderName"))
    assert told(renamed.lines) == EXPECTED["focus_1_2.csv"]
    assert {line.provider for line in renamed.lines} == {"aws"}


def test_the_gpu_of_a_part_is_what_its_row_names() -> None:
    """GPU hours stand on the row of the GPU, with its name; cores and memory have none."""
    lines = [line for line in read("gcp_detailed.jsonl").lines if line.kind == "compute"]
    assert [str(line.gpu_hours) for line in lines] == ["0", "0", "1", "0"]
    assert [line.gpu for line in lines] == [None, None, "Nvidia Tesla A100", None]


def test_a_page_of_several_says_so() -> None:
    """An answer with a next page is read with a warning; a whole one without."""
    (note,) = read("digitalocean_invoice.json").notes
    assert "2 lines of 6" in note
    assert read("digitalocean_insights.json").notes == ()


# file, what is replaced by what, what the message names
BROKEN = (
    ("digitalocean_invoice.csv", ("USD", "EUR"), ":1: the column of amounts is EUR"),
    ("digitalocean_invoice.csv", ("$6.00", "six"), ":3: 'six' is not an amount"),
    ("digitalocean_invoice.csv", ("2026-11-22 18:14:39 +0000", "soon"), ":5: 'soon' is not a time"),
    ("digitalocean_invoice.json", ('"amount": "5.00"', '"sum": "5.00"'), "[1]: 'amount'"),
    ("digitalocean_invoice.json", ("invoice_items", "billing_history"), "neither invoice_items"),
    ("digitalocean_insights.json", ('"2.57"', "null"), "data_points[2]: 'None' is not an amount"),
    ("aws_cur_legacy.csv", ("USD,40.0", "CAD,40.0"), ":5: the currency is CAD"),
    ("aws_cur_legacy.csv", ("lineItem/UnblendedCost", "x"), ":1: the report has no line_item_unb"),
    ("aws_cur_2.csv", (",24000.5,\n", ",,\n"), ":3: reservation_effective_cost is empty"),
    ("focus_1_0.csv", ('"USD","2026-12-01 00:00:00"', '"EUR","2026-12-01 00:00:00"'), ":2: the"),
    ("azure_ea_actual.csv", ("Tax,,USD", "Tax,,CAD"), ":9: the currency is CAD. Say what"),
    ("azure_ea_actual.csv", ("Usage,Spot", "Use,Spot"), ":3: ChargeType is 'Use'"),
    ("azure_mca_amortised.csv", ("11/03/2026", "31/03/2026"), ":5: '31/03/2026' is no"),
    ("gcp_detailed.jsonl", ('"cost":0.05', '"price":0.05'), ":4: '' is no"),
    ("gcp_detailed.jsonl", ('"cost":0.9,"currency":"USD"', '"cost":0.9'), ":8: the currency"),
    ("gcp_standard.csv", ("USD,4,hour,regular", "USD,4,hour,odd"), ":3: cost_type is 'odd'"),
    ("focus_1_2.csv", ("3.65,USD,Usage", "3.65,USD,Use"), ":7: ChargeCategory is 'Use'"),
    ("focus_1_2.csv", ("ProviderName", "Provider"), ":1: FOCUS 1.0 to 1.4 needs the column"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "change", "told_"), BROKEN, ids=[b[2] for b in BROKEN])
def test_what_is_wrong_is_named_with_its_line(
    name: str, change: tuple[str, str], told_: str
) -> None:
    """Another currency, no amount, no time or a missing column is refused, and located."""
    text = text_of(name)
    assert change[0] in text
    with pytest.raises(InputError) as caught:
        read_bill(name, text.replace(*change))
    assert f"{name}" in caught.value.problems[0]
    assert told_ in caught.value.problems[0]


def test_every_problem_of_a_file_is_listed() -> None:
    """Three bad cells are three problems; beyond fifty they are counted."""
    text = text_of("digitalocean_invoice.csv").replace("$", "£")
    with pytest.raises(InputError) as caught:
        read_bill("i.csv", text)
    assert len(caught.value.problems) == 6
    head, _, rows = text.partition("\n")
    with pytest.raises(InputError) as caught:
        read_bill("i.csv", head + "\n" + rows * 20)
    assert len(caught.value.problems) == 51
    assert caught.value.problems[-1] == "... and 70 problems more."


@pytest.mark.parametrize(
    ("text", "told_"),
    [
        ('{"ResultsByTime": [{"TimePeriod": {}}]}', "Cost Explorer, which names no machine hours"),
        ("", "not a bill that gpucost reads"),
        ("a,b\n1,2\n", "FOCUS CSV, AWS Cost and Usage Report"),
        ("{", "no valid JSON"),
        ('{"a": 1}', "neither"),
        ('{"invoice_items": []}', "without a single charge"),
        ('{"invoice_items": [3]}', "invoice_items[0]"),
        ("MeterCategory,CostInBillingCurrency\n", "without a single charge"),
        (text_of("aws_cur_2.csv").partition("\n")[0] + "\n", "without a single charge"),
    ],
)
def test_what_is_no_bill_is_refused(text: str, told_: str) -> None:
    """An unknown, empty or unread file is an input error that says what is known."""
    with pytest.raises(InputError, match=told_.replace("[", r"\[")):
        read_bill("x", text)


@given(st.sampled_from(sorted(FILES)), st.integers(0, 2000), st.text(max_size=5))
def test_a_damaged_bill_is_read_or_refused(name: str, place: int, noise: str) -> None:
    """Noise anywhere in a bill gives lines or an input error, never another failure."""
    text = text_of(name)
    try:
        bill = read_bill(name, text[:place] + noise + text[place:])
    except InputError as error:
        assert error.problems  # noqa: PT017 - either outcome is right
    else:
        assert all(line.usd.is_finite() for line in bill.lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BoxUsage:p5.48xlarge", ("compute", "p5.48xlarge", "on_demand")),
        ("USE2-SpotUsage:g5.xlarge", ("compute", "g5.xlarge", "spot")),
        ("EUC1-BoxUsage", ("compute", "m1.small", "on_demand")),
        ("EBS:SnapshotUsage", ("snapshot", None, None)),
        ("USW2-TimedStorage-ByteHrs", ("object-storage", None, None)),
        ("DataTransfer-Regional-Bytes", ("other", None, None)),
        ("PublicIPv4:InUseAddress", ("address", None, None)),
        ("AmazonEKS-Hours:perCluster", ("control-plane", None, None)),
        ("USE1-Studio:JupyterLab-ml.g5.xlarge", ("compute", "ml.g5.xlarge", "on_demand")),
        ("Studio:KernelGateway-ml.g4dn.xlarge", ("compute", "ml.g4dn.xlarge", "on_demand")),
        ("USW2-Cluster:ml.p4d.24xlarge", ("compute", "ml.p4d.24xlarge", "on_demand")),
        ("USE1-Host:VolumeUsage.gp2", ("other", None, None)),
    ],
)
def test_usage_types_of_aws(text: str, expected: tuple[str | None, ...]) -> None:
    """A usage type says what a line is for, with or without a region before it."""
    assert tuple(usage_of_type(text)) == expected


def test_the_research_samples(shared: Path) -> None:
    """The published samples of FOCUS and AWS are read whole, to the cent of their own sum."""
    samples = shared / "samples"
    focus = samples / "focus-billing" / "focus_1.0_sample_head.csv"
    cur = samples / "aws-cur" / "aws_cur_legacy_anonymous_head.csv"
    bill = read_bill(focus.name, focus.read_text(encoding="utf-8"))
    assert len(bill.lines) == 119
    sizes = Counter(line.instance_type for line in bill.lines if line.kind == "compute")
    assert sizes == {"c5.2xlarge": 1, "t2.medium": 1, "m5.2xlarge": 1, "t3.micro": 1}
    assert bill.lines[0].usd == Decimal("0.00000080000")
    tax = [line for line in read_bill(cur.name, cur.read_text()).lines if line.kind == "tax"]
    assert len(tax) == 12


def test_the_research_sample_of_azure(shared: Path) -> None:
    """The published sample is in Canadian dollars: refused so, and read whole once it is not."""
    (path,) = (shared / "samples" / "azure-ea").glob("*.csv")
    text = path.read_text(encoding="utf-8-sig")
    with pytest.raises(InputError, match="the currency is CAD"):
        read_bill(path.name, text)
    bill = read_bill(path.name, text.replace(",CAD,", ",USD,"))
    assert bill.format == "Azure cost details"
    assert {line.kind for line in bill.lines} >= {"compute"}


def test_the_published_invoice_example(shared: Path) -> None:
    """The invoice in DigitalOcean's own API description reads to its two amounts."""
    text = (shared / "samples" / "digitalocean-billing" / "invoice_csv.openapi.yml").read_text()
    invoice = "\n".join(
        line.strip() for line in text.partition("example: |")[2].splitlines() if line
    )
    lines = read_bill("invoice.csv", invoice.strip()).lines
    assert [(line.kind, line.usd) for line in lines] == [
        ("address", Decimal("3.11")),
        ("tax", Decimal("0.16")),
    ]


FOCUS_HEADER = (
    "BilledCost,EffectiveCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,"
    "ProviderName,ServiceName,ServiceCategory,ChargeDescription,ConsumedQuantity,ConsumedUnit,"
    "CommitmentDiscountId,CommitmentDiscountStatus,PricingCategory,x_SkuDetails"
)
DAY = "2026-10-01T00:00:00Z,2026-10-02T00:00:00Z"
FEE = f"3720,0,USD,Purchase,{DAY},Microsoft,Virtual Machines,Compute,Reserved VM,,,order/ab,,,"
VM = '"{""ServiceType"": ""Standard_NC40ads_H100_v5""}"'
USED = f"0,2480,USD,Usage,{DAY},Microsoft,Virtual Machines,Compute,NC40ads,496,Hours,"
UNUSED = f"0,1240,USD,Usage,{DAY},Microsoft,Virtual Machines,Compute,NC40ads,248,Hours,"


def focus(*rows: str) -> Bill:
    """A FOCUS file of rows."""
    return read_bill("f.csv", "\n".join((FOCUS_HEADER, *rows)))


@pytest.mark.parametrize("order", ["order/ab", "order/ab/reservations/cd"])
def test_a_reservation_is_counted_once(order: str) -> None:
    """A fee whose dollars are in the use that it covers, of its order or below it, is not added."""
    covered = [
        f"{USED}{order},Used,Committed,{VM}",
        f"{UNUSED}{order},Unused,Committed,{VM}",
    ]
    bill = focus(FEE, *covered)
    assert sum(line.usd for line in bill.lines) == bill.invoice_usd == Decimal(3720)
    assert bill.notes == ()


@pytest.mark.parametrize(("order", "by_use"), [("order/abc", 2480), ("", 3720)])
def test_a_bill_counts_with_one_column(order: str, by_use: int) -> None:
    """By hand: billed 3,720 + 0; effective 0 + 2,480. The invoice is the billed sum, and so said.

    Without a commitment in use nothing is spread, and what was billed counts.
    """
    bill = focus(FEE, f"{USED}{order},Used,Committed,{VM}")
    assert sum(line.usd for line in bill.lines) == Decimal(by_use)
    assert bill.invoice_usd == Decimal(3720)
    words = "EffectiveCost (USD 2,480.00)", "BilledCost (USD 3,720.00)"
    assert [all(word in note for word in words) for note in bill.notes] == [True] * bool(order)


def test_an_effective_cost_of_nothing_is_not_a_missing_one() -> None:
    """A discount that is also a credit line is taken off once: 98.32 - 43.28 are 55.04.

    Where EffectiveCost comes to another sum and no commitment explains it, BilledCost counts for
    all rows (0.49 and 1.62 are 2.11, where a mixture would be 2.49), and a price in the column of
    the zone is no place.
    """
    use = f"98.32,55.04,USD,Usage,{DAY},AWS,Amazon EC2,Compute,$1 per p5.48xlarge Instance Hour,1"
    credit = f"-43.28,0,USD,Credit,{DAY},AWS,Amazon EC2,Compute,Private rate discount,"
    lines = focus(f"{use},Hours,,,,", f"{credit},,,,,").lines
    assert [line.usd for line in lines] == [Decimal("55.04"), Decimal(0)]
    odd = f"USD,Usage,{DAY},AWS,Amazon EC2,Compute,$1 per g5.4xlarge Instance Hour,1,Hours,,,,"
    bill = focus(f"0.49,0,{odd}", f"1.62,2,{odd}")
    assert [line.usd for line in bill.lines] == [Decimal("0.49"), Decimal("1.62")]
    row = f"1,1,{odd},5.27"
    header = f"{FOCUS_HEADER},AvailabilityZone"
    assert read_bill("f.csv", f"{header}\n{row}\n").lines[0].zone is None
    assert read_bill("f.csv", f"{header}\n{row[:-4]}us-east-1a\n").lines[0].zone == "us-east-1a"


@pytest.mark.parametrize(
    ("description", "details", "size", "gpu", "gpus"),
    [
        ("NC40ads", VM, "Standard_NC40ads_H100_v5", None, None),
        ("8x H100 SXM", "", None, "H100 SXM", Decimal(8)),
        ("RTX 4090", "", None, "RTX 4090", Decimal(1)),
        ("gpu_8x_h100_sxm5", "", "gpu_8x_h100_sxm5", "H100", Decimal(8)),
        ("8x storage nodes", "", None, None, None),
    ],
)
def test_a_gpu_machine_in_focus_is_named_by_what_its_row_says(
    description: str, details: str, size: str | None, gpu: str | None, gpus: Decimal | None
) -> None:
    """Azure's details, a GPU in words and a size as the only word; other words are no machine."""
    row = f"5,5,USD,Usage,{DAY},Microsoft,Virtual Machines,Compute,{description},2,Hours,,,Standard"
    (line,) = focus(f"{row},{details}").lines
    assert (line.instance_type, line.gpu, line.gpus) == (size, gpu, gpus)


def test_what_a_commitment_left_unused_is_in_dollars() -> None:
    """Of EUR 0.736 an hour EUR 0.6072 was used: the other EUR 0.1288 are $0.14 at 1.087."""
    head, use, *_ = text_of("aws_cur_2.csv").splitlines()
    fees = "savings_plan_total_commitment_to_date,savings_plan_used_commitment"
    row = use.replace("Usage,", "SavingsPlanRecurringFee,", 1).replace(",USD,", ",EUR,")
    bill = read_bill("a.csv", f"{head},{fees}\n{row},0.736,0.6072\n", {"EUR": Decimal("1.087")})
    (fee,) = bill.lines
    assert (fee.kind, fee.usd) == ("fee", Decimal("0.1400056"))


@pytest.mark.parametrize(
    ("columns", "cells", "unused"), [("", "", None), (",{},{}", ",4000,3850", Decimal(150))]
)
def test_a_fee_without_its_unused_part_is_in_the_invoice_and_unknown(
    columns: str, cells: str, unused: Decimal | None
) -> None:
    """Covered 3,850 of a fee of 4,000: the invoice is 5,504 - 5,504 + 4,000, whatever is known."""
    head, use, *_ = text_of("aws_cur_2.csv").splitlines()
    cell = dict.fromkeys(head.split(","), "") | dict(
        zip(head.split(","), use.split(","), strict=True)
    )
    cell |= {"savings_plan_savings_plan_effective_cost": "3850"}
    names = "savings_plan_total_commitment_to_date", "savings_plan_used_commitment"
    rows = [
        cell | {"line_item_line_item_type": kind, "line_item_unblended_cost": usd}
        for kind, usd in (
            ("SavingsPlanCoveredUsage", "5504"),
            ("SavingsPlanNegation", "-5504"),
            ("SavingsPlanRecurringFee", "4000"),
        )
    ]
    text = [",".join(rows[0]) + columns.format(*names)]
    text += [",".join(row.values()) + (cells or "") for row in rows]
    bill = read_bill("a.csv", "\n".join(text))
    assert bill.invoice_usd == Decimal(4000)
    assert [line.usd for line in bill.lines if line.idle] == ([unused] if unused else [])
    told = any("savingsPlan/TotalCommitmentToDate" in note for note in bill.notes)
    assert told is not bool(unused)


NET = (
    "lineItem/LineItemType,lineItem/UsageType,lineItem/UsageStartDate,lineItem/UsageEndDate,"
    "lineItem/UsageAmount,lineItem/CurrencyCode,lineItem/UnblendedCost,lineItem/NetUnblendedCost,"
    "discount/TotalDiscount\n"
    "Usage,BoxUsage:g5.xlarge,2026-03-03T00:00:00Z,2026-03-03T10:00:00Z,10,USD,10.06,9.054,-1.006\n"
)


@pytest.mark.parametrize(
    ("more", "usd"),
    [
        ("", ["9.054"]),
        (
            "EdpDiscount,BoxUsage:g5.xlarge,2026-03-03T00:00:00Z,2026-03-03T10:00:00Z,,USD,-1.006,,\n",
            ["10.06", "-1.006"],
        ),
    ],
)
def test_agreed_discounts_of_aws_are_taken_off_once(more: str, usd: list[str]) -> None:
    """10 % off USD 10.06 is 9.054, as a column of the line or as a line of its own."""
    lines = read_bill("net.csv", NET + more).lines
    assert [line.usd for line in lines] == [Decimal(text) for text in usd]
    assert sum(line.usd for line in lines) == Decimal("9.054")
