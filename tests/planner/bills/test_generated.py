"""On bills of known truth: what nobody used is found, nothing else is, and hours are when."""

import os
from collections import Counter
from datetime import UTC
from decimal import Decimal
from functools import cache

import pytest

from planner.bills.formats import read_bill
from planner.bills.leftovers import gpu_sizes
from planner.bills.review import Review, review
from pricing.catalog.catalog import load_catalog
from tests.planner.bills.generated import FORMS, drawn
from tests.planner.bills.world import GPUS, HIDDEN, SHOWN, Metered, World

DRAWS = int(os.environ.get("GPUCOST_DRAWS", "4"))
SEEDS = {
    form: range(max(2, DRAWS // 3) if one.grain == "hour" else DRAWS) for form, one in FORMS.items()
}
"""Of bills with a row for each hour, which have thousands, a third; `make slow-test` draws 12."""

EACH = [
    pytest.param(form, marks=pytest.mark.slow) if one.grain == "hour" else form
    for form, one in FORMS.items()
]
"""Every form of bill; a row for each hour takes seconds to draw."""

SIZES = gpu_sizes(load_catalog())


@cache
def reviewed(form: str, seed: int) -> tuple[World, Review, dict[str, Metered]]:
    """A world, what is said of its bill, and its rows by their place in the file."""
    world, text = drawn(form, seed)
    bill = read_bill("b", text)
    found = review((bill,), SIZES, zone=UTC)
    sources = [f"b:{number}" for number in range(2, len(world.rows) + 2)]
    if form.startswith("gcp"):
        sources = [f"b:{number}" for number in range(1, len(world.rows) + 1)]
    if "insights" in form:
        sources = [f"b: data_points[{number}]" for number in range(len(world.rows))]
    return world, found, dict(zip(sources, world.rows, strict=True))


@pytest.mark.parametrize("form", EACH)
def test_what_nobody_used_is_found_and_nothing_else(form: str) -> None:
    """Of what a bill can show 95 % of the dollars are found; none of what was used."""
    planted = found_usd = false = Decimal(0)
    for seed in SEEDS[form]:
        world, found, rows = reviewed(form, seed)
        named = [line for one in found.findings for line in one.lines]
        assert len({line.source for line in named}) == len(named)
        false += sum(line.usd for line in named if not rows[line.source].planted)
        found_usd += sum(line.usd for line in named if rows[line.source].planted == SHOWN)
        planted += sum((row.usd for row in world.rows if row.planted == SHOWN), Decimal(0))
    assert planted > 0
    assert false == 0
    assert found_usd >= planted * Decimal("0.95"), f"{found_usd} of {planted}"


@pytest.mark.parametrize("form", EACH)
def test_what_a_bill_cannot_show_is_said_to_be_open(form: str) -> None:
    """Disks that lie beside a running machine are in the sum that the bill does not tell."""
    for seed in SEEDS[form]:
        world, found, _ = reviewed(form, seed)
        hidden = sum((row.usd for row in world.rows if row.planted == HIDDEN), Decimal(0))
        told = sum((one.usd for one in found.findings), Decimal(0))
        shown = sum((row.usd for row in world.rows if row.planted == SHOWN), Decimal(0))
        assert hidden <= sum((one.usd for one in found.undecided), Decimal(0)) + told - shown


@pytest.mark.parametrize("form", EACH)
def test_gpu_dollars_and_hours_are_those_of_the_machines(form: str) -> None:
    """Each size has the dollars of its rows, and the GPU hours where the form counts hours."""
    for seed in SEEDS[form]:
        world, found, _ = reviewed(form, seed)
        dollars: Counter[str] = Counter()
        hours: Counter[str] = Counter()
        for row in world.rows:
            if row.size in GPUS:
                dollars[row.size] += row.usd  # type: ignore[assignment] - exact, not a count
                hours[row.size] += row.hours * GPUS[row.size] * (row.part in ("", "gpu"))
        said: Counter[str] = Counter()
        for one in found.machines:
            said[one.instance_type or ""] += one.usd  # type: ignore[assignment] - the same
            if "insights" in form:
                assert one.gpu_hours is None
        assert said == dollars
        if "insights" not in form:
            told = Counter(dict.fromkeys(dollars, 0))
            for one in found.machines:
                told[one.instance_type or ""] += int(one.gpu_hours or 0)
            assert told == hours


@pytest.mark.parametrize("form", EACH)
def test_nights_and_weekends_are_never_too_many(form: str) -> None:
    """No part of the week has more dollars than ran in it; hourly and whole rows tell all of it."""
    for seed in SEEDS[form]:
        world, found, _ = reviewed(form, seed)
        truth: Counter[str] = Counter()
        for row in world.rows:
            for hour in row.on_hours if row.size in GPUS else ():
                truth[_part(hour.weekday(), hour.hour)] += row.usd / row.hours  # type: ignore[assignment]
        parts = found.by_part
        said = Counter(  # type: ignore[type-var] - exact, not counts
            workday=parts.workday_usd, night=parts.night_usd, weekend=parts.weekend_usd
        )
        for part, usd in truth.items():
            assert Decimal(said[part]) <= Decimal(usd) + Decimal("1e-9")
            if FORMS[form].grain != "day" or part == "weekend":
                assert abs(Decimal(said[part]) - Decimal(usd)) < Decimal("1e-9")


def _part(weekday: int, hour: int) -> str:
    if weekday >= 5:
        return "weekend"
    return "workday" if 8 <= hour < 20 else "night"
