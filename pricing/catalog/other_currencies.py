"""Prices that are known in another currency than USD, and are therefore no offers.

No dated exchange rate is known, and a bill in EUR moves with the rate: what cannot be compared is
named, never converted by a guess.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache

from pricing.tables import read_csv


def priced_elsewise(provider: str, instance_type: str) -> str | None:
    """Return what is known of a type's price in another currency, as a sentence; None: nothing."""
    asked = (provider, instance_type)
    rows = [row for row in _rows() if (row["provider"], row["instance_type"]) == asked]
    if not rows:
        return None
    prices = " and ".join(
        f"{row['per_hour']} {row['currency']} an hour in {row['region']} (read {row['as_of']})"
        for row in rows
    )
    return (
        f"{provider}/{instance_type} is sold in {rows[0]['currency']}: {prices}. No dated exchange "
        "rate is known, so it is not compared with prices in USD."
    )


def sold_elsewise(provider: str) -> str | None:
    """Return why a provider has no offer, where its prices are known in another currency only."""
    rows = [row for row in _rows() if row["provider"] == provider]
    if not rows:
        return None
    currency, newest = rows[0]["currency"], max(row["as_of"] for row in rows)
    return (
        f"{provider} sells in {currency}: {len(rows)} prices of it are known (read {newest}) and "
        "kept apart from those in USD, as no dated exchange rate is known. `gpucost plan --price "
        "USD` takes one that you converted, where the job runs there today; else leave that "
        "provider out."
    )


def readings_elsewise() -> Mapping[str, date]:
    """Return the newest day on which each provider's prices in other currencies were read."""
    newest: dict[str, date] = {}
    for row in _rows():
        day = date.fromisoformat(row["as_of"])
        newest[row["provider"]] = max(day, newest.get(row["provider"], day))
    return newest


@cache
def _rows() -> Sequence[Mapping[str, str]]:
    return read_csv("other_currencies.csv")
