"""A commitment is owed whole: by the month in a plan of a month, by the term in one of a run."""

from dataclasses import replace
from decimal import Decimal

import pytest

from gpucost.files.quote_documents import QuoteRequest, find_offer, offer_document
from planner.choice.baseline import bill_of_work
from planner.choice.workload import Workload
from pricing.alternatives import commit
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import TERMS_H, Offer
from pricing.money import cents
from tests.planner.factories import a_case, a_catalog, a_profile

CATALOG = load_catalog()
HOUR_S = Decimal(3600)
COMMITTED = tuple(offer for offer in CATALOG.offers if offer.purchase in TERMS_H)


def _work(offer: Offer, *, month: bool) -> Workload:
    work = a_case(a_profile(hours=100.0), a_catalog(offer)).work
    assert work.storage_h == Decimal(730)
    return work if month else replace(work, storage_h=None)


def _month_of(offer: Offer, hours: float) -> Decimal:
    return bill_of_work(offer, 1, hours, _work(offer, month=True), CATALOG).total


# By hand, 2026-11-27: 730 x 0.63378 = 462.6594 (g5.xlarge, us-east-1, 1 year), 1.006 on demand:
# 0.63378 / 1.006 = 63.0 % = 459.9 h. 730 x 1.91 = 1394.30 (MI300X, 12 months contracted), 2.59 on
# demand: 1.91 / 2.59 = 73.7 % = 538.3 h.
@pytest.mark.parametrize(
    ("name", "hours", "owed", "on_demand", "break_even_h"),
    [
        ("aws/g5.xlarge/us-east-1", 100, "462.66", "100.60", "459.9"),
        ("aws/g5.xlarge/us-east-1", 400, "462.66", "402.40", "459.9"),
        ("aws/g5.xlarge/us-east-1", 460, "462.66", "462.76", "459.9"),
        ("digitalocean/gpu-mi300x1-192gb-contracted", 400, "1394.30", "1036.00", "538.3"),
    ],
)
def test_a_month_of_a_commitment_is_owed_whole(
    name: str, hours: float, owed: str, on_demand: str, break_even_h: str
) -> None:
    """However few hours are used; the break-even says from which number on it is the cheaper."""
    asked = QuoteRequest(day=CATALOG.as_of, duration_s=None, purchase="reserved_1y")
    offer = find_offer(name, asked, CATALOG)
    commitment = commit(offer, CATALOG.offers)
    assert _month_of(offer, hours) == Decimal(owed)
    assert commitment.on_demand is not None
    assert cents(commitment.on_demand.usd_per_hour * Decimal(hours)) == Decimal(on_demand)
    assert round(commitment.break_even_h or 0, 1) == Decimal(break_even_h)


def test_plans_and_quotes_agree_on_every_commitment() -> None:
    """The same dollars in a plan and in `quote`: of a month and of a run."""
    assert len(COMMITTED) > 100
    month, run = (_work(COMMITTED[0], month=month) for month in (True, False))
    for offer in COMMITTED:
        for work, duration_s in ((month, None), (run, 100 * HOUR_S)):
            planned = bill_of_work(offer, 1, 100.0, work, CATALOG)
            asked = QuoteRequest(day=CATALOG.as_of, duration_s=duration_s, purchase=offer.purchase)
            quoted = offer_document(offer.place, asked, CATALOG)
            assert planned.total == quoted.total, offer.place
            owed_h = Decimal(730) if duration_s is None else TERMS_H[offer.purchase]
            assert planned.total == cents(owed_h * offer.usd_per_hour)


def test_what_is_bought_by_the_hour_owes_the_hours() -> None:
    """On demand and spot are billed for the time they run, whatever the plan's period."""
    offer = CATALOG.find("aws", "g5.xlarge", "us-east-1")
    assert _month_of(offer, 100.0) == Decimal("100.60")
