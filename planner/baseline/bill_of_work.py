"""The bill of a job's work on machines: its hours and its data, by the provider's rules."""

from decimal import Decimal

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
    bought = offer.provider != OWN
    whole = quote(
        offer,
        Usage(
            duration_s=_seconds(hours * 3600.0),
            count=count,
            lost_work_s=_seconds(extra.lost_s) if extra else 0,
            checkpoint_s=_seconds(extra.checkpoint_s) if extra else 0,
            boot_disk_bytes=work.boot_disk_bytes if bought else 0,
            addresses=count if work.public_address and bought else 0,
            egress_bytes=work.egress_bytes,
            egress_to=work.egress_to,
            storage_bytes=work.storage_bytes + work.dataset_bytes,
            storage_h=work.storage_h,
            as_of=catalog.as_of,
        ),
    )
    return whole if tenancy is None else part_of(whole, tenancy.held, tenancy.of)


def _seconds(value: float) -> Decimal:
    return Decimal(str(round(value, 3)))
