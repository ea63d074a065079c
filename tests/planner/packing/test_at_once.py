"""Packings by rule beside each job on its own, and packings whose parts are made elsewhere."""

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

import numpy as np
import pytest
from msgspec import structs

from planner.choice.requirements import Requirements
from planner.fleet import packing, search
from planner.fleet.placements import Home, today
from planner.fleet.search import pack_rows, plain_bound
from planner.fleet.sizes import Bins, Sizes, best_fit, first_fit, fullness
from planner.fleet.tenant import PackingCache
from planner.profile.model import Statistics
from tests.planner.factories import TODAY, a_baseline, a_profile, running
from tests.planner.packing.at_home import consolidate

T = TypeVar("T")
ASKED = Requirements(max_slowdown=100.0)


def drawn(seed: int, jobs: int = 300) -> Sizes:
    """Jobs that need over a hundred GPUs, with a resource that nobody takes and one without end."""
    rng = np.random.default_rng(seed)
    takes = rng.uniform(0.2, 0.7, (jobs, 4)) * rng.choice([1.0, 0.1], (jobs, 1))
    limits = np.ones((jobs, 4))
    takes[:, 1], limits[:, 2] = 0.0, np.inf
    limits[:, 3] = np.where(rng.random(jobs) < 0.3, np.minimum(1.0, takes[:, 3] + 0.1), np.inf)
    return Sizes(takes=takes, limits=limits, hours=rng.uniform(10, 700, jobs))


def one_by_one(sizes: Sizes, order: Sequence[int], begun: Bins, *, fullest: bool) -> Bins:
    """Each job on the first GPU with room, or the one with least room left; by `Sizes.fits`."""
    main = int(np.argsort(-fullness(sizes).sum(axis=0), kind="stable")[0])
    bins = [list(rows) for rows in begun]

    def room(rows: list[int]) -> float:
        return float(sizes.limits[rows, main].min() - sum(sizes.takes[rows, main]))

    for row in order:
        fitting = [rows for rows in bins if sizes.fits([*rows, row])]
        chosen = min(fitting, key=room) if fitting and fullest else next(iter(fitting), None)
        if chosen is None:
            bins.append([row])
        else:
            chosen.append(row)
    return bins


@pytest.mark.parametrize("seed", range(3))
def test_each_job_goes_where_the_rule_says(seed: int) -> None:
    """Full GPUs and resources that decide nothing are passed over without a difference."""
    sizes = drawn(seed)
    order = np.random.default_rng(seed).permutation(len(sizes))
    begun = [[int(order[0])], [int(order[1])]]
    for rule, fullest in ((first_fit, False), (best_fit, True)):
        found = rule(sizes, order[2:], begun)
        assert found == one_by_one(sizes, order[2:].tolist(), begun, fullest=fullest)
        assert len(found) > 100


def test_little_effort_leaves_the_packing_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a step for linear programs a packing is as by rule, its bound as without a search."""
    sizes = drawn(0, jobs=40)
    best = pack_rows(sizes, lambda: False)
    for effort in ("STEPS", "STEPS_OF_BOUND"):
        monkeypatch.setattr(search, effort, 0)
    found = pack_rows(sizes, lambda: False)
    assert plain_bound(sizes) <= found.bound <= best.bound <= len(found.bins)
    assert sorted(row for rows in found.bins for row in rows) == list(range(40))
    assert not found.stopped


def test_no_proof_where_nobody_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs too many to be chosen among by hours are packed the same; the bound may be lower."""
    monkeypatch.setattr(search, "BY_HOURS", 10)
    sizes = drawn(0, jobs=40)
    best, found = (pack_rows(sizes, lambda: False, proves=proves) for proves in (True, False))
    assert found.bins == best.bins
    assert plain_bound(sizes) == found.bound < best.bound


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_of_a_large_pool_the_best_orders_are_found_on_some_of_it(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Four orders, the best of 400 jobs, pack 1,600 as well as all 28 do, to a hundredth."""
    sizes = drawn(seed, jobs=1_600)
    monkeypatch.setattr(search, "STEPS_OF_BOUND", 0)
    monkeypatch.setattr(search, "ALL_ORDERS", 1_600)
    every = sizes.cost(pack_rows(sizes, lambda: False).bins)
    monkeypatch.setattr(search, "ALL_ORDERS", 1_599)
    few = sizes.cost(pack_rows(sizes, lambda: False).bins)
    assert every <= few <= 1.01 * every


class Elsewhere(Executor):
    """Does work when it is handed in, and hands over pickled copies of what it returns."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Do the work now."""
        self.calls += 1
        work, items = pickle.loads(pickle.dumps((fn, args)))  # noqa: S301 - our own
        future: Future[T] = Future()
        result = pickle.dumps(work(*items, **kwargs))
        future.set_result(pickle.loads(result))  # noqa: S301 - our own
        return future


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_parts_made_elsewhere_are_the_same_packing(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever machine types are packed, and orders of a large one are tried, it is one fleet."""
    monkeypatch.setattr(packing, "FEWEST_JOBS", 2)
    rng = np.random.default_rng(0)
    pairs = []
    for number in range(24):
        used: dict[str, float | Statistics] = {
            "util.kernel_time": float(rng.uniform(0.1, 0.6)),
            "mem.used_gib": Statistics(max=float(rng.uniform(1, 30))),
        }
        offer = TODAY if number < 24 * share else structs.replace(TODAY, instance_type="another")
        profile = a_profile(used, name=f"j{number:02}", hours=float(rng.uniform(10, 700)))
        pairs.append((running(profile, offer), a_baseline(profile, offer)))
    homes: dict[str, Home | None] = {p.job.name: today(p, b) for p, b in pairs}
    elsewhere = Elsewhere()
    found = consolidate(pairs, ASKED, homes, packed_before=PackingCache(executor=elsewhere))
    assert found == consolidate(pairs, ASKED, homes)
    assert elsewhere.calls > 0
