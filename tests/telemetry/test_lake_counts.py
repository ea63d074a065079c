"""An engine's answer is counted the same however it comes in parts."""

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.lake.profiles import SlotCounts, counted_by_device

ROW = st.fixed_dictionaries(
    {
        "job": st.sampled_from(["a", "b", ""]),
        "host": st.sampled_from(["n1", "n2"]),
        "uuid": st.just(""),
        "idx": st.sampled_from(["0", "1"]),
        "slot": st.integers(0, 2),
        "code": st.one_of(st.none(), st.integers(0, 5).map(float)),
        "micros": st.integers(1, 100).map(lambda s: s * 1_000_000),
        "n": st.integers(1, 9),
        "area": st.integers(0, 100),
        "area_millionths": st.integers(0, 1_000_000),
        "least": st.integers(0, 5).map(float),
        "most": st.integers(5, 9).map(float),
    }
)


def told(one: SlotCounts) -> Any:
    """What is used of a slot's counts, seconds of one code together."""
    seconds: dict[float, float] = defaultdict(float)
    for code, stood in zip(*one.stood(), strict=True):
        seconds[float(code)] += float(stood)
    return (dict(seconds), one.value_seconds, one.minimum, one.maximum, one.dropped)


@given(rows=st.lists(ROW, min_size=1, max_size=30), size=st.integers(1, 31))
def test_parts_of_an_answer_count_as_the_whole(rows: list[dict[str, Any]], size: int) -> None:
    """Rows of any order, in batches of any size, are sums by device and slot."""
    batches = pa.Table.from_pylist(rows).to_batches(max_chunksize=size)
    expected: dict[Any, Any] = defaultdict(lambda: [defaultdict(float), 0, [], [], 0])
    for row in rows:
        one = expected[(row["job"], row["host"], row["uuid"], row["idx"]), row["slot"]]
        if row["code"] is None:
            one[4] += row["n"]
            continue
        one[0][row["code"]] += row["micros"] / 1e6
        one[1] += row["area"] * 10**6 + row["area_millionths"]
        one[2].append(row["least"])
        one[3].append(row["most"])
    found = counted_by_device(batches)
    assert {
        (key, slot): told(one) for key, slots in found.items() for slot, one in slots.items()
    } == {
        key: (
            dict(stood),
            area / 1e6,
            min(least, default=float("inf")),
            max(most, default=float("-inf")),
            dropped,
        )
        for key, (stood, area, least, most, dropped) in expected.items()
    }


def test_codes_come_in_order() -> None:
    """Quantiles are taken of codes that ascend, whatever order the engine gave."""
    key = {"job": "a", "host": "n", "uuid": "u", "idx": "0", "slot": 0, "n": 1}
    rows = [
        {
            **key,
            "code": code,
            "micros": 10**6,
            "area": 1,
            "area_millionths": 0,
            "least": 0.0,
            "most": 3.0,
        }
        for code in (3.0, 1.0, 2.0)
    ]
    found = counted_by_device(pa.Table.from_pylist(rows).to_batches())
    assert found["a", "n", "u", "0"][0].stood()[0].tolist() == pytest.approx([1.0, 2.0, 3.0])
