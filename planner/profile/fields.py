"""What fields of `profile.json` and options hold: numbers in ranges, words of a list, lists."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

LARGEST = 10**15
"""Beyond any bill, any count and any duration."""
Count = Annotated[int, Meta(ge=0, le=LARGEST)]
AtLeastOne = Annotated[int, Meta(ge=1, le=LARGEST)]
Measure = Annotated[float, Meta(ge=0, le=LARGEST)]
Positive = Annotated[float, Meta(gt=0, le=LARGEST)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Real = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]

Instant = Annotated[datetime, Meta(tz=True)]
"""A time with its zone; a file has it in UTC, to the second."""

_Kind = TypeVar("_Kind")
Several = Annotated[tuple[_Kind, ...], Meta(max_length=10_000)]
"""A list; the largest clusters hold fewer GPUs in one job."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a profile; its docstring says what each field means, None is "not measured"."""


def one_of(choices: Sequence[str]) -> Meta:
    """Return the limit of a text to words of a list."""
    pattern = f"^(?:{'|'.join(map(re.escape, choices))})$(?!\\n)"
    return Meta(pattern=pattern, extra_json_schema={"enum": list(choices)})


def matching(pattern: str) -> Meta:
    """Return the limit of a text to what all of a regular expression matches."""
    return Meta(pattern=f"^(?:{pattern})$(?!\\n)")


def of_length(*counts: int) -> Meta:
    """Return how the schema limits a list to some lengths; its class checks them."""
    lengths = [{"minItems": count, "maxItems": count} for count in counts]
    return Meta(extra_json_schema={"anyOf": lengths})


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRange:
    """Which numbers can be meant.

    Attributes:
        low: the least.
        high: the greatest, which is allowed.
        inclusive: whether the least is allowed, too.
    """

    low: float = 0.0
    high: float
    inclusive: bool = True

    def refusal(self, value: float | Decimal) -> str | None:
        """Return why a number cannot be meant: `is not at least 0 and at most 744`; else None."""
        enough = value >= self.low if self.inclusive else value > self.low
        if enough and value <= self.high:
            return None
        bound = "at least" if self.inclusive else "more than"
        return f"is not {bound} {self.low:g} and at most {self.high:g}"


HOURS_A_MONTH = NumberRange(high=744.0, inclusive=False)
HOURS = NumberRange(high=1e12 / 3600.0)
WORK = MILLISECONDS = NumberRange(high=1e18, inclusive=False)
BYTES = NumberRange(high=1e18)
DOLLARS = NumberRange(high=1e15)
SLOWDOWN = NumberRange(low=1.0, high=1000.0)
MONTHS = NumberRange(high=120.0, inclusive=False)
GRID_G_PER_KWH = NumberRange(high=5000.0)
PUE = NumberRange(low=1.0, high=10.0)
HOST_FRACTION = NumberRange(high=0.9)
GPUS = NumberRange(low=1.0, high=100_000.0)
