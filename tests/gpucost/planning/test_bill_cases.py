"""Small bills that were read wrongly, each with the right answer that was written down before.

The folder also says why (`expected.txt`). Tests skip where it is absent.
"""

import json
from pathlib import Path

import pytest

from planner.bills.formats import read_bill
from tests.gpucost.conftest import Call

USD_AND_HOURS = {
    "b02-enterprise-discount/aws_prd.csv": ("550.40", [("p5.48xlarge", "550.4", 10.0, 80.0)]),
    "b02-enterprise-discount/aws_edp.csv": ("90.54", [("g5.xlarge", "90.54", 100.0, 100.0)]),
    "b04-sagemaker/aws_sagemaker.csv": ("428.33", [
        ("ml.p4d.24xlarge", "376.88", 10.0, 80.0), ("ml.g5.xlarge", "33.79", 24.0, 24.0),
        ("ml.g4dn.xlarge", "17.66", 24.0, 24.0)]),
    "b04-sagemaker/focus_sm.csv": ("376.88", [("ml.p4d.24xlarge", "376.88", 10.0, 80.0)]),
    "b07-focus-credit-of-resource/focus_disc.csv": ("55.04", [
        ("p5.48xlarge", "55.04", 1.0, 8.0)]),
    "b08-rows-twice/aws_dup.csv": ("24.14", [("g5.xlarge", "24.144", 24.0, 24.0)]),
    "b09-console-downloads/gcp_console.csv": ("784.00", [(None, "784", None, 80.0)]),
    "b10-gcp-currency/gcp_eur.jsonl": ("2.22", [("g2-standard-8", None, 10.0, 10.0)]),
    "b12-gcp-local-ssd/gcp_a3.jsonl": ("905.10", [("a3-highgpu-8g", "905.1", 10.0, 80.0)]),
}  # fmt: skip
REFUSED = {
    "b09-console-downloads/aws_ce.csv": "AWS Cost Explorer",
    "b09-console-downloads/az_view.csv": "Azure cost analysis",
    "b10-gcp-currency/aws_cny.csv": "--bill-rate CNY=RATE",
}


def test_every_case_of_the_folder_is_held_here(shared: Path) -> None:
    """A bill that comes to the folder needs its answer in one of the tables."""
    folder = shared / "cases" / "inputs"
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.glob("b*/*")
        if path.suffix in {".csv", ".jsonl"}
    }
    assert found == USD_AND_HOURS.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", USD_AND_HOURS)
def test_a_bill_has_the_dollars_and_hours_of_its_answer(
    name: str, shared: Path, call: Call
) -> None:
    """GPU dollars, and of each machine its dollars, hours and GPU hours."""
    ran = call("bill", str(shared / "cases" / "inputs" / name), "-f", "json")
    document = json.loads(ran.out)
    gpu_usd, machines = USD_AND_HOURS[name]
    assert document["totals"]["gpu_usd"] == gpu_usd
    assert document["totals"]["usd"] == gpu_usd
    shown = [
        (m["instance_type"], m["usd"], m["hours"], m["gpu_hours"]) for m in document["machines"]
    ]
    expected = [(t, usd or shown[i][1], *rest) for i, (t, usd, *rest) in enumerate(machines)]
    assert shown == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_says_what_can(name: str, shared: Path, call: Call) -> None:
    """Exit 2 by the name of the download, or with the option that helps."""
    ran = call("bill", str(shared / "cases" / "inputs" / name))
    assert ran.code == 2
    assert REFUSED[name] in ran.err
    assert "download the report again" not in ran.err


def test_a_rate_of_ones_own_is_taken(shared: Path, call: Call) -> None:
    """98.40 CNY at 0.14 are 13.776 dollars."""
    bill = shared / "cases" / "inputs" / "b10-gcp-currency" / "aws_cny.csv"
    ran = call("bill", str(bill), "--bill-rate", "CNY=0.14", "-f", "json")
    assert ran.json["totals"]["gpu_usd"] == "13.78"
    assert call("bill", str(bill), "--bill-rate", "CNY").code == 2


def test_a_machine_has_no_more_hours_than_its_time(
    shared: Path, tmp_path: Path, call: Call
) -> None:
    """The same use in two files is refused: 48 h on one machine in a day of 24."""
    bill = shared / "cases" / "inputs" / "b08-rows-twice" / "aws_dup.csv"
    again = tmp_path / "again.csv"
    again.write_text(bill.read_text().replace("abc123", "def456"))
    ran = call("bill", str(bill), str(again))
    assert ran.code == 2
    assert "i-1: 48 h on one machine" in ran.err


def test_semicolons_and_decimal_commas_are_a_bill_like_any_other() -> None:
    """A FOCUS bill as a European spreadsheet saves it comes to the same dollars and hours."""
    columns = (
        "BilledCost;BillingCurrency;ChargePeriodStart;ChargePeriodEnd;ServiceName;ProviderName;"
        "ResourceId;RegionId;SkuId;ConsumedQuantity;ConsumedUnit;ChargeCategory;ChargeDescription"
    )
    row = (
        "1.008,00;USD;01.10.2026 00:00;31.10.2026 00:00;GPU Instances;Scaleway;node-1;fr-par-2;"
        "L40S-1-48G;720,0;Hours;Usage;L40S-1-48G"
    )
    iso = (
        row.replace("1.008,00", "1008.00")
        .replace("720,0", "720.0")
        .replace("01.10.2026 00:00", "2026-10-01T00:00Z")
        .replace("31.10.2026 00:00", "2026-10-31T00:00Z")
    )
    english = read_bill("b.csv", f"{columns}\n{iso}\n".replace(";", ","))
    assert read_bill("b.csv", f"{columns}\n{row}\n") == english
    assert [str(line.usd) for line in english.lines] == ["1008.00"]


def test_a_pdf_is_sent_back_for_its_csv(call: Call, tmp_path: Path) -> None:
    """A PDF of an invoice exits 2 with the name of what to download instead."""
    bill = tmp_path / "invoice.pdf"
    bill.write_bytes(b"%PDF-1.4\n%abc\n")
    ran = call("bill", str(bill))
    assert (ran.code, "a PDF is not read: download the CSV" in ran.err) == (2, True)


def test_fx_is_units_for_a_dollar_with_a_day_and_without(call: Call, tmp_path: Path) -> None:
    """By hand: 1,008 EUR at 0.8 a dollar are $1,260; shown in EUR they are 1,008 again."""
    bill = tmp_path / "bill.csv"
    bill.write_text(
        "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ServiceName,ProviderName,"
        "ResourceId,RegionId,SkuId,ConsumedQuantity,ConsumedUnit,ChargeCategory,ChargeDescription\n"
        "1008,EUR,2026-10-01T00:00Z,2026-10-31T00:00Z,GPU Instances,Scaleway,node-1,fr-par-2,"
        "L40S-1-48G,720,Hours,Usage,L40S-1-48G\n"
    )
    for rate in ("EUR=0.8", "EUR=0.8@2026-11-20"):
        assert call("bill", str(bill), "--fx", rate, "-f", "json").json["totals"]["usd"] == (
            "1260.00"
        )
        assert "EUR 1,008" in call("bill", str(bill), "--fx", rate).err
    own = call("bill", str(bill), "--fx", "EUR=0.8", "--bill-rate", "EUR=1", "-f", "json")
    assert own.json["totals"]["usd"] == "1008.00"


def test_a_rate_that_no_currency_has_is_refused(call: Call, tmp_path: Path) -> None:
    """84 rupees a dollar is not 84 dollars a rupee: refused, with the rate that was meant."""
    bill = tmp_path / "bill.csv"
    bill.write_text("")
    ran = call("bill", str(bill), "--bill-rate", "INR=84")
    assert ran.code == 2
    assert "INR=0.0119" in " ".join(ran.err.split())
