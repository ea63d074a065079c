"""A bill as lines of one shape, whatever file it came in."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pricing.errors import InputError

MACHINE = "compute"
USAGE = (
    MACHINE,
    "disk",
    "snapshot",
    "object-storage",
    "egress",
    "address",
    "control-plane",
    "other",
)
"""Kinds of lines that use of a service makes; "other" is what no plan predicts."""

APART = ("tax", "credit", "fee")
"""Kinds that follow from the account, not from the use: never held against a prediction."""

RESERVED = "reserved"
_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """One charge.

    Attributes:
        kind: of USAGE or APART.
        usd: exact, as the bill has it; negative for a credit.
        provider: our name for it, else the bill's.
        description: the bill's words.
        instance_type: size of the machine; None where the line is of none, or does not say.
        region: None where the bill does not say.
        purchase: on_demand, spot or `reserved`; None where the bill does not say.
        hours: machine hours; None where the bill does not say.
        start: of the use, UTC; None where the bill does not say.
        end: of the use, exclusive, UTC.
        resource: the provider's id or name of what was used; None where the bill does not say.
        account: the account that used it, as `resource`.
        zone: a part of the region, as `resource`.
        gpu: the GPU model, in the bill's words; None where it does not say.
        gpus: GPUs of the machine; None where the bill does not say.
        gpu_hours: of all its GPUs; None where the bill does not count them itself.
        idle: whether the bill itself says that nobody used it, such as an unassigned address or the
            unused part of a commitment; None where it does not say.
        source: file and line.
    """

    kind: str
    usd: Decimal
    provider: str
    description: str
    instance_type: str | None = None
    region: str | None = None
    purchase: str | None = None
    hours: Decimal | None = None
    start: datetime | None = None
    end: datetime | None = None
    resource: str | None = None
    account: str | None = None
    zone: str | None = None
    gpu: str | None = None
    gpus: Decimal | None = None
    gpu_hours: Decimal | None = None
    idle: bool | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if self.kind not in (*USAGE, *APART) or not self.usd.is_finite():
            raise ValueError(f"no charge: {self.kind!r}, {self.usd!r} ({self.description})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The charges of one file.

    Attributes:
        name: of the file.
        format: what it was recognised as.
        lines: in the file's order.
        notes: what was not counted, and why.
        whole: whether it is of everything that an account used; an export may be of a part.
    """

    name: str
    format: str
    lines: tuple[BillLine, ...]
    notes: tuple[str, ...] = ()
    whole: bool = False


def refuse(problems: Iterable[str]) -> None:
    """Raise all problems of a file together, where there are any.

    Raises:
        InputError: the first fifty, and how many more there are.
    """
    found = list(problems)
    if not found:
        return
    more = len(found) - _SHOWN
    raise InputError([*found[:_SHOWN], *([f"... and {more} problems more."] if more > 0 else [])])
