"""A program that reads its input by itself: workers by what reading wants, cores as measured."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from planner.actions.effects import workers_effect
from planner.actions.settings import Settings
from planner.choice.context import JobContext
from planner.choice.option import how_it_runs
from planner.choice.search import find_candidates
from planner.models.estimate import Estimate
from planner.profile.model import Machine, Statistics
from tests.planner.factories import a_case, a_catalog, a_profile, running, sold

FOUR_CORES = sold("today", "2.00", vcpus=4)
BIG = sold("big", "2.00", vcpus=64)


def _job(reading_cores: float | None, used: float, **changes: float) -> JobContext:
    """Return a loop that waits 95 ms of 100 for its loader, seen on 2 cores of a machine with 4."""
    fields: dict[str, Any] = {"mean_s": 0.1, "data_wait_s": 0.095, "compute_s": 0.005, **changes}
    whole = fields.pop("cpu_util", None)
    host = {"cpu_util": used / 2.0, "disk_read_mib_s": 0.0}
    metrics = {"util.kernel_time": 0.06, "mem.used_gib": Statistics(max=10.0)}
    loop = a_profile(
        metrics,
        host=host,
        cpu_cores=2,
        framework="pytorch",
        loader_workers=0,
        reading_cores=reading_cores,
        **fields,
    )
    if whole is not None:
        loop = replace(loop, machine=Machine(cpu_util=Statistics(mean=whole), cpu_cores=2.0))
    return a_case(running(loop, FOUR_CORES), a_catalog(FOUR_CORES, BIG))


def _with_workers(job: JobContext, size: str) -> tuple[Estimate, Mapping[str, Settings]]:
    """Return the predicted speed-up by the quick fixes on a size, and what is set there."""
    candidates, _ = find_candidates(job)
    found = [one for one in candidates if one.offer.instance_type == size]
    one = next(one for one in found if one.actions and "gpu-preprocessing" not in one.actions)
    *_, settings = how_it_runs(one, job)
    return one.speed, settings


def test_reads_that_wait_get_more_workers_than_cores() -> None:
    """16 workers for a loop that waits, predicted by the law: 0.95 / 16 of the time, or a bit more.

    One core's worth of workers was what the 2 cores afforded before waiting was told from work.
    """
    speed, settings = _with_workers(_job(0.04, 0.09), "today")
    assert settings["dataloader-workers"]["num_workers"] == 16
    assert speed.high == pytest.approx(16 / 0.95, rel=0.05)
    assert speed.mid > 10.0
    assert speed.low < 6.0


def test_reads_that_work_are_held_to_the_cores_that_were_seen() -> None:
    """On 2 full cores little is gained by workers, so no option counts on them there."""
    candidates, _ = find_candidates(_job(1.0, 1.0))
    counted = {c.offer.instance_type for c in candidates if "dataloader-workers" in c.codes}
    assert counted == {"big"}
    assert workers_effect(_job(1.0, 1.0).signals) == (1.0, 1.0, pytest.approx(1.0 / 0.95))


def test_cores_of_another_machine_do_not_help_a_loop_without_workers() -> None:
    """64 cores in place of 2: reads that wait, and one thread that reads, come no faster."""
    waits, works = _job(0.04, 0.09), _job(1.0, 1.0)
    here, there = (_with_workers(waits, size)[0].mid for size in ("today", "big"))
    assert there == pytest.approx(here, rel=0.05)
    big = [c for c in find_candidates(works)[0] if c.offer.instance_type == "big"]
    assert [c.speed.mid for c in big if not c.actions] == [pytest.approx(1.0)]
    assert all(c.actions == ("dataloader-workers",) for c in big if c.speed.mid > 1.0)


def test_what_others_take_is_not_there() -> None:
    """Where others fill the machine, work that gets one core of two gains nothing by workers."""
    fields: dict[str, Any] = {"data_wait_s": 0.05, "compute_s": 0.05}
    alone = workers_effect(_job(1.0, 1.0, cpu_util=0.5, **fields).signals)
    crowded = workers_effect(_job(1.0, 1.0, cpu_util=1.0, **fields).signals)
    assert alone is not None
    assert alone[2] == pytest.approx(2.0)
    assert crowded == (1.0, 1.0, 1.0)


def test_full_cores_get_workers_with_the_cores_of_a_larger_host() -> None:
    """On 4 full cores workers gain nothing; on 64 the same loop reads beside the kernels.

    By hand: 60 ms of 100 are waited for. With many more cores the 40 ms of work set the pace: 2.5
    times as fast; without workers the wait shrinks, and is still waited for.
    """
    loop = a_profile(
        {"util.kernel_time": 0.38, "mem.used_gib": Statistics(max=10.0)},
        host={"cpu_util": 1.0},
        cpu_cores=4,
        framework="pytorch",
        loader_workers=0,
        mean_s=0.1,
        data_wait_s=0.06,
        compute_s=0.04,
    )
    job = a_case(running(loop, FOUR_CORES), a_catalog(FOUR_CORES, BIG))
    candidates, _ = find_candidates(job)
    big = {c.actions: c.speed.mid for c in candidates if c.offer.instance_type == "big"}
    pair = big["dataloader-workers",]
    assert pair == pytest.approx(2.5, rel=0.1)
    assert pair > big[()]
    assert not any("dataloader-workers" in c.actions for c in candidates if c.stays)


def test_a_machine_of_today_has_the_cores_that_were_measured() -> None:
    """Sold with at least 4 and seen with 16: workers are predicted, and set, for 16 there."""
    host = {"cpu_util": 0.09, "cpu_busiest_core": 0.98}
    loop = {"mean_s": 1.4, "data_wait_s": 0.62, "compute_s": 0.75, "loader_workers": 1}
    seen = a_profile(
        {"util.kernel_time": 0.57}, host=host, cpu_cores=16, framework="pytorch", **loop
    )
    job = a_case(running(seen, FOUR_CORES), a_catalog(FOUR_CORES))
    speed, settings = _with_workers(job, "today")
    assert speed.mid > 1.4
    assert settings["dataloader-workers"]["num_workers"] > 4
