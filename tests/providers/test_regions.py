"""Regions are asked at once: one that is slow or silent delays no other, and is told apart."""

import threading
import time

import pytest

from providers.provider import in_each


def test_all_are_asked_at_once_and_told_in_their_order() -> None:
    """Each waits until all are there, which one after the other would never be."""
    meet = threading.Barrier(20, timeout=120)

    def ask(region: str) -> str:
        meet.wait()
        return region.upper()

    names = [f"r{number}" for number in range(20)]
    assert list(in_each(names, ask).items()) == [(name, name.upper()) for name in names]


def test_a_silent_region_is_not_waited_for() -> None:
    """Who does not answer in time is None; the others are told."""
    forever = threading.Event()

    def ask(region: str) -> str:
        if region == "silent":
            forever.wait(300)
        return "told"

    start_s = time.perf_counter()
    told = in_each(("a", "silent", "b"), ask, answer_s=2.0)
    assert told == {"a": "told", "silent": None, "b": "told"}
    assert time.perf_counter() - start_s < 120
    forever.set()


def test_a_fault_of_ours_is_raised() -> None:
    """What a question raises is not taken for silence."""

    def ask(region: str) -> str:
        raise ZeroDivisionError(region)

    with pytest.raises(ZeroDivisionError):
        in_each(("a", "b"), ask)
    assert in_each((), ask) == {}
