"""JSON as types: what is written or handed on unread, and how others' documents are read."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | bool | None"
JsonObject: TypeAlias = Mapping[str, Json]


def members(value: object) -> Mapping[str, object]:
    """Return the members of a JSON object.

    Raises:
        TypeError: the value is not an object.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.40} is not an object")
    return value


def elements(value: object) -> Sequence[object]:
    """Return the elements of a JSON array.

    Raises:
        TypeError: the value is not an array.
    """
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r:.40} is not an array")
    return value


def objects(value: object) -> list[Mapping[str, object]]:
    """Return the objects of a JSON array.

    Raises:
        TypeError: the value is not an array, or something else than objects is in it.
    """
    return [members(one) for one in elements(value)]
