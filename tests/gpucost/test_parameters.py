"""Values as people type them."""

from datetime import date
from decimal import Decimal
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucost.arguments.parameters import TYPES


def _id(value: object) -> str:
    return value.name if isinstance(value, click.ParamType) else str(value)


ACCEPTED = (
    (TYPES["duration"], "90s", Decimal(90)),
    (TYPES["duration"], "15m", Decimal(900)),
    (TYPES["duration"], "15min", Decimal(900)),
    (TYPES["duration"], "8h", Decimal(28800)),
    (TYPES["duration"], "8.5h", Decimal(30600)),
    (TYPES["duration"], "2d", Decimal(172800)),
    (TYPES["duration"], " 2 d ", Decimal(172800)),
    (TYPES["size"], "500GB", 500 * 10**9),
    (TYPES["size"], "500GiB", 500 * 2**30),
    (TYPES["size"], "2TiB", 2 * 2**40),
    (TYPES["size"], "0.5GiB", 2**29),
    (TYPES["size"], "0GB", 0),
    (TYPES["dollars"], "12", Decimal(12)),
    (TYPES["dollars"], "12.50", Decimal("12.50")),
    (TYPES["dollars"], "$1,234.56", Decimal("1234.56")),
    (TYPES["dollars"], "0", Decimal(0)),
    (TYPES["day"], "2026-07-01", date(2026, 7, 1)),
    (TYPES["counts"], "8", (8, 8)),
    (TYPES["counts"], "1..8", (1, 8)),
    (TYPES["work"], "image=2900000", ("image", 2900000.0)),
    (TYPES["work"], "token=1.5e9", ("token", 1.5e9)),
    (TYPES["mapping"], "my column=util.kernel_time", ("my column", "util.kernel_time")),
    (TYPES["mapping"], "a=b=mem.used_gib", ("a=b", "mem.used_gib")),
)

REFUSED = (
    (
        TYPES["duration"],
        ("", "90", "s", "-1h", "1e3h", "1h30m", "nan h", "inf h", "90 weeks", "1.h", "9H"),
    ),
    (TYPES["size"], ("", "500", "GB", "-1GB", "500gb", "500 G", "1e3GB", "nanGB", "5Gib")),
    (TYPES["dollars"], ("", "-1", "$-1", "nan", "inf", "1e999", "12 EUR", "twelve", "$", "--1")),
    (TYPES["day"], ("", "tomorrow", "2026-02-30", "01.07.2026", "2026", "2026-7-1", "0000-01-01")),
    (TYPES["counts"], ("", "0", "-1", "8..1", "1..", "..8", "1...8", "1.5", "a", "0..8")),
    (TYPES["work"], ("", "image", "image=", "=5", "image=-1", "image=nan", "image=inf", "image=x")),
    (TYPES["mapping"], ("", "a", "a=", "=b", "=")),
)


@pytest.mark.parametrize(("kind", "text", "value"), ACCEPTED, ids=_id)
def test_what_people_type_is_understood(
    kind: click.ParamType[Any], text: str, value: object
) -> None:
    """Each form of the contract gives its exact value."""
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in REFUSED for text in texts], ids=_id
)
def test_anything_else_is_refused_with_an_example(kind: click.ParamType[Any], text: str) -> None:
    """What has no clear meaning is refused, showing the text and a form that works."""
    with pytest.raises(click.BadParameter) as caught:
        kind.convert(text, None, None)
    assert repr(text) in caught.value.message
    assert "write" in caught.value.message or "negative" in caught.value.message


@given(seconds=st.integers(min_value=0, max_value=10**8))
def test_a_duration_is_exact(seconds: int) -> None:
    """Whole seconds come back whole, in every unit; what no bill is that long for is refused."""
    assert TYPES["duration"].convert(f"{seconds}s", None, None) == seconds
    assert TYPES["duration"].convert(f"{seconds}m", None, None) == 60 * seconds
    assert TYPES["duration"].convert(f"{seconds}h", None, None) == 3600 * seconds
    with pytest.raises(click.BadParameter):
        TYPES["duration"].convert(f"{10**12 + 1 + seconds}s", None, None)


@given(cents=st.integers(min_value=0, max_value=10**15), sign=st.sampled_from(["", "$"]))
def test_dollars_are_exact(cents: int, sign: str) -> None:
    """Every amount of cents is read to the cent, with and without thousands apart."""
    amount = Decimal(cents) / 100
    assert TYPES["dollars"].convert(f"{sign}{amount:.2f}", None, None) == amount
    assert TYPES["dollars"].convert(f"{sign}{amount:,.2f}", None, None) == amount


@given(number=st.integers(min_value=0, max_value=10**6))
def test_gb_and_gib_are_different(number: int) -> None:
    """GB is 10^9 bytes, GiB 2^30; neither is converted silently."""
    assert TYPES["size"].convert(f"{number}GB", None, None) == number * 10**9
    assert TYPES["size"].convert(f"{number}GiB", None, None) == number * 2**30


@given(least=st.integers(1, 1000), more=st.integers(0, 1000))
def test_a_range_of_counts_is_read(least: int, more: int) -> None:
    """`A..B` gives both ends."""
    assert TYPES["counts"].convert(f"{least}..{least + more}", None, None) == (least, least + more)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        TYPES["duration"],
        TYPES["size"],
        TYPES["dollars"],
        TYPES["day"],
        TYPES["counts"],
        TYPES["work"],
        TYPES["mapping"],
    ],
    ids=_id,
)
@given(text=st.text(max_size=30))
def test_no_text_is_a_surprise(kind: click.ParamType[Any], text: str) -> None:
    """Any text is either a value or a sentence, never another exception."""
    try:
        value = kind.convert(text, None, None)
    except click.BadParameter:
        return
    assert value is not None
