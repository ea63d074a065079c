"""Cells of a block read eight bytes at a time: the numbers and times that Python reads in them."""

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from telemetry.large.lines import BlockRows, UnfitError, rows_of
from telemetry.large.times import TimeColumn
from telemetry.large.words import uniform
from telemetry.readers import clock

SUFFIXES = ("", " %", " MiB", " W")
CELL = st.from_regex(r"[0-9]{1,9}(\.[0-9]{1,4})?", fullmatch=True)
ODD = st.text(st.sampled_from("0123456789./:;-+eE[NA] \x7f"), min_size=1, max_size=10)
DATE = "2026/02/28 23:59:58.123"


def _block(cells: list[str]) -> BlockRows:
    # Rows that begin with a letter are looked at one by one; these do not.
    text = "".join(f"00000000, {cell}\n" for cell in cells)
    rows, wrong = rows_of(text.encode(), ord(","), 2, lambda _: False)
    assert (rows.count, wrong) == (len(cells), 0)
    return rows


@given(cells=st.lists(CELL, min_size=1, max_size=9), suffix=st.sampled_from(SUFFIXES))
def test_numbers_are_what_python_reads(cells: list[str], suffix: str) -> None:
    """Where cells are of one form, each is its number times ten to the decimals; else nothing."""
    found = uniform(_block([cell + suffix for cell in cells]), 1, suffix.encode())
    places = {len(cell.partition(".")[2]) for cell in cells}
    fits = max(map(len, cells)) <= 8 and len(places) == 1
    assert (found is not None) == fits
    if found is not None:
        values, decimals = found
        assert values.tolist() == [int(cell.replace(".", "")) for cell in cells]
        assert {decimals} == places


@example(odd=" 5", first=True, suffix="")
@given(odd=ODD, first=st.booleans(), suffix=st.sampled_from(SUFFIXES))
def test_what_is_no_number_is_not_read(odd: str, *, first: bool, suffix: str) -> None:
    """One cell that is no whole number with the suffix leaves a block of such to the other way."""
    good = f"12345{suffix}"
    found = uniform(_block([odd, good] if first else [good, odd]), 1, suffix.encode())
    number = odd.removesuffix(suffix) if odd.endswith(suffix) else ""
    assert (found is not None) == (number.isdigit() and len(number) <= 8)


@pytest.mark.parametrize("length", [19, 23])
@given(
    when=st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2999, 1, 1)),  # noqa: DTZ001 - drawn
    place=st.integers(0, 22),
    byte=st.sampled_from("09/: .-;A\x7f"),
)
def test_times_are_what_python_reads(length: int, when: datetime, place: int, byte: str) -> None:
    """A time is the one that Python reads; with one byte changed, what the exact reader says."""
    text = when.strftime("%Y/%m/%d %H:%M:%S.%f").rjust(26, "0")[:length]
    place = min(place, length - 1)
    cells = [DATE[:length], text, text[:place] + byte + text[place + 1 :]]
    column = TimeColumn()
    try:
        column.read(_block(cells), 1)
    except UnfitError:  # the exact reader would take the changed one for the rule
        assert "." in cells[2][:length]
        return
    form = "%Y/%m/%d %H:%M:%S.%f" if length == 23 else "%Y/%m/%d %H:%M:%S"
    found = column.parsed(None).t_s
    expected = datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
    assert abs(found[1] - expected) < 1e-6
    exact = clock.spelled(pd.Series(cells, dtype=object).str.strip(), form)
    np.testing.assert_allclose(found, exact, rtol=1e-15, atol=1e-6)
