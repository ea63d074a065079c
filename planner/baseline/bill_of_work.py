"""The bill of a job's work on machines: its hours and its data, by the provider's rules."""

from decimal import Decimal
from functools import lru_cache

from planner.baseline.own_price import OWN
from planner.baseline.tenancy import Tenancy
from planner.baseline.workload import Workload
from planner.models.interruption import Billed
from pricing.billing.quote import Quote, Usage, part_of, quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer


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
    added = None if extra is None else (extra.lost_s, extra.checkpoint_s)
    key = (hours, count, offer.provider == OWN, added, catalog.as_of)
    known = work.uses.get(key)
    if known is None:
        times_s = [seconds(time_s) for time_s in (hours * 3600.0, *(added or ()))]
        known = work.uses[key] = use_of_work(offer, count, work, catalog).lasting(*times_s)
    return known


def use_of_work(offer: Offer, count: int, work: Workload, catalog: Catalog) -> Usage:
    """Return the use of so many machines with the job's data, for no time at all."""
    bought, day = offer.provider != OWN, catalog.as_of
    known = work.uses.get((count, bought, day))
    if known is None:
        known = work.uses[count, bought, day] = Usage(
            duration_s=0,
            count=count,
            boot_disk_bytes=work.boot_disk_bytes if bought else 0,
            addresses=count if work.public_address and bought else 0,
            egress_bytes=work.egress_bytes,
            egress_to=work.egress_to,
            storage_bytes=work.storage_bytes + work.dataset_bytes,
            storage_h=work.storage_h,
            as_of=day,
        )
    return known


@lru_cache(maxsize=1024)
def seconds(value: float) -> Decimal:
    """Return a time as bills count it, to the millisecond."""
    return Decimal(str(round(value, 3)))
