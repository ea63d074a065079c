"""What uses of one kind share changes no bill, and the dearest price is that of any place."""

from datetime import date
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from pricing.billing.quote import Usage, dearest
from pricing.catalog.catalog import load_catalog

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


@settings(max_examples=20, deadline=None)
@given(use=USES, what=st.sampled_from(("boot-disk", "address", "disk", "egress")))
def test_the_dearest_of_all_places_is_the_dearest_of_each_alone(use: Usage, what: str) -> None:
    """No place that asks another price is left out where places that ask the same are."""
    alone = [dearest(what, use, (offer,)) for offer in PLACES]
    assert dearest(what, use, PLACES) == max(
        (usd for usd in alone if usd is not None), default=None
    )
