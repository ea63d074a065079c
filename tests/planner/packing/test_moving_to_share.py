"""Moving and sharing are one recommendation with one total, which every output takes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.documents.selection import FleetRequest, recommended_usd, select, shared_gpus
from planner.models.document import to_text
from planner.plan.confidence import in_words
from planner.plan.draft import PlanDraft
from planner.plan.making import to_plan
from planner.plan.read import read_plan
from planner.profile.model import Profile, Statistics
from pricing.money import cents
from tests.planner.factories import TODAY, a_profile, plan, running, sold

HOURS = Decimal(100)
NO_WORK = {"engineer_usd_per_hour": Decimal(0)}


def job(name: str, busy: float = 0.2, gib: float = 8.0, **fields: Any) -> Profile:
    """A job that takes a part of an A100 at $2 an hour for 100 h, held time."""
    metrics = {"util.kernel_time": busy, "mem.used_gib": Statistics(max=gib)}
    asked = {"kind": "interactive", "precision": "amp-bf16", "team": name[0]} | fields
    return running(a_profile(metrics, name=name, hours=float(HOURS), **asked))


def planned(jobs: Sequence[Profile], price: str = "1.50", **asked: Any) -> PlanDraft:
    """The plan of jobs over today's machine and one elsewhere."""
    other = sold("cheap", price, "A100-SXM-80GB", provider="elsewhere")
    return plan(*jobs, offers=(TODAY, other), **asked)


FOUR = [job(f"j{number}") for number in range(4)]


def test_who_moves_to_share_is_told_so_in_one_total() -> None:
    """One GPU elsewhere for all four is what each job is told, and what the total is."""
    made = planned(FOUR, **NO_WORK)
    taken = made.recommended.alternative
    assert taken is not None
    assert made.recommended.mid == Decimal("1.50") * HOURS
    document = to_plan(made)
    assert document.fleet is not None
    assert {one.placement for one in document.jobs} == {
        one.id for one in document.fleet.recommended
    }
    (place,) = document.fleet.recommended
    assert (place.offer.instance_type, place.jobs) == ("cheap", ("j0", "j1", "j2", "j3"))
    assert place.id not in {one.id for one in document.fleet.placements}
    assert document.fleet.roll_back
    (gpu,) = shared_gpus(document, "slurm", FleetRequest(command="run", image=None, ttl_s=60.0))
    assert gpu.id == place.id


def test_who_shares_is_as_sure_as_the_speed_beside_the_others() -> None:
    """The grade of the speed is of the interval on the shared GPU, not of the job alone."""
    made = planned([job("calm", busy=0.02), job("mild", busy=0.1), job("busy", busy=0.6)])
    alone = {one.profile.job.name: planned([one.profile]).jobs[0] for one in made.jobs}
    (place,) = (one for one in to_plan(made).fleet.recommended if len(one.jobs) > 1)  # type: ignore[union-attr]
    for one in made.jobs:
        known = place.relative_speed[one.name]
        factor = math.sqrt(known.high / known.low)
        want = "good" if factor <= 1.15 else "fair" if factor <= 1.5 else "low"
        assert one.confidence.speed is not None
        assert one.confidence.speed.level == want
        words = f"speed beside other jobs within a factor of {in_words(factor)}"
        assert one.confidence.speed.why == words
        assert one.confidence.diagnosis == alone[one.name].confidence.diagnosis
    levels = [one.confidence.speed.level for one in made.jobs if one.confidence.speed]
    assert set(levels) == {"good", "fair"}, levels


def test_who_moves_to_share_is_as_sure_as_the_price_there() -> None:
    """The price is of the machine that is shared, where it is another than today's."""
    for price, why in (
        ("1.50", "read 20 days ago, may have risen by 9%"),
        ("9", "read 20 days ago"),
    ):
        made = planned(FOUR, price, **NO_WORK)
        assert {one.confidence.price.why for one in made.jobs} == {why}


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"horizon_months": Decimal(1), "engineer_usd_per_hour": Decimal(5)},
        NO_WORK | {"objective": "time"},
    ],
    ids=["the work costs more than it saves", "too short a horizon", "dollars do not decide"],
)
def test_sharing_stays_at_home_where_moving_is_not_worth_it(asked: dict[str, Any]) -> None:
    """What moving saves is weighed against the work of moving, over the horizon."""
    made = planned(FOUR, **asked)
    assert made.fleet is not None
    assert made.fleet.alternatives
    assert made.recommended.alternative is None
    assert made.recommended.mid == made.fleet.cost_after


@pytest.mark.parametrize("rate", [0, 5])
def test_moving_takes_work_and_says_how_much(rate: int) -> None:
    """Four jobs take four hours each to share a GPU, and eight more to another provider."""
    at_home, away = planned(FOUR).roi, planned(FOUR, engineer_usd_per_hour=Decimal(rate)).roi
    assert (at_home.effort_hours, away.effort_hours) == (16.0, 48.0)


@settings(deadline=None)
@given(
    shares=st.lists(st.tuples(st.floats(0.02, 0.9), st.floats(1.0, 70.0)), min_size=2, max_size=7),
    price=st.decimals("0.50", "3.50", places=2),
    rate=st.sampled_from([Decimal(0), Decimal(1), Decimal(100)]),
)
def test_every_output_has_the_one_total(
    shares: list[tuple[float, float]], price: Decimal, rate: Decimal
) -> None:
    """Gate, export, teams and the file sum to the recommended total, which is never dearer."""
    jobs = [job(f"{'ab'[n % 2]}{n}", *share) for n, share in enumerate(shares)]
    made = planned(jobs, str(price), engineer_usd_per_hour=rate)
    found, total = made.recommended, cents(made.recommended.mid)
    assert found.low <= found.mid <= found.high
    assert made.fleet is not None
    stayed = replace(made.fleet, alternatives=())
    assert found.mid <= min(stayed.cost_after, found.before)
    document = to_plan(made)
    assert recommended_usd(document) == total
    chosen, unknown = select(document)
    assert not unknown
    assert abs(sum(one.mid for one in chosen) - total) <= Decimal("0.01") * len(chosen)
    assert document.teams
    assert sum(one.recommended_usd for one in document.teams) == total
    assert made.roi.saves_usd == found.before - found.mid
    assert read_plan(to_text(document), "plan.json") == document
