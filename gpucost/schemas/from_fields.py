"""Makes the JSON Schema of a document from the fields that its class declares.

The same fields are what `planner.plan_document.encode` writes, so the two cannot differ. Meanings
are those of the class docstrings; units are read from them (`[USD]`) or from the fields' names.
"""

import inspect
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from planner.plan_document.encode import name_in_file

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: tuple[tuple[type, Schema], ...] = (
    (bool, {"type": "boolean"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (str, {"type": "string"}),
    (Decimal, {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}),
    (datetime, {"type": "string", "format": "date-time", "pattern": "^[0-9-]{10}T[0-9:]{8}Z$"}),
    (date, {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}),
)
_OPEN = (object, Any)
_ENTRY = re.compile(r"^ {4}(?P<names>\w+(?:, \w+)*): (?P<said>.*)$")
_UNITS = (  # how names end, the longer ones first
    ("usd_per_gpu_hour", "USD/h"),
    ("usd_per_hour", "USD/h"),
    ("usd", "USD"),
    ("_fraction", "0 to 1"),
    ("_percent", "%"),
    ("_gib", "GiB"),
    ("_days", "days"),
    ("_hours", "h"),
    ("_per_s", "1/s"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_h", "h"),
    ("_w", "W"),
)


def schema_of(name: str, cls: type, *, many: bool = False, tagged: bool = False) -> Schema:
    """Return the JSON Schema (2020-12) of a document; nothing beside its fields is allowed.

    Args:
        name: of the document, as `plan`.
        cls: a dataclass that `encode` writes.
        many: whether the document is an array of them.
        tagged: whether `schema` stands before the fields, without being one of them.
    """
    definitions: dict[str, Schema] = {}
    whole = _record(cls, definitions)
    said, own = whole.pop("description"), {"schema": {"const": f"gpucost.{name}/v1"}}
    if tagged:
        whole["properties"] = {**own, **whole["properties"]}
        whole["required"] = ["schema", *whole["required"]]
    elif "schema" in whole["properties"]:
        whole["properties"]["schema"] = own["schema"]
    if many:
        definitions[cls.__name__] = {"description": said, **whole}
        whole = {"type": "array", "items": _reference(cls.__name__)}
    return _published(name, said, whole, definitions)


def one_of(name: str, said: str, kinds: Sequence[type]) -> Schema:
    """Return the JSON Schema of a document that has the fields of one of several classes."""
    definitions: dict[str, Schema] = {}
    whole = {"anyOf": [_kind(kind, definitions) for kind in kinds]}
    return _published(name, said, whole, definitions)


def _published(name: str, said: str, whole: Schema, definitions: dict[str, Schema]) -> Schema:
    title = f"gpucost {name}"
    head = {"$schema": _DRAFT, "$id": f"urn:gpucost:{name}:v1", "title": title, "description": said}
    known = dict(sorted(definitions.items()))
    return {**head, **whole, **({"$defs": known} if known else {})}


def _record(cls: type, definitions: dict[str, Schema]) -> Schema:
    kinds, meanings = get_type_hints(cls), _meanings(cls)
    written = [one for one in fields(cls) if one.metadata.get("written", True)]
    properties = {
        name_in_file(one): _property(one, kinds[one.name], meanings, definitions) for one in written
    }
    return {
        "description": _first_paragraph(cls),
        "type": "object",
        "properties": properties,
        "required": [name_in_file(one) for one in written if not one.metadata.get("if_known")],
        "additionalProperties": False,
    }


def _property(
    one: "Field[Any]",
    kind: Any,  # noqa: ANN401 - an annotation
    meanings: Mapping[str, str],
    definitions: dict[str, Schema],
) -> Schema:
    if one.metadata.get("if_known"):
        kind = _without_none(kind)
    said = " ".join(filter(None, (meanings.get(one.name, ""), _unit(one.name, meanings))))
    return {**({"description": said} if said else {}), **_kind(kind, definitions)}


def _kind(kind: Any, definitions: dict[str, Schema]) -> Schema:  # noqa: ANN401 - an annotation
    """Return the schema of what an annotation allows."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _OPEN:
        return {}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (Union, types.UnionType):
        return _either(parts, definitions)
    if origin is tuple:
        return _tuple(parts, definitions)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _kind(parts[1], definitions)}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": _kind(parts[0], definitions)}
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # a record may hold its own kind
            definitions[kind.__name__] = _record(kind, definitions)
        return _reference(kind.__name__)
    if issubclass(kind, Enum):
        return {"enum": [one.value for one in kind]}
    return next(dict(schema) for scalar, schema in _SCALARS if issubclass(kind, scalar))


def _either(parts: Sequence[Any], definitions: dict[str, Schema]) -> Schema:
    found = [_kind(part, definitions) for part in parts if part is not types.NoneType]
    none: list[Schema] = [{"type": "null"}] if types.NoneType in parts else []
    if len(found) == 1 and none and "enum" in found[0]:
        return {"enum": [*found[0]["enum"], None]}
    if len(found) == 1 and none and isinstance(found[0].get("type"), str):
        return {**found[0], "type": [found[0]["type"], "null"]}
    return {"anyOf": [*found, *none]}


def _tuple(parts: Sequence[Any], definitions: dict[str, Schema]) -> Schema:
    if parts[1:] == (...,):
        return {"type": "array", "items": _kind(parts[0], definitions)}
    found = [_kind(part, definitions) for part in parts]
    return {"type": "array", "prefixItems": found, "items": False, "minItems": len(found)}


def _without_none(kind: Any) -> Any:  # noqa: ANN401 - an annotation
    known = tuple(part for part in get_args(kind) if part is not types.NoneType)
    return Union[known] if types.NoneType in get_args(kind) else kind  # noqa: UP007 - made of parts


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _first_paragraph(cls: type) -> str:
    return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())


def _meanings(cls: type) -> dict[str, str]:
    """Return what the docstring of a class, or of one that it is made of, says of each field."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        named: tuple[str, ...] = ()
        for line in inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")[2].split("\n"):
            entry = _ENTRY.match(line)
            if entry:
                named = tuple(entry["names"].split(", "))
                found |= dict.fromkeys(named, entry["said"])
            elif line.startswith(" " * 8):
                found |= {name: f"{found[name]} {line.strip()}" for name in named}
            elif line:
                break
    return found


def _unit(name: str, meanings: Mapping[str, str]) -> str:
    """Return the unit that the name of a field ends with; empty where its meaning has one."""
    if "[" in meanings.get(name, ""):
        return ""
    return next((f"[{unit}]" for end, unit in _UNITS if name.endswith(end)), "")
