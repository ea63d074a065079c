"""The JSON Schema of `profile.json`, made from the declared fields: the two cannot differ."""

from dataclasses import MISSING, Field, fields
from typing import Any

from planner.profile.codec import record_class, rules
from planner.profile.fields import Rule
from planner.profile.metrics import SLOTS
from planner.profile.model import SCHEMA, Profile, Statistics

_Json = Any


def schema() -> dict[str, _Json]:
    """Return the JSON Schema (2020-12) of `profile.json`, from the declared fields."""
    body = _object_schema(Profile)
    body["properties"] = {"schema": {"const": SCHEMA}, **body["properties"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:gpucost:profile:v1",
        "title": "gpucost profile",
        **body,
        "anyOf": [
            *({"required": [name]} for name in ("hardware", "job", "work")),
            {"required": ["gpus"], "properties": {"gpus": {"type": "array", "minItems": 1}}},
        ],
    }


def _object_schema(cls: type) -> dict[str, _Json]:
    defaults = {f.name: f for f in fields(cls)}
    properties = {name: _rule_schema(rule, defaults[name]) for name, rule in rules(cls).items()}
    return {"type": "object", "properties": properties}


def _rule_schema(rule: Rule, declared: "Field[Any]") -> dict[str, _Json]:
    kinds: dict[str, dict[str, _Json]] = {
        "text": {"type": ["string", "null"]},
        "time": {"type": ["string", "null"], "format": "date-time"},
        "integer": {"type": ["integer", "null"]},
        "number": {"type": ["number", "null"]},
        "statistics": {"type": ["object", "null"], "properties": _slot_schemas()},
        "texts": {"type": ["array", "null"], "items": {"type": "string"}},
        "any": {},
    }
    if rule.kind in kinds:
        body = {**kinds[rule.kind], **_limits(rule)}
        if rule.choices:
            body["enum"] = [*rule.choices, None]
    elif rule.record is Statistics:
        body = _statistics_schema(rule.low, rule.high)
    elif rule.kind == "record":
        body = {"anyOf": [_object_schema(record_class(rule)), {"type": "null"}]}
    else:
        body = {"type": ["array", "null"], "items": _object_schema(record_class(rule))}
    if declared.default not in (None, MISSING) and isinstance(declared.default, str | int):
        body["default"] = declared.default
    return {"description": rule.doc, **body}


def _limits(rule: Rule) -> dict[str, float]:
    named = (("minimum", rule.low), ("exclusiveMinimum", rule.above), ("maximum", rule.high))
    return {name: limit for name, limit in named if limit is not None}


def _statistics_schema(low: float | None, high: float | None) -> dict[str, _Json]:
    each = {"type": ["number", "null"], **_limits(Rule(kind="number", doc="", low=low, high=high))}
    body = {
        "type": "object",
        "properties": {f.name: each for f in fields(Statistics)},
        "additionalProperties": False,
    }
    return {"anyOf": [body, {"type": ["number", "null"], **each}]}


def _slot_schemas() -> dict[str, _Json]:
    return {
        slot.name: {
            "description": f"{slot.meaning} [{slot.unit}]",
            **_statistics_schema(slot.low, slot.high),
        }
        for slot in SLOTS.values()
    }
