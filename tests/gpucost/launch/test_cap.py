"""The cap: what a run may cost at most holds the whole bill, at the dearest price there may be."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gpucost.launch.choice import LaunchChoice, with_dearest
from gpucost.launch.options import LaunchOptions
from gpucost.launch.provisioning import LivePrices, build_spec, preview
from pricing.catalog.catalog import Catalog
from providers.aws.calls import creations
from providers.interface import MACHINE
from providers.journal.ledger import price_within, usd_for
from providers.registry import cloud_class
from templates.bootstrap_deadline import END_S
from tests.providers.launches import a_spec, an_offer

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DAY = date(2026, 11, 20)


@given(
    provider=st.sampled_from(["aws", "digitalocean", "nebius"]),
    count=st.integers(1, 8),
    seconds=st.integers(1, 10**6).map(Decimal),
    most=st.decimals("0.01", "100000", places=2),
)
def test_at_the_highest_price_within_the_cap_the_bill_is_within_it(
    provider: str, count: int, seconds: Decimal, most: Decimal
) -> None:
    """Addresses and minimum times included; a millionth of a dollar an hour more may not be."""
    offer = an_offer(provider)
    price = price_within(offer, count, seconds, AT, most)
    if price > 0:
        assert usd_for(structs.replace(offer, usd_per_hour=price), count, seconds, AT) <= most
    more = price + Decimal("0.000002")
    assert usd_for(structs.replace(offer, usd_per_hour=more), count, seconds, AT) > most


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("cap", ["100", "7.77", "1000"])
def test_spot_machines_are_never_paid_more_than_the_cap(count: int, cap: str) -> None:
    """The price that EC2 is told as the highest keeps the bill of all machines within the cap."""
    offer = an_offer("aws", purchase="spot")
    spec = a_spec(
        offer, regions=("us-east-1",), count=count, ttl_s=Decimal(7200), max_usd=Decimal(cap)
    )
    for creation in creations(spec, spec.places[0]):
        if creation.kind != MACHINE:
            continue
        highest = creation.arguments["InstanceMarketOptions"]["SpotOptions"]["MaxPrice"]
        dearest = structs.replace(offer, usd_per_hour=Decimal(highest))
        bill = usd_for(dearest, count, spec.ttl_s, AT)
        assert Decimal(cap) - Decimal("0.01") < bill <= Decimal(cap)


def _previewed(live: LivePrices | None, **wish: Any) -> Any:
    """A plan at 44.00 USD/h, where the refreshed price list says 55.04 and history 50.00."""
    offer = an_offer("aws", region="us-east-1", usd_per_hour=Decimal("55.04"), as_of=DAY)
    old = structs.replace(offer, usd_per_hour=Decimal(50), as_of=date(2025, 1, 1))
    planned = structs.replace(offer, usd_per_hour=Decimal("44.00"))
    choice = with_dearest(
        LaunchChoice(offers=(planned,), region="us-east-1"), Catalog(as_of=DAY, rows=(old, offer))
    )
    asked = LaunchOptions(ttl_s=Decimal(8 * 3600), **wish)
    spec = build_spec(choice, asked, AT, live)
    return preview(cloud_class("aws"), spec, (), live, asked)


def test_the_cap_holds_the_bill_to_its_end() -> None:
    """What a machine may take from its deadline to the end of its bill is in what is capped."""
    seen = _previewed(None, max_usd=Decimal("440.36"))  # the deadline alone, with addresses
    assert seen.total.exact == Decimal("440.36")
    assert seen.spec.end_s == END_S["poweroff"] == 250
    assert seen.most.exact > seen.total.exact + Decimal("3.8")
    assert any("up to $444.18 by the end of its bill, 250 s" in one for one in seen.refusals)
    unended = _previewed(None, max_usd=Decimal("440.36"), self_destroy=False)
    assert (unended.spec.end_s, unended.most) == (0, unended.total)
    assert any("nothing but gpucost ends it" in one for one in unended.warnings)


def test_spot_is_paid_within_the_cap_to_the_end_of_its_bill() -> None:
    """The highest price that EC2 is told counts the seconds after the deadline, too."""
    offer = an_offer("aws", purchase="spot")
    spec = a_spec(offer, regions=("us-east-1",), max_usd=Decimal(100), end_s=Decimal(250))
    (machine,) = [one for one in creations(spec, spec.places[0]) if one.kind == MACHINE]
    highest = Decimal(machine.arguments["InstanceMarketOptions"]["SpotOptions"]["MaxPrice"])
    dearest = structs.replace(offer, usd_per_hour=highest)
    assert Decimal("99.99") < usd_for(dearest, 1, spec.most_s, AT) <= 100


def _unread() -> LivePrices:
    before = {"aws/g6.xlarge/us-east-1": Decimal("44.00")}
    return LivePrices(prices={}, before=before, read_at=AT, failure="the price list is denied")


def test_without_a_live_price_the_dearest_known_one_counts() -> None:
    """The preview shows it, the cap is held against it, and the difference to the plan refuses."""
    seen = _previewed(_unread(), max_usd=Decimal(360))
    assert seen.total is not None
    assert seen.total.exact > 440
    assert any("--max-cost is $360.00" in one for one in seen.refusals)
    assert any("55.04" in one and "44.00 was planned" in one for one in seen.refusals)


def test_a_stale_price_that_was_allowed_is_still_capped() -> None:
    """--allow-stale takes the dearest known price; it does not lift the cap."""
    seen = _previewed(_unread(), max_usd=Decimal(360), allow_stale=True)
    assert any("--max-cost is $360.00" in one for one in seen.refusals)
    assert _previewed(_unread(), allow_stale=True).refusals == ()


def test_a_live_price_is_believed_before_any_other() -> None:
    """Where the provider tells a price, plan, list and history do not matter."""
    prices = {("g6.xlarge", "us-east-1", "on_demand"): Decimal("44.10")}
    live = replace(_unread(), prices=prices, failure="")
    seen = _previewed(live)
    assert seen.refusals == ()
    assert seen.spec.places[0].offer.usd_per_hour == Decimal("44.10")
