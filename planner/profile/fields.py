"""What fields of `profile.json` hold: numbers within limits, words of a list, lists of records."""

import re
from collections.abc import Sequence
from datetime import datetime
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
