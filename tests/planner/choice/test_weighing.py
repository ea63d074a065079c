"""Weighing few of the changes that may pay finds what weighing all of them finds."""

from decimal import Decimal

import pytest

from planner.choice.benefit import Weighed, least_spent, weigh
from planner.choice.candidate import Candidate
from planner.choice.changes import size
from planner.choice.context import JobContext
from planner.choice.ranking import Weighing
from planner.choice.requirements import Requirements
from planner.choice.search import find_candidates
from planner.choice.workload import choose_period
from planner.pipeline import assess
from pricing.catalog.catalog import load_catalog
from tests.planner.jobs_drawn import Rolled, job
from tests.pricing.factories import ASKED_ON

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
    context = assess(profile, load_catalog(ASKED_ON), asked, choose_period((profile,), asked))
    return context, find_candidates(context)[0]


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_few_weighed_tell_what_all_would(asked: Requirements) -> None:
    """The least spent, the smallest, and the smallest beside the least are those of all weighed."""
    found, weighed = 0, 0
    for seed in SEEDS:
        context, candidates = drawn(seed, asked)
        paying = [one for one in (weigh(c, context) for c in candidates) if one.pays]
        if context.baseline.broken:
            paying = [weigh(c, context) for c in candidates]
        weighing = Weighing(context, candidates)
        least = min(paying, key=lambda one: one.spends, default=None)
        assert weighing.least_spent() == least
        assert weighing.smallest() is _smallest(paying, context)
        if least is not None:
            beside = [one for one in paying if one.overlaps(least)]
            assert weighing.smallest(beside=least) is _smallest(beside, context)
            found += 1
        weighed += len(weighing.known) < len(candidates)
    assert found
    assert weighed


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_nothing_spends_less_than_at_least(asked: Requirements) -> None:
    """The bound that spares the weighing of a candidate is never above what weighing finds."""
    for seed in SEEDS:
        context, candidates = drawn(seed, asked)
        for candidate in candidates:
            assert least_spent(candidate, context) <= weigh(candidate, context).spends


def _smallest(some: list[Weighed], context: JobContext) -> Candidate | None:
    least = min(some, key=lambda one: (size(one.candidate, context), one.spends), default=None)
    return None if least is None else least.candidate
