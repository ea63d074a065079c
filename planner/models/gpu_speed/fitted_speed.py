"""The fitted speed of a GPU's kernels, from its specifications and from benchmarks of its kind.

ln rate = task + p ln P + b ln B - m 8/M + board + architecture + GPU

P: dense peak of the precision really used, TFLOP/s; B: memory bandwidth, TB/s; M: memory, GiB (jobs
take the largest batch that fits, and a small batch fills a GPU badly). The coefficients are the
posterior means of a hierarchical regression (research/effects.py) on Lambda's PyTorch
training benchmarks; `planner/models/data/speed.toml` says which, and when.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from planner.models.coefficients import coefficients
from planner.models.gpu_speed.gpu_family import family
from pricing.hardware import Gpu

Family = Literal["half", "single"]

_GEFORCE = re.compile(r"[GR]TX-\d{4}(Ti)?")
# GeForce boards halve the tensor rate with 32-bit accumulation. The older benchmarks (v0, GPUs left
# out in turn) cannot tell a full from a half rate; the middle predicts them best.
_GEFORCE_PEAK = math.sqrt(2.0)
_SMALL_GIB = 8.0  # scale of the memory term


@dataclass(frozen=True, slots=True, kw_only=True)
class Specs:
    """What the model looks at.

    Attributes:
        name: canonical.
        architecture: its generation, as `planner.models.gpu_speed.gpu_family` names it.
        bandwidth_gb_s: peak memory bandwidth.
        peak_tflops: dense rate of the precision that the kernels use.
        memory_gib: as sold.
    """

    name: str
    architecture: str
    bandwidth_gb_s: float
    peak_tflops: float
    memory_gib: float

    @property
    def is_geforce(self) -> bool:
        """Whether it is a consumer board."""
        return _GEFORCE.fullmatch(self.name) is not None

    @property
    def logs(self) -> tuple[float, float, float]:
        """Logarithms of peak (100 TFLOP/s) and bandwidth (TB/s), and the memory term."""
        peak = self.peak_tflops * (_GEFORCE_PEAK if self.is_geforce else 1.0)
        return (
            math.log(peak / 100.0),
            math.log(self.bandwidth_gb_s / 1000.0),
            -_SMALL_GIB / self.memory_gib,
        )


def specs(gpu: Gpu, peak_tflops: float | None) -> Specs | None:
    """Return what the model looks at; None where the hardware table does not have it."""
    if gpu.memory_bandwidth_gb_s is None or not peak_tflops:
        return None
    return Specs(
        name=gpu.name,
        architecture=family(gpu),
        bandwidth_gb_s=gpu.memory_bandwidth_gb_s,
        peak_tflops=peak_tflops,
        memory_gib=gpu.memory_gib,
    )


def log_score(gpu: Specs, family: Family) -> float:
    """Return the log throughput of a GPU but for the task's own level."""
    table = coefficients("speed")
    peak, bandwidth, memory = gpu.logs
    part = table[family]
    score: float = part["peak"] * peak + part["bandwidth"] * bandwidth + table["memory"] * memory
    score += table["geforce"] * gpu.is_geforce
    score += part["architecture"].get(gpu.architecture, 0.0) + part["gpu"].get(gpu.name, 0.0)
    return score


def is_fitted(gpu: Specs) -> bool:
    """Return whether benchmarks of this model are in the fit."""
    return gpu.name in coefficients("speed")["half"]["gpu"]


def knows_architecture(name: str) -> bool:
    """Return whether benchmarks of the generation are in the fit."""
    return name in coefficients("speed")["half"]["architecture"]


def log_spread(one: Specs, other: Specs, widths: Mapping[str, float] | None = None) -> float:
    """Return the standard deviation of ln of a job's speed ratio between two GPUs, before scaling.

    Jobs differ in how they use peak, bandwidth and memory, so the further two GPUs lie apart, the
    less their ratio is known: s^2 = w^2 |difference of logs|^2 + 2 a^2 [other generation] + n^2.
    """
    widths = coefficients("speed")["widths"] if widths is None else widths
    apart = sum((x - y) ** 2 for x, y in zip(one.logs, other.logs, strict=True))
    across = 2.0 * widths["task-architecture"] ** 2 * (one.architecture != other.architecture)
    own = 2.0 * sum(widths[name] ** 2 for name in ("task-gpu", "version-gpu", "noise"))
    return math.sqrt(widths["task-slope"] ** 2 * apart + across + own)


def interval_factor(one: Specs, other: Specs) -> float:
    """Return the factor x/: of the 90 % interval of a job's speed ratio between two GPUs.

    Conformal: quantiles of errors on benchmarks left out, by GPU and task. Scaled by `log_spread`,
    at least what near pairs err by, or what pairs with a model outside the fit do.
    """
    table = coefficients("speed")["interval"]
    scaled = math.exp(table["scale"] * log_spread(one, other))
    least = "near" if is_fitted(one) and is_fitted(other) else "unseen_gpu"
    return max(scaled, float(table[least]))
