"""JSON values that follow each other without commas, as looped tools print them."""

import json
import re

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
