"""What is paid already is owed in every option; asked-for actions are in every option."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from planner.choice.requirements import Requirements
from planner.plan.making import to_plan
from planner.profile.model import Statistics
from pricing.errors import InputError
from templates.reports.first_screen import first_screen
from tests.planner.factories import TODAY, a_profile, plan, running, sold
from tests.pricing.factories import ASKED_ON

HALF_A_YEAR = ASKED_ON + timedelta(days=183)
SOON = ASKED_ON + timedelta(days=46)  # a quarter of the six months of the horizon


@pytest.mark.parametrize(
    ("asked", "hardware", "owed"),
    [
        ({}, {}, "0"),
        ({"owned": True}, {}, "200"),
        ({}, {"owned": True}, "200"),
        ({"paid_until": HALF_A_YEAR}, {}, "200"),
        ({}, {"paid_until": HALF_A_YEAR.isoformat()}, "200"),
        ({"paid_until": SOON}, {}, "50"),
        ({"paid_until": ASKED_ON - timedelta(days=1)}, {}, "0"),
    ],
    ids=str,
)
def test_what_is_owed_is_a_line_of_every_option(
    asked: dict[str, Any], hardware: dict[str, Any], owed: str
) -> None:
    """100 h at $2: all of it while it is paid for, a part where that ends within the horizon."""
    offers = (TODAY, sold("cheap", "0.10"))
    (job,) = plan(running(a_profile(**hardware)), offers=offers, **asked).jobs
    (option,) = job.options
    lines = {line.what: line.usd for line in option.quote.lines}
    assert lines.get("owed", Decimal(0)) == pytest.approx(Decimal(owed), abs=Decimal(1))
    assert option.cost == sum(lines.values())
    assert option.saves.usd == (job.baseline.cost or 0) - option.cost


@given(st.integers(1, 500), st.booleans())
def test_a_paid_machine_is_never_saved(cents: int, reserved: bool) -> None:  # noqa: FBT001 - drawn
    """No option of any price costs less than what is owed anyway, at any end of its range."""
    today = sold("today", "2.00", purchase="reserved_1y") if reserved else TODAY
    other = sold("other", str(Decimal(cents) / 100), "H100-SXM-80GB")
    (job,) = plan(running(a_profile(), today), offers=(today, other), owned=not reserved).jobs
    assert job.baseline.owed == job.baseline.cost
    assert all(option.usd_range.low >= job.baseline.owed for option in job.options)
    assert job.choice is None


def test_what_a_term_that_is_hardly_used_would_cost_on_demand_is_said() -> None:
    """730 h at $2 are owed for 100 h of use; on demand those cost $3 each: $300, not $1,460."""
    term, on_demand = sold("today", "2.00", purchase="reserved_1y"), sold("today", "3.00")
    (job,) = plan(running(a_profile(), term), offers=(term, on_demand)).jobs
    assert job.choice is None
    assert job.reason is not None
    assert "the 100 h of a month cost $300 on demand" in job.reason
    (busy,) = plan(running(a_profile(hours=700.0), term), offers=(term, on_demand)).jobs
    assert "on demand" not in (busy.reason or "")


def test_actions_that_are_asked_for_are_in_every_option() -> None:
    """And those that are ruled out in none; a code that does not exist is a problem."""
    starved = a_profile({"util.kernel_time": 0.3, "mem.used_gib": 9.0}, host={"cpu_util": 0.95})
    job_, offers = running(starved), (TODAY, sold("other", "1.00"))
    (with_it,) = plan(job_, offers=offers, actions=("compile",)).jobs
    assert all("compile" in option.actions for option in with_it.options)
    (plain,) = plan(job_, offers=offers).jobs
    named = {code for option in plain.options for code in option.actions}
    assert "gpu-preprocessing" in named or "dataloader-workers" in named
    (left,) = plan(job_, offers=offers, without=tuple(sorted(named))).jobs
    assert not named & {code for option in left.options for code in option.actions}
    with pytest.raises(InputError, match="--without"):
        Requirements(without=("nonsense",))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"owned": True}, "its price is owed whatever runs"),
        ({"paid_until": date(2027, 6, 30)}, "it is paid until 2027-06-30"),
    ],
    ids=["owned", "until a day"],
)
def test_what_is_paid_is_kept_for_that_reason(asked: dict[str, Any], words: str) -> None:
    """Not for want of a cheaper machine; what is free of it is said, and no shut-down advised."""
    idle = a_profile({"util.kernel_time": Statistics(mean=0.4, p95=0.9)}, kind="unknown")
    (job,) = plan(running(idle), offers=(TODAY, sold("same", "2.00")), **asked).jobs
    assert words in (job.reason or "")
    assert "idle for 60 % of the time" in (job.reason or "")
    nothing = a_profile({"util.kernel_time": 0.0, "mem.used_gib": 0.0}, kind="unknown")
    (job,) = plan(running(nothing), offers=(TODAY,), **asked).jobs
    assert job.now is None or "idle-shutdown" not in job.now.actions


def test_a_term_that_is_over_is_billed_on_demand() -> None:
    """A machine whose term ended yesterday costs what it costs by the hour, and that is said."""
    term = sold("today", "1.00", purchase="reserved_1y")
    over = (ASKED_ON - timedelta(days=1)).isoformat()
    stated = running(a_profile(purchase="reserved_1y", paid_until=over), term)
    (job,) = plan(stated, offers=(TODAY, term)).jobs
    assert job.baseline.cost == Decimal(200)
    assert any("its term ended on" in note for note in job.baseline.notes)


def test_nobody_buys_a_year_to_measure() -> None:
    """What would settle a paid machine is measured on it, for nothing."""
    term = sold("today", "1.00", purchase="reserved_1y")
    metrics = {"util.kernel_time": 0.4, "mem.used_gib": 28.0}
    job_ = running(a_profile(metrics, host={"cpu_util": 0.3}, purchase="reserved_1y"), term)
    (job,) = plan(job_, offers=(term, TODAY)).jobs
    assert job.proof is not None
    assert job.proof.usd == 0


def test_a_job_is_sent_to_a_paid_machine_that_does_nothing() -> None:
    """The same size, one paid and idle, one rented by the hour: the second runs on the first."""
    term = sold("today", "1.00", purchase="reserved_1y")
    idle = running(a_profile({"util.kernel_time": 0.0, "mem.used_gib": 0.0}, name="idle"), term)
    idle = replace(idle, hardware=replace(idle.hardware, purchase="reserved_1y"))
    busy = running(a_profile({"util.kernel_time": 0.97, "mem.used_gib": 60.0}, name="busy"))
    made = plan(idle, busy, offers=(TODAY, term))
    (note,) = (w for w in made.warnings if getattr(w, "code", "") == "note.on-paid")
    assert note.params["name"] == "busy"
    assert note.params["saves"] == "200"
    other = running(a_profile({"util.kernel_time": 0.97}, name="busy"), sold("larger", "2.00"))
    apart = plan(idle, other, offers=(TODAY, term, sold("larger", "2.00")))
    assert not any(getattr(w, "code", "") == "note.on-paid" for w in apart.warnings)


def test_a_total_without_what_is_to_be_tried_says_so() -> None:
    """The busy job may run where one does nothing; the total of the others is without that."""
    term = sold("today", "1.00", purchase="reserved_1y")
    idle = running(a_profile({"util.kernel_time": 0.0, "mem.used_gib": 0.0}, name="idle"), term)
    idle = replace(idle, hardware=replace(idle.hardware, purchase="reserved_1y"))
    busy = running(a_profile({"util.kernel_time": 0.97, "mem.used_gib": 60.0}, name="busy"))
    slow = {"util.kernel_time": 0.3, "mem.used_gib": 5.0}
    third = running(a_profile(slow, name="third"), sold("dear", "9.00"))
    offers = (TODAY, term, sold("dear", "9.00"))
    screen = first_screen(to_plan(plan(idle, busy, third, offers=offers, consolidate=False)))
    texts = {action.label: action.text for action in screen.actions}
    assert "Try" in texts
    assert texts["In all"] == "as recommended job by job, without what is to be tried"
