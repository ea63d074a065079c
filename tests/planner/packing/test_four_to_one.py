"""Four under-used GPUs become one, and why not, on single machines and on one of eight."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from planner.choice.requirements import Requirements
from planner.fleet.fleet import Fleet
from planner.profile.model import GpuReadings, Latency, Profile, Statistics, Window
from pricing.catalog.catalog import load_catalog
from tests.planner.factories import a_baseline, a_profile, running
from tests.planner.packing.at_home import consolidate
from tests.pricing.factories import ASKED_ON

DROPLET = load_catalog(ASKED_ON).find("digitalocean", "gpu-h100x1-80gb")


def job(name: str, **fields: Any) -> Profile:
    """A job on a machine of its own with one H100."""
    busy, gib = fields.pop("busy", 0.2), fields.pop("gib", 8.0)
    metrics = {"util.kernel_time": busy, "mem.used_gib": Statistics(max=gib)}
    asked = {"kind": "inference_online", "gpu": "H100"} | fields
    return running(a_profile(metrics, name=name, **asked), DROPLET)


def packed(*profiles: Profile, **asked: Any) -> Fleet:
    """The fleet of jobs on their droplets."""
    return consolidate([(p, a_baseline(p, DROPLET)) for p in profiles], Requirements(**asked))


LATE = {"latency_slo_ms": 50.0, "latency_ms": Latency(p99=45.0)}


@pytest.mark.parametrize(
    ("fields", "after", "why"),
    [({}, 1, set()), ({"gib": 40.0}, 4, {"memory"}), (LATE, 4, {"latency"})],
    ids=["they fit", "memory", "latency"],
)
def test_four_machines_become_one_or_stay(
    fields: dict[str, Any], after: int, why: set[str]
) -> None:
    """Three of four bills go where they fit; none goes for want of memory or of latency."""
    fleet = packed(*(job(f"j{i}", **fields) for i in range(4)))
    assert (fleet.gpus_before, fleet.gpus_after, fleet.gap_fraction) == (4, after, 0.0)
    assert fleet.saving.fraction == pytest.approx(1 - after / 4)
    assert {one.reason for one in fleet.unmoved} == why


def test_services_join_a_training_job() -> None:
    """A training job that takes 70 % leaves room for one measured service of 20 %."""
    train = job("train", busy=0.7, gib=30.0, kind="training")
    services = [job(f"j{i}", latency_ms=Latency(p99=20.0)) for i in range(4)]
    fleet = packed(train, *services)
    assert (fleet.gpus_before, fleet.gpus_after, fleet.gpus_lower_bound) == (5, 2, 2)


def test_a_service_of_unknown_latency_shares_with_no_training_job() -> None:
    """Training jobs share, services share, but not with each other; the reason says what to give.

    A service that must be isolated has a slice of its own, which no training job delays.
    """
    train = [job(f"t{i}", busy=0.1, kind="training") for i in range(2)]
    fleet = packed(*train, *(job(f"j{i}", busy=0.05) for i in range(3)))
    assert {p.jobs for p in fleet.placements} == {("t0", "t1"), ("j0", "j1", "j2")}
    assert {one.reason for one in fleet.unmoved} == {"latency"}
    assert all("the latency was not measured" in one.detail for one in fleet.unmoved)
    isolated = packed(job("a", trust="isolated"), job("t", trust="isolated", kind="training"))
    assert isolated.gpus_after == 1


@pytest.mark.parametrize("kind", ["unknown", "interactive"])
def test_of_equal_bills_that_in_which_jobs_collide_least_is_taken(kind: str) -> None:
    """Two jobs of 5 % go together, not beside one of 72 %: the GPUs and the dollars are the same.

    The names put the busy job in any place of the order.
    """
    for name in ("a", "m", "z"):
        busy = job(name, busy=0.72, gib=70.0, kind=kind)
        fleet = packed(busy, *(job(n, busy=0.05, gib=3.0, kind=kind) for n in ("k", "n")))
        assert {p.jobs for p in fleet.placements} == {(name,), ("k", "n")}


@pytest.mark.parametrize(("most", "after"), [(0, 4), (1, 3), (2, 2), (3, 1), (9, 1)])
def test_no_more_jobs_move_than_may(most: int, after: int) -> None:
    """Each move frees one GPU; who could move and may not is told so."""
    fleet = packed(*(job(f"j{i}") for i in range(4)), max_moves=most)
    assert fleet.gpus_after == after
    moved = sum(len(placement.jobs) - 1 for placement in fleet.placements)
    assert moved == min(most, 3)
    kept = {one.job for one in fleet.unmoved if one.reason == "moves"}
    assert len(kept) == 3 - moved


def test_moves_that_save_most_come_first() -> None:
    """With one move allowed the job of 500 h moves, not that of 10 h."""
    hours = {"long": 700.0, "half": 500.0, "short": 10.0}
    fleet = packed(*(job(name, hours=h) for name, h in hours.items()), max_moves=1)
    assert ("half", "long") in {placement.jobs for placement in fleet.placements}


def test_a_time_limit_leaves_a_packing() -> None:
    """A search that ends at once still packs by first fit, and says that it ended early."""
    jobs = [job(f"j{i}", busy=0.1 + 0.03 * i, gib=10.0 + i) for i in range(9)]
    fleet = packed(*jobs, ends_search=lambda: True)
    assert fleet.gpus_after < 9
    assert fleet.search_ended_early or fleet.gap_fraction == 0.0


@pytest.mark.parametrize(("hours", "after"), [(24.0, 1), (10.0, 2)], ids=["a day", "less"])
def test_a_service_recorded_for_less_than_a_day_gets_room_to_grow(hours: float, after: int) -> None:
    """Two services of 34 GiB share 80 GiB once a whole day was seen; before, memory may grow."""
    seen = Window(duration_s=hours * 3600.0)
    fleet = packed(*(structs.replace(job(name, gib=34.0), window=seen) for name in "ab"))
    assert fleet.gpus_after == after
    assert all("less than a day was seen" in one.detail for one in fleet.unmoved)


PEAKY = Statistics(mean=0.2, p95=0.95)


@pytest.mark.parametrize(
    ("kind", "after"), [("inference_online", 4), ("training", 1)], ids=["services", "training"]
)
def test_services_are_packed_by_their_peaks(kind: str, after: int) -> None:
    """Four services at a 95th percentile of 95 % do not share; four training jobs do."""
    assert packed(*(job(f"j{i}", busy=PEAKY, kind=kind) for i in range(4))).gpus_after == after


@pytest.mark.parametrize("slot", ["util.dram_active", "util.encoder", "util.decoder"])
def test_other_parts_of_a_gpu_fill_up(slot: str) -> None:
    """Two jobs that keep the memory or a video engine 40 % busy share; a third does not join."""
    jobs = [job(f"j{i}") for i in range(3)]
    full = [structs.replace(one, gpus=(_with(one.gpus[0], slot, 0.4),)) for one in jobs]
    fleet = packed(*full)
    assert fleet.gpus_after == 2
    assert {one.reason for one in fleet.unmoved} == {"slowdown"}


def _with(gpu: GpuReadings, slot: str, mean: float) -> GpuReadings:
    return structs.replace(gpu, metrics={**gpu.metrics, slot: Statistics(mean=mean)})


def test_a_known_rate_of_requests_tells_what_the_gpu_takes_of_a_latency() -> None:
    """At 200 requests/s 6 of 20 ms are the GPU's: the four keep 50 ms, which else they do not."""
    target = {"latency_slo_ms": 50.0, "latency_ms": Latency(p99=20.0)}
    assert packed(*(job(f"j{i}", **target) for i in range(4))).gpus_after == 2
    known = [job(f"j{i}", requests_per_s=200.0, **target) for i in range(4)]
    assert packed(*known).gpus_after == 1


@pytest.mark.parametrize("latency_ms", [22.0, 25.0, 30.0])
def test_a_target_that_is_just_kept_is_kept(latency_ms: float) -> None:
    """At half the target exactly three of four services share, as they do a little below it."""
    target = {"latency_slo_ms": 50.0, "latency_ms": Latency(p99=latency_ms)}
    assert packed(*(job(f"j{i}", **target) for i in range(4))).gpus_after == 2


def test_isolated_jobs_get_slices_of_their_own() -> None:
    """Two jobs that must be isolated share an H100 cut in two; beside others they stay alone."""
    isolated = [job(name, trust="isolated", kind="training") for name in "ab"]
    fleet = packed(*isolated, job("open"))
    shared = next(p for p in fleet.placements if len(p.jobs) == 2)
    assert (shared.mode, shared.jobs, shared.slices) == ("mig", ("a", "b"), ("4g.40gb", "3g.40gb"))
    assert (fleet.gpus_before, fleet.gpus_after, fleet.gpus_lower_bound) == (3, 2, 2)
    assert {one.reason for one in fleet.unmoved} == {"capability"}


def test_an_isolated_service_does_not_fill_its_slice() -> None:
    """A service at a peak of 80 % is not put on half a GPU, though its mean would fit."""
    peaky = Statistics(mean=0.2, p95=0.8)
    fleet = packed(*(job(name, busy=peaky, trust="isolated") for name in "ab"))
    assert fleet.gpus_after == 2


BY_DAY, BY_NIGHT = [40.0] * 12 + [1.0] * 12, [1.0] * 12 + [40.0] * 12


@pytest.mark.parametrize(
    ("second", "after"), [(BY_NIGHT, 1), (BY_DAY, 2)], ids=["other hours", "the same hours"]
)
def test_jobs_that_are_busy_at_other_hours_share(second: list[float], after: int) -> None:
    """Two services that fill 80 % of a GPU in their busy hours share where the hours differ."""
    peaky = Statistics(mean=0.4, p95=0.8)
    jobs = [
        job(name, busy=peaky, requests_per_s=20.0, demand_by_hour=hours)
        for name, hours in (("a", BY_DAY), ("b", second))
    ]
    assert packed(*jobs).gpus_after == after


def test_an_owned_machine_is_never_saved() -> None:
    """What four machines owe anyway is owed on one, too: they fit it, and nothing is saved."""
    jobs = [job(f"j{i}") for i in range(4)]
    baselines = [(p, a_baseline(p, DROPLET)) for p in jobs]
    owed = [(p, replace(b, owed=b.cost or Decimal(0))) for p, b in baselines]
    free, held = (consolidate(fleet, Requirements()) for fleet in (baselines, owed))
    assert free.saving.fraction == pytest.approx(3 / 4)
    assert held.cost_after == pytest.approx(held.cost_before, abs=Decimal("0.01"))
