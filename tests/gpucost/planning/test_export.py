"""`gpucost export`: a forecast for other tools, written whole or refused."""

import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest

from planner.documents.focus_export import columns
from pricing.money import cents
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, changed, inference, training, unpriced


@pytest.fixture
def plan(call: Call, write: Write) -> str:
    """The plan of a job on AWS, with storage and traffic."""
    write("profile.json", training())
    asked = ("--storage", "500GiB", "--egress", "300GiB", "--provider", "aws")
    assert call("plan", "--as-of", AS_OF, *asked, "-q", "-o", "plan.json").code == 0
    return "plan.json"


def test_a_plan_becomes_focus_rows(plan: str, call: Call) -> None:
    """The forecast on standard output has the columns of FOCUS and the dollars of the plan."""
    ran = call("export", plan, "--to", "focus", "--option", "train/o0")
    assert ran.code == 0, ran.err
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert tuple(rows[0]) == columns()
    assert [row["x_GpucostLine"] for row in rows] == [
        "compute",
        "boot-disk",
        "disk",
        "egress",
        "address",
    ]
    assert {row["RegionId"] for row in rows} == {"us-east-1"}
    total = cents(sum((Decimal(row["ListCost"]) for row in rows), Decimal(0)))
    assert str(total) == rows[0]["x_GpucostOptionMidCost"]


def test_it_is_written_to_a_file_with_a_warning(plan: str, call: Call, empty_folder: Path) -> None:
    """`-o` writes the same bytes each time, prints no data, and says that it is a forecast."""
    ran = call("export", plan, "--to", "focus", "--focus-version", "1.2", "-o", "f.csv")
    assert (ran.code, ran.out) == (0, "")
    assert "forecast" in ran.err
    first = (empty_folder / "f.csv").read_bytes()
    call("export", plan, "--to", "focus", "-o", "f.csv")
    assert (empty_folder / "f.csv").read_bytes() == first


def test_focus_1_3_says_who_provides_and_hosts(plan: str, call: Call) -> None:
    """Its two columns are added, with the provider that 1.2 names; all else is the same."""
    old, new = (
        list(csv.DictReader(io.StringIO(call(
            "export", plan, "--to", "focus", "--focus-version", version
        ).out)))
        for version in ("1.2", "1.3")
    )  # fmt: skip
    added = ("ServiceProviderName", "HostProviderName")
    assert tuple(new[0]) == columns("1.3")
    assert [{k: v for k, v in row.items() if k not in added} for row in new] == old
    assert {row[name] for row in new for name in added} == {"AWS"}


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (("--to", "excel"), "focus"),
        ((), "--to"),
        (("--to", "focus", "--focus-version", "0.5"), "1.2"),
        (("--to", "focus", "--option", "train/o99"), "train/o1"),
        (("--to", "focus", "-o", "missing/f.csv"), "missing"),
    ],
)
def test_bad_usage_names_the_way_out(
    rest: tuple[str, ...], told: str, plan: str, call: Call
) -> None:
    """An unknown target, version, option or folder exits 2 without data."""
    ran = call("export", plan, *rest)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_a_job_without_a_price_is_named(call: Call, write: Write) -> None:
    """What has no known cost is said and left out; the rest is exported."""
    unknown = changed(unpriced(), ("hardware", "gpu"), "GeForce RTX 3080")
    write("a.json", unknown)
    write("b.json", training())
    call("plan", "a.json", "b.json", "--as-of", AS_OF, "-q", "-o", "plan.json")
    ran = call("export", "--to", "focus", "--option", "own-box/o0")
    assert ran.code == 0, ran.err
    assert "own-box/o0: its cost is not known" in ran.err
    assert {row["x_GpucostJob"] for row in csv.DictReader(io.StringIO(ran.out))} == {"train"}


def test_jobs_that_share_are_exported_as_one(call: Call, write: Write) -> None:
    """A shared GPU is billed once, for all of its jobs; a named option takes its job out of it."""
    for name in "ab":
        write(f"{name}.json", inference(name))
    limits = ("--provider", "digitalocean", "--gpu", "H100")
    call("plan", "a.json", "b.json", *limits, "--as-of", AS_OF, "-q", "-o", "plan.json")
    rows = list(csv.DictReader(io.StringIO(call("export", "--to", "focus").out)))
    assert {(row["x_GpucostJob"], row["x_GpucostOption"]) for row in rows} == {
        ("a+b", "placement-1")
    }
    assert [(row["x_GpucostLine"], row["BilledCost"]) for row in rows] == [
        ("compute", "3219.3"),
        ("boot-disk", "0"),  # they come with the machine
        ("address", "0"),
    ]
    named = call("export", "--to", "focus", "--option", "a/o0").out
    rows = list(csv.DictReader(io.StringIO(named)))
    assert list(dict.fromkeys(one["x_GpucostJob"] for one in rows)) == ["a", "b"]
