"""Writes values as JSON values: money as text, days and times as ISO 8601, fields in order."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import attrgetter
from types import MappingProxyType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from planner.plan_document.document import PlanDocument

Way = Callable[[Any], Any]
Record = Callable[[str, list[str]], Callable[..., Any]]
"""Returns what makes a JSON object of the values of its names, in their order; UNSET is left out.

It is called with what the object is of, and the names.
"""

IF_KNOWN: Mapping[str, bool] = MappingProxyType({"if_known": True})
"""Metadata of a field that is left out of the file where it is None."""


def encode(value: Any) -> Any:  # noqa: ANN401 - walks values of every kind
    """Return a value of plan.json, or of another document, as JSON values."""
    return _VALUES[value.__class__](value)


def to_text(value: object) -> str:
    """Return the text of a file that holds a value of plan.json.

    Raises:
        ValueError: a number is not finite.
    """
    try:
        packed = msgspec.json.encode(_TEXT[value.__class__](value))
    except UnicodeEncodeError:  # half of a character in a name: no file can hold it
        return json.dumps(encode(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return msgspec.json.format(packed, indent=1).decode() + "\n"


def plan_id(plan: PlanDocument) -> str:
    """Return the SHA-256 of a plan's values, whatever the white space of its file."""
    return plan.id or digest(encode(plan))


def digest(document: object) -> str:
    """Return the SHA-256 of JSON values."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def canonical(value: object) -> str:
    """Return the one text of JSON values: keys sorted, no white space, ASCII alone."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def name_in_file(one: "Field[Any]") -> str:
    """Return what a field is called in the file."""
    return str(one.metadata.get("name", one.name))


class _Walk(dict[Any, Way]):
    """How values of each class become JSON values; found once for each class.

    Args:
        record: makes what stands for a dataclass, of its class.
        number: what becomes of a float.
    """

    def __init__(self, record: Record, number: Way) -> None:
        super().__init__()
        self._record_of = record
        self._number = number

    def __missing__(self, kind: Any) -> Way:  # noqa: ANN401 - a class
        way = self[kind] = self._find(kind)
        return way

    def _find(self, kind: Any) -> Way:  # noqa: ANN401 - a class
        if is_dataclass(kind):
            return self._record(kind)
        ways = (
            (Decimal, _digits),
            (datetime, lambda value: f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"),
            (date, date.isoformat),
            (Mapping, self._mapping),
            ((tuple, list), self._sequence),
            (float, self._number),
        )
        return next((way for kinds, way in ways if issubclass(kind, kinds)), _as_it_is)

    def _mapping(self, value: Mapping[str, Any]) -> dict[str, Any]:
        made = dict(value)
        for key, one in value.items():
            if one.__class__ not in _PLAIN:
                made[key] = self[one.__class__](one)
        return made

    def _sequence(self, value: Sequence[Any]) -> list[Any]:
        return [one if one.__class__ in _PLAIN else self[one.__class__](one) for one in value]

    def _record(self, kind: Any) -> Way:  # noqa: ANN401 - a dataclass
        written = [one for one in fields(kind) if one.metadata.get("written", True)]
        values = _values_of([one.name for one in written])
        declared = get_type_hints(kind)
        walked = [n for n, one in enumerate(written) if not _is_plain(declared[one.name])]
        if_known = [n for n, one in enumerate(written) if one.metadata.get("if_known")]
        record = self._record_of(kind.__name__, [name_in_file(one) for one in written])

        def way(value: Any) -> Any:  # noqa: ANN401 - of the dataclass
            found = list(values(value))
            for place in walked:
                one = found[place]
                its = one.__class__
                if its not in _PLAIN and not (its is float and _SMALL <= one < _LARGE):
                    found[place] = self[its](one)
            for place in if_known:
                if found[place] is None:
                    found[place] = msgspec.UNSET
            return record(*found)

        return way


def _values_of(names: list[str]) -> Callable[[Any], Iterable[Any]]:
    """Return what reads attributes, in their order."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


def _as_dict(_: str, names: list[str]) -> Callable[..., dict[str, Any]]:
    def record(*found: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
        pairs = zip(names, found, strict=True)
        return {name: one for name, one in pairs if one is not msgspec.UNSET}

    return record


def _to_write(kind: str, names: list[str]) -> type[msgspec.Struct]:
    """Return a class of msgspec's own: made and written several times as fast as a dict."""
    places = [f"at_{number}" for number in range(len(names))]
    return msgspec.defstruct(kind, places, rename=dict(zip(places, names, strict=True)), gc=False)


def _is_plain(declared: Any) -> bool:  # noqa: ANN401 - a type
    """Return whether all values of a type stand in a file as they are."""
    if get_origin(declared) in {Union, UnionType}:
        return all(map(_is_plain, get_args(declared)))
    return declared in _PLAIN or get_origin(declared) is Literal


def _digits(value: Decimal) -> str:
    """Return every digit of an amount, without an exponent."""
    text = str(value)
    return f"{value:f}" if "E" in text else text


def _as_it_is(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    return value


def _as_python_writes(value: float) -> float | msgspec.Raw:
    """Return a number such that it is written as Python does: 1e-05, where others write 0.00001."""
    if _SMALL <= value < _LARGE or value == 0.0 or _SMALL <= -value < _LARGE:
        return value
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number; a file cannot hold it")
    return msgspec.Raw(repr(value).encode())


_PLAIN = frozenset((str, int, bool, type(None)))
_SMALL, _LARGE = 1e-4, 1e16  # between them all writers agree
_VALUES, _TEXT = _Walk(_as_dict, _as_it_is), _Walk(_to_write, _as_python_writes)
