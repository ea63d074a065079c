"""Partitions of AMD's GPUs: who fits, how fast jobs run there, what is said where they do not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import gpucost
from planner.documents.selection import FleetRequest, shared_gpus
from planner.plan.making import to_plan
from planner.prediction.sharing import partition_speed, partitioned
from planner.profile.model import Profile, Statistics, Window
from planner.signals.signals import memory_need_gib
from planner.signals.thresholds import USABLE
from pricing.errors import InputError
from pricing.hardware import gpus, partition_modes
from tests.planner.factories import a_profile, plan, running, sold

MI300X = gpus()["MI300X"]


def job(name: str, gib: float = 8.0, busy: float = 0.1, **fields: Any) -> Profile:
    """A job measured on a whole MI300X."""
    metrics = {"util.kernel_time": busy, "mem.used_gib": Statistics(max=gib)}
    return a_profile(metrics, **{"name": name, "gpu": "MI300X"} | fields)


def jobs(many: int, **fields: Any) -> list[Profile]:
    """So many jobs that are alike."""
    return [job(f"j{number}", **fields) for number in range(many)]


@pytest.mark.parametrize(
    ("many", "mode"), [(2, "DPX"), (3, "QPX"), (4, "QPX"), (5, "CPX"), (8, "CPX")]
)
def test_as_few_partitions_as_there_are_jobs(many: int, mode: str) -> None:
    """Fewer partitions have more compute and memory each."""
    found = partitioned(MI300X, jobs(many))
    assert not isinstance(found, str)
    assert found.name == mode


@pytest.mark.parametrize(
    ("some", "why"),
    [
        (jobs(9), "a MI300X has at most 8 partitions, not 9"),
        (jobs(2, gib=100.0), "j0 takes 100.0 GiB, and of a partition of the MI300X in DPX 91.2"),
        ([*jobs(4), job("large", gib=23.0)], "large takes 23.0 GiB, .* in CPX 22.8 may be filled"),
        (jobs(5, trust="isolated"), "no mode .* each of 8 partitions has memory of its own"),
        ([job("a"), a_profile({"util.kernel_time": 0.1}, name="b")], "memory .* of b was not"),
        ([job("a", gpu="MI350X"), job("b", gpu="MI350X")], "no partitions of the MI350X are known"),
        ([job("a", gpu="H100"), job("b", gpu="H100")], "no partitions of the H100-SXM-80GB"),
    ],
    ids=["nine", "halves", "eighths", "isolated", "unmeasured", "an older GPU", "NVIDIA's"],
)
def test_who_gets_no_partition_is_told_why(some: list[Profile], why: str) -> None:
    """The limit and the job that breaks it are named."""
    with pytest.raises(InputError, match=why):
        gpucost.predict_sharing(some, mode="partition")


@given(
    gibs=st.lists(st.floats(0.1, 200.0), min_size=2, max_size=9),
    hours=st.sampled_from([None, 1.0, 5.0, 30.0]),
    model=st.sampled_from(["MI300X", "MI325X", "MI355X"]),
)
def test_memory_fits_whatever_the_memory_mode(
    gibs: list[float], hours: float | None, model: str
) -> None:
    """Nobody gets a partition whose equal part of the memory it may outgrow."""
    gpu = gpus()[model]
    some = [
        replace(
            job(f"j{number}", gib=gib, kind="inference_online", gpu=model),
            window=hours and Window(duration_s=3600.0 * hours),
        )
        for number, gib in enumerate(gibs)
    ]
    found = partitioned(gpu, some)
    if not isinstance(found, str):
        assert len(some) <= found.partitions
        assert max(memory_need_gib(one) or 0.0 for one in some) <= (
            USABLE * gpu.memory_gib / found.partitions
        )


@given(busy=st.floats(0.0, 1.0), partitions=st.sampled_from([2, 4, 8]))
def test_speed_is_by_the_share_of_compute_and_weak(busy: float, partitions: int) -> None:
    """Expected as slow as a job that computes all the time; what nobody measured is weak."""
    found = partition_speed(busy, 1.0 / partitions)
    assert found.weak
    assert found.low == found.mid == pytest.approx(1.0 / (1.0 + busy * (partitions - 1)))
    assert found.high == 1.0


def test_one_job_has_the_whole_gpu() -> None:
    """Nobody else is there, so nothing is cut."""
    (found,) = gpucost.predict_sharing([job("a", gib=150.0)], mode="partition")
    assert found.low == found.high == 1.0
    assert not found.weak


def test_every_mode_divides_the_dies_and_has_its_source() -> None:
    """Eight dies in equal groups; memory of its own needs as many memory domains as partitions."""
    domains = {"NPS1": 1, "NPS2": 2, "NPS4": 4}
    for name in ("MI300X", "MI325X", "MI355X"):
        modes = partition_modes(gpus()[name])
        assert [(one.name, one.partitions) for one in modes] == [("DPX", 2), ("QPX", 4), ("CPX", 8)]
        assert all(one.source for one in modes)
        assert all(domains[one.own_memory] >= one.partitions for one in modes if one.own_memory)


@pytest.mark.parametrize(
    ("gib", "why"),
    [
        (8.0, "how fast it runs on a partition of its GPU (DPX with NPS2) was measured on nothing"),
        (120.0, "a takes 120.0 GiB, and of a partition of the MI300X in DPX 91.2 may be filled"),
    ],
)
def test_a_plan_says_why_isolated_jobs_keep_their_gpus(gib: float, why: str) -> None:
    """Nothing is recommended on what was measured on nothing; the partition is named."""
    offer = sold("m", "2", "MI300X")
    some = [
        running(job(name, gib=gib, trust="isolated", kind="interactive"), offer)
        for name in ("a", "b")
    ]
    made = plan(*some, offers=(offer,))
    assert made.fleet is not None
    assert made.fleet.gpus_after == 2
    assert any(why in one.detail for one in made.fleet.unmoved), made.fleet.unmoved


def test_jobs_take_turns_on_a_gpu_without_mps() -> None:
    """MPS is NVIDIA's: a plan for AMD's GPUs does not name it, and Kubernetes is not given it."""
    offer = sold("m", "2", "MI300X", gpu_memory_gib=192)
    made = plan(*(running(job(name, kind="interactive"), offer) for name in "ab"), offers=(offer,))
    document = to_plan(made)
    assert document.fleet is not None
    (shared,) = document.fleet.recommended
    assert (shared.mode, len(shared.jobs)) == ("time-slicing", 2)
    asked = FleetRequest(command="run", image="i", ttl_s=60.0)
    assert len(shared_gpus(document, "slurm", asked)) == 1
    with pytest.raises(InputError, match="this is a MI300X"):
        shared_gpus(document, "kubernetes", asked)
