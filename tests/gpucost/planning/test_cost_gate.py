"""One recommended total in every output, and the gates that compare it."""

import csv
import io
from decimal import Decimal
from typing import Any

import pytest

from pricing.money import whole_dollars
from tests.gpucost.conftest import Call, Ran, Write
from tests.gpucost.documents import AS_OF, EXAMPLES, changed, inference, training, unpriced

FLEET = str(EXAMPLES / "fleet")
PACKED = "3219.30"


def plan(call: Call, *arguments: str) -> Ran:
    """Run `gpucost plan` on the day of the tests."""
    return call("plan", *arguments, "--as-of", AS_OF)


def document(call: Call, *arguments: str) -> Any:
    """Return plan.json."""
    ran = plan(call, *arguments, "-f", "json", "-q")
    assert ran.code == 0, ran.err
    return ran.json


def test_a_fleet_has_one_recommended_total(call: Call, write: Write) -> None:
    """Table, plan.json, return on effort, report and export say the same dollars."""
    found = document(call, FLEET)
    assert found["recommended"]["cost"]["mid"] == found["fleet"]["cost_after"] == PACKED
    assert found["roi"]["saves_usd"] == found["recommended"]["saves"]["usd"] == "9657.90"
    assert "$3,219  saves 75 %" in plan(call, FLEET).out
    write("plan.json", found)
    assert "$3,219, saves 75 %" in call("report").out
    rows = list(csv.DictReader(io.StringIO(call("export", "--to", "focus", "-q").out)))
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal(PACKED)


PODS = str(EXAMPLES / "hard/pods-one-machine")


def test_a_fleet_that_moves_has_one_recommended_total(call: Call, write: Write) -> None:
    """Where eight jobs leave their machine to share, every output and the gate say one total."""
    found = document(call, PODS)
    assert found["recommended"]["packed"] == [f"pod-{n}" for n in range(8)]
    (taken,) = (one for one in found["fleet"]["alternatives"] if "placements" in one)
    total = Decimal(found["recommended"]["cost"]["mid"])
    assert total == Decimal(taken["cost_after"]) < Decimal(found["fleet"]["cost_after"])
    ids = {one["id"] for one in taken["placements"]}
    assert {job["placement"] for job in found["jobs"]} == ids
    assert ids.isdisjoint(one["id"] for one in found["fleet"]["placements"])
    before = Decimal(found["recommended"]["cost_before"])
    assert Decimal(found["roi"]["saves_usd"]) == before - total
    write("plan.json", found)
    said = f"${whole_dollars(total)}", f"${whole_dollars(before)}"
    for style in ("md", "html", "github-comment"):
        assert all(usd in call("report", "--style", style).out for usd in said)
    rows = list(csv.DictReader(io.StringIO(call("export", "--to", "focus", "-q").out)))
    assert round(sum(Decimal(row["BilledCost"]) for row in rows), 2) == total
    codes = [plan(call, PODS, "--fail-over", str(total - off)).code for off in (0, Decimal("0.01"))]
    assert codes == [0, 7]


@pytest.mark.parametrize(("limit", "code"), [("5000", 0), (PACKED, 0), ("3219.29", 7)])
def test_the_gate_compares_the_total_that_is_shown(limit: str, code: int, call: Call) -> None:
    """`--fail-over 5000` passes a fleet packed for $3,219.30; a cent less than that trips."""
    assert plan(call, FLEET, "--fail-over", limit).code == code


@pytest.mark.parametrize("quiet", [(), ("-q",), ("-q", "-f", "json")], ids=str)
def test_the_reason_of_exit_7_is_always_said(quiet: tuple[str, ...], call: Call) -> None:
    """Quiet or piped, standard error says which cost is above which limit."""
    ran = plan(call, FLEET, "--fail-over", "3000", *quiet)
    assert ran.code == 7
    assert "$3,219.30 a month, is above --fail-over $3,000" in ran.err
    assert not quiet or len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("providers", "gpus"), [(("verda",), 2), (("aws",), 2), (("aws", "gcp"), 2)]
)
def test_a_provider_holds_for_packing(providers: tuple[str, ...], gpus: int, call: Call) -> None:
    """With --provider every placement is at one of them, as every option is."""
    asked = [word for name in providers for word in ("--provider", name)]
    fleet = document(call, FLEET, *asked)["fleet"]
    assert (fleet["gpus_before"], fleet["gpus_after"]) == (4, gpus)
    assert {place["offer"]["provider"] for place in fleet["placements"]} <= set(providers)


@pytest.mark.parametrize(
    ("flag", "value", "key"),
    [("--gpu", "H200-SXM-141GB", "gpu"), ("--purchase", "spot", "purchase")],
)
def test_other_limits_hold_for_packing(flag: str, value: str, key: str, call: Call) -> None:
    """A GPU model or a way of buying that was asked for is that of every placement."""
    found = document(call, FLEET, flag, value)
    places = found["fleet"]["placements"]
    assert places
    assert {place["offer"][key] for place in places} <= {value}


def test_where_nothing_is_sold_nobody_is_packed(call: Call) -> None:
    """A provider without the jobs' GPU packs nothing, and each job says why."""
    ran = plan(call, FLEET, "--provider", "hotaisle", "-f", "json", "-q")
    assert ran.code == 3
    fleet = ran.json["fleet"]
    assert fleet["placements"] == []
    assert {one["reason"] for one in fleet["unmoved"]} == {"unavailable"}


def test_a_job_shares_or_goes_its_own_way(call: Call, write: Write) -> None:
    """Beside a packed fleet a job that cannot share keeps its own best option in the total."""
    paths = [write(f"{i}.json", inference(f"infer-{i}")) for i in range(4)]
    paths.append(write("train.json", training()))
    found = document(call, *paths)
    (train,) = (job for job in found["jobs"] if job["name"] == "train")
    assert train["recommended"] != "o0"
    assert train["placement"] is None
    best = next(o for o in train["options"] if o["id"] == train["recommended"])
    shared = Decimal(found["fleet"]["placements"][0]["cost"])
    singly = [job for job in found["jobs"] if job["name"].startswith("infer")]
    assert all(job["placement"] is not None for job in singly)
    total = Decimal(found["recommended"]["cost"]["mid"])
    placements = [p for p in found["fleet"]["placements"] if "train" not in p["jobs"]]
    assert total == sum(Decimal(p["cost"]) for p in placements) + Decimal(best["cost"]["mid"])
    assert shared > 0


def test_an_unknown_cost_is_in_no_total(call: Call, write: Write) -> None:
    """The gate cannot be checked where a cost is unknown: exit 2 names the job and what to add."""
    paths = write("a.json", inference("a")), write("own.json", unpriced("own"))
    assert document(call, *paths)["recommended"]["unknown"] == ["own"]
    ran = plan(call, *paths, "--fail-over", "99999", "-q")
    assert ran.code == 2
    assert "own" in ran.err
    assert "--price" in ran.err


@pytest.mark.parametrize(
    ("increase", "code"),
    [("0", 7), ("10%", 7), ("99%", 7), ("100%", 0), ("3219.29", 7), ("3219.30", 0), ("$4,000", 0)],
)
def test_an_increase_over_an_earlier_plan(
    increase: str, code: int, call: Call, write: Write
) -> None:
    """Twice the hours of two GPUs are $3,219.30 more, of the one they share half; either trips."""
    stay = ("--provider", "digitalocean", "--gpu", "H100")
    paths = []
    for hours in (365, 730):
        jobs = [changed(inference(n), ("usage", "hours_per_month"), hours) for n in ("a", "b")]
        paths = [write(f"{job['job']['name']}.json", job) for job in jobs]
        if hours == 365:
            write("base.json", document(call, *paths, *stay))
    gate = ("--fail-over-increase", increase, "--base", "base.json")
    ran = plan(call, *paths, *stay, *gate, "-q")
    assert ran.code == code
    assert ("is $3,219.30 more than the $3,219.30 of base.json" in ran.err) == (code == 7)
    shared = "is $1,609.65 more than the $1,609.65 of base.json" in ran.err
    assert shared == (increase in {"0", "10%", "99%"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--fail-over-increase", "5%"), "give both"),
        (("--base", "base.json"), "give both"),
        (("--fail-over-increase", "5%", "--base", "none.json"), "no such file"),
        (("--fail-over-increase", "-5%", "--base", "b"), "negative"),
        (("--fail-over-increase", "much", "--base", "b"), "much"),
    ],
    ids=str,
)
def test_a_gate_that_cannot_be_checked_is_exit_2(
    arguments: tuple[str, ...], said: str, call: Call, write: Write
) -> None:
    """What is missing or no amount is said with what to write."""
    write("profile.json", training())
    ran = plan(call, *arguments, "-q")
    assert ran.code == 2
    assert said in ran.err


def test_a_price_is_above_zero(call: Call, write: Write) -> None:
    """--price 0 is refused with a sentence; a price above it is today's."""
    write("profile.json", training())
    ran = plan(call, "--price", "0")
    assert ran.code == 2
    assert "--price 0" in ran.err
    (job,) = document(call, "--price", "0.10", "--machine-only")["jobs"]
    assert job["baseline"]["cost"]["total"] == "73.00"


def test_a_report_of_an_earlier_plan_is_still_written(call: Call, write: Write) -> None:
    """A plan of several jobs without the total of this version is read as before."""
    found = document(call, FLEET, "--no-public-address")
    del found["recommended"]
    for job in found["jobs"]:
        del job["placement"]
    write("plan.json", found)
    assert call("report").code == 0
    write("base.json", found)
    assert (
        plan(
            call,
            FLEET,
            "--no-public-address",
            "--fail-over-increase",
            "0",
            "--base",
            "base.json",
            "-q",
        ).code
        == 0
    )
