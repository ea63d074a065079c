"""What all jobs of one plan share: the sizes on sale, and the prices that stand for unknown ones.

Each answer is worked out when it is first asked for and kept for the plan, as it depends on the
catalog, on what was asked and on the use alone. Nothing here may depend on a job's measurements:
what does is worked out for the job (`planner.choice.context`).
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from msgspec import structs

from planner.choice.requirements import Rejected, Requirements
from planner.prediction.layout import Layout
from pricing.billing.quote import dearest, places
from pricing.billing.usage import Usage
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.price_age import PriceRange, moved
from pricing.catalog.regions import placed
from pricing.money import HOURS_PER_MONTH

_OF_EACH_MACHINE = ("boot-disk", "address")
_MONTH_S = HOURS_PER_MONTH * 3600

Size = tuple[str, str, str]
"""Provider, type, way of buying."""


class Sizing(NamedTuple):
    """The machines of a size that one copy of a job would take.

    Attributes:
        machines: as many as today, whole large ones, or one.
        used: their GPUs at work: all of them, but what the job wants where more must be paid.
        idle: GPUs that would be paid for and not used.
        today: whether it is the size that runs the job today.
        vcpus: threads of their hosts; where they are not stated, as the least machine sold with
            the GPU has. None: not known.
        ram_gib: memory of their hosts, likewise.
    """

    machines: int
    used: int
    idle: int
    today: bool
    vcpus: float | None
    ram_gib: float | None

    def layout(self, offer: Offer) -> Layout:
        """Return the GPUs at work on so many machines of an offer."""
        return Layout.of(offer, self.machines, self.used)


Refused = tuple[float, int, Rejected]
"""How far over a limit an offer is, its place among the offers, and what is said."""


class OnSale(NamedTuple):
    """An offer as all jobs on the same machines today see it: nothing of it was measured.

    Attributes:
        number: its place among the offers.
        offer: what is rented.
        sizing: the machines that a job would take.
        layout: their GPUs at work.
        room: number of what decides whether a job fits these GPUs; the same for many offers.
    """

    number: int
    offer: Offer
    sizing: Sizing
    layout: Layout
    room: int


class Sifted(NamedTuple):
    """The offers for jobs on the same machines today.

    Attributes:
        taken: such jobs can take them, as far as can be said without a measurement.
        refused: why they cannot take the others, by offer and reason.
    """

    taken: tuple[OnSale, ...]
    refused: dict[tuple[str, str], Refused]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What holds for all jobs on the same machines today that want the same GPUs.

    Attributes:
        sizings: by the identity of an offer, which stands beside it.
        sifted: by whether the price that is paid today is known.
        rooms: numbers of what decides whether a job fits GPUs.
    """

    sizings: dict[int, tuple[Offer, Sizing]] = field(default_factory=dict)
    sifted: dict[bool, Sifted] = field(default_factory=dict)
    rooms: dict[object, int] = field(default_factory=dict)

    def on_sale(self, number: int, offer: Offer, sizing: Sizing) -> OnSale:
        """Return an offer with what follows from it for these jobs."""
        layout = sizing.layout(offer)
        room = self.rooms.setdefault((layout.kind, offer.gpu_memory_gib), len(self.rooms))
        return OnSale(number, offer, sizing, layout, room)


@dataclass(frozen=True, kw_only=True)
class Market:
    """The offers of a day under one set of wishes.

    Attributes:
        catalog: offers and rules of the day.
        asked: limits and wishes.
    """

    catalog: Catalog
    asked: Requirements
    _cheapest: dict[tuple[str | None, str | None], tuple[Offer, ...]] = field(
        default_factory=dict, repr=False
    )
    _alike: dict[object, Standing] = field(default_factory=dict, repr=False)
    _moved: dict[tuple[str, str, str, date], PriceRange] = field(default_factory=dict, repr=False)
    _dearest: dict[tuple[str, object], Decimal | None] = field(default_factory=dict, repr=False)

    def alike(self, standing: object) -> Standing:
        """Return what was worked out for jobs that stand so: machine, GPUs wanted, kind of job."""
        return self._alike.setdefault(standing, Standing())

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

    def cheapest(self, home: str | None, continent: str | None) -> tuple[Offer, ...]:
        """Return one offer per size and purchase, sorted: its cheapest region.

        Args:
            home: region that wins where several cost the same.
            continent: where all must stand; None is any.
        """
        known = self._cheapest
        if (home, continent) not in known:
            known[home, continent] = tuple(self._choose(home, continent))
        return known[home, continent]

    def _choose(self, home: str | None, continent: str | None) -> Iterator[Offer]:
        groups: dict[Size, list[Offer]] = defaultdict(list)
        for offer in self.catalog.offers:
            if self.named(offer):
                groups[size_of(offer)].append(offer)
        for key in sorted(groups):
            allowed = [there for o in groups[key] if (there := self.there(o, continent))]
            yield min(
                allowed or groups[key], key=lambda o: (o.usd_per_hour, o.region != home, o.region)
            )

    def moved(self, offer: Offer) -> PriceRange:
        """Return between which factors the price of an offer lies on the day."""
        known = self._moved
        key = (offer.provider, offer.gpu, offer.purchase, offer.as_of)
        if key not in known:
            known[key] = moved(offer, self.catalog.as_of)
        return known[key]

    def dearest(self, what: str, usage: Usage) -> Decimal | None:
        """Return the highest known price of a part of a bill; None where none is known.

        A disk that is kept for the period costs the same whatever runs beside it. What each machine
        has for as long as it lives is asked for once, for a machine and a month.
        """
        if what in _OF_EACH_MACHINE:
            key = (what, usage.boot_disk_bytes)
            if key not in self._dearest:
                self._dearest[key] = dearest(what, _month_of_one(usage), self._places)
            most = self._dearest[key]
            return None if most is None else most * usage.count * usage.life_s / _MONTH_S
        kept = what == "disk" and usage.storage_h is not None
        stored = (usage.storage_bytes, usage.storage_kind, usage.storage_h)
        use: tuple[str, object] = (what, stored if kept else usage)
        if use not in self._dearest:
            self._dearest[use] = dearest(what, usage, self._places)
        return self._dearest[use]

    @cached_property
    def _places(self) -> tuple[Offer, ...]:
        """One offer for each provider, region and way of buying."""
        return places(self.catalog.offers)

    @cached_property
    def least_host(self) -> dict[str, tuple[float | None, float | None]]:
        """The least vCPUs and memory (GiB) for each GPU that is sold with a model.

        None where no machine with it states them.
        """
        sold: dict[str, list[Offer]] = defaultdict(list)
        for offer in self.catalog.offers:
            if offer.gpu_count >= 1:
                sold[offer.gpu].append(offer)
        return {
            gpu: (
                min((o.vcpus / o.gpu_count for o in offers if o.vcpus), default=None),
                min((o.ram_gib / o.gpu_count for o in offers if o.ram_gib), default=None),
            )
            for gpu, offers in sold.items()
        }


def _month_of_one(usage: Usage) -> Usage:
    """Return the use of one machine for a month."""
    return structs.replace(
        usage,
        duration_s=_MONTH_S,
        count=1,
        addresses=1,
        boot_s=0,
        lost_work_s=0,
        checkpoint_s=0,
        idle_tail_s=0,
    )


def size_of(offer: Offer) -> Size:
    """Return what offers of one size share, in whatever region."""
    return (offer.provider, offer.instance_type, offer.purchase)
