"""The published JSON Schema and the reader accept the same documents."""

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from planner.profile.codec import parse_profiles, rules, schema
from planner.profile.fields import FieldRule
from planner.profile.kinds import KINDS, PRECISIONS, SLOTS
from planner.profile.model import GpuReadings, Host, Job, Profile, Statistics
from pricing.errors import InputError

VALIDATOR = Draft202012Validator(schema())
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


def _field(rule: FieldRule) -> st.SearchStrategy[Any]:
    """Values near a field's rule, some right and some wrong."""
    if rule.kind == "time":  # the schema's format is not an assertion
        return st.none() | st.sampled_from(("2026-11-01T10:00:00Z", 7))
    if rule.kind == "statistics":
        return LEAF | st.dictionaries(st.sampled_from(sorted(SLOTS)), _statistics(), max_size=2)
    if rule.record is Statistics:
        return _statistics()
    if rule.kind == "record":
        return LEAF | _record(rule.record)
    if rule.kind == "records":
        return LEAF | st.lists(LEAF | _record(rule.record), max_size=2)
    if rule.choices:
        return LEAF | st.sampled_from(rule.choices)
    return LEAF


def _record(cls: Any) -> st.SearchStrategy[Any]:
    optional = {name: _field(rule) for name, rule in rules(cls).items()}
    return st.fixed_dictionaries({}, optional=optional)


def _section(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return _field(rules(Profile)[name]).map(lambda value: {"job": {}, name: value})


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
@given(st.sampled_from(sorted(rules(Profile))).flatmap(_section))
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


@pytest.mark.parametrize("cls", [Profile, Job, Host, GpuReadings])
def test_every_field_is_declared(cls: type) -> None:
    """No field of a record escapes the reader and the schema."""
    assert set(rules(cls)) == {f.name for f in fields(cls)}


def test_every_slot_is_published_with_its_unit() -> None:
    """The schema lists each metric, its unit and its range."""
    body = schema()["$defs"]["GpuReadings"]["properties"]["metrics"]["properties"]
    assert set(body) == set(SLOTS)
    for name, slot in SLOTS.items():
        assert f"[{slot.unit}]" in body[name]["description"]
