"""The published JSON Schema and the reader accept the same documents."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from planner.json_schema import Schema, meanings
from planner.profile.codec import parse_profiles, schema
from planner.profile.fields import Record
from planner.profile.kinds import KINDS, PRECISIONS, SLOTS
from planner.profile.model import Profile, Statistics
from pricing.errors import InputError

VALIDATOR = Draft202012Validator(schema())
SECTIONS = {name: part for name, part in schema()["properties"].items() if name != "schema"}
WORDS = (*KINDS, *PRECISIONS, "none", "shared", "spot", "on_demand", "2026-11-01T10:00:00Z", "x")
LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-2, 1000)
    | st.sampled_from((0.0, 0.5, 1.0, 1.5, -0.5, 55.0, 2.0, 744.5))
    | st.sampled_from(WORDS)
    | st.just([])
    | st.just({})
)


def _statistics() -> st.SearchStrategy[Any]:
    names = st.sampled_from(("mean", "average"))
    return LEAF | st.dictionaries(names, LEAF, max_size=1)


def _part(field: Schema) -> Schema:
    """What a field, or each of its items, refers to; its own schema where to nothing."""
    part = field.get("items", field)
    name = part.get("anyOf", [part])[0].get("$ref", "").rpartition("/")[2]
    return schema()["$defs"].get(name, part)


def _field(field: Schema) -> st.SearchStrategy[Any]:
    """Values near a field's schema, some right and some wrong."""
    part = _part(field)
    if field.get("format"):  # the schema's format is not an assertion
        return st.none() | st.sampled_from(("2026-11-01T10:00:00Z", 7))
    if "enum" in part:
        return LEAF | st.sampled_from(part["enum"])
    if "anyOf" in part and "items" not in field:
        return _statistics()
    if set(SLOTS) <= part.get("properties", {}).keys():
        return LEAF | st.dictionaries(st.sampled_from(sorted(SLOTS)), _statistics(), max_size=2)
    if "properties" in part:
        record = _record(part)
        return LEAF | (st.lists(LEAF | record, max_size=2) if "items" in field else record)
    return LEAF


def _record(part: Schema) -> st.SearchStrategy[Any]:
    optional = {name: _field(field) for name, field in part["properties"].items()}
    return st.fixed_dictionaries({}, optional=optional)


def _section(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return _field(SECTIONS[name]).map(lambda value: {"job": {}, name: value})


def accepted(document: Any) -> bool:
    """Whether the reader takes it."""
    try:
        parse_profiles(json.dumps(document).encode(), "p.json")
    except InputError:
        return False
    return True


def test_the_schema_is_a_schema() -> None:
    """It is valid under draft 2020-12 and can be published as JSON."""
    Draft202012Validator.check_schema(schema())
    assert json.loads(json.dumps(schema())) == schema()


@settings(max_examples=200)
@given(st.sampled_from(sorted(SECTIONS)).flatmap(_section))
def test_reader_and_schema_agree(document: dict[str, Any]) -> None:
    """What one accepts the other accepts, section by section.

    Known exceptions, kept out of the documents: order of quantiles, near misses of key names,
    finiteness (JSON has no NaN), the form of instants, and an array of profiles.
    """
    assert accepted(document) == VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"schema": "gpucost.profile/v1"}, id="only the schema's name"),
        pytest.param({"host": {"cpu_util": 0.5}}, id="only a host"),
        pytest.param({"gpus": []}, id="no GPU"),
        pytest.param({"gpus": [{}]}, id="an empty GPU"),
        pytest.param({"work": None}, id="a null section"),
        pytest.param({"schema": None, "job": {}}, id="schema is null"),
        pytest.param({"schema": "other", "job": {}}, id="another schema"),
        pytest.param([], id="a list"),
        pytest.param("text", id="text"),
    ],
)
def test_reader_and_schema_agree_on_the_whole(document: Any) -> None:
    """The least that makes a profile is the same for both."""
    assert accepted(document) == VALIDATOR.is_valid(document)


@pytest.mark.parametrize("cls", Record.__subclasses__())
def test_every_field_is_published_with_what_it_means(cls: type[Record]) -> None:
    """No field of a record escapes the schema, and none is without a meaning."""
    if cls is Statistics:
        return
    part = schema() if cls is Profile else schema()["$defs"][cls.__name__]
    published = {name: field for name, field in part["properties"].items() if name != "schema"}
    assert list(published) == list(cls.__struct_fields__)
    assert all(field["description"] for field in published.values())
    assert meanings(cls).keys() == published.keys()


def test_every_slot_is_published_with_its_unit() -> None:
    """The schema lists each metric, its unit and its range."""
    body = schema()["$defs"]["GpuReadings"]["properties"]["metrics"]["properties"]
    assert set(body) == set(SLOTS)
    for name, slot in SLOTS.items():
        assert f"[{slot.unit}]" in body[name]["description"]
