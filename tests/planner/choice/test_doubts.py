"""What the range of a bill comes from: the speed there, the cures, the time held."""

from decimal import Decimal

import pytest

from planner.plan.bill import OptionCost, UsdRange
from planner.plan.plan import Plan
from tests.gpucost.documents import example
from tests.templates.documents import planned

CENT = Decimal("0.02")
PARTS = ("by_speed", "by_cure", "by_use")


def _about(made: Plan) -> OptionCost:
    """The bill of the option that is told most about, which alone tells its parts."""
    (job,) = made.jobs
    told = [option for option in job.options if option.cost.by_speed]
    assert [option.id for option in told] == [job.recommended if job.choice else job.cheapest]
    return told[0].cost


def _width(cost: OptionCost, name: str) -> Decimal:
    ends: UsdRange = getattr(cost, name)
    return ends.high - ends.low


@pytest.mark.parametrize(
    ("name", "wide"),
    [
        ("visual-search.json", {"by_speed", "by_cure"}),
        ("hard/kaggle-unet.json", {"by_speed", "by_cure"}),
        ("hard/vit-jpeg.json", {"by_speed", "by_cure"}),
        ("hard/llm-35-mfu.json", {"by_speed"}),
    ],
)
def test_a_range_comes_from_what_changes(name: str, wide: set[str]) -> None:
    """Without a cure nothing comes of cures; without a pause to save nothing of the time held."""
    cost = _about(planned((example(name),), {}))
    assert {part for part in PARTS if _width(cost, part) > 0} == wide


@pytest.mark.parametrize("name", ["visual-search.json", "hard/kaggle-unet.json"])
@pytest.mark.parametrize("purchases", [("on_demand",), ("spot", "on_demand")])
def test_the_parts_make_up_the_range_of_the_hours(name: str, purchases: tuple[str, ...]) -> None:
    """The range is read off the same draws: as wide as its widest part, narrower than their sum."""
    cost = _about(planned((example(name),), {"purchases": purchases}))
    parts = [_width(cost, part) for part in PARTS]
    assert max(parts) <= _width(cost, "by_hours") + CENT
    assert _width(cost, "by_hours") <= sum(parts) + CENT


def test_time_that_is_held_is_no_doubt_about_speed() -> None:
    """A service holds its machine anyway: nothing comes of a speed, only of its price."""
    cost = _about(planned((example("hard/vllm-full-cache.json"),), {}))
    assert {_width(cost, part) for part in PARTS} == {Decimal(0)}
    assert _width(cost, "by_price") > 0
