"""Writes values as JSON values: money as text, days and times as ISO 8601, fields in order."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import Any

from planner.plan_document.document import PlanDocument

IF_KNOWN: Mapping[str, bool] = MappingProxyType({"if_known": True})
"""Metadata of a field that is left out of the file where it is None."""


def encode(value: Any) -> Any:  # noqa: ANN401 - walks values of every kind
    """Return a value of plan.json, or of another document, as JSON values."""
    if is_dataclass(value):
        named = ((name, getattr(value, at), known) for at, name, known in _names(value.__class__))
        return {name: encode(one) for name, one, known in named if one is not None or not known}
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: encode(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [encode(inner) for inner in value]
    return value


def to_text(value: object) -> str:
    """Return the text of a file that holds a value of plan.json."""
    return json.dumps(encode(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def plan_id(plan: PlanDocument) -> str:
    """Return the SHA-256 of a plan's values, whatever the white space of its file."""
    return plan.id or digest(encode(plan))


def digest(document: object) -> str:
    """Return the SHA-256 of JSON values."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def name_in_file(one: "Field[Any]") -> str:
    """Return what a field is called in the file."""
    return str(one.metadata.get("name", one.name))


@cache
def _names(kind: Any) -> tuple[tuple[str, str, bool], ...]:  # noqa: ANN401 - a dataclass
    """Return attribute, name in the file, and whether it is left out where it is None."""
    written = (one for one in fields(kind) if one.metadata.get("written", True))
    return tuple(
        (one.name, name_in_file(one), bool(one.metadata.get("if_known"))) for one in written
    )
