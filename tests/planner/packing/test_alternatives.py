"""The fleet on other machines: packing and moving weighed together."""

from decimal import Decimal
from typing import Any

import pytest

from planner.fleet.fleet import Fleet
from planner.profile.model import Latency, Profile, Statistics
from tests.planner.factories import TODAY, a_profile, plan, running, sold

HOURS = Decimal(100)


def job(name: str, **fields: Any) -> Profile:
    """A job that takes a fifth of an A100 at $2 an hour for 100 h, held time."""
    busy, gib = fields.pop("busy", 0.2), fields.pop("gib", 8.0)
    metrics = {"util.kernel_time": busy, "mem.used_gib": Statistics(max=gib)}
    asked = {"kind": "interactive", "precision": "amp-bf16"} | fields
    return running(a_profile(metrics, name=name, hours=float(HOURS), **asked))


def other(type_: str, price: str, gpu: str = "A100-SXM-80GB", **changes: Any) -> Any:
    """A machine of one GPU at another provider."""
    return sold(type_, price, gpu, **{"provider": "elsewhere", **changes})


def packed(*jobs: Profile, offers: tuple[Any, ...], **asked: Any) -> Fleet:
    """The fleet of these jobs over today's machine and others."""
    fleet = plan(*jobs, offers=(TODAY, *offers), **asked).fleet
    assert fleet is not None
    return fleet


def four(**fields: Any) -> tuple[Profile, ...]:
    """Four jobs alike."""
    return tuple(job(f"j{number}", **fields) for number in range(4))


def test_a_cheaper_machine_for_all_is_listed_with_its_bill() -> None:
    """Four jobs on one GPU elsewhere cost its price for as long as they are held."""
    fleet = packed(*four(), offers=(other("cheap", "1.50"), other("dear", "2.50")))
    assert fleet.cost_after == 2 * HOURS
    (one,) = fleet.alternatives
    assert (one.offer.instance_type, one.fleet.gpus_after) == ("cheap", 1)
    assert one.jobs == ("j0", "j1", "j2", "j3")
    assert one.fleet.cost_after == Decimal("1.50") * HOURS
    assert one.fleet.saving.usd == (8 - Decimal("1.50")) * HOURS


def test_a_dearer_gpu_that_carries_more_is_listed() -> None:
    """Memory fills today's GPUs; one with more of it costs more than each, and less than all."""
    large = other("large", "3.50", "H200-SXM-141GB", gpu_memory_gib=141)
    fleet = packed(*four(gib=30.0, kind="inference_online"), offers=(large,))
    assert (fleet.gpus_after, fleet.cost_after) == (2, 4 * HOURS)
    (one,) = fleet.alternatives
    assert (one.fleet.gpus_after, one.fleet.cost_after) == (1, Decimal("3.50") * HOURS)


def test_who_must_be_isolated_stays_at_home() -> None:
    """The other jobs move without it, and its bill stays in the total."""
    jobs = (*four()[:3], job("apart", trust="isolated"))
    fleet = packed(*jobs, offers=(other("cheap", "1.50"),))
    (one,) = fleet.alternatives
    assert one.jobs == ("j0", "j1", "j2")
    assert (one.fleet.gpus_after, one.fleet.cost_after) == (2, Decimal("3.50") * HOURS)


def test_limits_of_sharing_hold_there() -> None:
    """A service keeps its latency target on a machine that is cheaper by the hour."""
    late = {"kind": "inference_online", "latency_slo_ms": 50.0, "latency_ms": Latency(p99=45.0)}
    fleet = packed(*four(**late), offers=(other("cheap", "1.50"),))
    for one in fleet.alternatives:
        assert one.fleet.gpus_after == 4


@pytest.mark.parametrize(
    "asked", [{"providers": ("example",)}, {"max_moves": 1}, {"purchases": ("spot",)}], ids=str
)
def test_wishes_hold_for_moving_too(asked: dict[str, Any]) -> None:
    """Other providers, more moves or another purchase than asked for are no alternatives."""
    fleet = packed(*four(), offers=(other("cheap", "1.50"),), **asked)
    assert fleet.alternatives == ()


def test_at_most_three_cheapest_first_and_none_on_a_weak_price() -> None:
    """The list is short, in order, and holds no price without a day."""
    offers = [other(f"s{cents}", f"1.{cents}") for cents in (50, 40, 30, 20)]
    fleet = packed(*four(), offers=(*offers, other("undated", "0.10", dated=False)))
    costs = [one.fleet.cost_after for one in fleet.alternatives]
    assert costs == [Decimal(price) * HOURS for price in ("1.20", "1.30", "1.40")]


def test_the_answer_does_not_depend_on_the_order_of_jobs() -> None:
    """Jobs in reverse make the same alternatives."""
    offers = (other("cheap", "1.50"), other("large", "1.80", "H200-SXM-141GB"))
    jobs = (*four(gib=30.0), *(job(f"k{number}", busy=0.4) for number in range(3)))
    there = packed(*jobs, offers=offers).alternatives
    assert there == packed(*reversed(jobs), offers=offers).alternatives
    assert there
