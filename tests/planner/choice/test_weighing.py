"""Weighing few of the changes that may pay finds what weighing all of them finds."""

from decimal import Decimal

import pytest

from planner.choice.candidate import Candidate
from planner.choice.changes import size
from planner.choice.context import JobContext
from planner.choice.ranking import least_spent
from planner.choice.requirements import Requirements
from planner.choice.search import find_candidates
from planner.choice.workload import choose_period
from planner.choice.worth import spends_at_least, weigh
from planner.pipeline import assess
from pricing.catalog.catalog import load_catalog
from tests.planner.jobs_drawn import Rolled, job
from tests.pricing.factories import ASKED_ON

CATALOG = load_catalog(ASKED_ON)
SEEDS = range(24)
ASKED = {
    "as it comes": Requirements(),
    "work is free": Requirements(engineer_usd_per_hour=Decimal(0), max_slowdown=5.0),
    "anything goes": Requirements(
        include=frozenset({"any-vendor", "any-arch", "community"}),
        purchases=("on_demand", "spot"),
        max_slowdown=20.0,
    ),
    "too dear today": Requirements(budget_usd=Decimal(2000), max_slowdown=5.0),
}


def drawn(seed: int, asked: Requirements) -> tuple[JobContext, tuple[Candidate, ...]]:
    """A job of that seed, and what it could run on."""
    profile = job(Rolled(seed))
    context = assess(profile, CATALOG, asked, choose_period((profile,), asked))
    return context, find_candidates(context)[0]


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_few_weighed_tell_what_all_would(asked: Requirements) -> None:
    """The least spent and the smallest are those of all weighed."""
    found = 0
    for seed in SEEDS:
        context, candidates = drawn(seed, asked)
        worth = [weigh(candidate, context) for candidate in candidates]
        paying = [w for w in worth if w.pays or context.baseline.must_change]
        least = min(paying, key=lambda w: w.spends, default=None)
        smallest = min(paying, key=lambda w: (size(w.candidate, context), w.spends), default=None)
        by_size = least_spent(candidates, context, of_smallest=True)
        assert least_spent(candidates, context) is (least and least.candidate)
        assert by_size is (smallest and smallest.candidate)
        found += least is not None
    assert found


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_nothing_spends_less_than_at_least(asked: Requirements) -> None:
    """The bound that spares the weighing of a candidate is never above what weighing finds."""
    for seed in SEEDS:
        context, candidates = drawn(seed, asked)
        for candidate in candidates:
            assert spends_at_least(candidate, context) <= weigh(candidate, context).spends
            assert candidate.lowest_usd <= candidate.expected
