"""The number of loader workers is found by trying: the fewest that are as fast as the fastest."""

from typing import Any

import pytest

from telemetry.probe.path.gpucost_probe.applying.feed import NUMBERS, Search
from telemetry.recording.events import trials

OWN_S = 0.02


class Evidence:
    """What the loader showed without workers."""

    def __init__(self, fetch_s: float) -> None:
        self.fetch_typical_s = fetch_s
        self.round_typical_s = fetch_s + OWN_S


def _searched(fetch_s: float, scales_to: int, room: int = 99) -> Search:
    """Search where reading gets faster up to so many workers, and so many have room."""
    search = Search(Evidence(fetch_s))  # type: ignore[arg-type] # as far as it is used
    search.started()
    for _ in range(5000):
        if search.over:
            break
        if search.changed:
            if search.workers > room:
                search.refused()
                break
            search.started()
        read_s = fetch_s / min(search.workers, scales_to)
        search.took(max(OWN_S, read_s), max(0.0, read_s - OWN_S))
    return search


@pytest.mark.parametrize(
    ("fetch_s", "scales_to", "found"),
    [
        (0.015, 16, 1),  # one worker reads while the program computes
        (0.038, 16, 2),
        (0.07, 16, 4),
        (0.15, 16, 8),
        (0.3, 2, 2),  # two cores, and it is they that are wanted
        (0.3, 1, 1),
        (2.0, 16, 16),
    ],
)
def test_the_fewest_that_end_the_wait(fetch_s: float, scales_to: int, found: int) -> None:
    """Where the wait ends, or where more are not faster."""
    search = _searched(fetch_s, scales_to)
    assert (search.over, search.workers) == (True, found)
    assert f"num_workers {found} found" in search.sentence
    assert [n for n, _, _ in search.tried][:2] == [0, 1]
    kept = [each["value"] for each in search.trials() if each["chosen"]]
    assert kept == [found]


def test_workers_that_make_it_slower_are_not_taken() -> None:
    """Where a worker costs more than it gives, the program goes on without."""
    search = Search(Evidence(0.001))  # type: ignore[arg-type] # as far as it is used
    while not search.over:
        if search.changed:
            search.started()
        search.took(0.05, 0.03)
    assert (search.workers, search.changed) == (0, True)


def test_no_more_are_tried_than_there_is_room_for() -> None:
    """The best of those that had room is kept, and that is said."""
    search = _searched(2.0, 16, room=4)
    assert (search.over, search.workers) == (True, 4)
    assert "no room for 6" in search.sentence


def test_each_number_is_measured_over_whole_rounds() -> None:
    """The first rounds with new workers do not count; batches come in bursts of their number."""
    for number in NUMBERS:
        search = Search(Evidence(0.2))  # type: ignore[arg-type] # as far as it is used
        search.workers = number
        search.started()
        rounds = 0
        while len(search.tried) == 1:
            search.took(100.0 if rounds < 2 * number + 2 else 0.1, 0.05)
            rounds += 1
        assert search.tried[-1][1:] == pytest.approx((0.1, 0.05))
        assert (rounds - 2 * number - 2) % number == 0


def test_what_was_tried_is_read_back() -> None:
    """A profile says each number, its step and its wait, and which was kept."""
    search = _searched(0.038, 16)
    events: list[dict[str, Any]] = [
        {"event": "trial", "where": "loader 1", **each} for each in search.trials()
    ]
    found = trials([{"trial": events}])
    assert [(one.value, one.chosen) for one in found] == [(0, "no"), (1, "no"), (2, "yes")]
    assert found[2].step_s == pytest.approx(OWN_S)
