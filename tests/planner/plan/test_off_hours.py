"""A machine that people use is off at nights and weekends as the safer step, at its own figure."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from planner.plan.draft import JobDraft
from planner.plan.notes import week_hours_text
from planner.profile.model import Phase, UseByHour
from planner.signals.signals import open_hours
from tests.planner.factories import TODAY, a_profile, plan, running

WEEK_H = 168


def used_in(hours: Iterable[int]) -> JobDraft:
    """The plan of a machine whose GPU works for a quarter of these hours of a week, in bursts."""
    used = set(hours)
    mean = tuple(0.25 if hour in used else 0.0 for hour in range(WEEK_H))
    busy = sum(mean) / WEEK_H
    idle = Phase(kind="idle", total_s=(1 - busy) * WEEK_H * 3600, time_fraction=1 - busy, count=20)
    made = a_profile({"util.kernel_time": busy}, kind="unknown", hours=730.0, phases=(idle,))
    made = replace(made, by_hour=UseByHour(mean=mean, spread=(0.0,) * WEEK_H))
    (job,) = plan(running(made)).jobs
    return job


def days(hours: range, of: int = 5) -> list[int]:
    """These hours of the first days of a week."""
    return [(day * 24 + hour) % WEEK_H for day in range(of) for hour in hours]


@pytest.mark.parametrize(
    ("begin", "end"), [(9, 18), (14, 23), (20, 29)], ids=["day", "late", "night"]
)
def test_the_safer_step_is_what_the_hours_of_use_cost(begin: int, end: int) -> None:
    """Nine hours on five days are 45 of 168: 195.5 of 730, billed as 196; the range ends there."""
    job = used_in(days(range(begin, end)))
    people = open_hours(job.profile)
    assert people == (5, begin, end % 24, pytest.approx(45 / 168))
    assert TODAY.usd_per_hour == 2
    assert job.off_hours is not None
    assert "$392, saves 73 %" in job.off_hours
    assert job.now is not None
    assert job.now.usd is not None
    assert job.now.usd.high == 392
    assert job.now.usd.low < job.now.usd.mid < job.now.usd.high


def test_a_pause_at_noon_is_no_night() -> None:
    """Who works from 9 to 12 and from 14 to 18 needs the machine from 9 to 18."""
    at_work = days(range(9, 12)) + days(range(14, 18))
    assert open_hours(used_in(at_work).profile) == open_hours(used_in(days(range(9, 18))).profile)


def test_a_machine_without_a_night_has_no_safer_step() -> None:
    """Bursts at all hours of the day leave none in which it could be off."""
    assert used_in(range(0, WEEK_H, 5)).off_hours is None


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (days(range(9, 12)), "Mon-Fri 9-12"),
        (days(range(22, 26)), "Mon-Fri 22-2"),
        ([9, 10, 57, 58], "Mon+Wed 9-11"),
        ([*range(9, 59)], "Mon 9-11 (50 h)"),
        ([0, 1, 166, 167], "Sun 22-2"),
        ([8, 34], "Mon 8-9, Tue 10-11"),
    ],
)
def test_a_timetable_is_said_in_days_and_hours(hours: list[int], text: str) -> None:
    """Days of the same hours stand together; what goes past midnight is of the day it begins."""
    assert week_hours_text(sorted(hours)) == text
