"""The store of refreshed prices: round trips, what a reading changes, what stays."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer, bundled_offers, offer_from_row, row_from_offer
from pricing.refresh.integrity_gate import Passed
from pricing.refresh.reading import PriceReading
from pricing.refresh.store import CachedReading, Update, load, merge, path_of, to_text
from tests.pricing.factories import ASKED_ON, an_offer

MONDAY = date(2026, 11, 9)
KNOWN = an_offer(as_of=date(2026, 11, 1), vcpus=8, interconnect="pcie", gpu_count=2)


def on(day: date, price: str = "1.00", **changes: object) -> Offer:
    """The factory's offer as read on a day by the source of the readings below."""
    fields = {"as_of": day, "usd_per_hour": Decimal(price), "source": "api", "gpu_count": 2}
    return an_offer(**{**fields, **changes})


def read(
    day: date, *offers: Offer, kept_names: frozenset[tuple[str, str]] = frozenset()
) -> tuple[PriceReading, Passed]:
    """A reading of that day that covers on-demand everywhere, after the gate."""
    rows = tuple(row_from_offer(offer) for offer in offers)
    reading = PriceReading(
        provider="example", source="api", read_on=day, rows=rows, purchases=("on_demand",)
    )
    return reading, Passed(offers=offers, kept_names=kept_names)


def after(stored: Iterable[Offer], day: date, *offers: Offer, known: Offer = KNOWN) -> Update:
    """What a reading of that day makes of the rows stored so far."""
    rows = tuple(stored)
    return merge(*read(day, *offers), Catalog(as_of=day, rows=(known, *rows)), rows)


def test_a_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    """Every bundled row survives the round trip, and the text does not depend on the order."""
    rows = [offer for offer in bundled_offers() if offer.provider == "digitalocean"]
    rows.append(structs.replace(rows[0], withdrawn=True, current=False, valid_from=ASKED_ON))
    path_of(tmp_path, "digitalocean").write_text(to_text(rows), encoding="utf-8")
    stored = load(tmp_path)
    assert stored.problems == ()
    assert set(stored.offers) == set(rows)
    assert to_text(reversed(stored.offers)) == to_text(rows)
    assert stored.of("aws") == ()


@given(
    price=st.decimals("0.00001", 10**6, places=5),
    notes=st.text(
        st.characters(exclude_categories=("Cs",), exclude_characters="\0\r\n"), max_size=9
    ),
    vcpus=st.none() | st.integers(1, 512),
)
def test_any_price_survives_the_round_trip(price: Decimal, notes: str, vcpus: int | None) -> None:
    """Money is text in the file and comes back to the digit."""
    offer = on(MONDAY, notes=notes, vcpus=vcpus, usd_per_hour=price, as_of_text="2026-11-09")
    assert offer_from_row("example", row_from_offer(offer)) == offer


def test_no_folder_is_an_empty_store(tmp_path: Path) -> None:
    """Before the first update there is nothing, and that is not a problem."""
    assert load(tmp_path / "none") == CachedReading()


@pytest.mark.parametrize(
    "text", [b"", b"half a line", b"status,region\ncurrent,*\n", b"\xff\xfe", b"a\nb,c\n"]
)
def test_a_damaged_file_does_not_hide_the_others(tmp_path: Path, text: bytes) -> None:
    """What cannot be read is named with the command that writes it anew; the rest is used."""
    path_of(tmp_path, "example").write_text(to_text([on(MONDAY)]), encoding="utf-8")
    path_of(tmp_path, "broken").write_bytes(text)
    stored = load(tmp_path)
    assert [offer.provider for offer in stored.offers] == ["example"]
    (problem,) = stored.problems
    assert "gpucost prices update --provider broken" in problem


def test_a_reading_tells_new_changed_and_confirmed() -> None:
    """Compared with what was known on that day."""
    offers = (on(MONDAY, "1.00"), on(MONDAY, instance_type="new"))
    update = after((), MONDAY, *offers)
    assert [o.instance_type for o in update.same] == ["one-gpu"]
    assert [o.instance_type for o in update.new] == ["new"]
    dearer = after(update.rows, MONDAY + timedelta(1), on(MONDAY + timedelta(1), "1.01"))
    assert [o.usd_per_hour for o in dearer.changed] == [Decimal("1.01")]
    assert [o.instance_type for o in dearer.withdrawn] == ["new"]


def test_what_the_answer_leaves_out_about_a_machine_is_kept() -> None:
    """Cores and interconnect that were known stay known; a lone GPU has no interconnect."""
    update = after((), MONDAY, on(MONDAY), on(MONDAY, instance_type="lone", gpu_count=1))
    told = {offer.instance_type: (offer.vcpus, offer.interconnect) for offer in update.rows}
    assert told == {"one-gpu": (8, "pcie"), "lone": (None, "single")}


def test_an_offer_that_is_not_listed_is_withdrawn_from_that_day() -> None:
    """It leaves the offers of the day, stays in those before, and comes back when listed again."""
    gone = after((), MONDAY, on(MONDAY, instance_type="other"))
    assert [offer.place for offer in gone.withdrawn] == ["example/one-gpu"]
    catalog = Catalog(as_of=MONDAY, rows=(KNOWN, *gone.rows))
    assert [offer.instance_type for offer in catalog.offers] == ["other"]
    assert catalog.count == 1
    assert catalog.at(MONDAY - timedelta(1)).find("example", "one-gpu") == KNOWN
    assert (
        "no longer lists it since 2026-11-09"
        in catalog.find("example", "one-gpu").warnings(MONDAY)[0]
    )
    later = MONDAY + timedelta(1)
    back = after(gone.rows, later, on(later), on(later, instance_type="other"))
    catalog = Catalog(as_of=later, rows=(KNOWN, *back.rows))
    assert [offer.instance_type for offer in catalog.offers] == ["one-gpu", "other"]


@pytest.mark.parametrize(
    "known",
    [
        structs.replace(KNOWN, purchase="reserved_1y"),
        structs.replace(KNOWN, provider="elsewhere"),
        structs.replace(KNOWN, as_of=date(2026, 12, 1)),
    ],
)
def test_what_the_answer_does_not_cover_is_not_withdrawn(known: Offer) -> None:
    """Another way of buying, another provider, or a price of a later day stays."""
    assert after((), MONDAY, on(MONDAY, instance_type="other"), known=known).withdrawn == ()


def test_a_region_that_was_not_asked_is_not_withdrawn() -> None:
    """A reading of one region says nothing about the others."""
    reading, passed = read(MONDAY, on(MONDAY, region="here"))
    known = [structs.replace(KNOWN, region=region) for region in ("here", "there")]
    known.append(structs.replace(KNOWN, region="here", instance_type="gone"))
    reading = replace(reading, regions=("here",))
    update = merge(reading, passed, Catalog(as_of=MONDAY, rows=tuple(known)), ())
    assert [offer.place for offer in update.withdrawn] == ["example/gone/here"]


def test_what_was_kept_out_is_not_withdrawn() -> None:
    """A row that failed the gate was listed: the last good price stays."""
    names = frozenset({("one-gpu", "on_demand")})
    reading, passed = read(MONDAY, on(MONDAY, instance_type="other"), kept_names=names)
    update = merge(reading, passed, Catalog(as_of=MONDAY, rows=(KNOWN,)), ())
    assert update.withdrawn == ()


def test_a_second_reading_of_the_day_replaces_the_first() -> None:
    """The evening's price counts, also when it is the dearer or the offer is gone."""
    morning = after((), MONDAY, on(MONDAY, "1.00"), on(MONDAY, instance_type="other"))
    evening = after(morning.rows, MONDAY, on(MONDAY, "1.20"))
    catalog = Catalog(as_of=MONDAY, rows=(KNOWN, *evening.rows))
    assert [o.usd_per_hour for o in catalog.offers] == [Decimal("1.20")]
    assert after(evening.rows, MONDAY, on(MONDAY, "1.20")).rows == evening.rows


def test_the_file_grows_with_changes_only() -> None:
    """Thirty daily readings with one change leave two rows of each price."""
    rows: tuple[Offer, ...] = ()
    for day in range(30):
        today = MONDAY + timedelta(day)
        rows = after(rows, today, on(today, "1.00" if day < 20 else "1.10")).rows
    told = [(row.as_of - MONDAY, row.usd_per_hour) for row in rows]
    days = (0, 19, 20, 29)
    assert [gap.days for gap, _ in told] == list(days)
    catalog = Catalog(as_of=MONDAY + timedelta(25), rows=rows)
    assert catalog.find("example", "one-gpu").usd_per_hour == Decimal("1.10")
    assert catalog.at(MONDAY + timedelta(10)).offers == (rows[0],)


def test_the_api_beats_a_catalog_of_the_same_day() -> None:
    """Of two sources on one day the one that can be trusted more is in force."""
    api = on(MONDAY, "2.00", confidence="high")
    copy = on(MONDAY, "1.50", source="a mirror")
    for rows in ((api, copy), (copy, api)):
        assert Catalog(as_of=MONDAY, rows=rows).offers == (api,)


OURS = structs.replace(KNOWN, instance_type="our-name-for-it", vcpus=None, as_of=date(2026, 10, 1))


def test_a_fresher_row_of_the_same_hardware_retires_the_older_name() -> None:
    """One machine is one offer, under the name by which it is ordered; the past stays as it was."""
    reading, passed = read(MONDAY, on(MONDAY, "1.10", instance_type="1H100.80S", vcpus=8))
    reading = replace(reading, purchases=())
    update = merge(reading, passed, Catalog(as_of=MONDAY, rows=(OURS,)), ())
    assert [o.instance_type for o in update.replaced] == ["our-name-for-it"]
    catalog = Catalog(as_of=MONDAY, rows=(OURS, *update.rows))
    assert [o.instance_type for o in catalog.offers] == ["1H100.80S"]
    assert catalog.at(MONDAY - timedelta(1)).find("example", "our-name-for-it") == OURS
    (end,) = [row for row in update.rows if row.withdrawn]
    assert "the same machine is now 1H100.80S (api, 2026-11-09)" in end.notes


@pytest.mark.parametrize(
    "changes",
    [
        {"gpu": "T4", "gpu_memory_gib": 16},
        {"gpu_count": 4},
        {"purchase": "spot"},
        {"host": "community"},
        {"region": "there"},
        {"vcpus": 32},
        {"as_of": date(2026, 12, 1)},
    ],
    ids=str,
)
def test_other_hardware_retires_nothing(changes: dict[str, object]) -> None:
    """Another GPU, count, region, host or way of buying, or a later price, is another offer."""
    known = structs.replace(KNOWN, **{"instance_type": "our-name", "region": "here", **changes})
    reading, passed = read(MONDAY, on(MONDAY, region="here", vcpus=8, instance_type="theirs"))
    reading = replace(reading, purchases=())
    update = merge(reading, passed, Catalog(as_of=MONDAY, rows=(known,)), ())
    assert update.replaced == ()


def test_two_products_with_the_same_hardware_stay_two() -> None:
    """A name that the reading uses itself, if only elsewhere, is not retired by its twin."""
    known = structs.replace(KNOWN, instance_type="twin", region="here")
    offers = (
        on(MONDAY, region="here", instance_type="other"),
        on(MONDAY, region="there", instance_type="twin"),
    )
    reading, passed = read(MONDAY, *offers)
    reading = replace(reading, purchases=())
    update = merge(reading, passed, Catalog(as_of=MONDAY, rows=(known,)), ())
    assert (update.replaced, update.outdated) == ((), ())


def test_prices_of_regions_retire_the_price_for_everywhere() -> None:
    """The older price for everywhere is in force nowhere once regions are told."""
    reading, passed = read(MONDAY, on(MONDAY, "1.10", region="here"))
    update = merge(replace(reading, purchases=()), passed, Catalog(as_of=MONDAY, rows=(KNOWN,)), ())
    catalog = Catalog(as_of=MONDAY, rows=(KNOWN, *update.rows))
    assert [(o.region, o.usd_per_hour) for o in catalog.offers] == [("here", Decimal("1.10"))]


def test_an_older_list_does_not_bring_an_older_name_back() -> None:
    """A machine that is known from a later day is not offered again under another name."""
    known = structs.replace(KNOWN, as_of=ASKED_ON)
    reading, passed = read(MONDAY, on(MONDAY, "0.50", instance_type="a-catalog-name"))
    update = merge(
        replace(reading, purchases=()), passed, Catalog(as_of=ASKED_ON, rows=(known,)), ()
    )
    assert [o.instance_type for o in update.outdated] == ["a-catalog-name"]
    assert update.rows == ()
