"""Loss curves: identical, alike, changed, or not recorded."""

import pytest

from planner.proof.comparability import compare_losses
from planner.proof.speed import parse_steps
from pricing.errors import InputError
from tests.planner.proof.runs import series, with_losses

STEPS = series(0.2)


def test_the_same_losses_are_identical() -> None:
    """Bit for bit."""
    assert compare_losses(with_losses(STEPS), with_losses(STEPS)).alike == "identical"


def test_another_seed_is_alike() -> None:
    """Noise of its own around the same curve is no change, over 40 seeds."""
    before = with_losses(STEPS)
    words = {compare_losses(before, with_losses(STEPS, seed=s)).alike for s in range(10, 50)}
    assert words == {"alike"}


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_another_curve_is_changed(factor: float) -> None:
    """5 % better is as much a change as 5 % worse."""
    found = compare_losses(with_losses(STEPS), with_losses(STEPS, factor, seed=9))
    assert found.alike == "changed"


def test_losses_of_one_run_only_are_not_recorded() -> None:
    """One curve compares with nothing, and that is said."""
    found = compare_losses(STEPS, with_losses(STEPS))
    assert found.alike == "not recorded"
    assert "not shown" in found.why


def test_rows_are_read_without_the_first() -> None:
    """Start-up is left out, a line that was cut off too; rows without a length tell nothing."""
    text = (
        '{"step":1,"n":1,"step_s":9}\n{"step":11,"n":10,"step_s":0.2,"loss":1.5}\n'
        '{"step":21,"n":10}\n{"step":31,"n":10,"step_s":0.3}\n{"step":41,"n"'
    )
    rows = parse_steps(text, "s.jsonl")
    assert [(row.step, row.n, row.step_s, row.loss) for row in rows] == [
        (11, 10, 0.2, 1.5),
        (31, 10, 0.3, None),
    ]


@pytest.mark.parametrize("line", ['{"step":2,"step_s":-1}', '{"step":2,"step_s":NaN}', "[]", "x"])
def test_a_damaged_line_is_named(line: str) -> None:
    """A line that is no row of steps is refused with file and number."""
    text = f'{{"step":1,"step_s":1}}\n{line}\n{{"step":3,"step_s":1}}\n'
    with pytest.raises(InputError, match=r"s\.jsonl:2"):
        parse_steps(text, "s.jsonl")
