"""Bills that others worked out: examples of providers, rows of invoices, tests of other projects.

outside_bills.csv names each one's source, what is asked for as `gpucost quote` takes it, and what
the source says it costs. Where our bill differs, `ours` is what it comes to and `why` says why.
"""

import csv
import shlex
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

from gpucost.commands.money.quote import offer as quote_offer
from pricing.billing.quote import Quote, Usage, quote
from tests.pricing.factories import ASKED_ON, an_offer

TABLE = Path(__file__).with_name("outside_bills.csv")
KINDS = {"provider": 50, "bill": 65, "test": 90, "other": 25}
"""Kinds of source, and how many bills of each there are at least."""

_INCLUDED_GIB = {"s-1vcpu-1gb": 1000.0, "s-1vcpu-2gb": 2000.0}
"""Outbound transfer of a full month that sizes of the sources include, as they say."""

_FIELDS = set(Usage.__struct_fields__)


def bills() -> list[dict[str, str]]:
    """Return the rows of the table."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def quoted(row: dict[str, str]) -> Quote:
    """Return the bill of a row; the machine costs a dollar an hour where `--price` is not given."""
    typed = quote_offer.make_context("offer", ["x/y", *shlex.split(row["arguments"])]).params
    provider, _, instance_type = row["provider"].partition("/")
    sold = an_offer(
        provider=provider,
        region=row["region"],
        instance_type=instance_type or "one-gpu",
        purchase=typed["purchase"],
        usd_per_hour=typed["price"] or Decimal(1),
        included_transfer_gib=_INCLUDED_GIB.get(instance_type),
    )
    start = typed["start"]
    day = start.date() if start else typed["as_of"] or ASKED_ON
    use = {name: value for name, value in typed.items() if name in _FIELDS and value is not None}
    return quote(sold, Usage(**use | {"duration_s": typed["duration"], "as_of": day}))


def got(row: dict[str, str]) -> Decimal:
    """Return what the lines of a row come to, in as many digits as its source prints."""
    kinds = row["line"].split("+")
    lines = [line.usd for line in quoted(row).lines if line.what in kinds]
    assert lines, f"no {row['line']} line"
    return sum(lines, Decimal(0)).quantize(Decimal(row["usd"]), ROUND_HALF_UP)


@pytest.mark.parametrize("row", bills(), ids=lambda row: f"{row['usd']} {row['what']}")
def test_a_bill_from_outside_is_met(row: dict[str, str]) -> None:
    """Our bill is what the source says, or what the row says of ours and why."""
    assert got(row) == Decimal(row["ours"] or row["usd"]), row


def test_the_table_says_where_bills_are_from() -> None:
    """Every bill has a source and says whether it was read; a difference has its reason."""
    rows = bills()
    for row in rows:
        assert row["source"], row
        assert row["read"] in {"yes", "unverified"}, row
        assert bool(row["ours"]) == bool(row["why"]), row
        assert row["ours"] != row["usd"], row
    count = Counter(row["kind"] for row in rows)
    assert set(count) == set(KINDS)
    assert all(count[kind] >= least for kind, least in KINDS.items()), count
