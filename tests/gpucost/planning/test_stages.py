"""A job with a part that needs no GPU: that part on machines without one, in the answer's dollars.

By hand, on aws/p4d.24xlarge at 21.957642 USD/h: 200 h are 4,391.53. A quarter is 50 h, or 1,097.88;
76.8 of 96 cores need an m5.24xlarge (96 vCPUs, 4.608 USD/h): 230.40 for 50 h. 500 GiB of S3 at
0.023 USD a GiB-month for 200 h of 730 are 3.15. Saved: 1,097.88 - 230.40 - 3.15 = 864.33.
"""

from typing import Any

import pytest

from tests.gpucost.conftest import Call, Write

DAY = ("--as-of", "2026-11-22", "-f", "json")


def _phased(share: float, **host: Any) -> dict[str, Any]:
    metrics = {
        "util.kernel_time": {"mean": 0.95 * (1 - share), "p05": 0.0, "p50": 0.95},
        "mem.used_gib": {"mean": 30, "max": 34},
        "power.board_w": {"mean": 280},
    }
    parts = [("data-preparation", share, 0.0), ("steady", 1 - share, 0.95)]
    cpu = {"cpu_util": {"mean": 0.45, "p95": 0.8, "max": 0.85}, "ram_used_gib": {"max": 200}}
    return {
        "schema": "gpucost.profile/v1",
        "job": {"name": "phased", "kind": "training", "framework": "pytorch", "dataset_gib": 500},
        "hardware": {
            "gpu": "NVIDIA A100-SXM4-40GB",
            "gpu_count": 8,
            "cpu_cores": 96,
            "ram_gib": 1152,
            "provider": "aws",
            "instance_type": "p4d.24xlarge",
            "region": "us-east-1",
        },
        "window": {"duration_s": 36000, "interval_s": 1.0},
        "phases": [
            {"kind": kind, "total_s": 36000 * part, "time_fraction": part, "kernel_time": busy}
            for kind, part, busy in parts
        ],
        "gpus": [{"index": 0, "metrics": metrics}],
        "host": cpu | host,
        "usage": {"hours_per_month": 200},
    }


def _now(call: Call, write: Write, profile: dict[str, Any]) -> dict[str, Any]:
    ran = call("plan", write("phased.json", profile), *DAY)
    assert ran.code == 0, ran.err
    now: dict[str, Any] = ran.json["jobs"][0]["answer"]["now"]
    return now


def test_preparation_goes_to_a_machine_without_a_gpu(call: Call, write: Write) -> None:
    """The machine, its hours and dollars, the data between, and what is left for the GPUs."""
    now = _now(call, write, _phased(0.25))
    assert now["actions"] == ["prepare-before"]
    assert now["what"] == (
        "prepare on 1x aws/m5.24xlarge without a GPU, 50 h for $230, then rent the GPUs for 150 h "
        "(500 GiB between them in object storage: $3.15)"
    )
    assert float(now["saves"]["mid"]) == pytest.approx(864.33, abs=0.02)
    # 1.25 times the hours on other cores: 57.60 less; 0.8 times: 46.08 more
    assert float(now["saves"]["low"]) == pytest.approx(806.73, abs=0.02)
    assert float(now["saves"]["high"]) == pytest.approx(910.41, abs=0.02)


@pytest.mark.parametrize(
    "host",
    [
        {"cpu_util": None},  # nobody knows how many cores it takes
        {"ram_used_gib": {"max": 1000}},  # no machine in the list has that memory
    ],
)
def test_without_a_machine_for_it_the_change_has_no_dollars_of_one(
    host: dict[str, Any], call: Call, write: Write
) -> None:
    """Preparation is still named; no machine and no saving is made up."""
    now = _now(call, write, _phased(0.25, **host))
    assert "m5." not in str(now)
    assert not (now or {}).get("saves")


def test_a_short_preparation_moves_nowhere(call: Call, write: Write) -> None:
    """Of 2 % nobody hears."""
    assert "m5." not in str(_now(call, write, _phased(0.02)))
