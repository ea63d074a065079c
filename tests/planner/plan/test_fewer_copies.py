"""A service whose copies are little used is tried with fewer: what its busiest hour needs."""

from typing import Any

import pytest
from msgspec.structs import replace

from planner.plan.making import to_plan
from planner.profile.model import Profile, Statistics, UseByHour
from templates.language.translate import use_language
from templates.reports.first_screen import first_screen
from tests.planner.factories import a_profile, plan, running, sold

MACHINE = sold("machine", "2.00")
DAY = (0.0,) * 8 + (0.24,) * 12 + (0.0,) * 4
"""Busy for 24 % of twelve hours: 12 % of the day."""


def copy(name: str, by_hour: tuple[float, ...] | None = DAY, **fields: Any) -> Profile:
    """One copy that requests keep busy for 12 % of the time, with memory that nobody can share."""
    metrics = {
        "util.kernel_time": Statistics(mean=0.12, p95=0.24, max=0.3),
        "mem.used_gib": Statistics(mean=60.0, max=60.0),
    }
    profile = a_profile(metrics, name=name, **{"kind": "inference_online"} | fields)
    use = None if by_hour is None else UseByHour(mean=by_hour, spread=(0.0,) * len(by_hour))
    return running(replace(profile, by_hour=use), MACHINE)


def tried(*copies: Profile) -> tuple[str, ...]:
    """What the first screen says to try, with its figures."""
    made = to_plan(plan(*copies, offers=(MACHINE,)))
    with use_language("en"):
        actions = first_screen(made).actions
    return tuple(" ".join((a.text, *a.figures)) for a in actions if a.label == "Try")


def test_copies_are_those_of_the_busiest_hour() -> None:
    """20 x 0.24 = 4.8 GPUs at 60 % are 8 copies: two fifths of $4,000."""
    (words,) = tried(*(copy(f"chat-{n:02}") for n in range(20)))
    assert words.startswith("8 copies of chat in place of 20, step by step; watch the latency")
    assert "$1,600" in words
    assert "60 %" in words


def test_hours_of_sm_activity_are_taken_as_kernel_time() -> None:
    """Hours that count SMs tell when, not how much: a copy with few requests fills few SMs."""
    half = tuple(share / 2 for share in DAY)
    names = [f"chat-api-7d9f8b6c5d-{letter}2q9b" for letter in "abcdefghij"]
    assert tried(*(copy(name, half) for name in names))[0].startswith("4 copies of chat-api-7d9f8")


@pytest.mark.parametrize(
    "copies",
    [
        [copy(f"chat-{n}") for n in range(2)],
        [copy(name) for name in ("chat", "search", "rank", "embed")],
        [copy(f"chat-{n}", None) for n in range(6)],
        [copy(f"chat-{n}", kind="training") for n in range(6)],
        [copy(f"chat-{n}", (0.0,) * 20 + (0.72,) * 4) for n in range(6)],
    ],
    ids=["too few", "other services", "hours unknown", "no service", "one hour needs all"],
)
def test_nothing_is_tried_where_fewer_may_not_do(copies: list[Profile]) -> None:
    """No advice without several copies of one service, their hours, and room in the busiest."""
    assert tried(*copies) == ()
