"""Hours, work and data of a job for the period, and which period it is."""

from typing import Any

import pytest

from planner.choice.requirements import Requirements
from planner.choice.workload import (
    GIB,
    Workload,
    apply_requirements,
    check_asked,
    choose_period,
    workload,
)
from planner.profile.model import MonthlyUse, Profile, Statistics, Window, Work
from pricing.errors import InputError
from tests.planner.factories import a_profile

RUN = {"unit": "image", "total": 7.2e6, "rate_per_s": 100.0}


def of(profile: Profile, **asked: Any) -> tuple[str, Workload]:
    """The period and the work as the pipeline finds them."""
    requirements = Requirements(**asked)
    profile = apply_requirements(profile, requirements)
    period = choose_period((profile,), requirements)
    return period, workload(profile, requirements, period)


@pytest.mark.parametrize(
    ("profile", "asked", "period", "hours", "units"),
    [
        (a_profile(), {}, "month", 100.0, None),
        (a_profile(hours=None), {}, "month", 730.0, None),
        (a_profile(), {"hours_per_month": 50.0}, "month", 50.0, None),
        (a_profile(hours=None), {"hours_per_month": 50.0}, "month", 50.0, None),
        (a_profile(rate_per_s=10.0), {}, "month", 100.0, 3.6e6),
        (a_profile(**RUN), {}, "run", 20.0, 7.2e6),
        (a_profile(**RUN), {"work_total": 3.6e6}, "run", 10.0, 3.6e6),
        (a_profile(rate_per_s=100.0), {"work_total": 3.6e6}, "run", 10.0, 3.6e6),
        (a_profile(**RUN), {"hours_per_month": 50.0}, "month", 50.0, 1.8e7),
        (
            a_profile(done=3600.0, total=7200.0, window=Window(duration_s=3600.0)),
            {},
            "run",
            2.0,
            7200.0,
        ),
        (a_profile(total=7200.0), {}, "month", 100.0, None),
        (a_profile(hours=0.0), {}, "month", 0.0, None),
    ],
)
def test_the_period_and_its_hours(
    profile: Profile, asked: dict[str, Any], period: str, hours: float, units: float | None
) -> None:
    """A total with a rate makes a run; a month is declared, else 730 hours."""
    got, work = of(profile, **asked)
    assert (got, work.hours.mid, work.units) == (period, pytest.approx(hours), units)


def test_assumed_hours_are_said() -> None:
    """730 hours are an assumption, not a measurement."""
    assert "730" in of(a_profile(hours=None))[1].notes[0]
    assert of(a_profile())[1].notes == ()


@pytest.mark.parametrize("work", [None, Work(total=5.0), Work(rate_per_s=0.0)])
def test_a_total_needs_a_rate(work: Work | None) -> None:
    """`--work-total` without a measured rate says what to do, for each job."""
    blind = [a_profile(name=name, work=work) for name in ("a", "b")]
    with pytest.raises(InputError, match="--work UNIT=DONE") as caught:
        choose_period(tuple(blind), Requirements(work_total=10.0))
    assert len(caught.value.problems) == 2


def test_mixed_jobs_are_planned_by_the_month() -> None:
    """Only when every job has a total is a plan per run."""
    pair = (a_profile(**RUN), a_profile())
    assert choose_period(pair, Requirements()) == "month"
    assert choose_period((pair[0], pair[0]), Requirements()) == "run"


@pytest.mark.parametrize(
    ("kind", "fixed"),
    [
        ("training", True),
        ("data_preparation", True),
        ("inference_offline", True),
        ("interactive", False),
        ("inference_online", False),
        ("unknown", False),
    ],
)
def test_held_time_stays_and_work_shrinks(kind: str, *, fixed: bool) -> None:
    """A faster machine needs fewer hours for the same work, not for the same presence."""
    assert of(a_profile(kind=kind))[1].fixed_work is fixed


USE = MonthlyUse(hours_per_month=100.0, egress_gib_per_month=3.0, storage_gib=5.0)


def test_data_is_the_profiles_for_a_month_and_the_flags_for_any_period() -> None:
    """The command line wins; a run has no monthly traffic."""
    profile = Profile(job=a_profile().job, hardware=a_profile().hardware, usage=USE)
    _, work = of(profile)
    assert (work.egress_bytes, work.storage_bytes, work.storage_h) == (3 * GIB, 5 * GIB, 730)
    _, work = of(profile, egress_bytes=7, storage_bytes=0)
    assert (work.egress_bytes, work.storage_bytes) == (7, 0)
    run = Profile(job=profile.job, hardware=profile.hardware, usage=USE, work=Work(**RUN))
    _, work = of(run)
    assert (work.egress_bytes, work.storage_bytes, work.storage_h) == (0, 0, None)


@pytest.mark.parametrize(
    ("gib", "host", "stored", "words"),
    [
        (140.0, {}, 0, "where it lies is not stated"),
        (140.0, {}, 50, "where it lies is not stated"),
        (140.0, {}, 140, "part of the 140 GiB"),
        (140.0, {"net_rx_mib_s": 110.0}, 0, "read over the network"),
        (140.0, {"net_rx_mib_s": 110.0, "disk_read_mib_s": 110.0}, 0, "not stated"),
        (99.0, {}, 0, ""),
    ],
)
def test_a_data_set_is_billed_only_as_stored(
    gib: float, host: dict[str, float], stored: int, words: str
) -> None:
    """What is not stated as stored adds no dollars and is said, but where a boot disk holds it."""
    _, work = of(a_profile(dataset_gib=gib, host=host), storage_bytes=stored * GIB)
    assert work.storage_bytes == stored * GIB
    notes = [note for note in work.notes if "data set" in note]
    assert [words in note for note in notes] == ([True] if words else [])
    _, alone = of(a_profile(dataset_gib=gib, host=host), machine_only=True)
    assert not any("data set" in note for note in alone.notes)


def test_the_command_line_replaces_the_profiles_own() -> None:
    """Total, hours and latency target of the command line hold for every job."""
    profile = a_profile(**RUN, latency_slo_ms=9.0)
    asked = Requirements(work_total=1.0, hours_per_month=2.0, slo_ms=3.0)
    changed = apply_requirements(profile, asked)
    assert changed.work is not None
    assert changed.usage is not None
    assert changed.job.latency_slo_ms == 3.0
    assert (changed.work.total, changed.usage.hours_per_month) == (1.0, 2.0)
    assert apply_requirements(profile, Requirements()) == profile


@pytest.mark.parametrize(
    "work",
    [Work(total=1e300, rate_per_s=1e-300), Work(total=1e200, rate_per_s=1.0)],
)
def test_absurd_work_is_bad_input(work: Work) -> None:
    """Numbers that overflow are the profile's fault and are said so, never a crash."""
    with pytest.raises(InputError, match=r"work\.total"):
        of(Profile(job=a_profile().job, hardware=a_profile().hardware, work=work))


HELD = {"mem.used_gib": Statistics(max=6.0)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mean_s": 1.0, "compute_s": 0.9, "comm_s": 0.5, "gpu_count": 2}, "1.4 s of a step"),
        ({"mean_s": 1.0, "data_wait_s": 1.2}, "1.2 s of a step"),
        ({"mean_s": 1.0, "compute_s": 0.5, "comm_s": 0.2}, "one GPU does not communicate"),
        ({"parameters": 7e10}, "at least 32.6 GiB"),  # 70e9 x 0.5 bytes / 2^30
        ({"mean_s": 1.0, "data_wait_s": 0.8, "compute_s": 0.9}, None),  # they may overlap
        ({"mean_s": 1.0, "compute_s": 0.5, "comm_s": 0.5, "gpu_count": 2}, None),
        ({"parameters": 7e9}, None),
    ],
)
def test_figures_that_contradict_each_other_are_refused(
    fields: dict[str, Any], words: str | None
) -> None:
    """Parts longer than the step, one GPU that communicates, weights beyond the memory in use."""
    profile = a_profile(HELD, **fields)
    if words is None:
        check_asked((profile,), "month", Requirements())
        return
    with pytest.raises(InputError, match=words):
        check_asked((profile,), "month", Requirements())
