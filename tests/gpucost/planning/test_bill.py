"""`gpucost bill`: what an invoice alone says of GPUs."""

import csv
import io
import re
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import changed, training

BILLS = ROOT / "tests" / "fixtures" / "bills"


@pytest.fixture(autouse=True)
def bills(empty_folder: Path) -> None:
    """Every form of bill lies in the folder."""
    shutil.copytree(BILLS, empty_folder, dirs_exist_ok=True)


@pytest.mark.parametrize(
    ("name", "gpu_usd", "leftover_usd", "gpu_hours"),
    [
        ("aws_cur_2.csv", "24864.60", "0.00", 7300),
        ("aws_cur_legacy.csv", "399.76", "0.00", 830),
        ("digitalocean_invoice.csv", "3219.30", "3.11", 730),
        ("digitalocean_invoice.json", "1499.40", "0.00", 340),
        ("digitalocean_insights.json", "211.68", "0.00", None),
        ("focus_1_0.csv", "383.98", "0.00", 730),
        ("focus_1_2.csv", "24115.70", "7.25", 6570),
    ],
)
def test_the_totals_of_every_form(
    name: str, gpu_usd: str, leftover_usd: str, gpu_hours: float | None, call: Call
) -> None:
    """Dollars of GPUs, GPU hours where the form counts them, and what the bill calls unused."""
    ran = call("bill", name, "-f", "json")
    assert ran.code == 0, ran.err
    totals = ran.json["totals"]
    assert (totals["gpu_usd"], totals["leftover_usd"]) == (gpu_usd, leftover_usd)
    assert totals["gpu_hours"] == gpu_hours
    assert sum(Decimal(one["usd"]) for one in ran.json["machines"]) == Decimal(gpu_usd)


def test_every_dollar_names_its_lines(call: Call) -> None:
    """Machines and findings say in which lines of which file their dollars stand."""
    ran = call("bill", "focus_1_2.csv", "digitalocean_invoice.csv", "-f", "json")
    assert ran.json["machines"][0]["lines"] == ["focus_1_2.csv:3"]
    assert [one["lines"] for one in ran.json["findings"]] == [
        [{"source": "focus_1_2.csv:4", "usd": "7.25"}],
        [{"source": "digitalocean_invoice.csv:5", "usd": "3.11"}],
    ]


def test_what_to_measure_first_is_the_dearest_machine_without_a_profile(
    call: Call, write: Write
) -> None:
    """The command that measures it is given; a profile of that machine moves on to the next."""
    ran = call("bill", "aws_cur_2.csv", "-f", "json")
    assert ran.json["measure_first"] == {
        "machine": "aws/p5.48xlarge/us-east-2",
        "usd": "24000.5",
        "commands": [
            "gpucost profile --duration 10m -o p5.48xlarge.json",
            "gpucost plan p5.48xlarge.json --current aws/p5.48xlarge/us-east-2",
        ],
    }
    job = training()
    for key, value in (("provider", "aws"), ("instance_type", "p5.48xlarge")):
        job = changed(job, ("hardware", key), value)
    write("p5.json", job)
    ran = call("bill", "aws_cur_2.csv", "--measured", "p5.json", "-f", "json")
    assert ran.json["measure_first"]["machine"] == "aws/g5.xlarge/us-east-1"


@pytest.mark.parametrize("format_", ["table", "md", "csv"])
def test_what_is_printed(format_: str, call: Call) -> None:
    """Machines in every format; what nobody used beside them, but in csv; advice on stderr."""
    ran = call("bill", "digitalocean_invoice.csv", "-f", format_)
    assert ran.code == 0, ran.err
    assert "gpu-h100x1-80gb" in ran.out
    assert "gpucost profile" in ran.err or format_ == "csv"
    if format_ == "csv":
        (row,) = csv.DictReader(io.StringIO(ran.out))
        assert row["USD"] == "3219.3"
    else:
        assert "used it" in ran.out  # a table wraps the sentence between words
        assert (
            "digitalocean: the bill does not show whether its disk (USD 50.00) is in use" in ran.err
        )


def test_nights_are_in_the_readers_zone(call: Call) -> None:
    """The parts of the week add up to the GPU dollars, and --tz moves them."""
    here, there = (
        call("bill", "digitalocean_invoice.csv", "--tz", zone, "-f", "json").json["by_part"]
        for zone in ("UTC", "America/Los_Angeles")
    )
    for parts in (here, there):
        assert sum(Decimal(usd) for usd in parts.values()) == Decimal("3219.30")
        assert parts["unknown_usd"] == "0"
    assert here != there


@pytest.mark.parametrize("name", ["aws_cur_2.csv", "aws_cur_legacy.csv", "focus_1_2.csv"])
def test_when_the_dollars_fell_sums_to_the_dollars_of_gpus(name: str, call: Call) -> None:
    """What no hour is known of is named beside days, nights and weekends."""
    text = " ".join(call("bill", name).err.split())
    (line,) = re.findall(r"when \(UTC\): (.*?)\.(?: |$)", text)
    parts = [Decimal(usd.replace(",", "")) for usd in re.findall(r"USD ([\d,.]+\d)", line)]
    gpu_usd = Decimal(call("bill", name, "-f", "json").json["totals"]["gpu_usd"])
    assert sum(parts) == pytest.approx(gpu_usd, abs=Decimal("0.02"))


def test_a_bill_without_gpus_says_so(call: Call, write: Write) -> None:
    """No GPU machine is an empty table and nothing to measure, not an error."""
    text = (BILLS / "digitalocean_invoice.csv").read_text(encoding="utf-8")
    write(
        "cpu.csv",
        text.replace("gpu-h100x1-80gb", "s-4vcpu-8gb").replace("GPU Droplets", "Droplets"),
    )
    ran = call("bill", "cpu.csv", "-f", "json")
    assert ran.code == 0, ran.err
    assert (ran.json["machines"], ran.json["measure_first"]) == ([], None)
    assert "no machine with a GPU" in call("bill", "cpu.csv").err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "INVOICE"),
        (("nothing.csv",), "nothing.csv"),
        (("aws_cur_2.csv", "--tz", "Mars"), "--tz Mars"),
        (("README.md",), "not a bill that gpucost reads"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...], told: str, call: Call) -> None:
    """No file, a missing one, no such zone or no bill exits 2 and says what is wrong."""
    ran = call("bill", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_two_forms_of_the_same_charges_are_refused(call: Call, write: Write) -> None:
    """A report and its FOCUS twin hold the same use; their dollars would count twice."""
    write("a.csv", "lineItem/LineItemType,lineItem/UsageStartDate,lineItem/UsageEndDate,"
          "lineItem/UsageType,lineItem/UsageAmount,lineItem/CurrencyCode,lineItem/UnblendedCost,"
          "lineItem/ResourceId\nUsage,2026-11-01T00:00:00Z,2026-11-01T01:00:00Z,"
          "BoxUsage:g4dn.xlarge,1,USD,0.526,i-1\n")  # fmt: skip
    write("b.csv", "BilledCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,"
          "ServiceProviderName,ResourceId,ChargeDescription\n0.526,USD,Usage,2026-11-01T00:00:00Z,"
          "2026-11-01T01:00:00Z,AWS,i-1,$1 per g4dn.xlarge Instance Hour\n")  # fmt: skip
    ran = call("bill", "a.csv", "b.csv")
    assert (ran.code, ran.out) == (2, "")
    assert "a.csv and b.csv hold the same charges" in ran.err


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", "Invoice total USD 3,253.57: GPU 3,219.30, other use 59.11, credits and refunds"),
        ("zh", "发票总额 USD 3,253.57: GPU 3,219.30、其他用量 59.11、抵扣与退款 -25.00、税款 0.16"),
    ],
)  # fmt: skip
def test_the_invoice_comes_first_with_its_parts(lang: str, words: str, call: Call) -> None:
    """By hand: 3,219.30 + 6 + 50 + 3.11 + 0.16 - 25; no hour is unknown on a screen."""
    ran = call("bill", "digitalocean_invoice.csv", "--lang", lang)
    assert ran.err.splitlines()[0].startswith(words)
    assert call("bill", "digitalocean_invoice.csv", "-f", "json").json["totals"]["invoice_usd"] == (
        "3253.57"
    )
    assert "unknown hours" not in ran.err


def test_what_cost_less_than_a_cent_is_counted_and_not_listed(call: Call, write: Write) -> None:
    """One address of 3.11 is in the table, one of 0.004 only with -v."""
    text = (BILLS / "digitalocean_invoice.csv").read_text(encoding="utf-8")
    (address,) = (line for line in text.splitlines() if "Floating" in line)
    write("two.csv", text + address.replace("$3.11", "$0.004").replace("1.1.1.1", "2.2.2.2") + "\n")
    short, long = call("bill", "two.csv"), call("bill", "two.csv", "-v")
    assert ("2.2.2.2" in short.out, "2.2.2.2" in long.out) == (False, True)
    assert "1 more of less than a cent" in short.err


def test_a_machine_of_an_unknown_gpu_is_named(call: Call, write: Write) -> None:
    """Its hours are not silently missing from the GPU hours."""
    head = "product,group_description,description,hours,start,end,USD,project_name,category\n"
    when = "2026-10-01 00:00:00 +0000,2026-10-02 00:00:00 +0000"
    row = f"GPU Droplets,,dev (gpu-xyz9000x1-20gb),24,{when},$18.24,ml,iaas\n"
    write("odd.csv", head + row)
    assert (
        "gpu-xyz9000x1-20gb (USD 18.24): its GPUs or their hours are not known"
        in call("bill", "odd.csv").err
    )


def test_two_months_are_said_to_be_two(call: Call) -> None:
    """The bills of October and November: 383.98 in each, never called one month's 767.96."""
    november = Path("focus_1_0.csv").read_text(encoding="utf-8")
    october = november.replace("2026-11-01", "2026-10-01").replace("2026-12-01", "2026-11-01")
    Path("october.csv").write_text(october, encoding="utf-8")
    both = call("bill", "october.csv", "focus_1_0.csv")
    said = " ".join((both.out + both.err).split())
    assert "2 months, not of one: 2026-10 USD 383.98" in said
    assert "2026-11 USD 383.98" in said
    assert "USD 383.98 a month on average" in said
    assert "months, not of one" not in call("bill", "focus_1_0.csv").err
