"""What a bill comes to is what its lines add up to, digit for digit."""

from datetime import date
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from pricing.billing.quote import Usage, dearest, in_sums, quote, sums_of
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer

DAY = date(2026, 11, 22)
GIB = 2**30
DATA = st.sampled_from((0, 0, 1, 30 * GIB, 70_000 * GIB))


PLACES = list(
    {
        (o.provider, o.region, o.purchase, o.boot_disk_gib): o for o in load_catalog(DAY).offers
    }.values()
)
"""An offer of each provider, region, way of buying and size of boot disk."""
USES = st.builds(
    Usage,
    as_of=st.just(DAY),
    duration_s=st.decimals(0, 4_000_000, places=3),
    count=st.integers(1, 9),
    boot_disk_bytes=DATA,
    boot_disk_h=st.none() | st.just(Decimal(730)),
    addresses=st.integers(0, 3),
    egress_bytes=DATA,
    storage_bytes=DATA,
    storage_h=st.none() | st.just(Decimal(730)),
    lost_work_s=st.just(0) | st.decimals(1, 9999, places=1),
    snapshot_bytes=st.just(0) | DATA,
    control_plane=st.sampled_from(("", "", "standard")),
)


@settings(max_examples=60, deadline=None)
@given(use=USES, some=st.lists(st.sampled_from(PLACES), min_size=20, max_size=20))
def test_sums_are_those_of_the_bill(use: Usage, some: list[Offer]) -> None:
    """Total, parts and what is unknown are those of the bill with its lines, at every place."""
    for offer in some:
        told, found = in_sums(quote(offer, use)), sums_of(offer, use)
        assert found == told
        assert str(found.exact) == str(told.exact)


def test_every_place() -> None:
    """The same at every place of the catalog, for what a plan asks of it."""
    use = Usage(
        as_of=DAY,
        duration_s=Decimal("1234567.891"),
        count=2,
        boot_disk_bytes=100 * GIB,
        addresses=2,
        egress_bytes=500 * GIB,
        storage_bytes=300 * GIB,
        storage_h=Decimal(730),
    )
    told = {offer.name: (sums_of(offer, use), in_sums(quote(offer, use))) for offer in PLACES}
    assert {name: one for name, one in told.items() if one[0] != one[1]} == {}
    assert any(one[0].unknown for one in told.values())


@settings(max_examples=40, deadline=None)
@given(
    use=USES,
    life_s=st.decimals(0, 4_000_000, places=3),
    lost_s=st.just(Decimal(0)) | st.decimals(1, 9999, places=1),
    some=st.lists(st.sampled_from(PLACES), min_size=10, max_size=10),
)
def test_a_use_for_another_time_is_as_if_made_for_it(
    use: Usage, life_s: Decimal, lost_s: Decimal, some: list[Offer]
) -> None:
    """What uses of one kind share, whatever their time, changes no bill and no sum of any."""
    known = [quote(offer, use).exact for offer in some]
    other = use.lasting(life_s, lost_s)
    alone = structs.replace(use, duration_s=life_s, lost_work_s=lost_s, checkpoint_s=0)
    assert (other, other.life_s) == (alone, alone.life_s)
    for offer in some:
        assert quote(offer, other) == quote(offer, alone)
        assert sums_of(offer, use.lasting(Decimal(0)), life_s) == sums_of(
            offer, structs.replace(alone, lost_work_s=0)
        )
    assert [quote(offer, use).exact for offer in some] == known


@settings(max_examples=20, deadline=None)
@given(use=USES, what=st.sampled_from(("boot-disk", "address", "disk", "egress")))
def test_the_dearest_of_all_places_is_the_dearest_of_each_alone(use: Usage, what: str) -> None:
    """No place that asks another price is left out where places that ask the same are."""
    alone = [dearest(what, use, (offer,)) for offer in PLACES]
    assert dearest(what, use, PLACES) == max(
        (usd for usd in alone if usd is not None), default=None
    )
