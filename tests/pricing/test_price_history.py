"""Readings of prices: what was seen on which day, each with its source."""

from datetime import date, timedelta
from decimal import Decimal

from pricing.catalog.offer import read_from
from pricing.catalog.price_age import SeenPrice, bundled_history, by_price
from research.price_choices import Choice, regrets
from research.price_moves import LEVELS, Ratio, fit, level, price_on, quantile, spans
from tests.pricing.factories import an_offer

DAY = date(2026, 1, 1)


def seen(days: int, usd: str, **changes: object) -> SeenPrice:
    """A reading so many days after DAY."""
    fields: dict[str, object] = {
        "provider": "lambda",
        "region": "*",
        "instance_type": "one",
        "gpu": "L4",
        "gpu_count": 1.0,
        "purchase": "on_demand",
        "usd_per_hour": Decimal(usd),
        "seen_on": DAY + timedelta(days=days),
        "confidence": "high",
        "source": "a test",
    }
    return SeenPrice(**fields | changes)  # type: ignore[arg-type]


def test_every_bundled_reading_has_a_source_and_a_price() -> None:
    """6,875 readings from 2025 on, each with the words of its source."""
    found = bundled_history()
    assert len(found) == 6875
    assert min(one.seen_on for one in found) >= date(2025, 1, 1)
    assert all(one.source and one.usd_per_hour > 0 for one in found)


def test_offers_are_readings() -> None:
    """A dated row is a reading of its day and of the day it holds from; others are none."""
    offer = an_offer(valid_from=date(2026, 10, 1))
    assert [one.seen_on for one in read_from([offer])] == [date(2026, 10, 1), offer.as_of]
    withdrawn = an_offer(withdrawn=True, current=False)
    assert read_from([an_offer(dated=False), withdrawn]) == ()


def test_one_reading_a_day_counts_the_surest() -> None:
    """Of several readings of one price and day the surest counts, in whatever order they came."""
    low, high, later = seen(0, "1", confidence="low"), seen(0, "2"), seen(5, "3")
    for many in ((low, high, later), (later, high, low)):
        (series,) = by_price(many).values()
        assert series == (high, later)


def test_a_change_lies_in_the_middle_of_its_gap() -> None:
    """Between readings that differ the price changes half-way; over a long gap nothing is known."""
    known = spans((seen(0, "1"), seen(10, "1"), seen(20, "2"), seen(400, "3")))
    prices = [price_on(known, DAY + timedelta(days=d)) for d in (0, 10, 14, 15, 20, 21, 400)]
    assert prices == [1.0, 1.0, 1.0, 2.0, 2.0, None, 3.0]


def test_no_provider_outvotes_the_others_by_its_readings() -> None:
    """A provider with many readings of one price weighs what another with few of one price does."""
    key = ("a", "one", "*", 1.0, "on_demand")
    other = ("b", *key[1:])
    many = [Ratio("specialist", key, 1.0)] * 99 + [Ratio("specialist", other, 1.5)]
    assert quantile(many, 0.5) == 1.0
    assert quantile(many, 0.51) == 1.5
    assert fit({30: many, 90: []}) == {30: (1.0, 1.5)}


def moves_of(provider: str, *factors: float) -> list[Ratio]:
    """Moves of one price of a provider."""
    return [Ratio("specialist", (provider, "one", "*", 1.0, "on_demand"), f) for f in factors]


def test_the_interval_is_wide_enough_for_providers_that_it_does_not_know() -> None:
    """The quantile is the least that held 90 % of every provider left out; nothing held is 1."""
    still = [1.0] * 19
    alike = [one for name in "abcde" for one in moves_of(name, *still, 1.2)]
    assert level(alike) == LEVELS[0]  # 95 % of a provider's prices do not move
    assert fit({30: alike}) == {30: (1.0, 1.0)}
    risen = [one for name in "abcde" for one in moves_of(name, *still[:15], *[1.2] * 5)]
    assert fit({30: risen}) == {30: (1.0, 1.2)}
    one_event = [*alike, *moves_of("f", *[1.5] * 20)]
    assert level(one_event) == 1.0  # without f no quantile reaches f: the widest that was seen
    assert fit({30: one_event}) == {30: (1.0, 1.5)}


def test_a_choice_is_scored_by_what_it_costs_later() -> None:
    """The price that a rule takes is held against the best of the later day."""
    steady = Choice("specialist", "steady", 2.0, 0, 2.0, is_low=False)
    bait = Choice("specialist", "bait", 1.0, 90, 3.0, is_low=True)
    assert regrets([(steady, bait)], lambda one, _: one.usd) == [0.5]
    assert regrets([(steady, bait)], lambda one, _: one.usd * (3 if one.is_low else 1)) == [0.0]
