"""How a field of `profile.json` is declared: its kind, its limits and its meaning, in one place.

The decoder, the validator, the encoder and the JSON Schema all read these declarations.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "text",
    "number",
    "integer",
    "flag",
    "time",
    "record",
    "records",
    "statistics",
    "texts",
    "numbers",
    "any",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRule:
    """What one field accepts.

    Attributes:
        kind: the JSON type; `time` is ISO 8601 text with a zone, `statistics` maps slots to them.
        doc: the meaning, with the unit.
        low: least accepted number (inclusive).
        above: accepted numbers are greater than this.
        high: greatest accepted number (inclusive).
        choices: accepted words.
        record: the value class of a nested record.
        counts: accepted lengths of a list of numbers.
        pattern: regular expression that the whole of a text matches; empty: any text.
    """

    kind: Kind
    doc: str
    low: float | None = None
    above: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    record: type | None = None
    counts: tuple[int, ...] = ()
    pattern: str = ""


def _declare(rule: FieldRule, default: object = None) -> Any:  # noqa: ANN401 - stands where a value goes
    return field(default=default, metadata={"rule": rule})


def text(
    doc: str, *, choices: tuple[str, ...] = (), pattern: str = "", default: str | None = None
) -> Any:  # noqa: ANN401
    """Declare a text field."""
    return _declare(FieldRule(kind="text", doc=doc, choices=choices, pattern=pattern), default)


def number(
    doc: str, *, low: float | None = 0.0, above: float | None = None, high: float | None = None
) -> Any:  # noqa: ANN401
    """Declare a number, at least zero unless told otherwise."""
    return _declare(FieldRule(kind="number", doc=doc, low=low, above=above, high=high))


def fraction(doc: str) -> Any:  # noqa: ANN401
    """Declare a number from 0 to 1."""
    return _declare(FieldRule(kind="number", doc=doc, low=0.0, high=1.0))


def integer(doc: str, *, low: int = 0, default: int | None = None) -> Any:  # noqa: ANN401
    """Declare a whole number."""
    return _declare(FieldRule(kind="integer", doc=doc, low=low), default)


def flag(doc: str) -> Any:  # noqa: ANN401
    """Declare what is true or false."""
    return _declare(FieldRule(kind="flag", doc=doc))


def time(doc: str) -> Any:  # noqa: ANN401
    """Declare an instant."""
    return _declare(FieldRule(kind="time", doc=doc))


def record(cls: type, doc: str, *, default: object = None) -> Any:  # noqa: ANN401
    """Declare a nested record."""
    return _declare(FieldRule(kind="record", doc=doc, record=cls), default)


def records(cls: type, doc: str) -> Any:  # noqa: ANN401
    """Declare a list of records."""
    return _declare(FieldRule(kind="records", doc=doc, record=cls), ())


def statistics(doc: str) -> Any:  # noqa: ANN401
    """Declare a map from slot to statistics."""
    return field(default_factory=dict, metadata={"rule": FieldRule(kind="statistics", doc=doc)})


def texts(doc: str) -> Any:  # noqa: ANN401
    """Declare a list of texts."""
    return _declare(FieldRule(kind="texts", doc=doc), ())


def numbers(doc: str, *, counts: tuple[int, ...], high: float | None = None) -> Any:  # noqa: ANN401
    """Declare a list of numbers from 0 up, of one of these lengths."""
    return _declare(FieldRule(kind="numbers", doc=doc, low=0.0, high=high, counts=counts), ())


def anything(doc: str, *, default: object = None) -> Any:  # noqa: ANN401
    """Declare JSON that is kept as it is."""
    return _declare(FieldRule(kind="any", doc=doc), default)
