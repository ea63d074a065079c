"""How much faster a job runs on another GPU, on more GPUs, or with its bottleneck fixed.

The time of a job is split into what the findings prove: `input` (waiting for data), `host`
(launching, serial code) and `kernels`. Each part changes with its own cause; GPU-Util alone proves
nothing and is never used as a weight (measured: it makes cross-GPU predictions worse).

Kernels follow planner/kernels.py, the input pipeline planner/loader.py, more GPUs planner/scale.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from planner.diagnose import diagnose
from planner.estimate import Estimate, product, within
from planner.finding import Finding
from planner.kernels import kernel_speed_up, source_gpu
from planner.loader import loader_factor, loader_rate
from planner.probes import anchors, match, narrowest
from planner.profile.model import Profile
from planner.remedies import Action, action, combined
from planner.rules.limits import STARVED
from planner.scale import Layout, layout_of, speed_up, traffic_of
from planner.signals import measure
from pricing import hardware
from pricing.hardware import Gpu

# GPU preprocessing adds to the GPU's own work; our estimate.
_GPU_DECODE_LOAD = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where the job would run.

    Attributes:
        gpu: the GPU model.
        gpu_count: GPUs used.
        cpu_cores: host threads for them, None = unknown.
        interconnect: between the GPUs, None = unknown.
        nodes: machines that they stand in.
        network_gbps: between the machines, None = unknown.
    """

    gpu: Gpu
    gpu_count: int = 1
    cpu_cores: float | None = None
    interconnect: str | None = None
    nodes: int = 1
    network_gbps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Shares of the profiled run time; they add up to 1.

    Attributes:
        kernels: the GPU works.
        input: it waits for data (only where proved).
        host: it waits for launches or serial code (only where proved).
    """

    kernels: float
    input: float = 0.0
    host: float = 0.0


_PART_OF = {"data-loading": "input", "host-to-device": "input", "host-bound": "host"}


def split(findings: Iterable[Finding]) -> Split:
    """Return where the time goes, as far as findings that are more than possible prove it."""
    shares = {"input": 0.0, "host": 0.0}
    for finding in findings:
        part = _PART_OF.get(finding.code)
        if part and finding.confidence != "possible" and finding.waste_fraction:
            shares[part] += finding.waste_fraction
    kernels = max(0.0, 1.0 - shares["input"] - shares["host"])
    return Split(kernels=kernels, input=shares["input"], host=shares["host"])


def predict(
    profile: Profile,
    *,
    gpu: str,
    gpu_count: int = 1,
    actions: Iterable[str] = (),
    probes: Iterable[Profile] = (),
) -> Estimate:
    """Return the speed-up over the profiled run (> 1 is faster), batch re-fitted to the memory.

    Args:
        profile: what was measured.
        gpu: the GPU model to run on, under any known name.
        gpu_count: how many of them.
        actions: codes of actions applied.
        probes: profiles of the same job elsewhere: other GPUs, other numbers of them.

    Raises:
        UnknownGpuError: either GPU is not in the hardware table.
        InputError: the profile names no GPU, or a probe cannot be compared with it.
    """
    known = tuple(probes)
    match((profile,), known)
    target = Target(gpu=hardware.resolve(gpu), gpu_count=gpu_count)
    signals = measure(profile)
    chosen = tuple(action(code, signals) for code in actions)
    return predict_from(profile, known, target, chosen, split(diagnose(profile)))


def predict_from(
    profile: Profile,
    probes: tuple[Profile, ...],
    target: Target,
    actions: tuple[Action, ...],
    parts: Split,
) -> Estimate:
    """Return the speed-up on a target, started from the measurement that tells most about it."""
    if not probes:
        return predict_on(profile, target, actions, parts)
    found = []
    for anchor in anchors(profile, probes):
        onward = predict_on(anchor.profile, target, actions, parts)
        measured = anchor.profile is not profile and anchor.speed != 1.0
        basis = f"measured by a probe on {_where(anchor.profile)}; {onward.basis}"
        found.append(
            Estimate(
                low=anchor.speed * onward.low,
                mid=anchor.speed * onward.mid,
                high=anchor.speed * onward.high,
                basis=basis if measured else onward.basis,
                weak=onward.weak,
            )
        )
    return narrowest(found)


def _where(profile: Profile) -> str:
    return f"{profile.gpu_count}x {source_gpu(profile).name}"


def predict_on(
    profile: Profile, target: Target, actions: tuple[Action, ...], parts: Split
) -> Estimate:
    """Return the speed-up on a target with actions applied; see the module for the formulas."""
    kernels = kernel_speed_up(profile, target.gpu)
    count = speed_up(
        layout_of(profile),
        Layout(
            gpus=target.gpu_count,
            link=target.interconnect,
            nodes=target.nodes if target.nodes > 1 else None,
            gpu=target.gpu.name,
            network_gbps=target.network_gbps,
        ),
        traffic_of(profile),
        faster=kernels.mid,
    )
    kernels = product(kernels, count)
    if not parts.input and not parts.host:
        return _unexplained(profile, product(kernels, combined(actions, "kernels")))
    feed = product(product(combined(actions, "input"), _cores(profile, target)), count)
    host = combined(actions, "host")
    load = _GPU_DECODE_LOAD if any(a.code == "gpu-preprocessing" for a in actions) else 1.0

    def faster(kernel: float, input_: float, serial: float) -> float:
        work = parts.kernels * load / kernel + parts.host / serial
        # With prefetching the slower of the two sets the pace; the profiled pace is the input's.
        return 1.0 / (max(work, 1.0 / input_) if parts.input else work)

    basis = "; ".join(dict.fromkeys((kernels.basis, feed.basis if parts.input else host.basis)))
    return Estimate(
        low=faster(kernels.low, feed.low, host.low),
        mid=faster(kernels.mid, feed.mid, host.mid),
        high=faster(kernels.high, feed.high, host.high),
        basis=basis,
        weak=kernels.weak,
    )


def _unexplained(profile: Profile, whole: Estimate) -> Estimate:
    """Widen a prediction for a GPU that waits for a cause nobody measured.

    The waiting may shrink with the kernels or stay as it is, so the interval spans both.
    """
    busy = profile.mean("util.kernel_time")
    if busy is None or busy >= STARVED or whole.low == whole.high == 1.0:
        return whole

    def waiting_stays(speed: float) -> float:
        return 1.0 / (1.0 - busy + busy / speed)

    return replace(
        whole,
        low=min(whole.low, waiting_stays(whole.low)),
        high=max(whole.high, waiting_stays(whole.high)),
        basis=f"{whole.basis}; the GPU waits {1.0 - busy:.0%} of the time and why is unmeasured",
    )


def _cores(profile: Profile, target: Target) -> Estimate:
    before, after = profile.hardware.cpu_cores, target.cpu_cores
    if before is None or after is None:
        return within(1.0, loader_factor(), "input pipeline as today: host cores unknown")
    before, after = before / profile.gpu_count, after / target.gpu_count
    ratio = loader_rate(after) / loader_rate(before)
    basis = f"input pipeline scales from {before:g} to {after:g} cores a GPU"
    return within(ratio, loader_factor(), basis)
