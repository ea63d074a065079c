"""Unknown is not zero: a price that nobody states makes a total "at least", and wins nothing."""

from decimal import Decimal
from typing import Any

import pytest

from gpucost.files.quote_documents import document_of
from planner.plan.draft import JobDraft
from planner.plan.making import to_plan
from pricing.billing.quote import Usage, dearest, quote
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from templates.render import render_report
from templates.report_text import cost_range, today_cost
from tests.planner.factories import a_profile, plan, running, sold
from tests.pricing.factories import ASKED_ON

TODAY = sold("today", "2.00", provider="aws", region="us-east-1")
# Its egress and storage have no known price; 100 h cost $50 less than at AWS.
SILENT = sold("silent", "1.50", provider="verda", vcpus=32, ram_gib=256)
STATED = sold("stated", "1.80", provider="aws", region="us-east-1")
DEAR = sold("dear", "9.00", provider="gcp", region="us-central1", vcpus=32, ram_gib=256)
TB = 10**12


def job(*offers: Offer, today: Offer = TODAY, **asked: Any) -> JobDraft:
    """The plan of a job that runs for 100 h a month."""
    (found,) = plan(running(a_profile(), today), offers=(today, *offers), **asked).jobs
    return found


def chosen(found: JobDraft) -> str:
    """The recommended machine."""
    return found.choice.offer.instance_type if found.choice else "today"


@pytest.mark.parametrize(
    ("asked", "unknown"),
    [
        ({}, ()),
        ({"egress_bytes": TB}, ("egress",)),
        ({"storage_bytes": TB}, ("disk",)),
        ({"egress_bytes": TB, "storage_bytes": TB}, ("disk", "egress")),
    ],
    ids=str,
)
def test_a_quote_says_what_is_unknown(asked: dict[str, int], unknown: tuple[str, ...]) -> None:
    """A part that was asked for and has no known price is named, and the total is at least that."""
    usage = Usage(duration_s=3600, as_of=ASKED_ON, **asked)
    bill = quote(SILENT, usage)
    assert bill.unknown == unknown
    assert bool(document_of(bill).at_least) == bill.at_least == bool(unknown)
    assert not quote(TODAY, usage).at_least


def test_an_unknown_price_wins_nothing() -> None:
    """Cheaper by its known parts, but not with the dearest known price: it is not recommended."""
    hours = {"engineer_usd_per_hour": Decimal(0)}
    assert chosen(job(SILENT, STATED, **hours)) == "silent"
    found = job(SILENT, STATED, DEAR, egress_bytes=TB, **hours)
    assert chosen(found) == "stated"
    silent = next(o for o in found.options if o.offer.instance_type == "silent")
    assert silent.quote.at_least
    assert silent.cost == Decimal("150.00")  # the known part alone
    most = dearest("egress", silent.quote.usage, (TODAY, STATED, SILENT, DEAR))
    assert most is not None
    assert silent.usd_range.high >= silent.cost + most


def test_stored_data_do_not_vanish_where_their_disk_has_no_price() -> None:
    """20 TB are on every bill, today's too; a provider that is silent of disks saves nothing."""
    profile = running(a_profile(dataset_gib=20_000.0), TODAY)
    asked = {"engineer_usd_per_hour": Decimal(0), "storage_bytes": 20_000 * 2**30}
    (found,) = plan(profile, offers=(TODAY, SILENT, STATED), **asked).jobs
    assert chosen(found) == "stated"
    silent = next(o for o in found.options if o.offer.instance_type == "silent")
    stated = next(o for o in found.options if o.offer.instance_type == "stated")
    assert silent.quote.unknown == ("disk",)
    assert found.baseline.quote is not None
    disks = [
        next(line.usd for line in quote.lines if line.what == "disk")
        for quote in (found.baseline.quote, stated.quote)
    ]
    assert disks[0] == disks[1] > 1000
    assert silent.usd_range.high >= silent.cost + disks[0]
    asked |= {"machine_only": True, "storage_bytes": 0}
    (alone,) = plan(profile, offers=(TODAY, SILENT, STATED), **asked).jobs
    assert [line.what for o in alone.options for line in o.quote.lines] == ["compute", "compute"]
    assert not any(o.quote.at_least for o in alone.options)


def test_it_wins_where_the_dearest_price_changes_nothing() -> None:
    """A saving larger than the dearest known price of the part is a saving."""
    cheap = sold("cheap", "0.10", provider="verda", vcpus=32, ram_gib=256)
    found = job(cheap, STATED, egress_bytes=TB // 100, engineer_usd_per_hour=Decimal(0))
    assert chosen(found) == "cheap"


def test_what_is_unknown_today_as_well_is_on_both_sides() -> None:
    """Two machines of one silent provider are compared by what is known of both."""
    today = sold("today", "2.00", provider="verda", vcpus=32, ram_gib=256)
    found = job(SILENT, today=today, egress_bytes=TB, engineer_usd_per_hour=Decimal(0))
    assert chosen(found) == "silent"
    values = to_plan(plan(running(a_profile(), today), offers=(today,), egress_bytes=TB))
    cost = values.jobs[0].baseline.cost
    assert cost.at_least
    assert values.recommended is not None
    assert values.recommended.at_least
    assert today_cost(cost) == "at least $200"


def test_table_and_report_say_at_least() -> None:
    """The total of an incomplete bill is said to be at least so much, and its part unknown."""
    cheap = sold("cheap", "0.10", provider="verda", vcpus=32, ram_gib=256)
    found = plan(
        running(a_profile(), TODAY),
        offers=(TODAY, cheap),
        egress_bytes=TB // 100,
        engineer_usd_per_hour=Decimal(0),
    )
    values = to_plan(found)
    (option,) = values.jobs[0].options
    assert option.cost.at_least
    assert option.cost.unknown == ("egress",)
    assert cost_range(option.cost).startswith("at least $10")
    report = render_report(values)
    assert "| egress | unknown |" in report
    assert "**>= 10.00**" in report


def test_the_dearest_price_is_a_known_one() -> None:
    """Of all offers, only bills without an unknown part count; none known is None."""
    usage = Usage(duration_s=3600, as_of=ASKED_ON, egress_bytes=TB)
    known = [
        sum((line.usd for line in bill.lines if line.what == "egress"), Decimal(0))
        for offer in load_catalog(ASKED_ON).offers
        if "egress" not in (bill := quote(offer, usage)).unknown
    ]
    assert dearest("egress", usage, load_catalog(ASKED_ON).offers) == max(known)
    assert dearest("egress", usage, (SILENT,)) is None
