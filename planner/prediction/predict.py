"""How much faster a job runs on another GPU, on more GPUs, or with its bottleneck fixed.

Where the time goes is in planner/prediction/parts.py. Kernels follow planner/prediction/kernels.py,
the input pipeline planner/models/input_pipeline.py, more GPUs planner/prediction/scaling.py;
planner/prediction/bounds.py holds every prediction to what measurement and machine allow.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from planner.actions import Action, action
from planner.diagnosis.diagnose import diagnose
from planner.models.estimate import Estimate, product
from planner.models.track_record import TrackRecord
from planner.prediction.bounds import Limits, bounded, limits_of
from planner.prediction.kernels import Kernels, kernels_on, read_kernels
from planner.prediction.layout import Layout, layout_of
from planner.prediction.parts import (
    Gains,
    InputSupply,
    Split,
    UnboundedSpeed,
    gains_of,
    in_parts,
    split_time,
    supply_of,
    unexplained,
    with_cores,
)
from planner.prediction.probes import Anchor, anchors, check_probes, narrowest
from planner.prediction.profiled_step import ProfiledStep, profiled_step
from planner.prediction.scaling import speed_up, told_by
from planner.profile.model import Profile
from planner.profile.source import slice_named, source_gpu, source_slice
from planner.signals.signals import read_signals
from pricing import hardware


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


def predict_from(  # noqa: PLR0913 - what a prediction starts from
    profile: Profile,
    probes: tuple[Profile, ...],
    target: Layout,
    actions: tuple[Action, ...],
    parts: Split,
    *,
    record: TrackRecord | None = None,
) -> Estimate:
    """Return the speed-up on a target with actions applied; see `Predictions.speed`."""
    predictions = Predictions(profile=profile, parts=parts, probes=probes, record=record)
    return predictions.speed(target, actions)


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Predictions of one job: what they have in common is worked out once.

    They belong to the coefficients of the moment; an evaluation, which changes those, starts anew.

    Attributes:
        profile: what was measured.
        parts: where its time goes.
        probes: the same job measured elsewhere.
        record: what became of earlier predictions; it centres and widens what no probe measured.
    """

    profile: Profile
    parts: Split
    probes: tuple[Profile, ...] = ()
    record: TrackRecord | None = None
    # Kept by target and actions; by the part of them that matters before bounds; by actions; by
    # GPU; by links, number and speed of GPUs; by cores of the host and actions.
    _seen: dict[object, Estimate] = field(default_factory=dict, repr=False)
    _formulas: dict[object, UnboundedSpeed] = field(default_factory=dict, repr=False)
    _gains: dict[tuple[str, ...], Gains] = field(default_factory=dict, repr=False)
    _kernels: dict[hardware.Gpu, Estimate] = field(default_factory=dict, repr=False)
    _scaling: dict[object, Estimate] = field(default_factory=dict, repr=False)
    _fed: dict[object, Estimate] = field(default_factory=dict, repr=False)

    def speed(self, target: Layout, actions: tuple[Action, ...] = ()) -> Estimate:
        """Return the speed-up, started from the measurement that tells most about the target."""
        codes = tuple([one.code for one in actions])
        key = (target, codes)
        found = self._seen.get(key)
        if found is None:
            if self.probes:
                found = self._by_probes(target, actions)
            else:
                found = self._by_profile(target, actions, codes)
            self._seen[key] = found
        return found

    def kernels(self, gpu: hardware.Gpu) -> Estimate:
        """Return how much faster one such GPU runs the job's kernels."""
        found = self._kernels.get(gpu)
        if found is None:
            found = self._kernels[gpu] = kernels_on(self._read, gpu)
        return found

    def scaling(self, target: Layout) -> Estimate:
        """Return the throughput of the target's GPUs over the profiled ones, GPU for GPU."""
        return self._scaled(target, self.kernels(target.chip))

    @cached_property
    def _read(self) -> Kernels:
        return read_kernels(self.profile)

    @cached_property
    def _limits(self) -> Limits:
        return limits_of(self.profile)

    @cached_property
    def _supply(self) -> InputSupply:
        return supply_of(self.profile)

    @cached_property
    def _busy(self) -> float | None:
        return self.profile.mean("util.kernel_time")

    @cached_property
    def _start(self) -> tuple[Layout, ProfiledStep]:
        return layout_of(self.profile), profiled_step(self.profile, self.parts.kernels)

    @cached_property
    def _one_gpu(self) -> bool:
        before = self._start[0]
        return before.gpu_count == before.machines == 1

    @cached_property
    def _anchors(self) -> tuple[tuple[Anchor, "Predictions"], ...]:
        return tuple(
            (anchor, Predictions(profile=anchor.profile, parts=self.parts))
            for anchor in anchors(self.profile, self.probes)
        )

    def _by_profile(
        self, target: Layout, actions: tuple[Action, ...], codes: tuple[str, ...]
    ) -> Estimate:
        """Return the speed-up started from the profile alone: by the formulas, within bounds."""
        gains = self._gains.get(codes)
        if gains is None:
            gains = self._gains[codes] = gains_of(actions)
        cores = target.cpu_cores if self.parts.input else None  # else they change but a bound
        linked = None if self._sends_nothing(target) else told_by(target)
        short = (target.kind, linked, cores, codes)
        found = self._formulas.get(short)
        if found is None:
            found = self._formulas[short] = self._unbounded(target, codes, gains)
        return bounded(found.speed, self._limits, target, gains.lifted, found.alone)

    def _unbounded(self, target: Layout, codes: tuple[str, ...], gains: Gains) -> UnboundedSpeed:
        """Return the speed-up by the formulas, as far as the record bears them out."""
        found = self._by_formulas(target, codes, gains)
        if self.record is None:
            return found
        here = (self._read.source.name, self.profile.gpu_count)
        moved = (target.chip.name, target.gpu_count) != here
        if not moved and not codes:
            return found
        return UnboundedSpeed(self.record.of(moved=moved).applied_to(found.speed), found.alone)

    def _by_formulas(self, target: Layout, codes: tuple[str, ...], gains: Gains) -> UnboundedSpeed:
        chip, piece = target.chip, target.slice
        faster = kernels_on(self._read, chip, piece) if piece else self.kernels(chip)
        one, count = product(faster, gains.kernels), self._scaled(target, faster)
        more = target.gpu_count / self.profile.gpu_count
        if not self.parts.is_explained:
            return unexplained(one, count, self._busy, more)
        fed = self._input(target, codes, gains) if self.parts.input else None
        return in_parts(self.parts, gains, one, count, fed, more)

    def _input(self, target: Layout, codes: tuple[str, ...], gains: Gains) -> Estimate:
        cores = None if target.cpu_cores is None else target.cpu_cores / target.gpu_count
        key = (cores, codes)
        if key not in self._fed:
            self._fed[key] = product(gains.input, with_cores(self._supply, cores))
        return self._fed[key]

    def _sends_nothing(self, target: Layout) -> bool:
        """Return whether one GPU takes the place of one, whatever links its machine has."""
        return self._one_gpu and target.gpu_count == target.machines == 1

    def _scaled(self, target: Layout, faster: Estimate) -> Estimate:
        """Return `scaling`, where it is known how much faster the kernels run on one GPU."""
        key = None if self._sends_nothing(target) else (told_by(target), faster.mid)
        if key not in self._scaling:
            before, step = self._start
            self._scaling[key] = speed_up(before, target, step, faster=faster.mid)
        return self._scaling[key]

    def _by_probes(self, target: Layout, actions: tuple[Action, ...]) -> Estimate:
        measured = self._anchors
        scaled = tuple(one for one in measured if one[0].shows_scaling)
        if target.gpu_count > 1 and scaled:
            measured = scaled  # what several GPUs did tells more than such links usually do
        return narrowest(
            self._onward(anchor, onward.speed(target, actions), target)
            for anchor, onward in measured
        )

    def _onward(self, anchor: Anchor, onward: Estimate, target: Layout) -> Estimate:
        """Return the speed-up over the profiled run, by way of a measurement."""
        speed = anchor.towards(target.chip.name, target.gpu_count)
        measured = anchor.profile is not self.profile and anchor.speed != 1.0
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
