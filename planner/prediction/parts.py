"""Where the time of a job goes, and how much faster all of it is where each part gains by itself.

The time of a job is split into what the findings prove: `input` (waiting for data), `host`
(launching, serial code) and `kernels`. Each part changes with its own cause; GPU-Util alone proves
nothing and is never used as a weight (measured: it makes cross-GPU predictions worse).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from planner.actions import Action, combined
from planner.diagnosis.rules.rule import Finding
from planner.models.estimate import Estimate, exactly, product, within
from planner.models.input_pipeline import WAITS, loader_factor, loader_rate
from planner.prediction.bounds import Lifted, lifted_by
from planner.profile.model import Profile
from planner.signals.compute_share import reading_cores
from planner.signals.thresholds import STARVED

# GPU preprocessing adds to the GPU's own work; our estimate.
_GPU_DECODE_LOAD = 1.1
_STILL_WAITING = exactly(1.0, "waiting")


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

    @property
    def is_explained(self) -> bool:
        """Whether something is proved that the GPU waits for."""
        return bool(self.input or self.host)


_PART_OF = {"data-loading": "input", "host-to-device": "input", "host-bound": "host"}


def split_time(findings: Iterable[Finding]) -> Split:
    """Return where the time goes, as far as findings that are more than possible prove it."""
    shares = {"input": 0.0, "host": 0.0}
    for finding in findings:
        part = _PART_OF.get(finding.code)
        if part and finding.confidence != "possible" and finding.waste_fraction:
            shares[part] += finding.waste_fraction
    kernels = max(0.0, 1.0 - shares["input"] - shares["host"])
    return Split(kernels=kernels, input=shares["input"], host=shares["host"])


class Gains(NamedTuple):
    """What actions gain of each part of the time.

    Attributes:
        kernels: of the GPU's own work.
        input: of the input pipeline.
        host: of launches and serial code.
        load: what they add to the kernels' work, as a factor.
        lifted: the bounds that do not hold with them.
    """

    kernels: Estimate
    input: Estimate
    host: Estimate
    load: float
    lifted: Lifted


def gains_of(actions: tuple[Action, ...]) -> Gains:
    """Return what actions gain together."""
    decodes = any(action.code == "gpu-preprocessing" for action in actions)
    return Gains(
        kernels=combined(actions, "kernels"),
        input=combined(actions, "input"),
        host=combined(actions, "host"),
        load=_GPU_DECODE_LOAD if decodes else 1.0,
        lifted=lifted_by(actions),
    )


class UnboundedSpeed(NamedTuple):
    """The speed-up of all parts of the time.

    Attributes:
        speed: by the formulas.
        alone: what one GPU for one gains, for each part of the time by itself.
    """

    speed: Estimate
    alone: tuple[Estimate, ...]


def in_parts(  # noqa: PLR0913, PLR0917 - what gains, each part by itself
    parts: Split,
    gains: Gains,
    one: Estimate,
    count: Estimate,
    fed: Estimate | None,
    more: float,
) -> UnboundedSpeed:
    """Return the speed-up where input or host limit.

    Args:
        parts: where the time goes.
        gains: of the actions.
        one: what the kernels gain, GPU for GPU.
        count: what they gain by the number of GPUs.
        fed: what the input gains for each GPU; None where nothing waits for it.
        more: GPUs over those of today. Each process loads data and launches kernels for its own
            GPU, so both grow with it.
    """
    host, kernel = gains.host, product(one, count)
    work_share, host_share = parts.kernels * gains.load, parts.host

    def faster(kernels: float, serial: float, fed: float) -> float:
        work = work_share / kernels + host_share / (serial * more)
        # With prefetching the slower of the two sets the pace; the profiled pace is the input's.
        return 1.0 / (max(work, 1.0 / (fed * more)) if fed else work)

    told, other = kernel.basis, (fed or host).basis
    speed = Estimate(
        low=faster(kernel.low, host.low, fed.low if fed else 0.0),
        mid=faster(kernel.mid, host.mid, fed.mid if fed else 0.0),
        high=faster(kernel.high, host.high, fed.high if fed else 0.0),
        basis=told if told == other else f"{told}; {other}",
        weak=kernel.weak,
    )
    return UnboundedSpeed(speed, (one, fed or host, host))


def unexplained(one: Estimate, count: Estimate, busy: float | None, more: float) -> UnboundedSpeed:
    """Widen a prediction for a GPU that waits for a cause nobody measured.

    The waiting may shrink with the kernels or stay as it is, for each GPU or for all together, so
    the interval spans these.

    Args:
        one: what the kernels gain, GPU for GPU.
        count: what they gain by the number of GPUs.
        busy: share of the time that kernels run; None = not measured.
        more: GPUs over those of today.
    """
    whole = product(one, count)
    if busy is None or busy >= STARVED or whole.low == whole.high == 1.0:
        return UnboundedSpeed(whole, (one,))

    def waiting_stays(speed: float, gpus: float) -> float:
        return gpus / (1.0 - busy + busy / (speed / gpus))

    speed = Estimate(
        low=min(whole.low, waiting_stays(whole.low, more), waiting_stays(whole.low, 1.0)),
        mid=whole.mid,
        high=max(whole.high, waiting_stays(whole.high, more)),
        basis=f"{whole.basis}; the GPU waits {1.0 - busy:.0%} of the time and why is unmeasured",
        weak=whole.weak,
    )
    return UnboundedSpeed(speed, (one, _STILL_WAITING))


class InputSupply(NamedTuple):
    """What a profile says of its input pipeline.

    Attributes:
        cores: of the host for each GPU; None = unknown.
        reading: cores that reading keeps busy, where the program reads by itself; else None.
    """

    cores: float | None
    reading: float | None


def supply_of(profile: Profile) -> InputSupply:
    """Return what a profile says of its input pipeline."""
    cores = profile.hardware.cpu_cores
    each = None if cores is None else cores / profile.gpu_count
    return InputSupply(cores=each, reading=reading_cores(profile))


def with_cores(supply: InputSupply, after: float | None) -> Estimate:
    """Return how much faster the input comes with so many cores for each GPU; None = unknown."""
    before, reading = supply
    if before is None or after is None:
        return within(1.0, loader_factor(), "input pipeline as today: host cores unknown")
    if reading is not None and reading < WAITS:
        return exactly(
            1.0, f"input waits, and keeps {reading:.2g} cores busy: cores change nothing"
        )
    ratio = loader_rate(after) / loader_rate(before)
    basis = f"input pipeline scales from {before:g} to {after:g} cores a GPU"
    return within(ratio, loader_factor(), basis)
