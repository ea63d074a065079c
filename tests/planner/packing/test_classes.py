"""Jobs that are alike are searched for as one kind, and packed one by one."""

import numpy as np
import pytest

from planner.fleet.search import Columns, Relaxed, classes_of, enough_of_each, pack_rows, that_pair
from planner.fleet.sizes import Sizes

KINDS = ((0.5, 0.9), (0.3, 0.9), (0.3, 0.6), (0.2, 0.9), (0.45, 0.46))
"""Share of a GPU, and the most of it that is taken beside."""
ROOM = 76.0  # GiB, of which each takes 1


def sizes(kinds: list[int], hours: list[float] | None = None) -> Sizes:
    """Jobs of some of the kinds."""
    return Sizes(
        takes=np.array([[KINDS[kind][0], 1.0] for kind in kinds]),
        limits=np.array([[KINDS[kind][1], ROOM] for kind in kinds]),
        hours=np.array(hours or [1.0] * len(kinds)),
    )


def test_jobs_of_one_class_take_the_same_under_the_same_limits() -> None:
    """Alike is who takes as much and bears as much beside it; hours tell nobody apart."""
    found = classes_of(sizes([1, 0, 1, 2, 0], hours=[1.0, 2.0, 3.0, 4.0, 5.0]))
    assert found.members == ((0, 2), (1, 4), (3,))
    assert found.of.tolist() == [0, 1, 0, 2, 1]
    assert found.counts.tolist() == [2.0, 2.0, 1.0]


@pytest.mark.parametrize("kinds", [[4, 4, 0], [0, 0], [0], [2, 2, 4], [4, 3]])
def test_who_pairs_fits_beside_another_job(kinds: list[int]) -> None:
    """A job pairs where it fits on one GPU with another one, be it of its own class."""
    some = sizes(kinds)
    pairs = [
        any(some.fits([row, other]) for other in range(len(some)) if other != row)
        for row in range(len(some))
    ]
    assert that_pair(some, classes_of(some)).tolist() == pairs


@pytest.mark.parametrize("seed", range(5))
def test_who_pairs_is_told_of_jobs_of_any_size(seed: int) -> None:
    """Of drawn jobs, some as large as a GPU, those pair that fit beside any one of the others."""
    drawn = np.random.default_rng(seed)
    takes = drawn.uniform(0.05, 1.0, (40, 2)) ** drawn.choice([0.3, 1.0, 3.0], (40, 1))
    some = Sizes(
        takes=takes, limits=np.maximum(takes, drawn.uniform(0.3, 1.2, (40, 2))), hours=np.ones(40)
    )
    pairs = [
        any(some.fits([row, other]) for other in range(40) if other != row) for row in range(40)
    ]
    assert 0 < sum(pairs) < len(pairs)
    assert that_pair(some, classes_of(some)).tolist() == pairs


def test_no_more_of_a_class_are_looked_at_than_one_gpu_holds() -> None:
    """Of jobs of 30 % with 90 % to fill three are enough, of those with 60 % two."""
    some = sizes([1] * 9 + [2] * 9 + [3])
    assert enough_of_each(some, classes_of(some)).tolist() == [0, 1, 2, 9, 10, 18]


def test_a_group_used_several_times_takes_other_jobs_each_time() -> None:
    """Whole parts are kept, and once more what is left of a part; no job is taken twice."""
    pool = Columns(members=((0, 1, 2, 3, 4), (5, 6)))
    pool.add([0, 1], 1.0)
    pool.add([0, 0], 1.0)
    said = Relaxed(prices=np.zeros(2), parts=np.array([1.7, 1.3]), steps=1)
    assert pool.whole(said, 0.9) == [[0, 5], [1, 2]]
    assert pool.whole(said, 0.5) == [[0, 5], [1, 6], [2, 3]]
    assert pool.whole(said, 0.1) == [[0, 5], [1, 6], [2, 3]]


def test_many_alike_are_proven_best_as_few_are() -> None:
    """600 jobs of three kinds on as few GPUs as is proven, which first fit misses."""
    some = sizes([0] * 200 + [1] * 200 + [3] * 200)
    found = pack_rows(some, lambda: False)
    assert len(found.bins) == found.bound
    assert sorted(row for group in found.bins for row in group) == list(range(600))
    assert all(some.fits(group) for group in found.bins)
