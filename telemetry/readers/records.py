"""JSON files with one document, an array of them, or one a line."""

import json
import re

from pricing.errors import InputError


def documents(text: str, name: str) -> tuple[list[dict[str, object]], int]:
    """Return the objects of a file, and how many lines were damaged.

    Args:
        text: one JSON document, or one a line; arrays stand for their items.
        name: the file's name, for messages.

    Raises:
        InputError: no object can be read.
    """
    try:
        whole = json.loads(text)
    except RecursionError:
        raise InputError(f"{name}: brackets are nested too deeply for telemetry.") from None
    except ValueError as error:
        found, damaged = _by_line(text)
        if found:
            return found, damaged
        where = f":{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(
            f"{name}{where}: not valid JSON ({reason}), so nothing in it can be trusted; the file "
            "may be cut short. Export it again."
        ) from None
    items = whole if isinstance(whole, list) else [whole]
    found = [item for item in items if isinstance(item, dict)]
    if not found:
        raise InputError(f"{name}: no JSON object in it, so nothing was measured. Export it again.")
    return found, len(items) - len(found)


def _by_line(text: str) -> tuple[list[dict[str, object]], int]:
    found: list[dict[str, object]] = []
    damaged = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            damaged += 1
            continue
        if isinstance(item, dict) and len(item) > 0:
            found.append(item)
        else:
            damaged += 1
    return (found, damaged) if len(found) >= damaged else ([], damaged)


_OPENING = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)
_MOST_DAMAGED = 100


def values(text: str) -> tuple[list[object], int]:
    """Return the objects and arrays of a text in their order, and how many were damaged.

    What stands between them is passed over; after a damaged one, reading goes on at the next line
    that opens one. Nothing is returned of what follows the hundredth damaged one.
    """
    decoder = json.JSONDecoder()
    found: list[object] = []
    damaged, at = 0, 0
    while (opening := _next(text, at)) is not None and damaged < _MOST_DAMAGED:
        try:
            value, at = decoder.raw_decode(text, opening)
        except (ValueError, RecursionError):
            damaged += 1
            after = text.find("\n", opening)
            at = len(text) if after < 0 else after + 1
            continue
        found.append(value)
    return found, damaged


def _next(text: str, at: int) -> int | None:
    rest = text[at : at + 64].lstrip(" \t\r\n,")
    if rest[:1] in ("{", "[") and rest:
        return text.index(rest[0], at)
    opening = _OPENING.search(text, at)
    return None if opening is None else opening.end() - 1


def objects(text: str) -> tuple[list[dict[str, object]], int]:
    """Return the objects of a text, those in arrays too, and how many values were damaged."""
    found, damaged = values(text)
    items = [item for value in found for item in (value if isinstance(value, list) else [value])]
    good = [item for item in items if isinstance(item, dict)]
    return good, damaged + len(items) - len(good)


_MOST_INDEX = 10_000


def text_of(value: object) -> str | None:
    """Return a string or number as text; None for anything else, booleans too."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str):
        return value[:200]
    try:
        return repr(float(value)) if isinstance(value, float) else str(value)
    except (OverflowError, ValueError):  # more digits than Python prints
        return None


def whole_of(value: object) -> int | None:
    """Return a small whole number, as an index is one; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 6:  # noqa: PLR2004
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST_INDEX:
        return None
    return value
