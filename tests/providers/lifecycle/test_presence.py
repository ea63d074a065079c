"""What proves that a resource is gone, and what does not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.interface import ExistenceCheck, ExistenceState
from providers.lifecycle.presence import LOOKS, SPAN_S, Evidence

LAG_S = 120.0
Seen = tuple[tuple[float, ExistenceState], ...]
"""Answers, with the seconds at which they came."""


def _every(seconds: float, count: int, *, start: float = 0.0) -> Seen:
    """So many answers that do not show it."""
    return tuple((start + number * seconds, "not-shown") for number in range(count))


def _last(seen: Seen, *, age_s: float, accepted: bool = False) -> ExistenceState:
    evidence = Evidence(lag_s=LAG_S, age_s=age_s, accepted=accepted)
    for at_s, state in seen:
        evidence.add(ExistenceCheck(state=state), at_s)
    return evidence.last.state


@pytest.mark.parametrize(
    ("told", "age_s", "is_accepted", "seen", "last"),
    [
        ("the provider calls it ended", 0, False, ((0, "gone"),), "gone"),
        ("a young one is not shown for a minute", 0, False, _every(5, 13), "not-shown"),
        ("a young one is not shown for as long as reads lag", 0, False, _every(5, 28), "gone"),
        ("an old one is missed once", 9e9, False, _every(5, 1), "not-shown"),
        ("an old one is missed often, in a second", 9e9, False, _every(0.1, 10), "not-shown"),
        ("an old one is missed for some seconds", 9e9, False, _every(5, 3), "gone"),
        ("its end was accepted, and it is missed twice", 0, True, _every(5, 2), "gone"),
        ("its end was accepted, and it is missed once", 0, True, _every(5, 1), "not-shown"),
        (
            "it was missed by one stale replica",
            9e9,
            False,
            ((0, "not-shown"), (5, "not-shown"), (10, "present"), (15, "not-shown")),
            "not-shown",
        ),
        (
            "the provider did not answer in between",
            9e9,
            False,
            ((0, "not-shown"), (5, "not-asked"), (10, "not-shown"), (15, "not-shown")),
            "gone",
        ),
        ("nobody could be asked", 9e9, True, ((0, "not-asked"), (99, "not-asked")), "not-asked"),
    ],
)
def test_what_proves_an_end(
    *, told: str, age_s: float, is_accepted: bool, seen: Seen, last: ExistenceState
) -> None:
    """Only what the provider says of the id counts, for longer than its reads may lag."""
    assert _last(seen, age_s=age_s, accepted=is_accepted) == last, told


@settings(deadline=None)
@given(
    age_s=st.floats(0, 1000),
    seen=st.lists(
        st.tuples(st.floats(0, 30), st.sampled_from(("present", "not-shown", "not-asked"))),
        max_size=30,
    ),
)
def test_nothing_is_gone_by_silence(age_s: float, seen: list[tuple[float, ExistenceState]]) -> None:
    """Whatever comes in whatever order: gone needs enough misses in a row, old and spread out."""
    at_s, streak = 0.0, list[float]()
    evidence = Evidence(lag_s=LAG_S, age_s=age_s)
    for pause_s, state in seen:
        at_s += pause_s
        if state == "present":
            streak.clear()
        if state == "not-shown" and age_s + at_s >= LAG_S:
            streak.append(at_s)
        evidence.add(ExistenceCheck(state=state), at_s)
        if evidence.is_gone:
            assert len(streak) >= LOOKS
            assert streak[-1] - streak[0] >= SPAN_S
            return
