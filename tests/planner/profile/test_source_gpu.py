"""Which model a recording was made on, by its name and by what it shows."""

import pytest

from planner.choice.baseline import check_machine
from planner.profile.model import GpuReadings, Hardware, Job, Profile, Statistics
from planner.profile.source import contradiction, named_gpu
from pricing.catalog.catalog import load_catalog
from pricing.errors import InputError


def profile_of(gpu: str, used_gib: float, total_gib: float | None = None) -> Profile:
    """Return a job that held so much memory on a GPU of a name."""
    reading = GpuReadings(index=0, metrics={"mem.used_gib": Statistics(mean=used_gib)})
    hardware = Hardware(gpu=gpu, gpu_count=1, gpu_memory_gib=total_gib)
    return Profile(job=Job(name="pretrain"), hardware=hardware, gpus=(reading,))


@pytest.mark.parametrize(
    ("gpu", "used_gib", "total_gib", "model"),
    [
        ("a100", 68.36, None, "A100-SXM-80GB"),
        ("a100", 30.0, None, "A100-SXM-40GB"),
        ("a100", 30.0, 80.0, "A100-SXM-80GB"),
        ("v100", 20.0, None, "V100-32GB"),
        ("NVIDIA A100-SXM4-40GB", 68.36, None, "A100-SXM-40GB"),  # contradicts itself: as it says
        ("a100", 300.0, None, "A100-SXM-40GB"),
    ],
)
def test_a_name_of_several_sizes_is_one_that_holds_what_was_in_use(
    gpu: str, used_gib: float, total_gib: float | None, model: str
) -> None:
    """68 GiB in use on an "a100" were on one of 80 GB, whichever is the usual one."""
    found = named_gpu(profile_of(gpu, used_gib, total_gib))
    assert found is not None
    assert found.name == model


@pytest.mark.parametrize("gpu", ["a100", "NVIDIA A100-SXM4-40GB"])
def test_the_machine_that_is_refused_is_not_the_one_that_is_named(gpu: str) -> None:
    """What is suggested in place of a machine too small holds what was in use."""
    catalog = load_catalog()
    small = next(offer for offer in catalog.offers if offer.instance_type == "p4d.24xlarge")
    with pytest.raises(InputError, match="another machine was measured") as caught:
        check_machine(profile_of(gpu, 68.36), small, catalog)
    assert "--machine aws/p4d.24xlarge" not in str(caught.value)


def test_a_slice_of_a_gpu_is_a_machine_like_any_other() -> None:
    """2 GiB fit the 2.79 GiB of an eighth of an L4; 20 GiB do not, and say what was measured."""
    catalog = load_catalog()
    slice_ = next(offer for offer in catalog.offers if offer.instance_type == "g6f.large")
    assert contradiction(profile_of("L4", 2.0), slice_) is None
    assert contradiction(profile_of("L4", 20.0), slice_) is not None
