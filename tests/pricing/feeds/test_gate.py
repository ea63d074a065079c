"""The integrity gate: what is not a price, a GPU or a plausible move stays out, with the reason."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.catalog.catalog import Catalog
from pricing.refresh.integrity_gate import BROKEN, check, offer_faults
from pricing.refresh.reading import PriceReading, Row, new_row
from tests.pricing.factories import ASKED_ON, an_offer

KNOWN = Catalog(
    as_of=ASKED_ON,
    rows=(
        an_offer(),
        an_offer(instance_type="two-region", region="a", usd_per_hour=Decimal(1)),
        an_offer(instance_type="two-region", region="b", usd_per_hour=Decimal(9)),
    ),
)


def a_row(**cells: str) -> Row:
    """A sound row of the factory's offer, with the cells that a test names changed."""
    sound = {
        "instance_type": "one-gpu",
        "region": "*",
        "gpu": "L4",
        "gpu_count": "1",
        "gpu_memory_gib": "24",
        "purchase": "on_demand",
        "usd_per_hour": "1.10",
        "as_of": "2026-11-21",
        "source": "a test",
    }
    return new_row(**(sound | cells))


def a_reading(*rows: Row) -> PriceReading:
    """A reading of those rows that covers everything."""
    return PriceReading(
        provider="example",
        source="a test",
        read_on=ASKED_ON,
        rows=rows,
        purchases=("on_demand", "spot"),
    )


def test_a_sound_row_is_an_offer() -> None:
    """Price, GPU, machine and day arrive in the offer."""
    passed = check(a_reading(a_row(vcpus="8", notes="said")), KNOWN)
    (offer,) = passed.offers
    assert passed.kept_out == ()
    assert (offer.name, offer.usd_per_hour, offer.as_of) == (
        "example/one-gpu",
        Decimal("1.10"),
        date(2026, 11, 21),
    )
    assert (offer.vcpus, offer.ram_gib, offer.notes, offer.current) == (8, None, "said", True)


@pytest.mark.parametrize(
    ("cells", "fault", "said"),
    [
        ({"usd_per_hour": "0"}, "price", "the price is 0"),
        ({"usd_per_hour": "0.000"}, "price", "the price is 0"),
        ({"usd_per_hour": "-1"}, "price", "the price is -1"),
        ({"usd_per_hour": "NaN"}, "price", "not an amount"),
        ({"usd_per_hour": "inf"}, "price", "not an amount"),
        ({"usd_per_hour": "cheap"}, "price", "not an amount"),
        ({"usd_per_hour": ""}, "missing", "the price is missing"),
        ({"instance_type": ""}, "missing", "instance_type is missing"),
        ({"region": ""}, "missing", "region is missing"),
        ({"gpu": ""}, "missing", "gpu is missing"),
        ({"gpu_count": ""}, "missing", "gpu_count is missing"),
        ({"gpu_memory_gib": ""}, "missing", "gpu_memory_gib is missing"),
        ({"as_of": ""}, "missing", "as_of is missing"),
        ({"as_of": "yesterday"}, "missing", "cannot be read"),
        ({"purchase": "lease"}, "missing", "cannot be read"),
        ({"vcpus": "many"}, "missing", "vcpus is 'many'"),
        ({"ram_gib": "nan"}, "missing", "ram_gib is 'nan'"),
        ({"instance_type": "../../etc"}, "name", "not a name"),
        ({"instance_type": "a\x1b[31m"}, "name", "not a name"),
        ({"region": "=1+1"}, "name", "not a name"),
        ({"gpu": "Z9000"}, "gpu", "not in the hardware table"),
        ({"gpu_count": "0"}, "count", "gpu_count is '0'"),
        ({"gpu_count": "nan"}, "count", "gpu_count is 'nan'"),
        ({"gpu_count": "1.5"}, "count", "1.5 GPUs in one machine"),
        ({"gpu_count": "800"}, "count", "800 GPUs in one machine"),
        ({"gpu_memory_gib": "0"}, "memory", "gpu_memory_gib is '0'"),
        ({"gpu_memory_gib": "40"}, "memory", "40 GiB a GPU; L4 has 24"),
        (
            {"gpu_count": "8", "gpu_memory_gib": "192"},
            "memory",
            "192 GiB a GPU, which is the total of all its GPUs; L4 has 24",
        ),
        ({"gpu_count": "0.5", "gpu_memory_gib": "30"}, "memory", "a slice of 30 GiB"),
        ({"usd_per_hour": "3.01"}, "jump", "more than x3"),
        ({"usd_per_hour": "0.33"}, "jump", "--accept-jumps"),
        (
            {"instance_type": "two-region", "region": "a", "usd_per_hour": "9"},
            "jump",
            "9 USD/h where 1 was read on",
        ),
        ({"instance_type": "two-region", "region": "c", "usd_per_hour": "28"}, "jump", "where 9"),
        (
            {"instance_type": "unknown-before", "usd_per_hour": "28"},
            "jump",
            "28 USD/h a GPU where L4 costs 1 to 9 at example",
        ),
        (
            {"gpu": "T4", "gpu_memory_gib": "16"},
            "gpu",
            "1x T4, where the machine is known with 1x L4",
        ),
    ],
    ids=str,
)
def test_a_bad_row_is_kept_out_with_its_reason(
    cells: dict[str, str], fault: str, said: str
) -> None:
    """Each fault is named; the sound row beside it still passes."""
    passed = check(a_reading(a_row(**cells), a_row()), KNOWN)
    assert len(passed.offers) == 1
    (kept_out,) = passed.kept_out
    assert kept_out.fault == fault
    assert said in kept_out.detail
    assert passed.broken == (passed.kept_out if fault in BROKEN else ())


@pytest.mark.parametrize(
    "cells",
    [
        {"usd_per_hour": "3"},
        {"usd_per_hour": "0.34"},
        {"instance_type": "unknown-before", "usd_per_hour": "26"},
        {
            "instance_type": "unknown-before",
            "usd_per_hour": "999",
            "gpu": "H100-SXM-80GB",
            "gpu_memory_gib": "80",
        },
        {"instance_type": "two-region", "region": "c", "usd_per_hour": "27"},
        {"gpu_memory_gib": "22.35"},
        {"instance_type": "slice", "gpu_count": "0.125", "gpu_memory_gib": "2.79"},
        {"instance_type": "rack", "gpu": "GB200", "gpu_memory_gib": "186", "gpu_count": "72"},
    ],
    ids=str,
)
def test_what_is_plausible_passes(cells: dict[str, str]) -> None:
    """Three times the price, memory as drivers report it, slices and racks are not faults."""
    passed = check(a_reading(a_row(**cells)), KNOWN)
    assert passed.kept_out == ()
    assert len(passed.offers) == 1


def test_a_jump_passes_when_a_person_says_so() -> None:
    """accept_jumps lets a price through that moved, and nothing else."""
    rows = (a_row(usd_per_hour="50"), a_row(usd_per_hour="0"))
    passed = check(a_reading(*rows), KNOWN, accept_jumps=True)
    assert [offer.usd_per_hour for offer in passed.offers] == [50]
    assert [row.fault for row in passed.kept_out] == ["price"]


@given(st.dictionaries(st.sampled_from(sorted(a_row())), st.text(max_size=12), max_size=6))
def test_no_row_gets_a_bad_price_through(cells: dict[str, str]) -> None:
    """Whatever the cells hold, a row is an offer with a price above 0, or a named fault."""
    passed = check(a_reading({**a_row(), **cells}), KNOWN)
    assert len(passed.offers) + len(passed.kept_out) == 1
    for offer in passed.offers:
        assert 0 < offer.usd_per_hour < Decimal("1e15")
        assert list(offer_faults(offer)) == []


def test_a_cell_of_no_column_is_a_mistake() -> None:
    """A fetcher that misspells a column is told so at once."""
    with pytest.raises(TypeError, match="no columns: usd_per_our"):
        new_row(usd_per_our="1")


def test_an_answer_in_another_currency_is_left_out() -> None:
    """Where all known machines cost one factor of what they did, nothing of it is believed."""
    names = [f"size-{n}" for n in range(7)]
    known = Catalog(
        as_of=ASKED_ON,
        rows=tuple(
            an_offer(instance_type=name, usd_per_hour=Decimal(n + 1))
            for n, name in enumerate(names)
        ),
    )
    rows = [
        a_row(instance_type=name, usd_per_hour=str(round((n + 1) * 0.862, 3)))
        for n, name in enumerate(names)
    ]
    passed = check(a_reading(*rows), known)
    assert passed.offers == ()
    assert {row.fault for row in passed.kept_out} == {"currency"}
    assert "x0.862 of what they did" in passed.kept_out[0].detail
    assert len(check(a_reading(*rows), known, accept_jumps=True).offers) == 7
    rows[0] = a_row(instance_type="size-0", usd_per_hour="1.00")
    assert len(check(a_reading(*rows), known).offers) == 7


def test_a_new_name_is_held_against_the_others_of_the_answer() -> None:
    """A price a tenth of that of the others with its GPU is kept out, though all are new."""
    rows = [
        a_row(instance_type=f"new-{n}", gpu="H200-SXM-141GB", gpu_memory_gib="141",
              usd_per_hour=price)
        for n, price in enumerate(("4", "4.2", "4.4", "0.4"))
    ]  # fmt: skip
    passed = check(a_reading(*rows), KNOWN)
    assert [offer.instance_type for offer in passed.offers] == ["new-0", "new-1", "new-2"]
    assert [row.fault for row in passed.kept_out] == ["jump"]
