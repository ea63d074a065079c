"""The rules find the labels: macro-F1, nothing useful called idle, firm under small changes."""

import pytest

from tests.conftest import OUTSIDE
from tests.diagnosis.evaluate import Judged, f1_by_code, judge, macro_f1

BAR = 0.9


@pytest.fixture(scope="module")
def judged() -> tuple[Judged, ...]:
    """Every case that can be read here; without the published recordings the rest."""
    return judge(OUTSIDE if OUTSIDE.is_dir() else None)


def test_the_verdicts_are_the_labels(judged: tuple[Judged, ...]) -> None:
    """Macro-F1 of the first finding is at least 0.9."""
    assert macro_f1(judged) >= BAR, f1_by_code(judged)


def test_so_are_those_held_out(judged: tuple[Judged, ...]) -> None:
    """The same holds on the cases that no rule was written with in mind."""
    held_out = [one for one in judged if one.case.held_out]
    assert macro_f1(held_out) >= BAR, f1_by_code(held_out)


def test_useful_work_is_never_called_idle_or_too_large(judged: tuple[Judged, ...]) -> None:
    """No finding of idleness, and no smaller GPU, where the GPU does useful work."""
    assert {one.case.name: one.belittled for one in judged if one.belittled} == {}


def test_other_causes_are_named_and_false_ones_are_not(judged: tuple[Judged, ...]) -> None:
    """What a label says beside its verdict holds."""
    assert {one.case.name: one.missed for one in judged if one.missed} == {}


@pytest.mark.parametrize("scale", [0.95, 1.05])
def test_readings_a_little_off_change_no_verdict_of_useful_work(scale: float) -> None:
    """With every reading of our own cases 5 % off, macro-F1 keeps 0.9 and nothing is belittled."""
    nudged = judge(None, scale=scale)
    assert macro_f1(nudged) >= BAR
    assert not any(one.belittled for one in nudged)
