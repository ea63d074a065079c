"""What is asked of a service by the hour is read as stated, or refused with what is wrong."""

import pytest

from planner.choice.workload import hourly_demand, measured_requests_per_s
from planner.profile.model import Job, Profile, Work
from pricing.errors import InputError


def _asking(demand: object) -> Profile:
    return Profile(job=Job(name="serve", demand_by_hour=demand))


@pytest.mark.parametrize("hours", [24, 168])
def test_a_day_and_a_week_are_read_in_order(hours: int) -> None:
    """Each number stays at its hour, whole or not."""
    assert hourly_demand(_asking(list(range(hours)))) == tuple(float(h) for h in range(hours))


def test_nothing_stated_is_unknown() -> None:
    """A job without a demand by the hour has none."""
    assert hourly_demand(_asking(None)) is None


@pytest.mark.parametrize(
    ("demand", "says"),
    [
        ("8", "not a list"),
        ({"0": 1.0}, "not a list"),
        ([1.0] * 23, "has 23 numbers"),
        ([], "has 0 numbers"),
        ([1.0, "2", *([1.0] * 22)], "'2' at place 2"),
        ([*([1.0] * 23), -1.0], "-1.0 at place 24"),
        ([True] * 24, "True at place 1"),
        ([None] * 24, "None at place 1"),
        ([0.0] * 24, "0 in every hour"),
    ],
)
def test_what_cannot_be_used_is_refused(demand: object, says: str) -> None:
    """The refusal names the job, the field, the value, and what would do."""
    with pytest.raises(InputError) as caught:
        hourly_demand(_asking(demand))
    said = caught.value.problems[0]
    assert says in said
    assert said.startswith("serve: job.demand_by_hour")
    assert "24 numbers" in said


@pytest.mark.parametrize(
    ("stated", "work", "rate"),
    [
        (8.0, Work(unit="request", rate_per_s=3.0), 8.0),
        (None, Work(unit="request", rate_per_s=3.0), 3.0),
        (None, Work(unit="token", rate_per_s=900.0), None),
        (0.0, None, None),
    ],
)
def test_the_rate_of_a_copy_is_of_requests(
    stated: float | None, work: Work | None, rate: float | None
) -> None:
    """Requests are taken as stated, else as counted; tokens are no requests."""
    profile = Profile(job=Job(name="serve", requests_per_s=stated), work=work)
    assert measured_requests_per_s(profile) == rate
