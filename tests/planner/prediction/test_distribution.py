"""Spreading a job over GPUs: by memory and links; restarts by the failures to expect."""

from typing import Any

import pytest

from planner.choice.option import distribution
from planner.models.interruption import GPU_HOURS_A_FAILURE, Distribution, survival
from planner.prediction.layout import Layout
from pricing.hardware import find
from tests.planner.factories import a_profile


def spread(layout: Layout, hours: float = 100.0, **fields: Any) -> Distribution | None:
    """How a job runs on GPUs with 80 GiB."""
    profile = a_profile({"mem.used_gib": 40.0}, **fields)
    return distribution(profile, layout, memory_gib=80.0, needs=survival(layout.gpu_count, hours))


NVLINK = Layout(gpu_count=8, interconnect="nvlink", gpu=find("H100-SXM-80GB"))


@pytest.mark.parametrize(
    ("layout", "fields", "mode"),
    [
        (NVLINK, {"parameters": 1e9}, "ddp"),
        (NVLINK, {}, "ddp"),
        (NVLINK, {"parameters": 13e9}, "fsdp"),
        (Layout(gpu_count=8, interconnect="pcie", gpu=find("L40S")), {"parameters": 13e9}, "fsdp"),
        (
            Layout(gpu_count=16, interconnect="nvlink", network_gbps=400.0),
            {"parameters": 13e9},
            "fsdp",
        ),
        (
            Layout(gpu_count=16, interconnect="nvlink", network_gbps=25.0),
            {"parameters": 13e9},
            "tensor",
        ),
        (
            Layout(gpu_count=16, interconnect="pcie", network_gbps=25.0),
            {"parameters": 13e9},
            "pipeline",
        ),
        (NVLINK, {"parameters": 700e9}, "pipeline"),
        (NVLINK, {"parallelism": "fsdp"}, "fsdp"),
    ],
)
def test_memory_and_links_choose_the_mode(
    layout: Layout, fields: dict[str, Any], mode: str
) -> None:
    """16 bytes a parameter must fit; what does not is split where the links are fast."""
    found = spread(layout, **fields)
    assert found is not None
    assert found.mode == mode


def test_one_gpu_and_services_are_not_spread() -> None:
    """Nothing to spread: None."""
    assert spread(Layout(gpu_count=1)) is None
    assert spread(NVLINK, kind="inference_online") is None


def test_restarts_grow_with_the_failures_to_expect() -> None:
    """One failure in 50,676 GPU-hours: few GPUs need one restart, a month on 512 many."""
    few, many = (
        spread(Layout(gpu_count=n, interconnect="nvlink", network_gbps=400.0), hours=720.0)
        for n in (8, 512)
    )
    assert few is not None
    assert many is not None
    assert pytest.approx(50_676, rel=1e-4) == GPU_HOURS_A_FAILURE
    assert few.max_restarts <= 2
    assert many.failures == pytest.approx(7.27, rel=0.01)
    assert many.failures < many.max_restarts < 20
    assert (few.nnodes, many.nnodes) == ("1", "63:64")
    assert many.checkpoint_every_s <= few.checkpoint_every_s <= 3600.0
