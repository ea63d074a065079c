"""What is asked to be priced: how long, how many machines, how much traffic and storage."""

import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from pricing.errors import InputError

_DURATIONS = ("duration_s", "boot_s", "lost_work_s", "checkpoint_s")
_MICROSECOND_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One use of an offer. Times are of each machine; traffic and storage are of all together.

    Attributes:
        duration_s: life of an instance on the bill, from billing start to billing end, >= 0.
            Floats are read to the microsecond.
        as_of: the day whose price and rules hold.
        count: machines, >= 1.
        egress_bytes: traffic to the internet.
        storage_bytes: volume storage beside the disks that come with the machine.
        storage_h: hours the storage is kept; None is as long as the machines.
        lost_work_s: machine time on top of duration_s that interruptions waste.
        checkpoint_s: machine time on top of duration_s that writing checkpoints takes.
        boot_s: machine time on top of duration_s before work starts.

    Raises:
        InputError: a quantity is negative or not finite, or count is below 1.
    """

    duration_s: Decimal | float
    as_of: date
    count: int = 1
    egress_bytes: int = 0
    storage_bytes: int = 0
    storage_h: Decimal | float | None = None
    lost_work_s: Decimal | float = 0
    checkpoint_s: Decimal | float = 0
    boot_s: Decimal | float = 0

    def __post_init__(self) -> None:
        problems = []
        for name in (*_DURATIONS, "storage_h"):
            value = getattr(self, name)
            if value is None:
                continue
            if not math.isfinite(value) or value < 0:
                problems.append(f"usage: {name} is {value}; it must be 0 or more")
                continue
            if isinstance(value, float):
                value = str(round(value, _MICROSECOND_DIGITS))
            object.__setattr__(self, name, Decimal(value))
        for name, least in (("count", 1), ("egress_bytes", 0), ("storage_bytes", 0)):
            if getattr(self, name) < least:
                problems.append(f"usage: {name} is {getattr(self, name)}; at least {least}")
        if problems:
            raise InputError(problems)
