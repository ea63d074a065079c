"""What is asked to be priced: how long, how many machines, how much traffic and storage."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from operator import attrgetter
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from pricing.errors import InputError

_ADDITIONAL = (
    ("boot", "boot_s"),
    ("lost-work", "lost_work_s"),
    ("checkpoint", "checkpoint_s"),
    ("idle-tail", "idle_tail_s"),
)
_TIMES = ("duration_s", *(name for _, name in _ADDITIONAL), "storage_h", "boot_disk_h")
_TIMED, _ADDED = attrgetter(*_TIMES), attrgetter(*(name for _, name in _ADDITIONAL))
_ZERO = Decimal(0)
_TRAFFIC = (
    "egress_bytes",
    "ingress_bytes",
    "inter_zone_bytes",
    "inter_region_bytes",
    "nat_bytes",
    "object_egress_bytes",
)
_COUNTS = (
    *_TRAFFIC,
    "boot_disk_bytes",
    "storage_bytes",
    "snapshot_bytes",
    "object_storage_bytes",
    "addresses",
    "nat_gateways",
)
_COUNTED, _MOVED = attrgetter(*_COUNTS), attrgetter(*_TRAFFIC)
_MICROSECOND_DIGITS = 6
_SECONDS_PER_HOUR = Decimal(3600)

Commitment = Literal["", "term", "month"]


class Usage(Struct, frozen=True, kw_only=True, dict=True):
    """One use of an offer. Times and boot disks are of each machine; the rest is of all together.

    Attributes:
        duration_s: life of an instance on the bill, from billing start to billing end, >= 0.
            Floats are read to the microsecond.
        as_of: the day whose price and rules hold.
        count: machines, >= 1.
        egress_bytes: traffic to the internet.
        egress_to: country that it goes to, in words; empty where that is not said.
        interrupted: the provider ends the spot machines itself, at the end of their life.
        commitment: what is owed of machines that are bought for a term, however long they run:
            whole terms ("term"), or the month's part of one ("month"); empty: the time they run.
        boot_disk_bytes: disk that each machine boots from, as long as it lives; it costs nothing
            where the machine's price holds it.
        boot_disk_h: hours that boot disks are kept, also while their machines are off; None is as
            long as the machines live.
        storage_bytes: volume storage beside the disks that come with the machine.
        storage_kind: the provider's name of another than its usual volume storage.
        storage_h: hours that storage, snapshots and objects are kept; None is as long as the
            machines live.
        snapshot_bytes: snapshots kept.
        object_storage_bytes: objects kept.
        object_egress_bytes: traffic from the object storage to the internet.
        ingress_bytes: traffic in from the internet.
        inter_zone_bytes: traffic between zones of a region.
        inter_region_bytes: traffic to other regions of the provider.
        addresses: public IPv4 addresses.
        nat_gateways: address translation gateways.
        nat_bytes: traffic through them.
        control_plane: kind of the Kubernetes control plane: "standard", "ha", "extended", "free";
            empty for none.
        lost_work_s: machine time on top of duration_s that interruptions waste.
        checkpoint_s: machine time on top of duration_s that writing checkpoints takes.
        boot_s: machine time on top of duration_s before work starts.
        idle_tail_s: machine time on top of duration_s between the end of work and of the machine.
        start: instant at which the machine is created, if known; on the day `as_of` in UTC. With
            it, storage that is priced by the calendar month counts the hours of that month.

    Raises:
        InputError: a quantity is negative or not finite, count is below 1, or start has no time
            zone or lies on another day.
    """

    duration_s: Decimal | float
    as_of: date
    count: int = 1
    egress_bytes: int = 0
    egress_to: str = ""
    interrupted: bool = False
    commitment: Commitment = ""
    ingress_bytes: int = 0
    inter_zone_bytes: int = 0
    inter_region_bytes: int = 0
    boot_disk_bytes: int = 0
    boot_disk_h: Decimal | float | None = None
    storage_bytes: int = 0
    storage_kind: str = ""
    storage_h: Decimal | float | None = None
    snapshot_bytes: int = 0
    object_storage_bytes: int = 0
    object_egress_bytes: int = 0
    addresses: int = 0
    nat_gateways: int = 0
    nat_bytes: int = 0
    control_plane: str = ""
    lost_work_s: Decimal | float = _ZERO
    checkpoint_s: Decimal | float = _ZERO
    boot_s: Decimal | float = _ZERO
    idle_tail_s: Decimal | float = _ZERO
    start: datetime | None = None

    def __post_init__(self) -> None:
        problems = []
        for name, value in zip(_TIMES, _TIMED(self), strict=True):
            if value is None or value is _ZERO:
                continue
            if not math.isfinite(value) or value < 0:
                problems.append(f"usage: {name} is {value}; it must be 0 or more")
                continue
            exact = str(round(value, _MICROSECOND_DIGITS)) if isinstance(value, float) else value
            force_setattr(self, name, Decimal(exact))
        counts = _COUNTED(self)
        if self.count < 1 or min(counts) < 0:
            problems += self._too_few()
        if self.start is not None and self.start.tzinfo is None:
            problems.append(f"usage: start is {self.start}, without a time zone; give it in UTC")
        elif self.start is not None and self.start.astimezone(UTC).date() != self.as_of:
            problems.append(f"usage: start is {self.start}, which is not on the day {self.as_of}")
        if problems:
            raise InputError(problems)

    @cached_property
    def additional(self) -> tuple[tuple[str, Decimal], ...]:
        """Every kind of machine time on top of duration_s, seconds, by its line."""
        times = zip(_ADDITIONAL, _ADDED(self), strict=True)
        return tuple((category, seconds) for (category, _), seconds in times if seconds)

    @cached_property
    def life_s(self) -> Decimal:
        """How long each machine lives, additional time included."""
        return sum((seconds for _, seconds in self.additional), Decimal(self.duration_s))

    @cached_property
    def kept_apart_s(self) -> Decimal | None:
        """How long storage, snapshots and objects are kept; None: as long as the machines live."""
        return None if self.storage_h is None else Decimal(self.storage_h) * _SECONDS_PER_HOUR

    @cached_property
    def extras(self) -> bool:
        """Whether anything but machine time is asked for."""
        return bool(self.control_plane) or any(_COUNTED(self))

    @cached_property
    def traffic(self) -> bool:
        """Whether traffic of any kind is asked for."""
        return any(_MOVED(self))

    def _too_few(self) -> list[str]:
        minimums = {"count": 1, **dict.fromkeys(_COUNTS, 0)}
        values = {name: getattr(self, name) for name in minimums}
        return [
            f"usage: {name} is {value}; at least {minimums[name]}"
            for name, value in values.items()
            if value < minimums[name]
        ]
