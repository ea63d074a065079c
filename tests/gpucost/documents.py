"""Small profile documents that the tests of the front door are written from."""

import copy
import json
from pathlib import Path
from typing import Any

Document = dict[str, Any]

AS_OF = "2026-11-21"
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

KERNEL_TIME = ("gpus", 0, "metrics", "util.kernel_time", "mean")
HOSTILE = "a|b `c` <script>alert(1)</script>\n\n| x |\n# y"


def example(name: str) -> Document:
    """Return a bundled profile document."""
    document: Document = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    return document


def training(name: str = "train") -> Document:
    """Return a training job on a T4 that waits for its full CPU."""
    return {
        "schema": "gpucost.profile/v1",
        "job": {"name": name, "kind": "training", "precision": "fp32", "batch_per_gpu": 64},
        "hardware": {
            "gpu": "Tesla T4",
            "gpu_count": 1,
            "cpu_cores": 4,
            "provider": "aws",
            "instance_type": "g4dn.xlarge",
            "region": "us-east-1",
            "purchase": "on_demand",
        },
        "window": {"duration_s": 3600},
        "work": {"unit": "image", "done": 900000, "rate_per_s": 250.0},
        "gpus": [
            {
                "index": 0,
                "metrics": {
                    "util.kernel_time": {"mean": 0.22, "p50": 0.22, "max": 0.26},
                    "mem.used_gib": {"mean": 8.0, "max": 8.2},
                },
            }
        ],
        "host": {"cpu_util": {"mean": 0.96, "p95": 1.0}},
        "usage": {"hours_per_month": 730},
    }


def inference(name: str, *, memory_gib: float = 8.0) -> Document:
    """Return an inference job that keeps an H100 busy for a fifth of the time."""
    return {
        "schema": "gpucost.profile/v1",
        "job": {"name": name, "kind": "inference_offline", "precision": "fp16"},
        "hardware": {
            "gpu": "NVIDIA H100 80GB HBM3",
            "gpu_count": 1,
            "provider": "digitalocean",
            "instance_type": "gpu-h100x1-80gb",
        },
        "window": {"duration_s": 3600},
        "work": {"unit": "sample", "done": 360000, "rate_per_s": 100.0},
        "gpus": [
            {
                "index": 0,
                "metrics": {
                    "util.kernel_time": {"mean": 0.2, "max": 0.24},
                    "mem.used_gib": {"mean": memory_gib, "max": memory_gib},
                },
            }
        ],
        "usage": {"hours_per_month": 730},
    }


def unpriced(name: str = "own-box") -> Document:
    """Return a training job on a GPU that no catalog row sells."""
    document = changed(training(name), ("hardware", "gpu"), "Quadro RTX 8000")
    for key in ("provider", "instance_type", "region"):
        document = changed(document, ("hardware", key), None)
    return document


def barely_measured(name: str = "mystery") -> Document:
    """Return a profile that says only which GPU it ran on."""
    return {"job": {"name": name}, "hardware": {"gpu": "T4"}}


def changed(document: Document, path: tuple[str | int, ...], value: object) -> Document:
    """Return a copy with the value at the path replaced."""
    result = copy.deepcopy(document)
    place: Any = result
    for step in path[:-1]:
        if isinstance(place, dict) and step not in place:
            place[step] = {}
        place = place[step]
    place[path[-1]] = value
    return result
