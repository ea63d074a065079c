"""Designed experiments: drawn in fours, planned from a pilot, sure as often as they say."""

import math
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.proof.experiment import Design, conclude, fours_needed, settings
from research.experiments import block_of_step, experiment, gains, is_settled, most_blocks

DESIGN = Design(block_steps=10, settle_steps=2, warmup_steps=7, pilot_fours=4, most_fours=12)
LENGTH = DESIGN.warmup_steps + DESIGN.block_steps * most_blocks(DESIGN)


def _steps(design: Design, gain: float, drift: float = 0.0) -> list[float]:
    """Return steps of 1 s, a gain where the setting is on, a straight drift, slow switches."""
    on, found = settings(design), []
    for step in range(LENGTH):
        block = block_of_step(design, step)
        length = 5.0 if block is None else 1.0 / (gain if on[block] else 1.0)
        slow = 1.0 if block is None or is_settled(design, step) else 3.0
        found.append(length * slow * math.exp(drift * step / LENGTH))
    return found


def test_each_four_is_on_as_often_as_off_at_the_same_mean_time() -> None:
    """On-off-off-on or the reverse, both of them drawn."""
    on = settings(DESIGN)
    fours = {on[i : i + 4] for i in range(0, len(on), 4)}
    assert fours == {(True, False, False, True), (False, True, True, False)}


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_the_same_seed_draws_the_same_order(seed: int, fours: int) -> None:
    """The process that switches and the one that concludes agree without a word."""
    design = Design(pilot_fours=3, most_fours=max(3, fours), seed=seed)
    assert settings(design) == settings(design)
    assert len(settings(design)) == most_blocks(design)


@given(st.floats(0.5, 3.0), st.integers(0, 99))
def test_a_gain_is_found_whatever_the_run_warms_up_and_switches(gain: float, seed: int) -> None:
    """Without noise each four tells the gain exactly; warm-up and switches are left out."""
    design = Design(
        block_steps=10, settle_steps=2, warmup_steps=7, pilot_fours=4, most_fours=12, seed=seed
    )
    found = gains(design, _steps(design, gain))
    assert len(found) == 12
    assert found == pytest.approx([math.log(gain)] * 12, abs=1e-9)


def test_a_straight_drift_cancels() -> None:
    """The machine slows down by half over the run: the gain stays what it is."""
    found = gains(DESIGN, _steps(DESIGN, 1.1, drift=0.4))
    assert found == pytest.approx([math.log(1.1)] * 12, abs=1e-9)


def test_a_run_that_ended_early_counts_its_whole_fours() -> None:
    """Seven whole blocks are one four; a block that was cut off is left out."""
    steps = _steps(DESIGN, 1.1)[: DESIGN.warmup_steps + 7 * DESIGN.block_steps + 3]
    assert len(gains(DESIGN, steps)) == 1


def test_the_number_follows_from_the_spread_without_signs() -> None:
    """Whatever the signs, as many fours; another spread asks for others, in its square."""
    pilot = [0.01, 0.1, -0.1, 0.05]
    few = fours_needed(DESIGN, pilot)
    for signs in product((-1, 1), repeat=4):
        assert few == fours_needed(DESIGN, [x * sign for x, sign in zip(pilot, signs, strict=True)])
    assert fours_needed(DESIGN, [3 * x for x in pilot]) == pytest.approx(9 * few, rel=0.05)
    assert fours_needed(DESIGN, [0.0, 1e-6, 0.0, 1e-6]) == DESIGN.pilot_fours


def test_a_conclusion_waits_for_what_was_planned() -> None:
    """Neither a pilot nor a run cut short concludes; fours beyond the plan do not count."""
    noisy = [0.1, 0.3, -0.1, 0.1]
    with pytest.raises(ValueError, match="pilot"):
        fours_needed(DESIGN, noisy[:3])
    with pytest.raises(ValueError, match="go on until then"):
        conclude(DESIGN, noisy)
    quiet = [0.1, 0.1001, 0.0999, 0.1]
    assert conclude(DESIGN, quiet) == conclude(DESIGN, [*quiet, 9.0, 9.0])


def test_a_noisy_machine_says_what_it_could_have_found() -> None:
    """Where the design has no room for the fours that were planned, the least gain is told."""
    found = conclude(DESIGN, [0.6, -0.2, -0.4, 0.1] * 3)
    assert found.fours == DESIGN.most_fours < found.planned
    assert found.smallest > 1.4
    assert not found.speedup.is_faster


def test_the_whole_in_one_call() -> None:
    """A quiet run proves its gain within the pilot."""
    found = experiment(DESIGN, _steps(DESIGN, 1.05))
    assert found.fours == DESIGN.pilot_fours
    assert found.speedup.is_faster
    assert found.speedup.mid == pytest.approx(1.05)


@pytest.mark.parametrize(
    "wrong",
    [
        {"block_steps": 5, "settle_steps": 5},
        {"pilot_fours": 2},
        {"pilot_fours": 60},
        {"detect": 1.0},
        {"warmup_steps": -1},
    ],
)
def test_a_design_that_cannot_tell_is_refused(wrong: dict[str, float]) -> None:
    """No steps left, too short a pilot, nothing to detect."""
    with pytest.raises(ValueError, match=r"\d"):
        Design(**wrong)  # type: ignore[arg-type] # numbers


def test_steps_belong_to_one_block_each() -> None:
    """Warm-up and what follows the last block are of none; the rest is cut evenly."""
    blocks = [block_of_step(DESIGN, step) for step in range(LENGTH + 5)]
    assert blocks[: DESIGN.warmup_steps] == [None] * DESIGN.warmup_steps
    assert blocks[-5:] == [None] * 5
    inside = [block for block in blocks if block is not None]
    assert all(after - before in (0, 1) for before, after in pairwise(inside))
    assert len(inside) == DESIGN.block_steps * most_blocks(DESIGN)
