"""How few GPUs are enough: several jobs of one machine type share its GPU (MPS, or MIG slices).

Jobs share a GPU only when memory, compute share, slowdown and latency all hold for everyone there;
who does not is told why. A GPU freed in a machine of several saves nothing by itself: what counts
is the machines that are left (planner/fleet/consolidate.py).

Which machines are left when jobs of one machine type are packed on fewer of its GPUs.
A freed GPU of a machine saves nothing unless the machine goes or a smaller one takes its place.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from planner.actions import ACTIONS
from planner.choice.baseline import Baseline
from planner.choice.candidate import owed_line
from planner.choice.context import host_lacks, host_need, host_unknown, together
from planner.choice.requirements import Requirements
from planner.fleet.fleet import TIMETABLE, Fleet, Placement, Together, total
from planner.fleet.placements import Home
from planner.fleet.tenant import (
    Packing,
    PackingCache,
    Tenant,
    Unmoved,
    by_slices,
    by_timetable,
    side_by_side,
    slices_of,
    speeds,
    why_alone,
)
from planner.models.estimate import exactly
from planner.profile.join import devices_of
from planner.profile.model import Profile
from planner.profile.source import source_slice
from pricing.billing.lines import QuoteLine
from pricing.billing.quote import Quote, Usage, part_of, quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.message import Message
from pricing.money import whole_dollars

_ROUNDING = Decimal("0.0001")
_SHARE_H = ACTIONS["share-gpu"].effort_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The machines that carry the packed jobs.

    Attributes:
        offer: their size.
        shares: GPUs that the bill is split over: those of the machines, or those that each job
            holds, summed, where jobs take turns and hold more together.
        free: of them, that nobody holds.
        bill: of all machines, for as long as any job holds them.
        owed: dollars owed anyway for machines that are not among these.
        notes: what becomes of freed GPUs.
    """

    offer: Offer
    shares: int
    free: int
    bill: Quote
    owed: Decimal
    notes: tuple[str, ...]

    def lines(self, gpus: int) -> tuple[QuoteLine, ...]:
        """Return the bill of so many of the GPUs, and their part of what is owed beside it."""
        owed = _owed_lines(self.owed * gpus / self.shares, self.bill)
        return (*part_of(self.bill, gpus, self.shares).lines, *owed)


def _owed_lines(usd: Decimal, bill: Quote) -> tuple[QuoteLine, ...]:
    """Return the line of what is owed anyway beside a bill; none where that is nothing."""
    return (owed_line(usd, bill.usage.as_of),) if usd > 0 else ()


def machines_left(
    bins: list[list[Tenant]],
    solo: list[Tenant],
    catalog: Catalog | None,
    ended: Sequence[Tenant] = (),
) -> Left:
    """Return the cheapest machines that carry the packing: today's, fewer of them, or smaller ones.

    Args:
        bins: jobs that share a GPU each, all at home on one machine type.
        solo: jobs on these machines that share with nobody; with them the type stays.
        catalog: where smaller sizes are looked for; None keeps the type.
        ended: jobs on these machines today that are to end.
    """
    tenants = [*(t for group in bins for t in group), *solo]
    if (home := tenants[0].home) is None:
        raise ValueError("only jobs with a priced machine are packed")
    today, day = home.offer, home.quote.usage.as_of
    hours = Decimal(str(round(max(_hours(t) for t in tenants), 6)))
    holds = [*(1 for _ in bins), *_holds(solo)]
    needed = sum(holds)
    machines = _machines_today([*tenants, *ended])
    sizes = [today, *(_smaller(today, tenants, needed, catalog) if catalog and not solo else ())]

    def bill(size: Offer) -> Quote:
        count = machines_for(holds, round(size.gpu_count))
        if size is today:  # as the jobs stand today, they fit
            count = max(math.ceil(needed / size.gpu_count), min(count, machines))
        while size is today and count < machines and not _host_fits(tenants, size, count):
            count += 1
        use = Usage(
            duration_s=hours * 3600,
            count=count,
            boot_disk_bytes=home.quote.usage.boot_disk_bytes,
            addresses=count if home.quote.usage.addresses else 0,
            commitment=home.quote.usage.commitment,
            as_of=day,
        )
        return quote(size, use)

    bills = [(size, bill(size)) for size in sizes]
    size, chosen = min(
        bills, key=lambda priced: (priced[1].exact, priced[0] is not today, priced[0].place)
    )
    notes = tuple(_notes(today, size, chosen.usage.count, machines, needed))
    total = len(bins) + sum(t.profile.gpu_count for t in solo)
    shares = max(total, chosen.usage.count * round(size.gpu_count))
    owed = sum((t.baseline.owed for t in (*tenants, *ended)), Decimal(0)) - chosen.exact
    owed, free = max(Decimal(0), owed), shares - total
    return Left(offer=size, shares=shares, free=free, bill=chosen, owed=owed, notes=notes)


def machines_for(holds: Sequence[int], gpus: int) -> int:
    """Return on how many machines jobs stand, the largest first, each where it first fits.

    A job's GPUs are of one machine; one that holds more than a machine has takes whole ones first.

    Args:
        holds: GPUs of each job, from 1.
        gpus: of a machine, from 1.
    """
    full = sum(hold // gpus for hold in holds)
    free: list[int] = []
    for hold in sorted((hold % gpus for hold in holds), reverse=True):
        at = next((at for at, room in enumerate(free) if room >= hold), None)
        if at is None:
            free.append(gpus)
            at = len(free) - 1
        free[at] -= hold
    return full + sum(room < gpus for room in free)


def gpus_held(tenants: list[Tenant]) -> int:
    """Return the GPUs that jobs hold; those beside each other hold no more than their machine has.

    Jobs of one machine that hold more together take turns.
    """
    return sum(_holds(tenants))


def _holds(tenants: list[Tenant]) -> Iterator[int]:
    """Yield how many GPUs each job holds, or jobs that take turns on a machine together."""
    machines = dict[tuple[str, ...], list[Tenant]]()
    for tenant in tenants:
        tenancy, offer = tenant.baseline.tenancy, tenant.baseline.offer
        if tenancy is None or not tenancy.beside or offer is None:
            yield from [tenant.profile.gpu_count] * tenant.baseline.replicas
        else:
            names = tuple(sorted((tenant.name, *tenancy.beside)))
            machines.setdefault(names, []).append(tenant)
    for group in machines.values():
        offer = group[0].baseline.offer
        size = round(offer.gpu_count) if offer else 0
        devices = frozenset[str]().union(*(devices_of(t.profile) for t in group))
        has, each = max(size, len(devices), 1), [t.profile.gpu_count for t in group]
        if any(source_slice(t.profile) for t in group) and all(
            devices_of(t.profile) for t in group
        ):
            has = len(devices)  # slices of one GPU hold it together
        yield from each if sum(each) <= has else [has]


def _hours(tenant: Tenant) -> float:
    """Return how long the machine is held by the job or by those beside it."""
    tenancy = tenant.baseline.tenancy
    return max(tenant.baseline.hours.mid, tenancy.hours if tenancy else 0.0)


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
        same_kind = all(
            getattr(offer, key) == getattr(today, key)
            for key in ("provider", "region", "gpu", "purchase", "host")
        )
        if same_kind and 1 <= offer.gpu_count < today.gpu_count:
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
    unmeasured = host_unknown(need, vcpus, ram_gib)
    return unmeasured is None and host_lacks(need, vcpus, ram_gib) is None


def _notes(today: Offer, size: Offer, count: int, machines: int, needed: int) -> Iterator[str]:
    if size is not today:
        was = today.name
        yield Message("fleet.other-size", n=count, to=size.place, before=machines, machine=was)
        return
    total = count * round(today.gpu_count)
    freed, free = machines - count, total - needed
    if freed:
        yield Message("fleet.machines-free", n=freed, before=machines, machine=today.name)
    if free > 0:
        yield Message("fleet.gpus-free", n=free, of=total, count=count, machine=today.name)


class _Gpu(NamedTuple):
    """One GPU, who shares it by name, and its bill."""

    group: list[Tenant]
    offer: Offer
    gpu: int
    lines: tuple[QuoteLine, ...]
    cost: Decimal


class _Joined(NamedTuple):
    """Jobs that are packed all or none: by name, on GPUs by their places, with their bill.

    And those that end on the same machines, which the bill is then without.
    """

    group: list[Tenant]
    gpus: tuple[int, ...]
    cost: Decimal
    other_lines: tuple[QuoteLine, ...] = ()
    free_lines: tuple[QuoteLine, ...] = ()
    ended: tuple[str, ...] = ()


class Draft:
    """A fleet whose GPUs and bill are known.

    What else is said of it, such as how fast jobs run together and how dear their bill may get, is
    worked out by `fleet`: of several drafts few are taken.

    Args:
        tenants: all of its jobs.
        unmoved: who takes no part in packing, and why.
        ended: dollars that jobs that are to end leave where nothing is packed, by name.

    Attributes:
        unmoved: whom a GPU is held for while others are, and why it cannot join them.
    """

    def __init__(
        self, tenants: list[Tenant], unmoved: Iterable[Unmoved], ended: Mapping[str, Decimal]
    ) -> None:
        self.unmoved = list(unmoved)
        self._tenants, self._ended = tenants, ended
        self._gpus: list[_Gpu] = []
        self._joined: list[_Joined] = []
        self._notes: list[str] = []
        self._kept, self._held, self._bound, self._stopped = Decimal(0), 0, 0, False

    @property
    def cost_after(self) -> Decimal:
        """The bill after packing, dollars of the period, exact."""
        return sum((gpu.cost for gpu in self._gpus), self._kept)

    def fleet(self, numbered: int = 0) -> Fleet:
        """Return the fleet, its placements numbered on from those that are taken."""
        return Fleet(
            gpus_before=gpus_held(self._tenants),
            gpus_after=len(self._gpus) + self._held,
            gpus_lower_bound=self._bound + self._held,
            search_ended_early=self._stopped,
            cost_before=_cost_today(self._tenants),
            cost_after=self.cost_after,
            placements=tuple(
                _placement(item, number) for number, item in enumerate(self._gpus, numbered + 1)
            ),
            unmoved=tuple(sorted(self.unmoved, key=lambda u: u.job)),
            together=tuple(_together(item, numbered) for item in self._joined),
            notes=tuple(self._notes),
        )

    def add(
        self, packing: Packing, solo: list[Tenant], ended: list[Tenant], catalog: Catalog | None
    ) -> None:
        """Place the jobs of one machine type.

        Those in `alone` share with nobody; those in `ended` are gone, and their GPUs are free.
        """
        self._stopped = self._stopped or packing.stopped
        everyone = [*(t for group in packing.groups for t in group), *solo]
        if not any(_has_neighbours(t) for t in everyone):
            self._bound += packing.bound
            self._add_gpus(packing.groups)
            self.add_alone((*solo, *ended))
            return
        machines = machines_left(packing.groups, solo, catalog, ended)
        before = _cost_today((*everyone, *ended))
        data = sum((total(t.home.data_lines if t.home else ()) for t in everyone), Decimal(0))
        after = machines.bill.exact + machines.owed + data
        if after - before > _ROUNDING:
            self._leave(everyone, machines, after - before)
            self.add_alone(ended)
        else:
            self._bound += packing.bound
            self._add_machines(packing.groups, solo, machines, ended)

    def _leave(self, everyone: list[Tenant], machines: Left, dearer: Decimal) -> None:
        """Leave the jobs of machines that would cost more once they are packed."""
        self._kept += _cost_today(everyone)
        self._held += gpus_held(everyone)
        self._notes.append(
            Message("fleet.stay", machine=machines.offer.name, usd=whole_dollars(dearer))
        )

    def add_alone(self, tenants: Iterable[Tenant]) -> None:
        """Count jobs that stay as they are, and what those that end leave of their bill."""
        for tenant in tenants:
            if tenant.name in self._ended:
                self._kept += self._ended[tenant.name]
                continue
            self._kept += tenant.baseline.cost or Decimal(0)
            self._held += tenant.profile.gpu_count * tenant.baseline.replicas

    def _add_gpus(self, bins: list[list[Tenant]]) -> None:
        """Place jobs on GPUs that are rented one by one, or as a part of a machine."""
        for group in bins:
            longest = max(group, key=lambda t: (t.home.hours if t.home else 0.0, t.name))
            home = longest.home
            if home is None:
                raise ValueError("only jobs with a priced machine are packed")
            data_lines = [line for t in group if t is not longest for line in _data(t)]
            has_owed = any(line.what == "owed" for line in home.quote.lines) or not home.moved
            companions = (t for t in group if t is not longest or not has_owed)
            owed = sum((t.baseline.owed for t in companions), Decimal(0))
            lines = (*home.quote.lines, *data_lines, *_owed_lines(owed, home.quote))
            cost = self._place(group, home.offer, 0, lines)
            if len(group) > 1:
                self._joined.append(_Joined(_by_name(group), (len(self._gpus),), cost))

    def _add_machines(
        self, bins: list[list[Tenant]], solo: list[Tenant], machines: Left, ended: Iterable[Tenant]
    ) -> None:
        """Place jobs on machines of several GPUs whose bill they share."""
        self._notes.extend(machines.notes)
        size, cost, first = round(machines.offer.gpu_count), Decimal(0), len(self._gpus) + 1
        for number, group in enumerate(bins):
            data = [line for t in group for line in _data(t)]
            cost += self._place(group, machines.offer, number % size, (*machines.lines(1), *data))
        self._held += gpus_held(solo)
        own_lines: list[QuoteLine] = []
        for tenant in solo:
            own = (*machines.lines(tenant.profile.gpu_count), *_data(tenant))
            self._kept, cost = self._kept + total(own), cost + total(own)
            own_lines.extend(own)
        everyone = _by_name([*(t for group in bins for t in group), *solo])
        gpus = tuple(range(first, len(self._gpus) + 1))
        names = tuple(t.name for t in ended)
        free = machines.lines(machines.free) if machines.free else ()
        self._kept, cost = self._kept + total(free), cost + total(free)
        self._joined.append(_Joined(everyone, gpus, cost, tuple(own_lines), free, names))

    def _place(
        self, group: list[Tenant], offer: Offer, gpu: int, lines: tuple[QuoteLine, ...]
    ) -> Decimal:
        """Put jobs on one GPU; return its bill."""
        self._gpus.append(_Gpu(_by_name(group), offer, gpu, lines, total(lines)))
        return self._gpus[-1].cost


def _cost_today(tenants: Iterable[Tenant]) -> Decimal:
    return sum((t.baseline.cost or Decimal(0) for t in tenants), Decimal(0))


def _by_name(group: list[Tenant]) -> list[Tenant]:
    return sorted(group, key=lambda t: t.name)


def _placement(gpu: _Gpu, number: int) -> Placement:
    group = gpu.group
    pieces = slices_of(group) if by_slices(group) else ()
    return Placement(
        id=number,
        offer=gpu.offer,
        gpu=gpu.gpu,
        mode=_mode(group, gpu.offer),
        slices=tuple(piece.profile for piece in pieces if not isinstance(piece, str)),
        jobs=tuple(t.name for t in group),
        speed=speeds(group) if len(group) > 1 else {group[0].name: exactly(1.0, "alone")},
        hours=max(t.home.hours for t in group if t.home),
        lines=gpu.lines,
        busy_fraction=_busy(group),
    )


def _mode(group: list[Tenant], offer: Offer) -> str | None:
    if len(group) == 1:
        return None
    if by_slices(group):
        return "mig"
    return TIMETABLE if by_timetable(group) else side_by_side(offer)


def _together(joined: _Joined, numbered: int) -> Together:
    """Return jobs that are packed all or none.

    A GPU's bill is that of whoever holds it longest, so it is at most as much dearer than expected
    as the dearest of its jobs may get.
    """
    homes = [t.home for t in joined.group if t.home]
    off = [[end - home.usd for end in home.ends] for home in homes]
    return Together(
        jobs=(*(t.name for t in joined.group), *joined.ended),
        placements=tuple(gpu + numbered for gpu in joined.gpus),
        cost=joined.cost,
        low=max(Decimal(0), joined.cost + min(low for low, _ in off)),
        high=joined.cost + max(high for _, high in off),
        effort_hours=sum(_SHARE_H + home.effort_hours for home in homes),
        moving_usd=sum((home.moving_usd or Decimal(0) for home in homes), Decimal(0)),
        other_lines=joined.other_lines,
        free_lines=joined.free_lines,
    )


def _has_neighbours(tenant: Tenant) -> bool:
    tenancy = tenant.baseline.tenancy
    return (
        tenancy is not None
        and bool(tenancy.beside)
        and tenant.home is not None
        and not tenant.home.moved
    )


def _busy(group: Iterable[Tenant]) -> float | None:
    loads = [tenant.home.profile.busy_fraction if tenant.home else None for tenant in group]
    shares = [load for load in loads if load is not None]
    return min(1.0, sum(shares)) if len(shares) == len(loads) else None


def _data(tenant: Tenant) -> tuple[QuoteLine, ...]:
    return tenant.home.data_lines if tenant.home else ()


def drafts(  # noqa: PLR0913 - what a packing is made of
    jobs: Sequence[tuple[Profile, Baseline]],
    requirements: Requirements,
    homes: Sequence[Mapping[str, Home | None]],
    catalog: Catalog | None,
    *,
    quick: bool,
    packed_before: PackingCache,
    proves: bool = True,
    ended: Mapping[str, Decimal],
) -> list[Draft]:
    """Return the fleet on fewer GPUs, packed and with its bill, once for each choice of homes.

    Args:
        jobs: what was measured, and what runs it today.
        requirements: the limits of sharing.
        homes: the machine on whose GPU each job would share, by its name; several such choices.
        catalog: where smaller machines are looked for; without it machines stay as they are.
        quick: first fit, without a search, a bound, or why who stays cannot join others.
        packed_before: by which the same jobs of a machine type are packed as then.
        proves: whether a good bound is worth work that finds no better packing.
        ended: jobs that are to end, with the dollars that they leave where nothing is packed.
    """
    from planner.fleet.packing import pack_cached, unmoved, with_fewer_moves  # noqa: PLC0415 - imports numpy

    def tenants(at: Mapping[str, Home | None]) -> list[Tenant]:
        tenant = packed_before.tenant
        return [tenant(p, b, at[p.job.name], requirements, quick=quick) for p, b in jobs]

    choices = [_Pools(tenants(at), requirements, ended) for at in homes]
    sharing = [pool for choice in choices for pool in choice.sharing]
    packings = iter(pack_cached(sharing, packed_before, requirements, quick=quick, proves=proves))
    result = []
    for choice in choices:
        packed = [*islice(packings, len(choice.groups))]
        if requirements.max_moves is not None:
            with_fewer_moves(packed, requirements.max_moves)
        draft = Draft(choice.tenants, choice.alone.values(), ended)
        for group, packing in zip(choice.groups, packed, strict=True):
            solo = [t for t in group if t.name in choice.alone]
            draft.add(packing, solo, [t for t in group if t.name in ended], catalog)
            draft.unmoved.extend(() if quick else unmoved(packing, requirements))
        draft.add_alone(t for t in choice.tenants if t.home is None)
        result.append(draft)
    return result


class _Pools:
    """The jobs of a fleet by machine type, and who takes no part in packing."""

    def __init__(
        self, tenants: list[Tenant], requirements: Requirements, ended: Mapping[str, Decimal]
    ) -> None:
        self.tenants = tenants
        going_on = [t for t in tenants if t.name not in ended]
        self.alone = {t.name: reason for t in going_on if (reason := why_alone(t, requirements))}
        self.groups = _by_machine(tenants)
        excluded = {*self.alone, *ended}
        self.sharing = [[t for t in group if t.name not in excluded] for group in self.groups]


def _by_machine(tenants: list[Tenant]) -> list[list[Tenant]]:
    groups: dict[tuple[str, str, str, str], list[Tenant]] = defaultdict(list)
    for tenant in tenants:
        if tenant.home is not None:
            groups[tenant.home.offer.sale].append(tenant)
    return [groups[key] for key in sorted(groups)]
