"""How few GPUs are enough: several jobs of one machine type share its GPU (MPS, or MIG slices).

Jobs share a GPU only when memory, compute share, slowdown and latency all hold for everyone there;
who does not is told why. A GPU freed in a machine of several saves nothing by itself: what counts
is the machines that are left (planner/fleet/machines_left.py).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.actions import ACTIONS
from planner.baseline.baseline import Baseline
from planner.baseline.requirements import Requirements
from planner.fleet import machines_left
from planner.fleet.home import Home, today
from planner.fleet.tenant import (
    CONTEXT_GIB,
    PackedBefore,
    Tenant,
    Unmoved,
    by_slices,
    side_by_side,
    slices_of,
    speeds,
    why_alone,
)
from planner.models.estimate import Estimate, exactly
from planner.models.saving import Saving, saving
from planner.profile.model import Profile
from pricing.billing.lines import QuoteLine
from pricing.billing.quote import OF_THE_DATA
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.money import EXACT, whole_dollars

if TYPE_CHECKING:
    from planner.fleet.packing import Packing

_SHARE_H = ACTIONS["share-gpu"].effort_hours

__all__ = ["CONTEXT_GIB", "Fleet", "Placement", "Together", "Unmoved", "consolidate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One GPU after consolidation.

    Attributes:
        id: 1, 2 ... unique within the fleet.
        offer: the machine.
        gpu: index of the GPU in it.
        mode: `mps` (`time-slicing` on AMD's GPUs) or `mig` when shared, None for a job alone.
        slices: with `mig` the profile of each job's slice, in order of `jobs`; else empty.
        jobs: who runs there.
        speed: relative speed of each job, 1.0 = alone.
        hours: how long it is held: the longest of its jobs' hours.
        lines: its bill; the machine for that long, and the data of every job.
        busy_fraction: share of the time that kernels run there, of all jobs together while they
            run, at most 1; None where it was not read of one of them.
    """

    id: int
    offer: Offer
    gpu: int
    mode: str | None
    jobs: tuple[str, ...]
    speed: dict[str, Estimate]
    hours: float
    lines: tuple[QuoteLine, ...]
    slices: tuple[str, ...] = ()
    busy_fraction: float | None = None

    @property
    def cost(self) -> Decimal:
        """Dollars of the period, exact."""
        return total(self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Jobs that are packed all or none: on one GPU, or on machines whose bill they share.

    Attributes:
        jobs: their names.
        placements: ids.
        cost: dollars of the period, exact.
        low: at the low end of hours and prices; what is paid today has no width.
        high: at the high end.
        effort_hours: engineering time until they share, our estimate.
        moving_usd: to bring their data there, once.
        others: lines of the bill of jobs among them that share no GPU, but a machine.
    """

    jobs: tuple[str, ...]
    placements: tuple[int, ...]
    cost: Decimal
    low: Decimal
    high: Decimal
    effort_hours: float
    moving_usd: Decimal
    others: tuple[QuoteLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The fleet with some jobs on another machine type.

    Attributes:
        offer: the machine.
        jobs: who moves to it.
        fleet: all jobs packed so; its placements are numbered on from those at home.
        unknown: of them, whose data move at a cost that is not known.
    """

    offer: Offer
    jobs: tuple[str, ...]
    fleet: "Fleet"
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The jobs packed on fewer GPUs of the same machine type.

    Attributes:
        gpus_before: GPUs held now.
        gpus_after: GPUs after packing.
        gpus_lower_bound: proven: no packing under these limits needs fewer.
        cost_before: today's bill of all jobs with a known price.
        cost_after: the bill after packing.
        placements: who runs where; jobs with several GPUs are not among them.
        unmoved: whom a GPU is held for while others are, and why it cannot join them.
        together: the jobs that share something, as groups to be packed or left.
        notes: what happens to machines of which GPUs become free.
        search_ended_early: a time limit ended the search for a better packing.
        alternatives: other machine types on which the fleet would cost less, cheapest first.
    """

    gpus_before: int
    gpus_after: int
    gpus_lower_bound: int
    cost_before: Decimal
    cost_after: Decimal
    placements: tuple[Placement, ...]
    unmoved: tuple[Unmoved, ...]
    together: tuple[Together, ...] = ()
    notes: tuple[str, ...] = ()
    search_ended_early: bool = False
    alternatives: tuple[Alternative, ...] = ()

    @property
    def gap_fraction(self) -> float | None:
        """How far the GPUs are above the bound, as a share of it: 0 is proven best."""
        bound = self.gpus_lower_bound
        return self.gpus_after / bound - 1.0 if bound else None

    @property
    def saving(self) -> Saving:
        """What packing saves in the period, of what is paid today."""
        return saving(self.cost_before, self.cost_after, of_nothing=0.0)

    def numbered_from(self, taken: int) -> "Fleet":
        """Return the fleet with the numbers of its placements raised, as so many are taken."""
        return replace(
            self,
            placements=tuple(replace(one, id=one.id + taken) for one in self.placements),
            together=tuple(
                replace(one, placements=tuple(id_ + taken for id_ in one.placements))
                for one in self.together
            ),
        )


def total(lines: Iterable[QuoteLine]) -> Decimal:
    """Return the sum of lines, exact."""
    amount = Decimal(0)
    for line in lines:
        amount = EXACT.add(amount, line.usd)
    return amount


def consolidate(  # noqa: PLR0913 - what a packing is made of
    jobs: Iterable[tuple[Profile, Baseline]],
    asked: Requirements,
    homes: Mapping[str, Home | None] | None = None,
    catalog: Catalog | None = None,
    *,
    quick: bool = False,
    known: PackedBefore | None = None,
) -> Fleet:
    """Return the fleet on fewer GPUs.

    Args:
        jobs: what was measured, and what runs it today.
        asked: the limits of sharing.
        homes: the machine on whose GPU each job would share, by its name; else today's.
        catalog: where smaller machines are looked for; without it machines stay as they are.
        quick: first fit, without a search, a bound, or why who stays cannot join others.
        known: what was searched for before: the same jobs of a machine type are packed as then.
    """
    from planner.fleet.packing import with_fewer_moves  # noqa: PLC0415 - numpy comes in with it

    known, pairs = known or PackedBefore(), list(jobs)
    at = {p.job.name: today(p, b) for p, b in pairs} if homes is None else homes
    tenants = [known.tenant(p, b, at[p.job.name], asked, quick=quick) for p, b in pairs]
    alone = {t.name: reason for t in tenants if (reason := why_alone(t, asked)) is not None}
    fleet = _Fleet(unmoved=list(alone.values()))
    pools = [
        (group, known.packed([t for t in group if t.name not in alone], asked, quick=quick))
        for group in _by_machine(tenants)
    ]
    if asked.max_moves is not None:
        with_fewer_moves([packing for _, packing in pools], asked.max_moves)
    for group, packing in pools:
        fleet.add(packing, [t for t in group if t.name in alone], catalog)
        if not quick:
            fleet.say(packing, asked)
    fleet.add_alone(t for t in tenants if t.home is None)
    return Fleet(
        gpus_before=machines_left.gpus_held(tenants),
        gpus_after=len(fleet.placements) + fleet.held,
        gpus_lower_bound=fleet.bound + fleet.held,
        search_ended_early=any(packing.stopped for _, packing in pools),
        cost_before=sum((t.baseline.cost or Decimal(0) for t in tenants), Decimal(0)),
        cost_after=sum((p.cost for p in fleet.placements), fleet.kept),
        placements=tuple(fleet.placements),
        unmoved=tuple(sorted(fleet.unmoved, key=lambda u: u.job)),
        together=tuple(fleet.together),
        notes=tuple(fleet.notes),
    )


def _has_neighbours(one: Tenant) -> bool:
    tenancy = one.baseline.tenancy
    return (
        tenancy is not None and bool(tenancy.beside) and one.home is not None and not one.home.moved
    )


def _by_machine(tenants: list[Tenant]) -> list[list[Tenant]]:
    groups: dict[tuple[str, str, str, str], list[Tenant]] = defaultdict(list)
    for one in tenants:
        if one.home is not None:
            offer = one.home.offer
            groups[offer.provider, offer.instance_type, offer.region, offer.purchase].append(one)
    return [groups[key] for key in sorted(groups)]


class _Fleet:
    """A fleet under construction."""

    def __init__(self, unmoved: list[Unmoved]) -> None:
        self.unmoved = unmoved
        self.placements: list[Placement] = []
        self.together: list[Together] = []
        self.notes: list[str] = []
        self.kept, self.held, self.bound = Decimal(0), 0, 0

    def say(self, packing: "Packing", asked: Requirements) -> None:
        """Tell why the job of each GPU cannot join another one."""
        from planner.fleet.packing import unmoved  # noqa: PLC0415 - lazy on purpose

        self.unmoved.extend(unmoved(packing, asked))

    def add(self, packing: "Packing", alone: list[Tenant], catalog: Catalog | None) -> None:
        """Place the jobs of one machine type; those in `alone` share with nobody."""
        everyone = [*(t for group in packing.groups for t in group), *alone]
        if not any(_has_neighbours(t) for t in everyone):
            self.bound += packing.bound
            self.add_gpus(packing.groups)
            self.add_alone(alone)
            return
        left = machines_left.find(packing.groups, alone, catalog)
        before = sum((t.baseline.cost or Decimal(0) for t in everyone), Decimal(0))
        after = left.bill.exact + sum((total(_data(t)) for t in everyone), Decimal(0))
        if after > before:
            self.leave(everyone, left, after - before)
        else:
            self.bound += packing.bound
            self.add_machines(packing.groups, alone, left)

    def leave(self, everyone: list[Tenant], left: machines_left.Left, dearer: Decimal) -> None:
        """Leave the jobs of machines that would cost more once they are packed."""
        self.kept += sum((t.baseline.cost or Decimal(0) for t in everyone), Decimal(0))
        self.held += machines_left.gpus_held(everyone)
        self.notes.append(
            f"the jobs on {left.offer.name} stay where they are: packed they would cost "
            f"${whole_dollars(dearer)} more, as all of their machines would be held for as long as "
            "the longest job."
        )

    def add_alone(self, tenants: Iterable[Tenant]) -> None:
        """Count jobs that stay as they are."""
        for one in tenants:
            self.kept += one.baseline.cost or Decimal(0)
            self.held += one.profile.gpu_count * one.baseline.replicas

    def add_gpus(self, bins: list[list[Tenant]]) -> None:
        """Place jobs on GPUs that are rented one by one, or as a part of a machine."""
        for group in bins:
            longest = max(group, key=lambda t: (t.home.hours if t.home else 0.0, t.name))
            if longest.home is None:
                raise ValueError("only jobs with a priced machine are packed")
            others = [line for t in group if t is not longest for line in _data(t)]
            home = longest.home
            placed = self._place(group, home.offer, 0, (*home.quote.lines, *others))
            if len(group) > 1:
                self.join(group, [placed.id], placed.cost)

    def add_machines(
        self, bins: list[list[Tenant]], alone: list[Tenant], left: machines_left.Left
    ) -> None:
        """Place jobs on machines of several GPUs whose bill they share."""
        self.notes.extend(left.notes)
        size, cost = round(left.offer.gpu_count), Decimal(0)
        placed = []
        for number, group in enumerate(bins):
            data = [line for t in group for line in _data(t)]
            place = self._place(group, left.offer, number % size, (*left.lines(1), *data))
            placed.append(place.id)
            cost += place.cost
        self.held += machines_left.gpus_held(alone)
        others: list[QuoteLine] = []
        for one in alone:
            own = (*left.lines(one.profile.gpu_count), *_data(one))
            self.kept, cost = self.kept + total(own), cost + total(own)
            others.extend(own)
        self.join([*(t for group in bins for t in group), *alone], placed, cost, tuple(others))

    def join(
        self,
        tenants: Iterable[Tenant],
        placements: Iterable[int],
        cost: Decimal,
        others: tuple[QuoteLine, ...] = (),
    ) -> None:
        """Note jobs that are packed all or none.

        A GPU's bill is that of whoever holds it longest, so it is at most as much dearer than
        expected as the dearest of its jobs may get.
        """
        found = sorted(tenants, key=lambda t: t.name)
        homes = [t.home for t in found if t.home]
        off = [[end - home.quote.exact for end in home.ends] for home in homes]
        self.together.append(
            Together(
                jobs=tuple(t.name for t in found),
                placements=tuple(placements),
                cost=cost,
                low=max(Decimal(0), cost + min(low for low, _ in off)),
                high=cost + max(high for _, high in off),
                effort_hours=sum(_SHARE_H + home.effort_hours for home in homes),
                moving_usd=sum((home.moving_usd or Decimal(0) for home in homes), Decimal(0)),
                others=others,
            )
        )

    def _place(
        self, group: list[Tenant], offer: Offer, gpu: int, lines: tuple[QuoteLine, ...]
    ) -> Placement:
        group = sorted(group, key=lambda t: t.name)
        pieces = slices_of(group) if by_slices(group) else ()
        placed = Placement(
            id=len(self.placements) + 1,
            offer=offer,
            gpu=gpu,
            mode=None if len(group) == 1 else "mig" if pieces else side_by_side(offer),
            slices=tuple(one.profile for one in pieces if not isinstance(one, str)),
            jobs=tuple(t.name for t in group),
            speed=speeds(group) if len(group) > 1 else {group[0].name: exactly(1.0, "alone")},
            hours=max(t.home.hours for t in group if t.home),
            lines=lines,
            busy_fraction=_busy(group),
        )
        self.placements.append(placed)
        return placed


def _busy(group: Iterable[Tenant]) -> float | None:
    loads = [one.home.profile.busy_fraction if one.home else None for one in group]
    known = [load for load in loads if load is not None]
    return min(1.0, sum(known)) if len(known) == len(loads) else None


def _data(one: Tenant) -> tuple[QuoteLine, ...]:
    """Return what the job's own traffic and storage cost; sharing a GPU does not save them."""
    lines = one.home.quote.lines if one.home else ()
    return tuple(line for line in lines if line.what in OF_THE_DATA)
