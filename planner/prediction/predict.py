"""How much faster a job runs on another GPU, on more GPUs, or with its bottleneck fixed.

The time of a job is split into what the findings prove: `input` (waiting for data), `host`
(launching, serial code) and `kernels`. Each part changes with its own cause; GPU-Util alone proves
nothing and is never used as a weight (measured: it makes cross-GPU predictions worse).

Kernels follow planner/prediction/kernels.py, the input pipeline planner/models/input_pipeline.py,
more GPUs planner/prediction/scaling.py; planner/prediction/bounds.py holds every prediction to what
measurement and machine allow.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from planner.actions import Action, action, combined
from planner.diagnosis.diagnose import diagnose
from planner.diagnosis.finding import Finding
from planner.models.estimate import Estimate, exactly, product, within
from planner.models.input_pipeline import WAITS, loader_factor, loader_rate
from planner.models.track_record import TrackRecord
from planner.prediction.bounds import Limits, bounded
from planner.prediction.kernels import kernel_speed_up
from planner.prediction.layout import Layout, layout_of
from planner.prediction.probes import Anchor, anchors, check_probes, narrowest
from planner.prediction.profiled_step import ProfiledStep, profiled_step
from planner.prediction.scaling import speed_up
from planner.profile.model import Profile
from planner.profile.source import slice_named, source_gpu, source_slice
from planner.signals.reading import reading_cores
from planner.signals.signals import read_signals
from planner.signals.thresholds import STARVED
from pricing import hardware

# GPU preprocessing adds to the GPU's own work; our estimate.
_GPU_DECODE_LOAD = 1.1


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


def split_time(findings: Iterable[Finding]) -> Split:
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
    check_probes((profile,), known)
    target = Layout(gpu=hardware.resolve(gpu), gpu_count=gpu_count)
    signals = read_signals(profile)
    chosen = tuple(action(code, signals) for code in actions)
    return predict_from(profile, known, target, chosen, split_time(diagnose(profile)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What predictions of one profile have in common, each worked out once.

    It belongs to one profile, its split, its record and the coefficients of the moment: an
    evaluation, which changes those, starts a new one.

    Attributes:
        kernels: by the name of the GPU.
        scaling: by the layout but for its host, and the speed of one GPU.
        starts: what is known of the profiled GPUs and a step there, by the kernels' part of it.
        gains: what actions gain, by their codes.
        unbounded: speed-ups before bounds, and the most that one GPU for one gains, by the layout
            (its host where input waits for it) and the actions.
        limits: what the bounds have in common.
    """

    kernels: dict[str, Estimate] = field(default_factory=dict)
    scaling: dict[object, Estimate] = field(default_factory=dict)
    starts: dict[float, tuple[Layout, ProfiledStep]] = field(default_factory=dict)
    gains: dict[tuple[str, ...], "_Gains"] = field(default_factory=dict)
    unbounded: dict[object, tuple[Estimate, Estimate]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


class _Gains(NamedTuple):
    """What actions gain of each part of the time, and what they add to the kernels' work."""

    kernels: Estimate
    input: Estimate
    host: Estimate
    load: float


def predict_from(  # noqa: PLR0913 - what a prediction starts from
    profile: Profile,
    probes: tuple[Profile, ...],
    target: Layout,
    actions: tuple[Action, ...],
    parts: Split,
    *,
    record: TrackRecord | None = None,
    known: Known | None = None,
) -> Estimate:
    """Return the speed-up on a target, started from the measurement that tells most about it.

    `record` centres and widens what was not measured by a probe; `known` is what earlier
    predictions of the profile found.
    """
    if not probes:
        return predict_on(profile, target, actions, parts, record=record, known=known)
    measured = anchors(profile, probes)
    scaled = [anchor for anchor in measured if anchor.shows_scaling]
    if target.gpu_count > 1 and scaled:
        measured = tuple(scaled)  # what several GPUs did tells more than such links usually do
    return narrowest(_onward(anchor, profile, target, actions, parts) for anchor in measured)


def _onward(
    anchor: Anchor,
    profile: Profile,
    target: Layout,
    actions: tuple[Action, ...],
    parts: Split,
) -> Estimate:
    """Return the speed-up over the profiled run, by way of a measurement."""
    onward = predict_on(anchor.profile, target, actions, parts)
    speed = anchor.towards(target.chip.name, target.gpu_count)
    measured = anchor.profile is not profile and anchor.speed != 1.0
    basis = f"measured by a probe on {_where(anchor.profile)}; {onward.basis}"
    return Estimate(
        low=speed * onward.low,
        mid=speed * onward.mid,
        high=speed * onward.high,
        basis=basis if measured else onward.basis,
        weak=onward.weak,
    )


def _where(profile: Profile) -> str:
    part = f" ({slice_named(profile)})" if source_slice(profile) else ""
    return f"{profile.gpu_count}x {source_gpu(profile).name}{part}"


def predict_on(  # noqa: PLR0913 - what a prediction starts from
    profile: Profile,
    target: Layout,
    actions: tuple[Action, ...],
    parts: Split,
    *,
    record: TrackRecord | None = None,
    known: Known | None = None,
) -> Estimate:
    """Return the speed-up on a target with actions applied; see the module for the formulas.

    `record` is what became of earlier predictions; bounds hold whatever it says.
    """
    known = known or Known()
    codes = tuple(action.code for action in actions)
    cores = target.cpu_cores if parts.input else None  # else they change nothing but a bound
    key = (target.kind, target.links, cores, codes)
    if key not in known.unbounded:
        if codes not in known.gains:
            known.gains[codes] = _gains(actions)
        found, alone = _unbounded(profile, target, known.gains[codes], parts, known)
        if record is not None:
            here = (source_gpu(profile).name, profile.gpu_count)
            moved = (target.chip.name, target.gpu_count) != here
            if moved or actions:
                found = record.of(moved=moved).applied_to(found)
        known.unbounded[key] = (found, alone)
    found, alone = known.unbounded[key]
    return bounded(found, profile, target, actions, alone, known.limits)


def _gains(actions: tuple[Action, ...]) -> _Gains:
    decodes = any(action.code == "gpu-preprocessing" for action in actions)
    return _Gains(
        kernels=combined(actions, "kernels"),
        input=combined(actions, "input"),
        host=combined(actions, "host"),
        load=_GPU_DECODE_LOAD if decodes else 1.0,
    )


def _unbounded(
    profile: Profile, target: Layout, gains: _Gains, parts: Split, known: Known
) -> tuple[Estimate, Estimate]:
    """Return the speed-up by the formulas, and the most that one GPU for one gains."""
    faster = (
        kernel_speed_up(profile, target.chip, target.slice)
        if target.slice
        else kernels_of(profile, target.chip, known)
    )
    one = product(faster, gains.kernels)
    count = _scaled(profile, target, parts, faster, known)
    if not parts.input and not parts.host:
        return _unexplained(profile, one, count, target.gpu_count)
    return _in_parts(profile, target, gains, parts, (one, count))


def scaling(profile: Profile, target: Layout, parts: Split) -> Estimate:
    """Return the throughput of the target's GPUs over the profiled ones, GPU for GPU."""
    return _scaled(profile, target, parts, kernel_speed_up(profile, target.chip))


def kernels_of(profile: Profile, gpu: hardware.Gpu, known: Known | None) -> Estimate:
    """Return how much faster one such GPU runs the job's kernels; looked up where it is known."""
    if known is None:
        return kernel_speed_up(profile, gpu)
    if gpu.name not in known.kernels:
        known.kernels[gpu.name] = kernel_speed_up(profile, gpu)
    return known.kernels[gpu.name]


def _scaled(
    profile: Profile,
    target: Layout,
    parts: Split,
    faster: Estimate,
    known: Known | None = None,
) -> Estimate:
    """Return `scaling`, where it is known how much faster the kernels run on one GPU."""
    if known is None:
        before, step = _start(profile, parts)
        return speed_up(before, target, step, faster=faster.mid)
    links = (target.gpu_count, *target.links)
    alone = target.gpu_count == profile.gpu_count == 1  # nothing is sent, whatever the GPU
    key = links if alone else (*links, target.gpu_name, faster.mid)
    if key not in known.scaling:
        if parts.kernels not in known.starts:
            known.starts[parts.kernels] = _start(profile, parts)
        before, step = known.starts[parts.kernels]
        known.scaling[key] = speed_up(before, target, step, faster=faster.mid)
    return known.scaling[key]


def _start(profile: Profile, parts: Split) -> tuple[Layout, ProfiledStep]:
    return layout_of(profile), profiled_step(profile, parts.kernels)


def _in_parts(
    profile: Profile,
    target: Layout,
    gains: _Gains,
    parts: Split,
    kernels: tuple[Estimate, Estimate],
) -> tuple[Estimate, Estimate]:
    """Return the speed-up where input or host limit, and the most that one GPU for one gains."""
    one, count = kernels
    # Each process loads data and launches kernels for its own GPU, so both grow with their number.
    more = target.gpu_count / profile.gpu_count
    host, kernel = gains.host, product(one, count)
    feed = product(gains.input, _cores(profile, target)) if parts.input else None
    work_share, host_share = parts.kernels * gains.load, parts.host

    def faster(kernels: float, serial: float, fed: float) -> float:
        work = work_share / kernels + host_share / (serial * more)
        # With prefetching the slower of the two sets the pace; the profiled pace is the input's.
        return 1.0 / (max(work, 1.0 / (fed * more)) if fed else work)

    return Estimate(
        low=faster(kernel.low, host.low, feed.low if feed else 0.0),
        mid=faster(kernel.mid, host.mid, feed.mid if feed else 0.0),
        high=faster(kernel.high, host.high, feed.high if feed else 0.0),
        basis="; ".join(dict.fromkeys((kernel.basis, (feed or host).basis))),
        weak=kernel.weak,
    ), _greatest(one, feed or host, host)


def _greatest(*gains: Estimate) -> Estimate:
    return Estimate(
        low=max(gain.low for gain in gains),
        mid=max(gain.mid for gain in gains),
        high=max(gain.high for gain in gains),
        basis="the part that gains most",
    )


def _unexplained(
    profile: Profile, one: Estimate, count: Estimate, gpu_count: int
) -> tuple[Estimate, Estimate]:
    """Widen a prediction for a GPU that waits for a cause nobody measured.

    The waiting may shrink with the kernels or stay as it is, for each GPU or for all together, so
    the interval spans these.

    Returns:
        The speed-up, and the most that one GPU for one gains.
    """
    whole = product(one, count)
    busy, more = profile.mean("util.kernel_time"), gpu_count / profile.gpu_count
    if busy is None or busy >= STARVED or whole.low == whole.high == 1.0:
        return whole, one

    def waiting_stays(speed: float, gpus: float) -> float:
        return gpus / (1.0 - busy + busy / (speed / gpus))

    found = Estimate(
        low=min(whole.low, waiting_stays(whole.low, more), waiting_stays(whole.low, 1.0)),
        mid=whole.mid,
        high=max(whole.high, waiting_stays(whole.high, more)),
        basis=f"{whole.basis}; the GPU waits {1.0 - busy:.0%} of the time and why is unmeasured",
        weak=whole.weak,
    )
    return found, _greatest(one, exactly(1.0, "waiting"))


def _cores(profile: Profile, target: Layout) -> Estimate:
    before, after = profile.hardware.cpu_cores, target.cpu_cores
    if before is None or after is None:
        return within(1.0, loader_factor(), "input pipeline as today: host cores unknown")
    before, after = before / profile.gpu_count, after / target.gpu_count
    reading = reading_cores(profile)
    if reading is not None and reading < WAITS:
        return exactly(
            1.0, f"input waits, and keeps {reading:.2g} cores busy: cores change nothing"
        )
    ratio = loader_rate(after) / loader_rate(before)
    basis = f"input pipeline scales from {before:g} to {after:g} cores a GPU"
    return within(ratio, loader_factor(), basis)
