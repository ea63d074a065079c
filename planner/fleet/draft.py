"""A fleet under construction: packed and with its bill first, put into words where it is taken."""

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from planner.actions import ACTIONS
from planner.fleet import machines_left
from planner.fleet.fleet import Fleet, Placement, Together, total
from planner.fleet.tenant import Tenant, Unmoved, by_slices, side_by_side, slices_of, speeds
from planner.models.estimate import exactly
from pricing.billing.lines import QuoteLine
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.money import whole_dollars

if TYPE_CHECKING:
    from planner.fleet.packing import Packing

_SHARE_H = ACTIONS["share-gpu"].effort_hours


class _Gpu(NamedTuple):
    """One GPU, who shares it by name, and its bill."""

    group: list[Tenant]
    offer: Offer
    gpu: int
    lines: tuple[QuoteLine, ...]
    cost: Decimal


class _Joined(NamedTuple):
    """Jobs that are packed all or none: by name, on GPUs by their places, with their bill."""

    group: list[Tenant]
    gpus: tuple[int, ...]
    cost: Decimal
    others: tuple[QuoteLine, ...] = ()


class Draft:
    """A fleet whose GPUs and bill are known.

    What else is said of it, such as how fast jobs run together and how dear their bill may get, is
    worked out by `fleet`: of several drafts few are taken.

    Args:
        tenants: all of its jobs.
        unmoved: who takes no part in packing, and why.

    Attributes:
        unmoved: whom a GPU is held for while others are, and why it cannot join them.
    """

    def __init__(self, tenants: list[Tenant], unmoved: Iterable[Unmoved]) -> None:
        self.unmoved = list(unmoved)
        self._tenants = tenants
        self._gpus: list[_Gpu] = []
        self._joined: list[_Joined] = []
        self._notes: list[str] = []
        self._kept, self._held, self._bound, self._stopped = Decimal(0), 0, 0, False

    @property
    def cost_after(self) -> Decimal:
        """The bill after packing, dollars of the period, exact."""
        return sum((one.cost for one in self._gpus), self._kept)

    def fleet(self, taken: int = 0) -> Fleet:
        """Return the fleet, its placements numbered on from those that are taken."""
        return Fleet(
            gpus_before=machines_left.gpus_held(self._tenants),
            gpus_after=len(self._gpus) + self._held,
            gpus_lower_bound=self._bound + self._held,
            search_ended_early=self._stopped,
            cost_before=sum((t.baseline.cost or Decimal(0) for t in self._tenants), Decimal(0)),
            cost_after=self.cost_after,
            placements=tuple(
                _placement(one, number) for number, one in enumerate(self._gpus, taken + 1)
            ),
            unmoved=tuple(sorted(self.unmoved, key=lambda u: u.job)),
            together=tuple(_together(one, taken) for one in self._joined),
            notes=tuple(self._notes),
        )

    def add(self, packing: "Packing", alone: list[Tenant], catalog: Catalog | None) -> None:
        """Place the jobs of one machine type; those in `alone` share with nobody."""
        self._stopped = self._stopped or packing.stopped
        everyone = [*(t for group in packing.groups for t in group), *alone]
        if not any(_has_neighbours(t) for t in everyone):
            self._bound += packing.bound
            self._add_gpus(packing.groups)
            self.add_alone(alone)
            return
        left = machines_left.find(packing.groups, alone, catalog)
        before = sum((t.baseline.cost or Decimal(0) for t in everyone), Decimal(0))
        after = left.bill.exact + sum(
            (total(t.home.data_lines if t.home else ()) for t in everyone), Decimal(0)
        )
        if after > before:
            self._leave(everyone, left, after - before)
        else:
            self._bound += packing.bound
            self._add_machines(packing.groups, alone, left)

    def _leave(self, everyone: list[Tenant], left: machines_left.Left, dearer: Decimal) -> None:
        """Leave the jobs of machines that would cost more once they are packed."""
        self._kept += sum((t.baseline.cost or Decimal(0) for t in everyone), Decimal(0))
        self._held += machines_left.gpus_held(everyone)
        self._notes.append(
            f"the jobs on {left.offer.name} stay where they are: packed they would cost "
            f"${whole_dollars(dearer)} more, as all of their machines would be held for as long as "
            "the longest job."
        )

    def add_alone(self, tenants: Iterable[Tenant]) -> None:
        """Count jobs that stay as they are."""
        for one in tenants:
            self._kept += one.baseline.cost or Decimal(0)
            self._held += one.profile.gpu_count * one.baseline.replicas

    def _add_gpus(self, bins: list[list[Tenant]]) -> None:
        """Place jobs on GPUs that are rented one by one, or as a part of a machine."""
        for group in bins:
            longest = max(group, key=lambda t: (t.home.hours if t.home else 0.0, t.name))
            home = longest.home
            if home is None:
                raise ValueError("only jobs with a priced machine are packed")
            others = [line for t in group if t is not longest for line in _data(t)]
            cost = self._place(group, home.offer, 0, (*home.quote.lines, *others))
            if len(group) > 1:
                self._joined.append(_Joined(_by_name(group), (len(self._gpus),), cost))

    def _add_machines(
        self, bins: list[list[Tenant]], alone: list[Tenant], left: machines_left.Left
    ) -> None:
        """Place jobs on machines of several GPUs whose bill they share."""
        self._notes.extend(left.notes)
        size, cost, first = round(left.offer.gpu_count), Decimal(0), len(self._gpus) + 1
        for number, group in enumerate(bins):
            data = [line for t in group for line in _data(t)]
            cost += self._place(group, left.offer, number % size, (*left.lines(1), *data))
        self._held += machines_left.gpus_held(alone)
        others: list[QuoteLine] = []
        for one in alone:
            own = (*left.lines(one.profile.gpu_count), *_data(one))
            self._kept, cost = self._kept + total(own), cost + total(own)
            others.extend(own)
        everyone = _by_name([*(t for group in bins for t in group), *alone])
        gpus = tuple(range(first, len(self._gpus) + 1))
        self._joined.append(_Joined(everyone, gpus, cost, tuple(others)))

    def _place(
        self, group: list[Tenant], offer: Offer, gpu: int, lines: tuple[QuoteLine, ...]
    ) -> Decimal:
        """Put jobs on one GPU; return its bill."""
        self._gpus.append(_Gpu(_by_name(group), offer, gpu, lines, total(lines)))
        return self._gpus[-1].cost


def _by_name(group: list[Tenant]) -> list[Tenant]:
    return sorted(group, key=lambda t: t.name)


def _placement(one: _Gpu, number: int) -> Placement:
    group = one.group
    pieces = slices_of(group) if by_slices(group) else ()
    return Placement(
        id=number,
        offer=one.offer,
        gpu=one.gpu,
        mode=None if len(group) == 1 else "mig" if pieces else side_by_side(one.offer),
        slices=tuple(one.profile for one in pieces if not isinstance(one, str)),
        jobs=tuple(t.name for t in group),
        speed=speeds(group) if len(group) > 1 else {group[0].name: exactly(1.0, "alone")},
        hours=max(t.home.hours for t in group if t.home),
        lines=one.lines,
        busy_fraction=_busy(group),
    )


def _together(one: _Joined, taken: int) -> Together:
    """Return jobs that are packed all or none.

    A GPU's bill is that of whoever holds it longest, so it is at most as much dearer than expected
    as the dearest of its jobs may get.
    """
    homes = [t.home for t in one.group if t.home]
    off = [[end - home.usd for end in home.ends] for home in homes]
    return Together(
        jobs=tuple(t.name for t in one.group),
        placements=tuple(gpu + taken for gpu in one.gpus),
        cost=one.cost,
        low=max(Decimal(0), one.cost + min(low for low, _ in off)),
        high=one.cost + max(high for _, high in off),
        effort_hours=sum(_SHARE_H + home.effort_hours for home in homes),
        moving_usd=sum((home.moving_usd or Decimal(0) for home in homes), Decimal(0)),
        others=one.others,
    )


def _has_neighbours(one: Tenant) -> bool:
    tenancy = one.baseline.tenancy
    return (
        tenancy is not None and bool(tenancy.beside) and one.home is not None and not one.home.moved
    )


def _busy(group: Iterable[Tenant]) -> float | None:
    loads = [one.home.profile.busy_fraction if one.home else None for one in group]
    known = [load for load in loads if load is not None]
    return min(1.0, sum(known)) if len(known) == len(loads) else None


def _data(one: Tenant) -> tuple[QuoteLine, ...]:
    return one.home.data_lines if one.home else ()
