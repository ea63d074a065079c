"""`gpucost reconcile`: a plan and bills of every form, in every format of output."""

import csv
import gzip
import io
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, changed, training

BILLS = ROOT / "tests" / "fixtures" / "bills"


AS_BILLED = ("--boot-disk", "none", "--no-public-address", "--as-of", AS_OF, "-q")
"""The bills name no boot disk and no address of their own."""


@pytest.fixture
def plan(call: Call, write: Write, empty_folder: Path) -> str:
    """A job that runs on g4dn.xlarge in us-east-1, with the bills beside its plan."""
    shutil.copytree(BILLS, empty_folder, dirs_exist_ok=True)
    write("profile.json", training())
    assert call("plan", *AS_BILLED, "-o", "plan.json").code == 0
    return "plan.json"


@pytest.mark.parametrize("name", ["aws_cur_legacy.csv", "aws_cur_2.csv", "focus_1_0.csv"])
def test_a_plan_that_came_true(name: str, plan: str, call: Call) -> None:
    """730 h of g4dn.xlarge at 0.526 USD/h are 383.98 USD on every kind of AWS bill: 0 off."""
    ran = call("reconcile", plan, name, "--option", "train/o0", "-f", "json")
    assert ran.code == 0, ran.err
    (one,) = [line for line in ran.json["lines"] if line["match"] == "both"]
    assert (one["what"], one["instance_type"], one["jobs"]) == ("compute", "g4dn.xlarge", ["train"])
    assert Decimal(one["predicted_usd"]) == Decimal(one["actual_usd"]) == Decimal("383.98")
    assert one["hours"] == {"predicted": 730, "actual": 730}
    assert ran.json["totals"]["matched"]["difference_usd"] == "0.00"


def test_a_bill_of_today_is_held_against_today(plan: str, call: Call) -> None:
    """Advice that nobody followed yet is on no bill: today's machine is compared, and said."""
    ran = call("bill", "aws_cur_2.csv", plan, "-f", "json")
    assert ran.json["plan"]["options"] == ["train/o0"]
    assert ran.json["totals"]["matched"]["difference_usd"] == "0.00"
    assert "train: the bill has today's machine" in ran.err
    named = call("bill", "aws_cur_2.csv", plan, "--option", "o1", "-f", "json")
    assert named.json["plan"]["options"] == ["train/o1"]


@pytest.mark.parametrize(("columns", "said"), [("80", True), ("140", False)])
def test_hours_that_explain_a_difference_are_never_hidden(
    columns: str,
    said: bool,  # noqa: FBT001
    plan: str,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan of 100 h against a bill of 730: a terminal too narrow for hours has them in words."""
    call("plan", *AS_BILLED, "--hours-per-month", "100", "-o", plan)
    monkeypatch.setenv("COLUMNS", columns)
    ran = call("bill", "aws_cur_2.csv", plan, "--option", "train/o0")
    text = " ".join((ran.out + ran.err).split())
    assert ("g4dn.xlarge: 100 machine hours planned, 730 billed." in text) is said
    assert ("hours billed" in ran.out) is not said


def test_a_boot_disk_is_a_disk_on_a_bill(plan: str, call: Call) -> None:
    """A bill knows disks: what machines boot from and what holds data are one line of it."""
    disks = {}
    for size in ("none", "100GiB"):
        call("plan", *AS_BILLED, "--boot-disk", size, "--storage", "100GiB", "-o", plan)
        ran = call("reconcile", plan, "aws_cur_2.csv", "--option", "train/o0", "-f", "json")
        (disks[size],) = [line for line in ran.json["lines"] if line["what"] == "disk"]
    assert Decimal(disks["none"]["predicted_usd"]) == 8
    assert Decimal(disks["100GiB"]["predicted_usd"]) == 16


def test_a_droplet_for_a_part_of_a_month(call: Call, write: Write, plan: str) -> None:
    """Against 340 of 730 h the difference is the rest, and the partial month is said."""
    job = training()
    for key, value in (
        ("provider", "digitalocean"),
        ("instance_type", "gpu-h100x1-80gb"),
        ("region", None),
        ("gpu", "H100 SXM 80GB"),
    ):
        job = changed(job, ("hardware", key), value)
    write("profile.json", job)
    assert call("plan", *AS_BILLED, "-o", plan).code == 0
    ran = call("reconcile", plan, "digitalocean_invoice.json", "--option", "o0", "-f", "json")
    assert ran.code == 0, ran.err
    (one,) = [line for line in ran.json["lines"] if line["match"] == "both"]
    assert (one["predicted_usd"], one["actual_usd"]) == ("3219.3", "1499.4")
    assert one["difference_usd"] == "-1719.9"
    assert any("14.2 of 30 days" in note for note in ran.json["notes"])


@pytest.mark.parametrize("format_", ["table", "csv", "md"])
def test_what_is_printed(format_: str, plan: str, call: Call) -> None:
    """Every format has both sides; taxes stand apart; the notes are on standard error."""
    ran = call("reconcile", plan, "aws_cur_legacy.csv", "--option", "train/o0", "-f", format_)
    assert ran.code == 0, ran.err
    assert "383.98" in ran.out
    assert "plan only" not in ran.out
    assert "apart" in ran.out
    assert "whole account" in ran.err
    if format_ == "csv":
        rows = list(csv.DictReader(io.StringIO(ran.out)))
        assert [row["what"] for row in rows if row["match"] == "both"] == ["compute"]
        assert {row["match"] for row in rows} == {"both", "bill only", "apart"}


def test_several_files_are_one_bill(plan: str, call: Call, empty_folder: Path) -> None:
    """Pages are added; one of them may be packed; the same file twice is refused."""
    text = (empty_folder / "aws_cur_2.csv").read_bytes()
    (empty_folder / "page.csv.gz").write_bytes(gzip.compress(text))
    ran = call(
        "reconcile", plan, "aws_cur_legacy.csv", "page.csv.gz", "--option", "o0", "-f", "json"
    )
    assert ran.code == 0, ran.err
    (one,) = [line for line in ran.json["lines"] if line["match"] == "both"]
    assert one["actual_usd"] == "767.96"
    assert [file["name"] for file in ran.json["bill"]["files"]] == [
        "aws_cur_legacy.csv",
        "page.csv.gz",
    ]
    shutil.copy(empty_folder / "aws_cur_2.csv", empty_folder / "copy.csv")
    twice = call("reconcile", plan, "aws_cur_2.csv", "copy.csv")
    assert twice.code == 2
    assert "the same bill as aws_cur_2.csv" in twice.err


def test_the_problems_of_all_files_are_listed(plan: str, call: Call, write: Write) -> None:
    """A bad cell in one file and a missing other file are two messages and exit 2."""
    bill = (BILLS / "digitalocean_invoice.csv").read_text(encoding="utf-8")
    write("bad.csv", bill.replace("$6.00", "6 dollars"))
    ran = call("reconcile", plan, "bad.csv", "missing.csv")
    assert (ran.code, ran.out) == (2, "")
    assert "bad.csv:3: '6 dollars' is not an amount" in ran.err
    assert "missing.csv" in ran.err


def test_a_forecast_is_no_bill(plan: str, call: Call) -> None:
    """What `export` wrote cannot be taken for what was charged."""
    assert call("export", plan, "--to", "focus", "-o", "f.csv").code == 0
    ran = call("reconcile", plan, "f.csv")
    assert ran.code == 2
    assert "f.csv:2: a forecast" in ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("plan.json",), "gpucost bill INVOICE PLAN"),
        (("plan.json", "nothing.csv"), "nothing.csv"),
        (("plan.json", "plan.json"), "compare one plan"),
        (("plan.json", "focus_1_2.csv", "--option", "train/o99"), "train/o1"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...], told: str, plan: str, call: Call) -> None:
    """No bill, no plan, a plan as a bill or an unknown option exits 2 and says what to give."""
    assert plan == "plan.json"
    ran = call("reconcile", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
