"""Jobs that share a GPU under hard limits: what the packing counts is what each is held to."""

from datetime import date
from decimal import Decimal

from msgspec.structs import replace

from planner.choice.requirements import Requirements
from planner.pipeline import draft_plan
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from planner.profile.model import MonthlyUse, Statistics
from pricing.catalog.catalog import load_catalog
from tests.planner.factories import a_profile

DAY = date(2026, 11, 21)
L40S = {"provider": "digitalocean", "instance_type": "gpu-l40sx1-48gb", "gpu": "L40S"}


def services(*held_gib: float) -> Plan:
    """The plan of services on a DigitalOcean L40S each, all month."""
    jobs = []
    for number, gib in enumerate(held_gib):
        metrics = {
            "util.kernel_time": Statistics(mean=0.06, p95=0.1),
            "util.sm_active": Statistics(mean=0.05, p95=0.09),
            "mem.process_gib": gib,
        }
        kind = "inference_online"
        job = a_profile(metrics, name=f"s{number}", kind=kind, **L40S)
        jobs.append(replace(job, usage=MonthlyUse(hours_per_month=730.0)))
    asked = Requirements(gpus=("L40S",), boot_disk_bytes=0, public_address=False, machine_only=True)
    return to_plan(draft_plan(tuple(jobs), load_catalog(DAY), asked, as_of=DAY))


def test_eight_services_under_limits_by_hand() -> None:
    """8 x 730 x 1.57 = 9,168.80 becomes 730 x 1.57 = 1,146.10; each may take an eighth of 95 %."""
    plan = services(*[3.0] * 8)
    assert plan.recommended.cost_before == Decimal("9168.80")
    assert plan.recommended.cost.mid == Decimal("1146.10")
    (placement,) = plan.fleet.placements
    limits = placement.memory_limit_mib
    assert len(limits) == 8
    assert set(limits.values()) == {int(0.95 * 1024 * 44.988 / 8)}
    assert set(placement.core_limit_percent.values()) == {12}  # 100 / 8, whole percent
    assert any(risk.startswith("limits: ") for risk in placement.risks)


def test_limits_follow_the_need() -> None:
    """Who needs three times as much may take about three times as much, and all fit."""
    (placement,) = services(3.0, 9.0).fleet.placements
    small, large = placement.memory_limit_mib.values()
    assert large > 2 * small
    assert small > 3.6 * 1024
    assert small + large <= 0.95 * 48 * 1024


def test_what_does_not_fit_under_the_limits_is_not_packed() -> None:
    """Eight services of 12 GiB do not fit into 45 GiB: three a GPU at most, so three GPUs."""
    plan = services(*[12.0] * 8)
    assert plan.fleet.gpus_after == 3
    assert plan.fleet.cost_after == Decimal("3438.30")  # 3 x 730 x 1.57
    for placement in plan.fleet.placements:
        if len(placement.jobs) > 1:
            assert min(placement.memory_limit_mib.values()) >= 12.6 * 1024
