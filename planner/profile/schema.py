"""The JSON Schema of `profile.json`, made from the declared fields: the two cannot differ."""

from dataclasses import MISSING, Field, fields
from typing import Any

from planner.profile.codec import record_class, rules
from planner.profile.fields import FieldRule
from planner.profile.metrics import SLOTS
from planner.profile.model import SCHEMA, Profile, Statistics

_Definitions = dict[str, dict[str, object]]


def schema() -> dict[str, object]:
    """Return the JSON Schema (2020-12) of `profile.json`, from the declared fields.

    What several fields share stands once, under `$defs`: each record by the name of its class, the
    statistics by their limits.
    """
    definitions: _Definitions = {}
    properties = _properties(Profile, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:gpucost:profile:v1",
        "title": "gpucost profile",
        "type": "object",
        "properties": {"schema": {"const": SCHEMA}, **properties},
        "additionalProperties": False,
        "anyOf": [
            *({"required": [name]} for name in ("hardware", "job", "work")),
            {"required": ["gpus"], "properties": {"gpus": {"type": "array", "minItems": 1}}},
        ],
        "$defs": dict(sorted(definitions.items())),
    }


def _object_schema(cls: type, definitions: _Definitions) -> dict[str, object]:
    properties = _properties(cls, definitions)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _properties(cls: type, definitions: _Definitions) -> dict[str, dict[str, object]]:
    defaults = {f.name: f for f in fields(cls)}
    return {
        name: _rule_schema(rule, defaults[name], definitions) for name, rule in rules(cls).items()
    }


def _record(rule: FieldRule, definitions: _Definitions) -> dict[str, object]:
    cls = record_class(rule)
    if cls.__name__ not in definitions:
        definitions[cls.__name__] = {}  # a record may hold its own kind
        definitions[cls.__name__] = _object_schema(cls, definitions)
    return {"$ref": f"#/$defs/{cls.__name__}"}


def _rule_schema(
    rule: FieldRule, declared: "Field[Any]", definitions: _Definitions
) -> dict[str, object]:
    kinds: dict[str, dict[str, object]] = {
        "text": {"type": ["string", "null"]},
        "time": {"type": ["string", "null"], "format": "date-time"},
        "integer": {"type": ["integer", "null"]},
        "number": {"type": ["number", "null"]},
        "texts": {"type": ["array", "null"], "items": {"type": "string"}},
        "any": {},
    }
    if rule.kind in kinds:
        body = {**kinds[rule.kind], **_limits(rule)}
        if rule.choices:
            body["enum"] = [*rule.choices, None]
        if rule.pattern:
            body["pattern"] = f"^(?:{rule.pattern})$"
    elif rule.kind == "statistics":
        body = {
            "type": ["object", "null"],
            "properties": _slot_schemas(definitions),
            "additionalProperties": False,
        }
    elif rule.record is Statistics:
        body = _statistics(rule.low, rule.high, definitions)
    elif rule.kind == "record":
        body = {"anyOf": [_record(rule, definitions), {"type": "null"}]}
    else:
        body = {"type": ["array", "null"], "items": _record(rule, definitions)}
    if declared.default not in (None, MISSING) and isinstance(declared.default, str | int):
        body["default"] = declared.default
    return {"description": rule.doc, **body}


def _limits(rule: FieldRule) -> dict[str, float]:
    named = (("minimum", rule.low), ("exclusiveMinimum", rule.above), ("maximum", rule.high))
    return {name: limit for name, limit in named if limit is not None}


def _statistics(
    low: float | None, high: float | None, definitions: _Definitions
) -> dict[str, object]:
    """Return a reference to statistics within these limits: an object, or the mean alone."""
    limits = (("from", low), ("to", high))
    words = [f"{word}{limit:g}" for word, limit in limits if limit is not None]
    name = "-".join(("Statistics", *words))
    if name not in definitions:
        rule = FieldRule(kind="number", doc="", low=low, high=high)
        each: dict[str, object] = {"type": ["number", "null"], **_limits(rule)}
        body = {
            "type": "object",
            "properties": {f.name: each for f in fields(Statistics)},
            "additionalProperties": False,
        }
        definitions[name] = {"anyOf": [body, each]}
    return {"$ref": f"#/$defs/{name}"}


def _slot_schemas(definitions: _Definitions) -> dict[str, object]:
    return {
        slot.name: {
            "description": f"{slot.meaning} [{slot.unit}]",
            **_statistics(slot.low, slot.high, definitions),
        }
        for slot in SLOTS.values()
    }
