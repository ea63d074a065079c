"""Predictions hold on published training throughput that they were not fitted on."""

import itertools
import math
import statistics
from pathlib import Path

import pytest

from planner.evaluation.cross_gpu import section
from planner.evaluation.score import Section
from planner.evaluation.throughput import Run, runs
from planner.kernels import kernel_speed_up
from pricing.hardware import gpus
from tests.planner.factories import a_profile

NAMES = {"fp16": "amp-fp16", "fp32": "fp32"}


@pytest.fixture(scope="module")
def scored(shared: Path) -> Section:
    """Every pair of GPUs predicted without its GPU, its task, or both."""
    return section(shared / "datasets")


@pytest.mark.parametrize(
    ("left", "precision"),
    [(left, p) for left in ("task unseen", "GPU unseen", "GPU and task") for p in NAMES],
)
def test_bars_are_held_on_what_was_left_out(scored: Section, left: str, precision: str) -> None:
    """Each stated bar is held, but for the one that docs/accuracy.md owns up to."""
    (score,) = (
        s for s in scored.scores if f", {left}" in s.question and f", {precision}" in s.question
    )
    assert score.cases == 660
    if (left, precision) == ("GPU and task", "fp16"):
        assert score.verdict == "missed: median by 1.5"
    else:
        assert score.verdict == "held"
    assert score.baseline is not None
    assert score.ours.mean < score.baseline[1].mean


@pytest.mark.parametrize("question", ["task unseen", "GPU and task unseen"])
def test_the_interval_covers_what_was_left_out(scored: Section, question: str) -> None:
    """Nine of ten ratios lie within, at x/: 1.4 or narrower, in every generation three of four."""
    (covered,) = (c for c in scored.coverages if c.question == question)
    assert 0.88 <= covered.share <= 0.935
    assert covered.factor <= 1.4
    assert min(covered.groups.values()) >= 0.75


def _ratio(before: Run, after: Run) -> tuple[bool, bool, float]:
    """Weak or not, inside the interval, expected over measured."""
    profile = a_profile({}, gpu=before.gpu, precision=NAMES[before.named])
    guess = kernel_speed_up(profile, gpus()[after.gpu])
    true = math.exp(after.log_rate - before.log_rate)
    return guess.weak, guess.low <= true <= guess.high, guess.mid / true


@pytest.mark.parametrize("precision", NAMES)
def test_a_generation_outside_the_fit_is_weak_and_covered(shared: Path, precision: str) -> None:
    """No Blackwell run is in the fit: its predictions say so, and their interval holds."""
    known = [r for r in runs(shared / "datasets", "v2") if r.named == precision]
    found = [
        _ratio(before, after)
        for before, after in itertools.permutations(known, 2)
        if before.task == after.task and "B200-SXM" in (before.gpu, after.gpu)
    ]
    assert len(found) == 32
    assert all(weak and inside for weak, inside, _ in found)


def test_what_ships_is_what_was_scored(shared: Path) -> None:
    """The shipped coefficients are those of the scored model: in its own runs they err little."""
    known = [r for r in runs(shared / "datasets", "v1") if r.used == r.named]
    found = [
        abs(_ratio(before, after)[2] - 1.0)
        for before, after in itertools.permutations(known, 2)
        if (before.task, before.named) == (after.task, after.named) and before.gpu != after.gpu
    ]
    assert statistics.median(found) < 0.12
