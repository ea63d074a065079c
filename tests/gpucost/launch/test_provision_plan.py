"""`gpucost provision` from a plan: the recommended option, a named one, a placement of a fleet."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpucost.launch.choice import page_of
from tests.bootstrap.box import parts
from tests.conftest import ROOT
from tests.gpucost.conftest import Call, Ran, Write
from tests.gpucost.launching import Ready, prepare
from tests.providers.fakes.account import REAPER, a_digitalocean
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.providers.fakes.sizes import a_gpu_size

TRAIN = str(ROOT / "examples" / "train-8xh100-aws.json")
JOB = "nanogpt-8xh100"
DRY = ("provision", "--ttl", "2h", "--dry-run", "-f", "json")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ready:
    """Reach this machine only."""
    return prepare(monkeypatch, tmp_path)


@pytest.fixture
def plan(call: Call) -> dict[str, Any]:
    """The plan of an example on H200s, in ./plan.json; DigitalOcean is recommended."""
    ran = call("plan", TRAIN, "--gpu", "H200", "-q", "-o", "plan.json")
    assert ran.code == 0, ran.err
    read: dict[str, Any] = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    assert _recommended(read)["offer"]["provider"] == "digitalocean"
    return read


def _recommended(plan: dict[str, Any]) -> dict[str, Any]:
    (job,) = plan["jobs"]
    return next(one for one in job["options"] if one["id"] == job["recommended"])


def _other(plan: dict[str, Any], **offer: str) -> dict[str, Any]:
    (job,) = plan["jobs"]
    return next(o for o in job["options"] if offer.items() <= o["offer"].items())


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DigitalOcean]:
    """A DigitalOcean that sells what the plan recommends."""
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", REAPER)
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        regions = {"vram": 1128, "regions": ["nyc2"]}
        fake.sizes.append(a_gpu_size("gpu-h200x8-1128gb", 35.76, "nvidia_h200", 8, **regions))
        yield fake


def test_options_say_what_can_be_launched(plan: dict[str, Any]) -> None:
    """On demand and spot at AWS and DigitalOcean can be; terms and other providers cannot."""
    for option in plan["jobs"][0]["options"]:
        offer = option["offer"]
        ours = offer["provider"] in ("aws", "digitalocean")
        assert option["provisionable"] == (ours and offer["purchase"] in ("on_demand", "spot"))


def test_the_recommended_option_from_plan_to_down(
    plan: dict[str, Any], cloud: DigitalOcean, call: Call
) -> None:
    """Without arguments: ./plan.json, its recommended option; ready, then gone."""
    ran = call("provision", "--ttl", "2h", "--yes", "-f", "json")
    assert ran.code == 0, ran.err
    assert ran.json["type"] == _recommended(plan)["offer"]["instance_type"]
    assert ran.json["plan"] == f"plan-{JOB}-{plan['jobs'][0]['recommended']}"
    (droplet,) = cloud.estate.things["droplets"].values()
    assert f"gpucost-plan:{ran.json['plan']}" in droplet["tags"]
    assert call("down", ran.json["run"], "--yes").code == 0
    assert cloud.estate.things["droplets"] == {}


def test_a_named_option_is_taken(plan: dict[str, Any], call: Call) -> None:
    """--option JOB/ID of a plan that is named."""
    option = _other(plan, provider="aws")
    ran = call(*DRY[:1], "plan.json", "--option", f"{JOB}/{option['id']}", *DRY[1:])
    assert ran.code == 0, ran.err
    assert ran.json["provider"] == "aws"
    assert ran.json["type"] == option["offer"]["instance_type"]
    assert ran.json["calls"][-1]["call"] == "ec2:RunInstances"


def test_count_and_purchase_can_be_changed(plan: dict[str, Any], call: Call, write: Write) -> None:
    """--count and --purchase hold for an option of a plan, too; what is not sold so is exit 2."""
    option = _other(plan, provider="aws")
    size = {"instance_type": "p5.48xlarge", "region": "us-east-1", "purchase": "on_demand"}
    option["offer"] |= size
    write("plan.json", plan)
    named = ("--option", f"{JOB}/{option['id']}")
    ran = call(*DRY, *named, "--count", "2", "--purchase", "spot")
    assert ran.code == 0, ran.err
    assert (ran.json["count"], ran.json["offer"]["purchase"]) == (2, "spot")
    spot = call("quote", "aws/p5.48xlarge/us-east-1", "--duration", "2h", "--purchase", "spot")
    assert spot.code == 0
    assert ran.json["offer"]["usd_per_hour"] in spot.out
    assert call(*DRY, "--purchase", "spot").code == 2  # the recommended size has no spot price


def test_what_cannot_be_launched_names_what_can(plan: dict[str, Any], call: Call) -> None:
    """An option elsewhere is exit 2, with the provider's own page and the best that can be."""
    options = plan["jobs"][0]["options"]
    option = next(one for one in options if one["offer"]["provider"] not in ("aws", "digitalocean"))
    ran = call(*DRY, "--option", f"{JOB}/{option['id']}")
    assert ran.code == 2
    assert page_of(option["offer"]["provider"]) in ran.err
    best = next(one for one in options if one["provisionable"])
    assert f"gpucost provision --option {JOB}/{best['id']} --ttl 8h" in ran.err


def test_leave_it_launches_nothing(plan: dict[str, Any], call: Call, write: Write) -> None:
    """A plan that says to leave the job is exit 2; its options can still be named."""
    plan["jobs"][0]["recommended"] = "o0"
    write("plan.json", plan)
    ran = call(*DRY)
    assert ran.code == 2
    assert "leave nanogpt-8xh100 where it is" in ran.err
    assert f"{JOB}/o" in ran.err


def test_of_several_jobs_one_must_be_named(call: Call, plan: dict[str, Any], write: Write) -> None:
    """A plan with two jobs lists what may be said."""
    (job,) = plan["jobs"]
    plan["jobs"].append({**job, "name": "second"})
    write("plan.json", plan)
    ran = call(*DRY)
    assert ran.code == 2
    assert "--option second/" in ran.err


def test_a_placement_of_a_fleet_is_launched_shared(call: Call) -> None:
    """--placement N launches its machine with MPS for its jobs; an unknown one is exit 2."""
    assert call("plan", str(ROOT / "examples" / "fleet"), "-q", "-o", "plan.json").code == 0
    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    (placement,) = plan["fleet"]["placements"]
    jobs, offer = placement["jobs"], placement["offer"]
    ran = call(*DRY, "--placement", str(placement["id"]))
    if offer["provider"] in ("aws", "digitalocean"):
        assert ran.code == 0, ran.err
        (machine,) = [one for one in ran.json["calls"] if one["kind"] == "machine"]
        told = machine["arguments"].get("UserData") or machine["arguments"]["user_data"]
        user_data = "".join(parts(told).values())
        assert "nvidia-cuda-mps-control -d" in user_data
        assert all(f"{name}) ;;" in user_data for name in jobs)
    else:
        assert ran.code == 2, ran.err
    assert call(*DRY, "--placement", "99").code == 2


@pytest.fixture
def sliced(call: Call, write: Write) -> Callable[..., Ran]:
    """Launch a placement of four jobs on the slices of an H100, as a plan may state it."""
    assert call("plan", str(ROOT / "examples" / "fleet"), "-q", "-o", "plan.json").code == 0
    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    (placement,) = plan["fleet"]["placements"]
    bought = {"provider": "digitalocean", "instance_type": "gpu-h100x1-80gb", "region": "*"}
    placement["offer"] |= bought | {"purchase": "on_demand", "gpu": "H100-SXM-80GB"}
    placement["mode"] = "mig"

    def launched(slices: str | None, *more: str) -> Ran:
        placement["slice"] = slices
        write("plan.json", plan)
        return call(*DRY, "--placement", str(placement["id"]), *more)

    return launched


def test_a_placement_on_slices_is_launched(sliced: Callable[..., Ran]) -> None:
    """Each job has the slice that stands at its place; the large ones are made first."""
    ran = sliced("2g.20gb,3g.40gb,1g.10gb,1g.10gb")
    assert ran.code == 0, ran.err
    (machine,) = [one for one in ran.json["calls"] if one["kind"] == "machine"]
    text = "".join(parts(machine["arguments"]["user_data"]).values())
    assert "nvidia-smi mig -cgi 3g.40gb,2g.20gb,1g.10gb,1g.10gb -C" in text
    (told,) = re.findall(r"for wanted in (.*); do", text)
    assert [word.rpartition("=")[2] for word in told.split()] == [
        "2g.20gb",
        "3g.40gb",
        "1g.10gb",
        "1g.10gb",
    ]
    assert sliced("1g.10gb").code == 0  # every job has such a one


@pytest.mark.parametrize(
    ("slices", "more", "told"),
    [
        ("2g.20gb,3g.40gb", (), "4 jobs and 2 slices"),
        (None, (), "4 jobs and 0 slices"),
        ("9g.90gb", (), "has 1g.10gb"),
        ("3g.40gb", (), "at most 2 of 3g.40gb fit"),
        ("3g.40gb,2g.20gb,1g.20gb,1g.20gb", (), "10 eighths of the memory"),
        ("1g.10gb", ("--mig", "1g.10gb"), "leave --mig out"),
    ],
)
def test_slices_that_a_gpu_has_not_are_refused(
    sliced: Callable[..., Ran], slices: str | None, more: tuple[str, ...], told: str
) -> None:
    """As many as jobs, of the GPU's own profiles, that fit together: else exit 2."""
    ran = sliced(slices, *more)
    assert ran.code == 2
    assert told in ran.err


def test_a_price_that_moved_since_the_plan_is_refused(
    plan: dict[str, Any], cloud: DigitalOcean, call: Call
) -> None:
    """Over 1 % off the plan's price is exit 4, and nothing is made."""
    assert plan
    cloud.sizes[-1]["price_hourly"] = 36.5
    ran = call("provision", "--ttl", "2h", "--yes")
    assert ran.code == 4
    assert "plan again" in ran.err
    assert cloud.estate.things["droplets"] == {}
