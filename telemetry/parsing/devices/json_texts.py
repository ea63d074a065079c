"""Values of JSON as the texts that tables of names read."""

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
