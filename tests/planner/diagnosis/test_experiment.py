"""The proposed probe: what is least sure and cheap to measure, priced as it would be billed."""

from decimal import Decimal
from typing import Any

import pytest

from planner.plan.job import Proof
from tests.planner.factories import a_profile, plan, running, sold

FULL = {"util.kernel_time": 0.97, "mem.used_gib": 30.0}


def proposed(*offers: Any, **fields: Any) -> Proof | None:
    """The probe that the plan of one training job names."""
    return plan(running(a_profile(FULL, **fields)), offers=offers).jobs[0].proof


def test_a_trial_on_the_machine_in_question_is_proposed_with_its_price() -> None:
    """An unseen GPU model: a quarter of an hour on it costs what it is billed for."""
    probe = proposed(sold("today", "2.00"), sold("l40s", "1.00", "L40S", gpu_memory_gib=48))
    assert probe is not None
    assert probe.offer is not None
    assert probe.offer.gpu == "L40S"
    assert Decimal("0.25") <= probe.usd <= Decimal(1)  # by the minute or by the whole hour
    assert probe.factor_now > 1.3
    assert probe.factor_after == pytest.approx(1.07)
    assert "--probe" in probe.what


def test_what_is_known_needs_no_probe() -> None:
    """The same GPU elsewhere is the measured one: nothing to try."""
    assert proposed(sold("today", "2.00"), sold("same", "1.00", provider="elsewhere")) is None


def test_two_gpus_do_for_eight() -> None:
    """Eight GPUs are in question: two of them tell nearly as much, for a quarter of the money."""
    eight = sold("eight", "8.00", gpu_count=8.0, interconnect="nvlink")
    two = sold("two", "2.10", gpu_count=2.0, interconnect="nvlink")
    planned = plan(
        running(a_profile(FULL, hours=600.0)),
        offers=(sold("today", "2.00"), eight, two),
        objective="time",
        gpu_counts=(8, 8),
    )
    probe = planned.jobs[0].proof
    assert probe is not None
    assert probe.offer is not None
    assert probe.offer.instance_type == two.instance_type
    assert probe.option == "o1"


def test_held_time_asks_for_no_probe() -> None:
    """A notebook holds its machine as long as before: no speed would change its bill."""
    assert proposed(sold("today", "2.00"), sold("l", "1.00", "L40S"), kind="interactive") is None


def test_what_is_dearer_at_its_best_is_not_tried() -> None:
    """No experiment can make an option cheaper whose good end costs more than today."""
    assert proposed(sold("today", "2.00"), sold("dear", "9.00", "L40S", gpu_memory_gib=48)) is None
