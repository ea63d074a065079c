"""What gpucost can start itself is named beside the best, and `--launchable` plans nothing else."""

from decimal import Decimal
from typing import Any

import pytest

from planner.plan.plan import Plan
from providers.registry import launchable
from templates.render import render_report
from templates.reports.job_screen import job_screen
from tests.conftest import ROOT
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF
from tests.planner.plan.kept import as_values

EXAMPLES = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").glob("**/*.json")
)
_WAYS = ("on_demand", "spot", "reserved_1y")
WORDS = tuple(word for way in _WAYS for word in ("--purchase", way))


def _plan(call: Call, path: str, *arguments: str) -> Any:
    ran = call("plan", str(ROOT / path), *arguments, "--as-of", AS_OF, "-f", "json", "-q")
    assert ran.code in (0, 3), ran.err
    return ran.json


@pytest.mark.parametrize("path", EXAMPLES)
def test_launchable_plans_only_what_can_be_started(path: str, call: Call) -> None:
    """Every option can be provisioned; what cannot is rejected as unavailable, and says why."""
    everything = _plan(call, path, *WORDS)
    for job, before in zip(
        _plan(call, path, *WORDS, "--launchable")["jobs"], everything["jobs"], strict=True
    ):
        assert all(one["provisionable"] for one in job["options"])
        assert {one["offer"]["provider"] for one in job["options"]} <= launchable()
        told = [one for one in job["rejected"] if "--launchable" in one["detail"]]
        assert {one["reason"] for one in told} <= {"unavailable"}
        started = [one["offer"] for one in before["options"] if not one["provisionable"]]
        refused = {one["offer"] for one in told}
        # One rejection stands for a size, however it is bought.
        lost = {f"{offer['provider']}/{offer['instance_type']}" for offer in started}
        kept = {f"{o['offer']['provider']}/{o['offer']['instance_type']}" for o in job["options"]}
        assert {name for name in lost - kept if not name.startswith(tuple(launchable()))} <= refused
        if job["options"]:
            first = next(one for one in before["options"] if one["provisionable"])
            assert job["first_launchable"] == job["options"][0]["id"]
            assert job["options"][0]["offer"] == first["offer"]


def _values(call: Call, path: str) -> Plan:
    return as_values(_plan(call, path))


def test_these_tests_are_not_empty(call: Call) -> None:
    """There are examples, and of one of them something can be started and something cannot."""
    assert len(EXAMPLES) > 20
    (job,) = _plan(call, "examples/visual-search.json", *WORDS, "--launchable")["jobs"]
    assert job["options"]
    assert any("--launchable" in rejected["detail"] for rejected in job["rejected"])


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_first_screen_says_how_the_next_machine_is_started(path: str, call: Call) -> None:
    """By gpucost, by a tool that is named, or by hand: then what gpucost can launch in time."""
    plan = _values(call, path)
    for job in plan.jobs:
        way, first = job.answer.next, job.option(job.first_launchable)
        texts = {line.label: line.text for line in job_screen(job, plan).lines}
        following = next((text for label, text in texts.items() if label.endswith("Next")), "")
        in_time = [o for o in job.options if o.hours.mid <= 1.2 * job.baseline.hours.mid]
        offered = [o for o in in_time if o.provisionable and (o.saves.fraction or 0) > 0]
        if "Or launch" in texts:
            assert way is not None
            assert not way.start
            assert any(o.offer.instance_type in texts["Or launch"] for o in offered)
        if way is None:
            assert following == ""
        elif not way.start:
            assert "manual" in following
            assert first is None or f"launchable with gpucost ({first.id})" in render_report(plan)
        elif way.start[0] == "provision":
            assert "gpucost provision --option" in texts["Run"]
            assert "manual" not in following
        else:
            assert f"via {way.start[0]}" in following
            assert f"gpucost export --to {way.start[0]} --option" in texts["Run"]


def test_nothing_is_offered_elsewhere_to_a_job_that_hangs(call: Call) -> None:
    """It would do nothing there, too: no action, and nothing to rent."""
    plan = _values(call, "examples/hard/nccl-hang.json")
    screen = job_screen(plan.jobs[0], plan)
    assert screen.actions == ()
    assert "no other machine would help" in " ".join(line.text for line in screen.lines)


@pytest.mark.parametrize("tool", ["skypilot", "dstack", "terraform"])
def test_a_reserved_option_is_not_exported_as_something_else(tool: str, call: Call) -> None:
    """A term that the plan counts on is refused with what to do; nothing is rented on demand."""
    path = str(ROOT / "examples" / "visual-search.json")
    asked = ("--provider", "aws", "--purchase", "reserved_1y", "--as-of", AS_OF, "-q")
    assert call("plan", path, *asked, "-o", "plan.json").code == 0
    start = ("--run", "python train.py", "--ttl", "8h", "--option", "o1")
    ran = call("export", "plan.json", "--to", tool, *start)
    assert (ran.code, ran.out) == (2, "")
    assert "planned as reserved_1y" in ran.err
    assert "gpucost plan --purchase on_demand" in ran.err


@pytest.mark.parametrize("provider", ["lambda", "digitalocean"])
def test_a_machine_without_an_end_of_its_own_is_told(
    call: Call, write: Write, provider: str
) -> None:
    """The recommendation itself says so, with what a forgotten machine costs a day."""
    gpu = {"index": 0, "metrics": {"util.sm_active": {"mean": 0.8}, "mem.used_gib": {"max": 34}}}
    busy = {
        "schema": "gpucost.profile/v1",
        "job": {"name": "a", "kind": "training", "framework": "pytorch", "precision": "amp-bf16"},
        "hardware": {"gpu": "NVIDIA H100-SXM5-80GB", "gpu_count": 1, "provider": "aws"},
        "window": {"duration_s": 3600},
        "work": {"unit": "image", "done": 2900000},
        "gpus": [gpu],
    }
    busy["hardware"] |= {"instance_type": "p5.4xlarge", "region": "us-east-1"}
    write("p.json", busy)
    ran = call("plan", "p.json", "--provider", provider, "--launchable", "--as-of", AS_OF)
    assert "ends itself only once" in ran.err
    plan = call("plan", "p.json", "--provider", provider, "--as-of", AS_OF, "-f", "json").json
    (job,) = plan["jobs"]
    (best,) = (one for one in job["options"] if one["id"] == job["recommended"])
    day = Decimal(best["offer"]["usd_per_hour"]) * best["count"] * 24
    assert f"it costs ${day:.2f} a day" in ran.err


def test_a_term_is_recommended_with_all_that_it_owes(call: Call) -> None:
    """Three years of hours at its price, used or not, stand beside the option."""
    words = ("plan", str(ROOT / "examples" / "train-8xh100-aws.json"), "--hours-per-month", "400")
    asked = ("--provider", "aws", "--region", "us", "--gpu", "H100", "--as-of", AS_OF)
    ways = ("--purchase", "reserved_3y", "--purchase", "on_demand")
    plan = call(*words, *asked, *ways, "-f", "json").json
    (job,) = plan["jobs"]
    offer = next(o for o in job["options"] if o["id"] == job["recommended"])["offer"]
    assert offer["purchase"] == "reserved_3y"
    owed = round(float(offer["usd_per_hour"]) * 3 * 8760)
    shown = " ".join(call(*words, *asked, *ways).out.split())
    assert f"${owed:,} owed whatever runs" in shown
