"""Jobs are counted onto machines as they can stand on them, not by a division of GPUs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.fleet.consolidate import machines_for


@pytest.mark.parametrize(
    ("holds", "gpus", "machines"),
    [
        ((5, 5, 6), 8, 3),  # 16 GPUs, and no two of them on one
        ((1,) * 16, 8, 2),
        ((4, 4, 8), 8, 2),
        ((6, 2, 5, 3), 8, 2),
        ((16, 1), 8, 3),  # two whole machines, and one more
        ((), 8, 0),
    ],
)
def test_each_job_stands_on_one_machine(holds: tuple[int, ...], gpus: int, machines: int) -> None:
    """By hand."""
    assert machines_for(holds, gpus) == machines


@given(st.lists(st.integers(1, 20), max_size=30), st.integers(1, 16))
def test_never_fewer_than_the_gpus_and_never_more_than_one_each(
    holds: list[int], gpus: int
) -> None:
    """The sum of GPUs bounds it below; machines of their own bound it above."""
    assert (
        math.ceil(sum(holds) / gpus)
        <= machines_for(holds, gpus)
        <= sum(math.ceil(hold / gpus) for hold in holds)
    )
