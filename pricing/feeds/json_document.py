"""Reads JSON documents of feeds, with prices as their digits."""

import json
from decimal import Decimal
from typing import Any

from pricing.errors import InputError
from pricing.money import plain
from pricing.refresh.feed import Asked, Question, whole


def document(asked: Asked, question: Question) -> Any:  # noqa: ANN401 - a document of any shape
    """Return the document that answers a question; numbers with a point are `Decimal`.

    Raises:
        InputError: it is not JSON.
    """
    data = whole(asked.answers.get(question), question).path.read_bytes()
    return parsed(data, question.name)


def parsed(data: bytes, name: str) -> Any:  # noqa: ANN401 - a document of any shape
    """Return the document of a text.

    Raises:
        InputError: it is not JSON.
    """
    try:
        return json.loads(data, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: cannot be read: not whole JSON ({error}).") from None


def digits(value: object) -> str:
    """Return the digits of a number, "" where there is none.

    Anything else as it is, for the gate.
    """
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, Decimal | int):
        return plain(Decimal(value))
    return str(value)[:40]


def number(value: object) -> float | None:
    """Return the number, where it is one."""
    return float(value) if isinstance(value, Decimal | int) and value is not True else None
