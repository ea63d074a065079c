"""What all jobs of one plan share: the sizes on sale, and the prices that stand for unknown ones.

What is worked out here depends on the catalog, on what was asked and on the use alone, not on a
job's measurements: what does is worked out for the job (`planner.choice.context`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import NamedTuple

from msgspec import structs

from planner.choice.requirements import Requirements
from planner.prediction.layout import Layout
from pricing.billing.quote import dearest
from pricing.billing.usage import Usage
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.regions import placed
from pricing.money import HOURS_PER_MONTH

_OF_EACH_MACHINE = ("boot-disk", "address")
_MONTH_S = HOURS_PER_MONTH * 3600
_PRICE = attrgetter("usd_per_hour")
_ROUNDED = Decimal("0.999")  # one list states 21.957642 an hour, another 21.9576


class OnSale(NamedTuple):
    """An offer, and the machines of it that one copy of a job would take.

    Attributes:
        offer: what is rented.
        machines: as many as today, whole large ones, or one.
        used: their GPUs at work: all of them, but what the job wants where more must be paid.
        idle: GPUs that would be paid for and not used.
        today: whether it is the size that runs the job today.
    """

    offer: Offer
    machines: int
    used: int
    idle: int
    today: bool

    @property
    def layout(self) -> Layout:
        """Their GPUs at work."""
        return Layout.of(self.offer, self.machines, self.used)


@dataclass(frozen=True, kw_only=True, eq=False)
class Market:
    """The offers of a day under one set of wishes.

    Attributes:
        catalog: offers and rules of the day.
        asked: limits and wishes.
    """

    catalog: Catalog
    asked: Requirements

    def there(self, offer: Offer, continent: str | None) -> Offer | None:
        """Return the offer in a region that was asked for; None where nothing shows one.

        Where none was asked for it must stand on the continent; None is any.
        """
        if self.asked.regions:
            return placed(offer, self.asked.regions)
        return offer if continent is None else placed(offer, (continent,))

    def named(self, offer: Offer) -> bool:
        """Return whether the user's choice of providers and GPUs has room for an offer."""
        providers, models = self.asked.providers, self.asked.gpus
        return (not providers or offer.provider in providers) and (
            not models or offer.gpu in models
        )

    def cheapest(
        self,
        home: str | None,
        continent: str | None,
        farther_ms: Callable[[Offer], float] | None = None,
        room_ms: float = 0.0,
    ) -> Iterator[Offer]:
        """Yield one offer per size and purchase, sorted: its cheapest region.

        Where distance counts, the cheapest near enough, and the cheapest no farther than today.

        Args:
            home: region that wins where another costs less by no more than a rounding of the list.
            continent: where all must stand; None is any.
            farther_ms: how much longer the way from a service's users is there than today.
            room_ms: how much longer it may be.
        """
        anywhere = continent is None and not self.asked.regions
        for offers in self._sizes:
            allowed = offers if anywhere else [o for x in offers if (o := self.there(x, continent))]
            ways = (room_ms, 0.0) if farther_ms is not None and allowed else ()
            near = ([o for o in allowed if farther_ms(o) <= ms] for ms in ways if farther_ms)
            groups = [group or allowed for group in near] or [allowed or offers]
            yield from dict.fromkeys(_cheapest_of(group, home) for group in groups)

    @cached_property
    def _sizes(self) -> tuple[tuple[Offer, ...], ...]:
        """The offers that the user's choice has room for, by size and purchase, sorted."""
        if not (self.asked.providers or self.asked.gpus):
            return self.catalog.by_size
        named = (tuple(filter(self.named, offers)) for offers in self.catalog.by_size)
        return tuple(filter(None, named))

    def dearest(self, what: str, usage: Usage) -> Decimal | None:
        """Return the highest known price of a part of a bill; None where none is known.

        A disk that is kept for the period costs the same whatever runs beside it. What each machine
        has for as long as it lives is asked for once, for a machine and a month.
        """
        if what in _OF_EACH_MACHINE:
            highest = self._dearest(what, _month_of_one(usage))
            lasts_s = max(usage.life_s, Decimal(usage.boot_disk_h or 0) * 3600)
            return None if highest is None else highest * usage.count * lasts_s / _MONTH_S
        if what == "disk" and usage.storage_h is not None:
            usage = structs.replace(_month_of_one(usage), boot_disk_bytes=0, egress_bytes=0)
        return self._dearest(what, usage)

    @cached_property
    def _dearest(self) -> Callable[[str, Usage], Decimal | None]:
        return lru_cache(maxsize=1024)(
            lambda what, usage: dearest(what, usage, self.catalog.places)
        )


def _cheapest_of(offers: Sequence[Offer], home: str | None) -> Offer:
    lowest = min(offers, key=_PRICE)  # of equal ones the first, by region
    at_home = [o for o in offers if o.region == home]
    nearest = min(at_home, key=_PRICE, default=lowest)
    return nearest if nearest.usd_per_hour * _ROUNDED <= lowest.usd_per_hour else lowest


def _month_of_one(usage: Usage) -> Usage:
    """Return the use of one machine for a month."""
    return structs.replace(
        usage,
        duration_s=_MONTH_S,
        count=1,
        boot_disk_h=None,
        addresses=1,
        boot_s=0,
        lost_work_s=0,
        checkpoint_s=0,
        idle_tail_s=0,
    )
