"""Experiments in simulated worlds: rarely wrong, mostly able, and as sure as they say."""

import math
import os
from collections.abc import Mapping

import pytest

from research.experiments import (
    COVERAGE,
    CUT,
    GAIN,
    LEAST_POWER,
    MOST_FALSE,
    OURS,
    VERIFY,
    Count,
    simulate,
)

WORLDS = int(os.environ.get("GPUCOST_DRAWS", "200"))
SLACK = 2.0 * math.sqrt(0.025 * 0.975 / WORLDS)
"""`make experiments` draws 10,000 and holds the bars themselves, `make slow-test` 500; two standard
errors of shares of 2.5 %, and of twice as many of 95 %."""


@pytest.fixture(scope="module")
def counted() -> tuple[Mapping[str, Count], Mapping[str, Count]]:
    """What our rule said without a gain and with one, whole and cut."""
    rules = (OURS, *CUT, VERIFY)
    return simulate(WORLDS, 1.0, rules), simulate(WORLDS, GAIN, rules)


Counted = tuple[Mapping[str, Count], Mapping[str, Count]]


@pytest.mark.parametrize("rule", [OURS, *CUT, VERIFY])
def test_nothing_false_is_proved_and_intervals_cover(rule: str, counted: Counted) -> None:
    """False "proved" and coverage are as promised, also where the program ends early."""
    none, some = (each[rule] for each in counted)
    assert none.proved / WORLDS <= MOST_FALSE + SLACK
    covered = (none.covered + some.covered) / (2 * WORLDS)
    assert COVERAGE[0] - SLACK <= covered
    assert rule == VERIFY or covered <= COVERAGE[1] + SLACK


def test_a_whole_experiment_finds_a_gain(counted: Counted) -> None:
    """A gain of 10 % is found in at least 80 % of the worlds."""
    assert counted[1][OURS].proved / WORLDS >= LEAST_POWER
