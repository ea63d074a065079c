"""Values as JSON and back: what is planned is what is written, and what is read is the same class.

A document is a `msgspec.Struct(frozen=True, kw_only=True)`. Its fields stand in the file in their
order, money as text with every digit, days and times as ISO 8601. A field of type `X | UnsetType`
with the default `UNSET` is left out where it is not set; None is written as null. A field with any
other default may be missing in files of earlier versions.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from planner.json_schema import as_json
from pricing.errors import InputError
from pricing.message import Message, Messages, save
from pricing.money import Amount, usd

Kind = TypeVar("Kind")
Number = int | float
"""A float that keeps how a file writes it: 8 stays 8."""


def need(holds: bool, problem: str) -> None:  # noqa: FBT001 - a condition is what it is about
    """Check a condition.

    Raises:
        ValueError: it does not hold; `problem` says so.
    """
    if not holds:
        raise ValueError(problem)


def messages_of(document: msgspec.Struct) -> Messages:
    """Return the messages that a document holds, in the order of its fields."""
    messages: list[Message] = []

    def collect(part: object) -> object:
        if isinstance(part, Message):
            messages.append(part)
        return as_json(part)

    msgspec.to_builtins(document, builtin_types=(Decimal, datetime), enc_hook=collect)
    return save(messages)


def messages_in(part: object, messages: Mapping[str, Any]) -> dict[str, Any]:
    """Return the messages whose sentence stands in JSON values, in the order of `messages_of`."""
    if isinstance(part, Mapping):
        part = list(part.values())
    if isinstance(part, list):
        parts = (messages_in(value, messages) for value in part)
        return {text: message for table in parts for text, message in table.items()}
    if not isinstance(part, str) or part not in messages:
        return {}
    saved = messages[part]
    return {part: saved, **messages_in(saved["params"], messages)}


def encode(value: object) -> Any:  # noqa: ANN401 - JSON values
    """Return the JSON values of a document, or of a part of it."""
    return json.loads(_json(value))


def to_text(value: object) -> str:
    """Return the text of a file that holds a document.

    Raises:
        ValueError: a number is not finite.
    """
    try:
        return msgspec.json.format(_json(value), indent=1) + "\n"
    except UnicodeEncodeError:  # half of a character in a name: whoever writes the file says so
        return json.dumps(encode(value), indent=1, ensure_ascii=False) + "\n"


def decode(kind: type[Kind], raw: bytes | str | msgspec.Raw) -> Kind:
    """Return the document of a class that a JSON text holds; fields that it lacks are passed over.

    Raises:
        msgspec.DecodeError: it is not JSON.
        msgspec.ValidationError: a value is not of its field's type, or breaks a rule of its class.
    """
    return msgspec.json.decode(raw, type=kind, dec_hook=_amount)


def convert(kind: type[Kind], raw: object) -> Kind:
    """Return the document of a class that JSON values hold; as `decode`."""
    return msgspec.convert(raw, kind, dec_hook=_amount)


def digest(document: object) -> str:
    """Return the SHA-256 of JSON values."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def canonical(value: object) -> str:
    """Return the one text of JSON values: keys sorted, no white space, ASCII only."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _json(value: object) -> str:
    plain = msgspec.to_builtins(value, builtin_types=(Decimal, datetime), enc_hook=as_json)
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, default=_scalar)


def _scalar(value: Decimal | datetime) -> str:
    """Return every digit of an amount without an exponent; an instant in UTC, to the second."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _amount(kind: type, raw: object) -> Decimal:
    """Return an amount of a file, where it stands as text."""
    if kind is not Amount:
        raise NotImplementedError(kind)
    if not isinstance(raw, str):
        raise ValueError(f"{raw!r:.40} is not an amount as text")  # noqa: TRY004 - msgspec says where
    try:
        return usd(raw)
    except InputError as error:
        raise ValueError(str(error)) from None
