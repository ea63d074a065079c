"""Our own jobs beside each other on an H200: what holds of limits and predictions there."""

from statistics import fmean

import pytest

from planner.models.coefficients import coefficients
from research import delays
from research.h200_runs import FULL, MODES, profiles, runs
from research.score import errors
from research.side_by_side import Beside, beside

STARVED = 0.3


def pairs(mode: str) -> list[Beside]:
    """Both jobs of all pairs in one mode."""
    return [one for one in beside() if one.mode == mode]


def test_all_pairs_ran_in_both_modes() -> None:
    """Nine jobs, 36 pairs, two jobs a pair: nobody ran out of memory."""
    assert len(profiles()) == 9
    assert [len(pairs(mode)) for mode in MODES] == [72, 72]
    assert len(runs()) == 375


def test_who_is_put_on_one_gpu_keeps_most_of_its_speed() -> None:
    """Under MPS nobody whom the limits let share ran below 0.8; who fills the GPU never may."""
    packed = [one for one in pairs("mps") if one.fits]
    assert len(packed) >= 20
    assert min(one.true for one in packed) > 0.8
    assert all(one.has_room for one in packed)


@pytest.mark.parametrize("mode", MODES)
def test_the_law_is_no_further_off_than_sm_activity_alone(mode: str) -> None:
    """Own kernel time and the others' share beat the sum of SM activity, median and mean."""
    some = [one for one in pairs(mode) if one.has_room]
    true = [one.true for one in some]
    ours = errors([one.told.mid for one in some], true)
    rule = errors([1.0 / max(1.0, sum(one.shares)) for one in some], true)
    assert ours.median < rule.median
    assert ours.mean < rule.mean


def test_who_starved_was_not_promised_more() -> None:
    """Who ran at under 0.3 of its speed under MPS has a weak estimate, most of no more than that.

    Who starves others keeps its own speed, and is told so.
    """
    known = pairs("mps")
    starved = [one for one in known if one.true < STARVED]
    assert len(starved) == 14
    assert all(one.told.weak for one in starved)
    assert sum(one.told.mid < STARVED for one in starved) >= 12
    keeps = [one for one in known if one.shares[0] >= FULL > one.shares[1]]
    assert all(abs(one.told.mid / one.true - 1.0) < 0.1 for one in keeps)


@pytest.mark.parametrize("mode", MODES)
def test_the_interval_holds_what_it_claims_for_jobs_that_nobody_saw(mode: str) -> None:
    """About 90 % lie inside where neither job fills the GPU, by figures fitted without both."""
    room = [one for one in pairs(mode) if one.has_room]
    assert 0.85 <= fmean(one.holds for one in room) <= 0.95
    assert fmean(one.told.high / one.told.low for one in room) < 1.6**2
    assert fmean(one.simple for one in room) > 1.4


def test_what_ships_is_fitted_on_all_of_them() -> None:
    """The figures in sharing.toml are those of the runs, no job left out; fewer jobs, others."""
    shipped = coefficients("sharing")
    assert delays.fitted() == {"again": shipped["again"], "delay": shipped["delay"]}
    assert delays.again({"policy-train"}) != pytest.approx(shipped["again"], abs=1e-4)
