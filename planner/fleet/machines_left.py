"""Which machines are left when jobs of one machine type are packed on fewer of its GPUs.

A freed GPU of a machine saves nothing unless the machine goes or a smaller one takes its place.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from planner.fleet.tenant import Tenant
from planner.options.host_room import host_lacks, host_need, host_unknown, together
from pricing.billing.lines import QuoteLine
from pricing.billing.quote import Quote, Usage, part_of, quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The machines that carry the packed jobs.

    Attributes:
        offer: their size.
        shares: GPUs that each job holds, summed; the bill is split over them. Jobs that take turns
            on a machine hold more together than it has.
        bill: of all machines, for as long as any job holds them.
        notes: what becomes of freed GPUs.
    """

    offer: Offer
    shares: int
    bill: Quote
    notes: tuple[str, ...]

    def lines(self, held: int) -> tuple[QuoteLine, ...]:
        """Return the bill of so many of the GPUs."""
        return part_of(self.bill, held, self.shares).lines


def find(bins: list[list[Tenant]], alone: list[Tenant], catalog: Catalog | None) -> Left:
    """Return the cheapest machines that carry the packing: today's, fewer of them, or smaller ones.

    Args:
        bins: jobs that share a GPU each, all at home on one machine type.
        alone: jobs on these machines that share with nobody; with them the type stays.
        catalog: where smaller sizes are looked for; None keeps the type.
    """
    tenants = [*(t for group in bins for t in group), *alone]
    home = tenants[0].home
    if home is None:
        raise ValueError("only jobs with a priced machine are packed")
    today, day = home.offer, home.quote.usage.as_of
    hours = Decimal(str(round(max(_hours(t) for t in tenants), 6)))
    needed = len(bins) + gpus_held(alone)
    machines = _machines_today(tenants)
    sizes = [today, *(_smaller(today, tenants, needed, catalog) if catalog and not alone else ())]

    def bill(size: Offer) -> Quote:
        count = math.ceil(needed / size.gpu_count)
        while size is today and count < machines and not _host_fits(tenants, size, count):
            count += 1
        use = Usage(
            duration_s=hours * 3600,
            count=count,
            boot_disk_bytes=home.quote.usage.boot_disk_bytes,
            addresses=count if home.quote.usage.addresses else 0,
            as_of=day,
        )
        return quote(size, use)

    bills = [(size, bill(size)) for size in sizes]
    size, chosen = min(bills, key=lambda one: (one[1].exact, one[0] is not today, one[0].place))
    notes = tuple(_notes(today, size, chosen.usage.count, machines, needed))
    shares = len(bins) + sum(t.profile.gpu_count for t in alone)
    return Left(offer=size, shares=shares, bill=chosen, notes=notes)


def gpus_held(tenants: list[Tenant]) -> int:
    """Return the GPUs that jobs hold; those beside each other hold no more than their machine has.

    Jobs of one machine that hold more together take turns.
    """
    held, machines = 0, dict[tuple[str, ...], list[Tenant]]()
    for one in tenants:
        tenancy, offer = one.baseline.tenancy, one.baseline.offer
        if tenancy is None or not tenancy.beside or offer is None:
            held += one.profile.gpu_count * one.baseline.replicas
        else:
            names = tuple(sorted((one.name, *tenancy.beside)))
            machines.setdefault(names, []).append(one)
    for group in machines.values():
        offer = group[0].baseline.offer
        size = round(offer.gpu_count) if offer else 0
        held += min(sum(t.profile.gpu_count for t in group), max(size, 1))
    return held


def _hours(one: Tenant) -> float:
    """Return how long the machine is held by the job or by those beside it."""
    tenancy = one.baseline.tenancy
    return max(one.baseline.hours.mid, tenancy.hours if tenancy else 0.0)


def _machines_today(tenants: list[Tenant]) -> int:
    """Return on how many machines the jobs stand; jobs beside each other stand on one."""
    stands = {
        tuple(sorted((t.name, *(t.baseline.tenancy.beside if t.baseline.tenancy else ()))))
        for t in tenants
    }
    return len(stands)


def _smaller(today: Offer, tenants: list[Tenant], needed: int, catalog: Catalog) -> Iterator[Offer]:
    """Yield sizes with fewer of the same GPUs, in the same place, that have the cores and RAM."""
    for offer in catalog.offers:
        alike = all(
            getattr(offer, key) == getattr(today, key)
            for key in ("provider", "region", "gpu", "purchase", "host")
        )
        if alike and 1 <= offer.gpu_count < today.gpu_count:
            count = math.ceil(needed / offer.gpu_count)
            if _host_fits(tenants, offer, count):
                yield offer


def _host_fits(tenants: list[Tenant], offer: Offer, count: int) -> bool:
    """Return whether cores and RAM that were measured in use are there.

    Unknown needs need nothing.
    """
    need = together(host_need(t.profile) for t in tenants)
    vcpus = None if offer.vcpus is None else offer.vcpus * count
    ram_gib = None if offer.ram_gib is None else offer.ram_gib * count
    unknown = host_unknown(need, vcpus, ram_gib)
    return unknown is None and host_lacks(need, vcpus, ram_gib) is None


def _notes(today: Offer, size: Offer, count: int, machines: int, needed: int) -> Iterator[str]:
    if size is not today:
        yield f"{count}x {size.place} in place of {machines}x {today.name} carries the packed jobs."
        return
    total = count * round(today.gpu_count)
    gone, free = machines - count, total - needed
    if gone:
        yield f"{gone} of {machines}x {today.name} can go once the jobs are packed."
    if free > 0:
        yield (
            f"{free} of the {total} GPUs of {count}x {today.name} are free once "
            "the jobs are packed; no smaller size there is cheaper, so that saves nothing unless "
            "others use them."
        )
