"""Plan against bill: what fits is compared exactly, what does not is listed, nothing is lost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bills.bill import Bill, BillLine
from planner.bills.reconcile import Comparison, compare_dollars, reconcile
from planner.documents.selection import Selection
from planner.models.document import encode
from planner.plan.bill import PricedPart
from tests.planner.test_focus import PLAN, a_choice, line

MONTH = (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
HOURS = PricedPart(quantity=Decimal(10), unit="Hours", unit_usd=Decimal("4.41"))


def planned(**changes: Any) -> Selection:
    """Ten hours of one H100 of DigitalOcean."""
    return a_choice(**{"lines": (line("compute", "44.1", HOURS),), **changes})


def billed(usd: str = "44.1", **changes: Any) -> BillLine:
    """The same on a bill that says everything."""
    plain: dict[str, Any] = {
        "kind": "compute",
        "usd": Decimal(usd),
        "provider": "digitalocean",
        "description": "trainer",
        "instance_type": "gpu-h100x1-80gb",
        "region": "nyc2",
        "purchase": "on_demand",
        "hours": Decimal(10),
        "start": MONTH[0],
        "end": MONTH[1],
    }
    return BillLine(**plain | changes)


def held(*lines: BillLine, plans: tuple[Selection, ...] = (), period: str = "month") -> Comparison:
    """The comparison of plans, one H100 by default, with a bill of these lines."""
    bill = Bill(name="bill.csv", format="x", lines=lines)
    return compare_dollars(plans or (planned(),), (bill,), period=period)


def test_the_same_is_no_difference() -> None:
    """Equal dollars and hours on both sides differ by exactly 0."""
    (one,) = held(billed()).of("both")
    assert one.difference_usd == 0
    assert (one.hours.predicted, one.hours.actual) == (10, 10)


def test_a_difference_is_actual_less_predicted() -> None:
    """Many lines of a bill add up exactly before they are compared."""
    (one,) = held(billed("44.10000000001"), billed("0.9")).of("both")
    assert one.difference_usd == Decimal("0.90000000001")
    assert one.bill_lines == 2


# What is changed on the bill, and whether it still fits the plan's line.
FITS = (
    ({"region": None}, True),
    ({"purchase": None}, True),
    ({"instance_type": "GPU-H100x1-80GB"}, True),
    ({"instance_type": "gpu-h100x8-640gb"}, False),
    ({"instance_type": None}, False),
    ({"purchase": "spot"}, False),
    ({"provider": "aws"}, False),
    ({"kind": "disk", "instance_type": None}, False),
    ({"kind": "other"}, False),
)


@pytest.mark.parametrize(("change", "fits"), FITS, ids=str)
def test_what_fits(change: dict[str, Any], *, fits: bool) -> None:
    """Silence of the bill fits; another machine, provider, kind or way of buying does not."""
    result = held(billed(**change))
    assert (len(result.of("both")), len(result.of("plan")), len(result.of("bill"))) == (
        (1, 0, 0) if fits else (0, 1, 1)
    )


@pytest.mark.parametrize(
    ("plan_region", "bill_region", "fits"),
    [("nyc2", "nyc2", True), ("nyc2", "tor1", False), (None, "tor1", True), ("nyc2", None, True)],
)
def test_regions(plan_region: str | None, bill_region: str | None, *, fits: bool) -> None:
    """A price that is the same everywhere fits any region."""
    result = held(billed(region=bill_region), plans=(planned(region=plan_region or "*"),))
    assert bool(result.of("both")) is fits


@pytest.mark.parametrize("term", ["reserved_1y", "reserved_180d"])
def test_a_bill_does_not_say_for_how_long_a_term_is(term: str) -> None:
    """A reserved line fits any reserved plan, and no on-demand plan."""
    reserved = billed(purchase="reserved")
    assert held(reserved, plans=(planned(purchase=term),)).of("both")
    assert not held(reserved).of("both")


def test_machine_time_is_one_line_on_a_bill() -> None:
    """Boot, lost work and idle time are machine hours like any others."""
    lines = tuple(line(w, "1", HOURS) for w in ("compute", "boot", "lost-work", "idle-tail"))
    (one,) = held(billed("4"), plans=(planned(lines=lines),)).of("both")
    assert one.difference_usd == 0


def test_what_cannot_be_told_apart_is_compared_as_one() -> None:
    """Two regions in the plan, none on the bill: one comparison with both jobs, and a note."""
    plans = (planned(job="a", region="nyc2"), planned(job="b", region="tor1"))
    result = held(billed("90", region=None), plans=plans)
    (one,) = result.of("both")
    assert one.jobs == ("a", "b")
    assert one.difference_usd == Decimal("1.8")
    assert any("tell apart" in note for note in result.notes)
    apart = held(billed(region="nyc2"), billed(region="tor1"), plans=plans)
    assert [one.jobs for one in apart.of("both")] == [("a",), ("b",)]


@pytest.mark.parametrize("kind", ["tax", "credit", "fee"])
def test_taxes_and_credits_stand_apart(kind: str) -> None:
    """They are not the use of a service: never matched, never in the period."""
    other = billed("7", kind=kind, instance_type=None, purchase=None, start=None, end=None)
    result = held(billed(), other)
    (one,) = result.of("apart")
    assert one.actual_usd == 7
    assert (result.of("both")[0].difference_usd, result.of("bill")) == (0, ())
    assert result.start == MONTH[0]


def test_unmatched_lines_are_listed_on_both_sides() -> None:
    """The dearest line that only the bill has comes first."""
    disk = line(
        "disk", "5", PricedPart(quantity=Decimal(50), unit="GiB-Months", unit_usd=Decimal("0.1"))
    )
    stray = [
        billed(usd, kind="egress", instance_type=None, purchase=None, region=region)
        for usd, region in (("1", "a"), ("3", "b"), ("2", "c"))
    ]
    result = held(billed(), *stray, plans=(planned(lines=(*planned().lines, disk)),))
    assert [one.what for one in result.of("plan")] == ["disk"]
    assert [one.actual_usd for one in result.of("bill")] == [3, 2, 1]


def test_another_way_of_buying_is_pointed_out() -> None:
    """The same machine, billed as spot where on-demand was planned, is named in a note."""
    notes = held(billed(purchase="spot")).notes
    assert any("planned on_demand" in note and "spot in nyc2" in note for note in notes)


@pytest.mark.parametrize(
    ("days", "told"),
    [
        ((0, 30), None),
        ((0, 13), "13 of 30 days"),
        ((10, 30), "20 of 30 days"),
        ((0, 61), "more than one month (61 days)"),
        ((-31, 30), "more than one month"),
    ],
)
def test_a_partial_month_is_said(days: tuple[int, int], told: str | None) -> None:
    """A bill of less or more than the month says so, and nothing is scaled."""
    start, end = (MONTH[0] + timedelta(days=day) for day in days)
    result = held(billed(start=start, end=end))
    assert result.of("both")[0].difference_usd == 0
    said = [note for note in result.notes if "covers" in note]
    assert (told in said[0]) if told else said == []


def test_an_invoice_to_the_last_second_is_a_whole_month() -> None:
    """23:59:59 on the last day is the end of the month."""
    result = held(billed(end=MONTH[1] - timedelta(seconds=1)))
    assert not any("covers" in note for note in result.notes)


def test_a_run_and_an_undated_bill() -> None:
    """A plan of a run says which days the bill is of; without days that is said, too."""
    assert any("one run" in note for note in held(billed(), period="run").notes)
    undated = replace(billed(), start=None, end=None)
    assert any("does not say which days" in note for note in held(undated).notes)


LINES = st.builds(
    billed,
    st.decimals(0, 10**6, places=8).map(str),
    kind=st.sampled_from(("compute", "disk", "tax", "credit", "other")),
    region=st.sampled_from((None, "nyc2", "tor1")),
    purchase=st.sampled_from((None, "spot", "on_demand", "reserved")),
    instance_type=st.sampled_from((None, "gpu-h100x1-80gb", "other")),
)


@given(st.lists(LINES, min_size=1, max_size=12), st.randoms())
def test_no_dollar_is_lost_or_counted_twice(lines: list[BillLine], random: Any) -> None:
    """Whatever the bill: both sides add up to what was given, in any order of its lines."""
    plans = (planned(job="a", region="nyc2"), planned(job="b", purchase="spot"))
    result = held(*lines, plans=plans)
    parts = result.lines
    actual = sum((one.actual_usd or Decimal(0) for one in parts), Decimal(0))
    predicted = sum((one.predicted_usd or Decimal(0) for one in parts), Decimal(0))
    assert actual == sum((one.usd for one in lines), Decimal(0))
    assert predicted == Decimal("88.2")
    assert sum(one.bill_lines for one in parts) == len(lines)
    shuffled = list(lines)
    random.shuffle(shuffled)
    assert held(*shuffled, plans=plans) == result


def test_the_document() -> None:
    """Money is text, shares are numbers, and what is not known is null."""
    plans = (planned(),)
    bill = Bill(name="bill.csv", format="x", lines=(billed("48.51", region=None),))
    document = encode(reconcile(PLAN, plans, (bill,)))
    assert document["schema"] == "gpucost.reconciliation/v1"
    (one,) = document["lines"]
    assert (one["predicted_usd"], one["actual_usd"]) == ("44.1", "48.51")
    assert (one["difference_usd"], one["difference_fraction"]) == ("4.41", 0.1)
    assert (one["match"], one["region"]) == ("both", None)
    assert document["totals"]["matched"]["difference_usd"] == "4.41"
    assert document["bill"]["start"] == "2026-11-01T00:00:00Z"
    elsewhere = Bill(name="bill.csv", format="x", lines=(billed(provider="aws"),))
    nothing = encode(reconcile(PLAN, plans, (elsewhere,)))
    assert nothing["totals"]["matched"]["difference_fraction"] is None
    assert [one["difference_usd"] for one in nothing["lines"]] == [None, None]
