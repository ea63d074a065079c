"""What no set of offers and no job may break in the choice."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from planner.choice.requirements import Requirements
from planner.choice.search import find_candidates
from planner.choice.workload import choose_period
from planner.models.draws import DRAWS, ends, scores, spread
from planner.pipeline import assess
from planner.plan.draft import JobDraft
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from tests.planner.choice.test_ranking import offers
from tests.planner.factories import TODAY, a_profile, plan, running, sold
from tests.planner.jobs_drawn import Rolled, job
from tests.pricing.factories import ASKED_ON

CATALOG = load_catalog(ASKED_ON)
MONTHS, RATE = 6, 100
_LEAST_BILLED_H = 1 / 60


def spends(planned: JobDraft) -> Decimal:
    """Expected dollars of the horizon of what is recommended: bill, work and move."""
    option, usage, periods = planned.choice, planned.profile.usage, Decimal(MONTHS)
    if planned.work.storage_h is None:  # the period is a run, and a month has several, or the one
        runs = (usage.hours_per_month or 0.0) / planned.work.hours.mid if usage else 0.0
        periods = max(Decimal(1), Decimal(repr(round(runs, 3))) * MONTHS)
    if option is None:
        assert planned.baseline.cost is not None
        return planned.baseline.cost * periods
    work = RATE * Decimal(str(option.benefit.effort_hours))
    return option.compared * periods + work + (option.benefit.moving_usd or 0)


def planned(found: tuple[Offer, ...], **asked: object) -> JobDraft:
    """The plan of one job that runs today on one A100 at $2."""
    (one,) = plan(running(a_profile()), offers=(TODAY, *found), **asked).jobs
    return one


@given(offers(), st.integers(1, 400))
def test_one_more_offer_never_makes_the_answer_dearer(found: tuple[Offer, ...], cents: int) -> None:
    """What is recommended spends at most as much as without it."""
    more = sold("one-more", str(Decimal(cents) / 100), "H100-SXM-80GB")
    assert spends(planned((*found, more))) <= spends(planned(found))


@given(offers(), st.sampled_from(["H100-SXM-80GB", "L40S", "A100-SXM-80GB"]))
def test_one_more_constraint_never_makes_it_cheaper(found: tuple[Offer, ...], gpu: str) -> None:
    """Of a part of the offers the best spends at least as much as of all."""
    assert spends(planned(found, gpus=(gpu,))) >= spends(planned(found))


@given(offers())
def test_order_and_names_of_offers_change_nothing(found: tuple[Offer, ...]) -> None:
    """What is spent is the same whatever they are called and wherever they stand."""
    renamed = [structs.replace(o, instance_type=f"z{n}") for n, o in enumerate(reversed(found))]
    assert spends(planned(tuple(renamed))) == spends(planned(found))


@pytest.mark.parametrize("seed", range(24))
def test_a_cure_that_cannot_hurt_makes_no_draw_dearer(seed: int) -> None:
    """On each offer, draw by draw, actions that gain at least nothing leave no bill higher.

    But for a hundredth: between three exact bills a bill is taken to be linear, which it is not
    below the minute that many bill at least.
    """
    profile, asked = job(Rolled(seed)), Requirements(max_slowdown=9.0)
    period = choose_period((profile,), asked)
    context = assess(profile, CATALOG, asked, period)
    # Preprocessing on the GPU adds to the GPU's own work.
    may_hurt = {"gpu-preprocessing"}
    harmless = {one.code for one in context.fixes if one.gain and one.gain[0] >= 1.0} - may_hurt
    found = find_candidates(context)[0]
    plain = {(c.offer.place, c.offer.purchase, c.count): c for c in found if not c.actions}
    for candidate in found:
        same = plain.get((candidate.offer.place, candidate.offer.purchase, candidate.count))
        is_short = candidate.hours.low < _LEAST_BILLED_H
        is_harmless = bool(candidate.actions) and set(candidate.actions) <= harmless
        if same is not None and is_harmless and not is_short:
            pairs = zip(candidate.usd_row, same.usd_row, strict=True)
            assert all(cured <= left * 1.01 + 0.01 for cured, left in pairs)


@given(st.text(max_size=8), st.floats(0.1, 1.0), st.floats(1.0, 10.0))
def test_draws_are_stratified_and_keep_their_ends(axis: str, down: float, up: float) -> None:
    """Each axis has the same scores in an order of its own; the ends of one figure are its ends."""
    assert sorted(scores(axis)) == sorted(scores("other"))
    assert len(scores(axis)) == DRAWS
    low, high = ends(spread(axis, down, 1.0, up))
    assert low == pytest.approx(down)
    assert high == pytest.approx(up)
