"""The live price of what is about to be launched."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from pricing.catalog.offer import EVERYWHERE, Offer
from pricing.errors import InputError, MissingCredentialsError, ProviderError
from pricing.money import usd
from pricing.refresh.reading import Row
from providers.provider import Request
from providers.registry import fetcher, priced

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Prices as the provider tells them now.

    Attributes:
        prices: by type, region and way of buying.
        before: planned prices of the offers, by place.
        read_at: when.
        failure: why there are none; empty: there are.
    """

    prices: Mapping[_Key, Decimal]
    before: Mapping[str, Decimal]
    read_at: datetime
    failure: str = ""

    def now(self, offer: Offer) -> Offer | None:
        """Return the offer at its live price; the dearest region's where it has none.

        None: not known.
        """
        keys = [
            key
            for key in self.prices
            if (key[0], key[2]) == (offer.instance_type, offer.purchase)
            and (EVERYWHERE in (offer.region, key[1]) or key[1] == offer.region)
        ]
        if not keys:
            return None
        price = max(self.prices[key] for key in keys)
        day = self.read_at.date()
        return replace(offer, usd_per_hour=price, as_of=day, as_of_text="", dated=True)

    def planned(self, offer: Offer) -> Decimal:
        """Return the price that was planned with."""
        return self.before.get(offer.place, offer.usd_per_hour)


def read_live(offers: tuple[Offer, ...], region: str) -> Live:
    """Return the live prices of a provider in the regions of the offers.

    Raises:
        MissingCredentialsError: names the variable.
    """
    now = datetime.now(UTC)
    before = {offer.place: offer.usd_per_hour for offer in offers}
    provider = offers[0].provider
    if provider not in priced():
        return Live(prices={}, before=before, read_at=now, failure=f"{provider} tells none")
    named = dict.fromkeys((region, *(offer.region for offer in offers)))
    regions = tuple(one for one in named if one not in ("", EVERYWHERE))
    try:
        reading = fetcher(provider)(Request(now=now, environment=os.environ, regions=regions))
    except MissingCredentialsError:
        raise
    except ProviderError as error:
        return Live(prices={}, before=before, read_at=now, failure=error.problems[0])
    prices = {_key(row): usd(row["usd_per_hour"]) for row in reading.rows if _is_price(row)}
    live = Live(prices=prices, before=before, read_at=now)
    if live.now(offers[0]) is None:
        said = f"the answer does not list {offers[0].instance_type}"
        return replace(live, failure=said)
    return live


def _is_price(row: Row) -> bool:
    try:
        return usd(row["usd_per_hour"]) > 0
    except InputError:
        return False


def _key(row: Row) -> _Key:
    return row["instance_type"], row["region"], row["purchase"]
