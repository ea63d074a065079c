"""What is written is what Python's own JSON writer would write, to the byte."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.document import encode, to_text
from pricing.money import Amount

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)
WORDS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner),
    max_leaves=20,
)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A record with each thing that an encoder has to know of."""

    usd: Amount
    day: date
    at: datetime
    parts: tuple["Line", ...] = ()
    held: int = msgspec.field(default=1, name="of")
    team: str | msgspec.UnsetType = msgspec.UNSET


LINE = Line(usd=Decimal("1E-7"), day=date(2026, 11, 22), at=datetime(2026, 11, 22, 1, tzinfo=UTC))


@given(VALUES)
def test_text_is_what_python_writes(value: object) -> None:
    """Any JSON value comes out as `json.dumps` has it: numbers, escapes, empty lists, order."""
    assert to_text(value) == json.dumps(value, indent=1, ensure_ascii=False) + "\n"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_written_as_python_does(value: float) -> None:
    """No number changes its look: 1e-05 does not become 0.00001, nor 1e+16 1e16."""
    assert to_text(value) == f"{value!r}\n"


def test_a_record_is_an_object() -> None:
    """Fields in order under their names in the file; unset ones are left out."""
    inner = {"usd": "0.0000001", "day": "2026-11-22", "at": "2026-11-22T01:00:00Z"}
    outer = Line(usd=Decimal("1E+3"), day=LINE.day, at=LINE.at, parts=(LINE,), team="vision")
    assert encode(outer) == {
        **inner,
        "usd": "1000",
        "parts": [{**inner, "parts": [], "of": 1}],
        "of": 1,
        "team": "vision",
    }
    assert to_text(outer) == json.dumps(encode(outer), indent=1) + "\n"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_refused(value: float) -> None:
    """A file never holds NaN or infinity, nor null in their place."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_text({"a": [value]})


def test_half_a_character_does_not_crash() -> None:
    """A name that no file can hold is left to who writes the file, as before."""
    assert "\ud800" in to_text({"name": "\ud800"})
