"""The bill of a job's work on machines: its hours and its data, by the provider's rules."""

from datetime import date
from decimal import Decimal
from functools import lru_cache

from planner.baseline.own_price import OWN
from planner.baseline.tenancy import Tenancy
from planner.baseline.workload import Workload
from planner.models.interruption import Billed
from pricing.billing.quote import Quote, Usage, part_of, quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer

_NO_TIME = Decimal(0)


def bill_of_work(  # noqa: PLR0913, PLR0917 - one bill has that many parts
    offer: Offer,
    count: int,
    hours: float,
    work: Workload,
    catalog: Catalog,
    extra: Billed | None = None,
    *,
    tenancy: Tenancy | None = None,
) -> Quote:
    """Return the bill of so many machines for so many hours of work, with the job's data.

    Each machine has its boot disk and its public address; those of an own machine are its owner's.
    `extra` adds what interruptions cost: lost work and checkpoints, lines of their own. Of a
    machine that several jobs share the job bears its part, for as long as anyone holds it.
    """
    if tenancy is not None:
        hours = max(hours, tenancy.hours)
    whole = quote(offer, usage_of_work(offer, count, hours, work, catalog, extra))
    return whole if tenancy is None else part_of(whole, tenancy.held, tenancy.of)


def usage_of_work(  # noqa: PLR0913, PLR0917 - one use has that many parts
    offer: Offer,
    count: int,
    hours: float,
    work: Workload,
    catalog: Catalog,
    extra: Billed | None = None,
) -> Usage:
    """Return what `bill_of_work` prices: so many machines for so many hours, with the data."""
    bought = offer.provider != OWN
    return _usage(
        _seconds(hours * 3600.0),
        count,
        _seconds(extra.lost_s) if extra else _NO_TIME,
        _seconds(extra.checkpoint_s) if extra else _NO_TIME,
        work.boot_disk_bytes if bought else 0,
        count if work.public_address and bought else 0,
        work.egress_bytes,
        work.egress_to,
        work.storage_bytes + work.dataset_bytes,
        work.storage_h,
        catalog.as_of,
    )


@lru_cache(maxsize=256, typed=True)
def _usage(  # noqa: PLR0913, PLR0917 - one use has that many parts
    duration_s: Decimal,
    count: int,
    lost_work_s: Decimal | int,
    checkpoint_s: Decimal | int,
    boot_disk_bytes: int,
    addresses: int,
    egress_bytes: int,
    egress_to: str,
    storage_bytes: int,
    storage_h: Decimal | float | None,
    as_of: date,
) -> Usage:
    """Return one use, the same one for all offers of a job: what they share is charged once."""
    return Usage(
        duration_s=duration_s,
        count=count,
        lost_work_s=lost_work_s,
        checkpoint_s=checkpoint_s,
        boot_disk_bytes=boot_disk_bytes,
        addresses=addresses,
        egress_bytes=egress_bytes,
        egress_to=egress_to,
        storage_bytes=storage_bytes,
        storage_h=storage_h,
        as_of=as_of,
    )


@lru_cache(maxsize=1024)
def _seconds(value: float) -> Decimal:
    return Decimal(str(round(value, 3)))
