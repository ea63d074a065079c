"""How throughput grows with the number of GPUs and machines.

n GPUs do n / (1 + o) times the work of one, o being the communication that nothing hides over the
compute (planner/overhead.py). It comes, best first, from what was measured on several GPUs; from
the gradients, the step time and measured all-reduce times; or from how benchmarks over such links
scaled.
"""

import math
from dataclasses import dataclass, replace

from planner.allreduce import typical_all_reduce_s
from planner.estimate import Estimate, exactly
from planner.overhead import (
    NOTHING,
    Overhead,
    combine,
    growth,
    link_class,
    ring,
    typical,
    typical_network,
)
from planner.profile.model import Profile
from planner.rules.limits import NODE_NETWORK_GBPS
from planner.speed_model import coefficients
from pricing.hardware import find

GPUS_PER_NODE = 8
# The part of a step that can hide communication: backward, two thirds of forward and backward.
_HIDES = 2.0 / 3.0
# Share of a network's rate that all-reduces reach: 0.07 over 16 ranks and 0.24 over 2 on two DGX
# A100 (profiles of microsoft/vidur); the ends are our estimate.
_REACHED = (0.5, 0.12, 0.05)
_LEAST_OVERHEAD = 0.01  # what benchmarks lose even where all could be hidden
# Gradients of a job of unknown size, as shares of the memory that it holds: at most a quarter (fp32
# weights, gradients and two moments alike); the rest is our estimate.
_OF_MEMORY = (0.01, 0.05, 0.25)
_BYTES_OF_GRADIENT = {"fp16": 2.0, "bf16": 2.0}  # AMP keeps single-precision gradients
_SINGLE_BYTES = 4.0
_GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """GPUs that work together.

    Attributes:
        gpus: how many, >= 1.
        link: between them inside a machine (`nvlink`, `pcie` ...), None = unknown.
        nodes: machines that they stand in, None = as few as hold them.
        gpu: the model, None = unknown.
        network_gbps: between the machines, Gbit/s, None = unknown.
    """

    gpus: int
    link: str | None = None
    nodes: int | None = None
    gpu: str | None = None
    network_gbps: float | None = None

    @property
    def machines(self) -> int:
        """Machines, stated or as few as hold the GPUs."""
        return self.nodes or max(1, math.ceil(self.gpus / GPUS_PER_NODE))

    @property
    def inside(self) -> int:
        """GPUs of one machine."""
        return max(1, self.gpus // self.machines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one GPU sends and computes in a step.

    Attributes:
        gradient_bytes: of a step: least, expected, most; None = unknown.
        step_s: computing of a step, seconds; None = unknown.
        measured: overhead at the profiled layout; None = not measured.
    """

    gradient_bytes: tuple[float, float, float] | None = None
    step_s: float | None = None
    measured: float | None = None

    def faster(self, factor: float) -> "Traffic":
        """Return the same on a GPU that computes so many times as fast."""
        return self if self.step_s is None else replace(self, step_s=self.step_s / factor)


UNKNOWN_TRAFFIC = Traffic()


def traffic_of(profile: Profile) -> Traffic:
    """Return what a profile says about a step: measured communication, gradients, time."""
    step, job = profile.step, profile.job
    waits = sum(w or 0.0 for w in (step.data_wait_s, step.comm_s)) if step else 0.0
    step_s = max(1e-6, step.mean_s - waits) if step and step.mean_s else _batch_s(profile)
    measured = None
    if step and step.comm_s is not None and step_s and profile.gpu_count > 1:
        measured = step.comm_s / step_s
    held = profile.peak("mem.used_gib")
    gradient: tuple[float, float, float] | None = None
    if job.parameters:
        size = job.parameters * _BYTES_OF_GRADIENT.get(job.precision or "", _SINGLE_BYTES)
        gradient = (size, size, size)
    elif held:
        low, mid, high = (held * _GIB * share for share in _OF_MEMORY)
        gradient = (low, mid, high)
    return Traffic(gradient_bytes=gradient, step_s=step_s, measured=measured)


def layout_of(profile: Profile) -> Layout:
    """Return the GPUs that were profiled."""
    hardware_now = profile.hardware
    gpu = find(hardware_now.gpu, memory_gib=hardware_now.gpu_memory_gib)
    return Layout(
        gpus=profile.gpu_count,
        link=hardware_now.interconnect,
        nodes=hardware_now.nodes,
        gpu=gpu.name if gpu else None,
        network_gbps=hardware_now.network_gbps,
    )


def _batch_s(profile: Profile) -> float | None:
    """Return a step's time from batch and rate: steps take batch x GPUs items."""
    work, batch = profile.work, profile.job.batch_per_gpu
    if work is None or not work.rate_per_s or batch is None:
        return None
    return batch * profile.gpu_count / work.rate_per_s


def speed_up(
    before: Layout, after: Layout, traffic: Traffic = UNKNOWN_TRAFFIC, *, faster: float = 1.0
) -> Estimate:
    """Return the throughput of the wanted GPUs over that of the profiled ones.

    An unknown link is taken to be that of the other side.

    Args:
        before: the profiled GPUs.
        after: the wanted ones.
        traffic: what is known of a step on the profiled GPUs.
        faster: speed of one wanted GPU over one profiled GPU.
    """
    before = replace(before, link=before.link or after.link)
    after = replace(after, link=after.link or before.link)
    classes = [link_class(one.link, one.gpu) for one in (before, after)]
    alike = after.gpus == 1 or classes[0] == classes[1]
    if before.gpus == after.gpus and before.machines == after.machines and alike:
        return exactly(1.0, "as many GPUs as measured")
    if traffic.measured is not None and before.machines == after.machines == 1 and alike:
        return _from_measured(before, after, traffic.measured, classes[0])
    start, basis = overhead(before, traffic)
    end, basis_after = overhead(after, traffic.faster(faster))
    ratio = after.gpus / before.gpus
    mid = ratio * (1.0 + start.mid) / (1.0 + end.mid)
    # The same job scales alike before and after, so only the difference of the two is uncertain.
    ends = (
        ratio * (1.0 + start.bad) / (1.0 + end.bad),
        ratio * (1.0 + start.good) / (1.0 + end.good),
        mid,
    )
    said = basis_after if after.gpus > 1 else basis
    return Estimate(low=min(ends), mid=mid, high=max(ends), basis=said)


def _from_measured(before: Layout, after: Layout, measured: float, of_link: str) -> Estimate:
    """Return the gain from the overhead measured on the profiled GPUs, one machine."""
    grown = measured * growth(before.gpus, after.gpus, of_link) if after.gpus > 1 else 0.0
    mid = after.gpus / before.gpus * (1.0 + measured) / (1.0 + grown)
    factor = float(coefficients("scale")["probe_factor"])
    return Estimate(
        low=mid / factor,
        mid=mid,
        high=mid * factor,
        basis=f"communication measured on {before.gpus} GPUs, grown as a ring to {after.gpus}",
    )


def overhead(layout: Layout, traffic: Traffic = UNKNOWN_TRAFFIC) -> tuple[Overhead, str]:
    """Return the overhead of a layout, and where it comes from."""
    of_link = link_class(layout.link, layout.gpu)
    usual = typical(of_link, layout.inside)
    inside, basis = usual, "how benchmarks of 1 to 8 GPUs scaled over such links"
    computed = _computed(layout, traffic, of_link)
    if computed is not None:
        # Known parts tell the middle; how well they are hidden is as uncertain as in benchmarks.
        inside = Overhead(
            good=min(usual.good, computed.good),
            mid=computed.mid,
            bad=max(computed.mid, computed.bad),
        )
        basis = "gradients, step time and measured all-reduce times"
    if layout.machines == 1:
        return inside, basis
    between, said = _between(layout, traffic)
    both = Overhead(
        good=(1.0 + inside.good) * (1.0 + between.good) - 1.0,
        mid=(1.0 + inside.mid) * (1.0 + between.mid) - 1.0,
        bad=(1.0 + inside.bad) * (1.0 + between.bad) - 1.0,
    )
    return both, f"{basis}; {said}"


def _computed(layout: Layout, traffic: Traffic, of_link: str) -> Overhead | None:
    """Return the overhead inside a machine from a known number of parameters; None without."""
    sizes, step_s = traffic.gradient_bytes, traffic.step_s
    gpu = find(layout.gpu)
    if sizes is None or step_s is None or gpu is None or of_link == "geforce":
        return None
    if sizes[0] != sizes[2] or layout.inside == 1:
        return NOTHING if layout.inside == 1 else None
    time_s = typical_all_reduce_s(
        sizes[1], gpu.architecture, layout.inside, nvlink=of_link == "nvlink"
    )
    if time_s is None:
        return None
    exposed = max(_LEAST_OVERHEAD, time_s / step_s - _HIDES)
    return Overhead(good=0.0, mid=exposed, bad=max(exposed, time_s / step_s + _LEAST_OVERHEAD))


def _between(layout: Layout, traffic: Traffic) -> tuple[Overhead, str]:
    """Return the overhead of the network, computed where gradients, step and rate are known."""
    sizes, step_s, gbps = traffic.gradient_bytes, traffic.step_s, layout.network_gbps
    if sizes is None or step_s is None or gbps is None:
        fast = gbps is not None and gbps >= NODE_NETWORK_GBPS
        usual = typical_network(layout.machines, fast=fast)
        return usual, f"how measured clusters with {'fast' if fast else 'unknown'} networks scaled"
    rate = gbps / 8.0 * 1e9
    ends = [
        combine(step_s, ring(layout.machines) * size / (rate * reached)) / step_s - 1.0
        for size, reached in zip(sizes, _REACHED, strict=True)
    ]
    said = f"gradients over {gbps:g} Gbit/s, of which all-reduces reach 5 to 50 %"
    return Overhead(good=ends[0], mid=ends[1], bad=ends[2]), said
