"""Profiles of all kinds, drawn for property tests: any reading may be missing.

The same generator draws by hypothesis, which finds the smallest job that breaks a rule, and from a
plain random source, which draws a hundred thousand of them.
"""

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

from planner.profile.kinds import KINDS, PARALLELISMS, PRECISIONS
from planner.profile.model import Latency, Profile, Statistics
from pricing.hardware import gpus
from tests.planner.factories import a_profile

T = TypeVar("T")
COMPLETE = sorted(g.name for g in gpus().values() if g.memory_bandwidth_gb_s and g.fp16_tflops)
LINKS = (None, "single", "pcie", "nvlink-bridge", "nvlink", "xgmi")
_SLOTS = (
    "util.kernel_time", "util.sm_active", "util.tensor_active", "util.fp32_active",
    "util.fp64_active", "util.dram_active", "util.encoder", "util.decoder",
)  # fmt: skip


class Source(Protocol):
    """Where choices come from."""

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""

    def number(self, low: float, high: float) -> float:
        """Return a number from low to high."""


class Drawn:
    """Choices of hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def pick(self, values: Sequence[T]) -> T:
        """As `Source`."""
        return self._draw(st.sampled_from(values))

    def number(self, low: float, high: float) -> float:
        """As `Source`."""
        return self._draw(st.floats(low, high))


class Rolled:
    """Choices of a random source; a tenth of the numbers at either end, a half small ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - drawn, not secret

    def pick(self, values: Sequence[T]) -> T:
        """As `Source`."""
        return self._random.choice(values)

    def number(self, low: float, high: float) -> float:
        """As `Source`."""
        kind = self._random.random()
        if kind < 0.2:
            return low if kind < 0.1 else high
        if kind < 0.6 and low > 0.0:
            return float(low * (high / low) ** self._random.random())
        return self._random.uniform(low, high)


def job(source: Source) -> Profile:
    """A job of any kind, on any GPUs, of which anything may have been measured."""
    pick, number = source.pick, source.number
    nodes = pick((1, 1, 1, 2, 4))
    fields: dict[str, Any] = {
        "kind": pick(KINDS),
        "precision": pick((None, *PRECISIONS)),
        "parallelism": pick((None, *PARALLELISMS)),
        "gpu": pick(COMPLETE),
        "gpu_count": nodes * pick((1, 1, 2, 4, 8)),
        "nodes": pick((None, 1)) if nodes == 1 else nodes,
        "interconnect": pick(LINKS),
        "network_gbps": pick((None, 1.0, 10.0, 100.0, 400.0, 3200.0)),
        "parameters": number(1e6, 1e12) if pick((True, False)) else None,
        "batch_per_gpu": round(number(1, 4096)) if pick((True, False)) else None,
    }
    fields |= _step(source) | _work(source) | _host(source)
    if pick((True, False)):
        fields["latency_ms"] = Latency(p99=number(1.0, 1000.0))
        fields["latency_slo_ms"] = number(1.0, 5000.0) if pick((True, False)) else None
    metrics: dict[str, Any] = {s: number(0.0, 1.0) for s in _SLOTS if pick((True, False))}
    if pick((True, False)):
        held_gib = number(0.1, 80.0)
        metrics["mem.used_gib"] = Statistics(max=held_gib)
        if (fields["parameters"] or 0.0) * 0.5 / 2**30 > held_gib * fields["gpu_count"]:
            fields["parameters"] = None  # such a model is refused
    if fields["gpu_count"] == 1:
        fields.pop("comm_s", None)  # nor does one GPU communicate
    return a_profile(metrics, **fields)


def _step(source: Source) -> dict[str, Any]:
    if source.pick((True, False)):
        return {}
    mean_s = source.number(1e-3, 100.0)
    fields, left = {"mean_s": mean_s}, mean_s
    for part in ("comm_s", "data_wait_s", "compute_s"):
        if source.pick((True, False)):
            fields[part] = source.number(0.0, 1.0) * left * 0.98
            left -= fields[part]
    return fields


def _work(source: Source) -> dict[str, Any]:
    if source.pick((True, False)):
        return {}
    unit = source.pick(("image", "token", "tokens", "sample", "step", "request", None))
    fields: dict[str, Any] = {"unit": unit, "rate_per_s": source.number(1e-3, 1e7)}
    if source.pick((True, False)):
        fields["total"] = fields["rate_per_s"] * source.number(60.0, 1e6)
    return fields


def _host(source: Source) -> dict[str, Any]:
    host: dict[str, Any] = {}
    if source.pick((True, False)):
        mean = source.number(0.0, 1.0)
        p95 = source.number(mean, 1.0) if source.pick((True, False)) else None
        host["cpu_util"] = Statistics(mean=mean, p95=p95)
    if source.pick((True, False)):
        host["ram_used_gib"] = Statistics(max=source.number(1.0, 2000.0))
    return {"cpu_cores": source.pick((None, 4, 16, 32, 96, 192)), "host": host or None}
