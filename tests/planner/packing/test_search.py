"""The packing search beside every packing there is, and beside first fit."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.fleet.search import Packed, pack_rows, plain_bound, plain_hours
from planner.fleet.sizes import Bins, Sizes, best_fit, by_length, decreasing, first_fit, spread

ROOM = 76.0


def sizes(jobs: list[tuple[float, float, float]], hours: list[float] | None = None) -> Sizes:
    """Jobs of a share, of memory in GiB, and of the most that is taken of the GPU beside them."""
    rows = [(share, gib, max(share, most)) for share, gib, most in jobs]
    return Sizes(
        takes=np.array([(share, gib) for share, gib, _ in rows]),
        limits=np.array([(most, ROOM) for _, _, most in rows]),
        hours=np.array(hours or [1.0] * len(rows)),
    )


def packings(count: int) -> Iterator[Bins]:
    """Every way to put so many jobs into groups."""
    if count == 0:
        yield []
        return
    for smaller in packings(count - 1):
        for at in range(len(smaller)):
            yield [[*g, count - 1] if i == at else g for i, g in enumerate(smaller)]
        yield [*smaller, [count - 1]]


def searched(some: Sizes) -> Packed:
    """The packing that the search ends with by itself."""
    return pack_rows(some, lambda: False)


JOBS = st.lists(
    st.tuples(st.floats(0.01, 0.9), st.floats(0.5, 76), st.sampled_from((0.3, 0.5, 0.7, 0.9))),
    min_size=1,
    max_size=6,
)


@given(JOBS)
@settings(max_examples=40, deadline=None)
def test_the_bound_is_below_every_packing_and_the_search_above_none_by_rule(
    jobs: list[tuple[float, float, float]],
) -> None:
    """Bound <= the fewest GPUs of any packing <= found <= first fit; all jobs fit, each once."""
    some = sizes(jobs)
    fewest = min(len(bins) for bins in packings(len(jobs)) if all(some.fits(g) for g in bins))
    found = searched(some)
    assert plain_bound(some) <= found.bound <= fewest <= len(found.bins)
    assert all(some.fits(group) for group in found.bins)
    assert sorted(row for group in found.bins for row in group) == list(range(len(jobs)))
    assert len(found.bins) <= min(len(first_fit(some, order)) for order in decreasing(some))


@given(JOBS, st.data())
@settings(max_examples=60, deadline=None)
def test_spreading_costs_nothing_and_leaves_fewer_collisions(
    jobs: list[tuple[float, float, float]], data: st.DataObject
) -> None:
    """All jobs still fit, each once, on as many GPUs for no more hours; none collides more."""
    some = sizes(jobs, [data.draw(st.sampled_from((100.0, 400.0, 730.0))) for _ in jobs])
    before = first_fit(some, decreasing(some)[0])
    after = spread(some, before, 0)
    assert sorted(row for group in after for row in group) == list(range(len(jobs)))
    assert all(some.fits(group) for group in after)
    assert len(after) == len(before)
    assert some.cost(after) <= some.cost(before) + 1e-6
    squares = [sum(some.takes[g, 0].sum() ** 2 for g in bins) for bins in (after, before)]
    assert squares[0] <= squares[1] + 1e-9


@given(JOBS, st.data())
@settings(max_examples=25, deadline=None)
def test_unequal_hours_are_dollars(
    jobs: list[tuple[float, float, float]], data: st.DataObject
) -> None:
    """Where jobs hold GPUs for different hours, no more GPU-hours than by first fit."""
    hours = [data.draw(st.sampled_from((10.0, 100.0, 730.0))) for _ in jobs]
    some = sizes(jobs, hours)
    least = min(some.cost(first_fit(some, order)) for order in decreasing(some))
    assert some.cost(searched(some).bins) <= least + 1e-6


@given(JOBS, st.data())
@settings(max_examples=40, deadline=None)
def test_no_packing_holds_fewer_hours_than_is_proven(
    jobs: list[tuple[float, float, float]], data: st.DataObject
) -> None:
    """The bound by hours is below every packing there is."""
    some = sizes(jobs, [data.draw(st.sampled_from((10.0, 100.0, 730.0))) for _ in jobs])
    least = min(some.cost(b) for b in packings(len(jobs)) if all(some.fits(g) for g in b))
    assert plain_hours(some) <= least + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_alike_jobs_go_where_each_of_them_would(seed: int) -> None:
    """Packed by rule, jobs that follow on others like them land where they would one by one."""
    rng = np.random.default_rng(seed)
    kinds = [(float(s), float(m), float(o)) for s, m, o in rng.uniform(0.05, 0.5, (5, 3))]
    hours = [float(one) for one in rng.uniform(10, 700, 60)]
    some = sizes([kinds[kind] for kind in rng.integers(0, 5, 60)], hours)
    apart = replace(some)
    object.__setattr__(apart, "kinds", np.arange(60))
    for order in (*decreasing(some), *by_length(some)):
        for rule in (first_fit, best_fit):
            assert rule(some, order) == rule(apart, order)


def test_classes_of_hours_beat_the_longest_first() -> None:
    """Of jobs of some lengths an order by classes of hours holds GPUs for fewer hours."""
    rng = np.random.default_rng(1)
    jobs = [(float(s), float(m), 0.9) for s, m in rng.uniform((0.05, 1), (0.6, 30), (120, 2))]
    some = sizes(jobs, [float(one) for one in rng.uniform(500, 700, 120)])
    longest_first = min(some.cost(best_fit(some, order)) for order in decreasing(some))
    assert min(some.cost(best_fit(some, order)) for order in by_length(some)) < longest_first
    assert plain_hours(some) <= some.cost(searched(some).bins) < longest_first


def test_it_finds_what_first_fit_misses() -> None:
    """Eighteen jobs for six GPUs; each order of first fit needs seven."""
    shares = ".53 .24 .14 .1 .26 .54 .28 .16 .45 .38 .22 .3 .18 .55 .17 .15 .46 .29"
    some = sizes([(share, 1.0, 0.9) for share in map(float, shares.split())])
    assert {len(first_fit(some, order)) for order in decreasing(some)} == {7}
    found = searched(some)
    assert (found.bound, len(found.bins)) == (6, 6)


def test_tight_limits_of_some_raise_the_bound() -> None:
    """Twelve jobs of 20 % of which each wants the GPU at most half busy need six, not three."""
    found = searched(sizes([(0.2, 1.0, 0.5)] * 12))
    assert (found.bound, len(found.bins)) == (6, 6)


def test_two_tight_resources_are_proven_best_on_a_finer_grid() -> None:
    """Forty jobs that fill both share and memory, some under a tighter limit, need nine GPUs."""
    rng = np.random.default_rng(6)
    takes = rng.uniform((0.02, 2.0), (0.25, 28.0), (40, 2))
    most = np.where(rng.random(40) < 0.4, 0.5, 0.9)
    limits = np.stack([most, np.full(40, ROOM)], axis=1)
    found = searched(Sizes(takes=takes, limits=limits, hours=np.ones(40)))
    assert (found.bound, len(found.bins)) == (9, 9)


def test_the_same_jobs_get_the_same_packing() -> None:
    """Nothing is drawn, no time is read: two searches are one."""
    rng = np.random.default_rng(3)
    jobs = [(float(s), float(m), 0.9) for s, m in rng.uniform((0.05, 1), (0.6, 30), (40, 2))]
    assert searched(sizes(jobs)) == searched(sizes(jobs))


@pytest.mark.parametrize("after", [0, 1, 2, 5])
def test_ended_early_it_has_a_packing(after: int) -> None:
    """Whenever it is stopped there is a packing, and it is said where it was not proven best."""
    rng = np.random.default_rng(5)
    some = sizes([(float(s), float(m), 0.9) for s, m in rng.uniform((0.1, 1), (0.5, 40), (60, 2))])
    asked = iter(range(after))
    found = pack_rows(some, lambda: next(asked, None) is None)
    assert sorted(row for group in found.bins for row in group) == list(range(60))
    assert found.stopped or len(found.bins) == found.bound
