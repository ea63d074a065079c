"""benchmarks/same_bytes.py says which fields of plan.json a change touches, and misses none."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from planner.profile.codec import parse_profiles

_SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "same_bytes.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("same_bytes", _SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_fleet_is_200_profiles_that_can_be_read(script: ModuleType, tmp_path: Path) -> None:
    """200 jobs with names of their own, each a valid profile, the same ones every time."""
    script.profiles(tmp_path)
    made = sorted((tmp_path / "fleet-of-200").iterdir())
    names = {parse_profiles(path.read_bytes(), path.name)[0].job.name for path in made}
    assert len(made) == len(names) == 200
    (tmp_path / "again").mkdir()
    script.profiles(tmp_path / "again")
    again = sorted((tmp_path / "again" / "fleet-of-200").iterdir())
    assert [path.read_bytes() for path in made] == [path.read_bytes() for path in again]


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, {("added", "a[].c")}),
        ({"a": 1, "b": 2}, {"a": 1}, {("removed", "b")}),
        ({"a": [1, 2]}, {"a": [1, 3]}, {("changed", "a[]")}),
        ({"a": [1, 2]}, {"a": [1]}, {("changed", "a")}),
        ({"a": 1}, {"a": 1}, set()),
    ],
)
def test_every_difference_is_named(
    script: ModuleType, old: Any, new: Any, kinds: set[tuple[str, str]]
) -> None:
    """Added, removed and changed fields are told apart, whatever they lie in."""
    found = script.Differences()
    script.compare(new, old, "", "case", found)
    assert set(found.counts) == kinds


def test_only_added_fields_are_no_difference(script: ModuleType) -> None:
    """Added fields left out, the bytes are equal."""
    old, new = {"a": [{"b": 1}]}, {"new": 0, "a": [{"b": 1, "c": 2}]}
    assert json.dumps(script.without_added(new, old)) == json.dumps(old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": "1.0"}, {"a": 1.0}),
        ({"a": 1}, {}),
        ({"a": [1]}, {"a": [1, 2]}),
    ],
)
def test_anything_else_is_a_difference(script: ModuleType, old: Any, new: Any) -> None:
    """Other bytes stay others: the order of keys, the form of a number, what is missing or more."""
    assert json.dumps(script.without_added(new, old)) != json.dumps(old)
