"""How much faster a job runs on another GPU, on more GPUs, or with its bottleneck fixed.

Kernels follow planner/prediction/kernels.py, the input pipeline planner/models/input_pipeline.py,
more GPUs planner/prediction/scaling.py; planner/prediction/bounds.py holds every prediction to what
measurement and machine allow.

Where the time of a job goes, and how much faster all of it is where each part gains by itself.
The time of a job is split into what was timed in its steps, however little, and what the findings
prove: `input` (waiting for data), `copies` to the device, `host` (launching, serial code) and
`kernels`. Each part changes with its own cause; GPU-Util alone proves nothing and is never used as
a weight (measured: it makes cross-GPU predictions worse).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import msgspec

from planner.actions import Action, action, combined
from planner.diagnosis.diagnose import diagnose
from planner.models.estimate import Estimate, exactly, product, within
from planner.models.gpu_speed import serves_language_model
from planner.models.input_pipeline import LATE, NEVER, WAITS, fed_time, loader_factor, loader_rate
from planner.models.track_record import TrackRecord
from planner.prediction.bounds import Limits, RelaxedBounds, bounded, limits_of, relaxed_by
from planner.prediction.kernels import Kernels, kernels_on, read_kernels
from planner.prediction.layout import Layout, layout_of
from planner.prediction.probes import Anchor, anchors, check_probes, narrowest
from planner.prediction.profiled_step import ProfiledStep, profiled_step
from planner.prediction.scaling import speed_up, tensor_parallel
from planner.prediction.sharing import processes_on, shared_speed
from planner.profile.kinds import Parallelism
from planner.profile.model import Profile
from planner.profile.source import listed_gpu, named_gpu, slice_named, source_gpu, source_slice
from planner.signals.compute_share import reading_cores
from planner.signals.finding import Finding
from planner.signals.signals import SIGNALS, pcie_gb_s, pcie_share, read_signals
from planner.signals.thresholds import COPIES, CPU_FULL, DATA_WAIT, LEFT_ON, LINK_FULL, STARVED
from pricing import hardware
from pricing.message import Message, join

# Preparing input on the GPU adds to its own work; our estimate.
_GPU_DECODE_LOAD = 1.1
_DECODES = ("gpu-preprocessing", "gpu-features")
_UNCHANGED = exactly(1.0, "")
_TINY = 1e-9
_WORTH_SAYING = 0.05  # of the time
# By the loader's workers: without them it reads between the steps, but for launches that it does
# not wait for; where their number is unknown, it may.
_LATE = {None: (LATE[0], LATE[1], NEVER), 0: (LATE[2], NEVER, NEVER)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Shares of the profiled run time; they add up to 1.

    Attributes:
        kernels: the GPU works.
        input: it waits for data (only where proved).
        copies: it waits for copies from the host that nothing hides (only where proved).
        host: it waits for launches, serial code or a start (only where proved).
        steps: what steps take of it, the rest being starts and what is done before.
    """

    kernels: float
    input: float = 0.0
    copies: float = 0.0
    host: float = 0.0
    steps: float = 1.0


_PART_OF = {"data-loading": "input", "host-to-device": "copies", "host-bound": "host"}
_TIMED = {
    "input": (DATA_WAIT,),
    "copies": (COPIES,),
    "host": tuple(f"step.{part}_exposed" for part in ("checkpoint", "optimizer", "untimed")),
}


def split_time(profile: Profile, findings: Iterable[Finding] | None = None) -> Split:
    """Return where the job's time goes, as far as timed steps and findings prove it.

    A timed wait counts however short it is, a finding where it is more than possible. Idle hours
    before and after the job are none of its time.

    Args:
        profile: what was measured.
        findings: its diagnosis, where it was made before.
    """
    findings = diagnose(profile) if findings is None else tuple(findings)
    at_work = 1.0 - sum(f.waste_fraction or 0.0 for f in findings if f.code == LEFT_ON)
    shares = {"input": 0.0, "copies": 0.0, "host": 0.0, "start-up": 0.0}
    for finding in findings:
        part = _PART_OF.get(finding.code, finding.code)
        if part in shares and finding.confidence != "possible" and finding.waste_fraction:
            shares[part] += finding.waste_fraction / at_work
    start, busy = shares.pop("start-up"), profile.mean("util.kernel_time")
    idle = max(sum(shares.values()), (1.0 - start) * (1.0 - (busy or 0.0)))
    for part, signals in _TIMED.items():
        # Without the GPU's use, what is timed on the host may run beside kernels.
        read = signals if part != "host" or busy is not None else ()
        timed = (1.0 - start) * sum(float(SIGNALS[name].read(profile) or 0.0) for name in read)
        shares[part] = min(idle, max(shares[part], timed))
        idle -= shares[part]
    kernels = max(0.0, 1.0 - start - sum(shares.values()))
    shares["host"] += start
    return Split(kernels=kernels, steps=max(kernels, 1.0 - start), **shares)


class Gains(NamedTuple):
    """What actions gain of each part of the time.

    Attributes:
        kernels: of the GPU's own work.
        input: of the input pipeline.
        copies: of copies to the device, in the time of the whole step.
        host: of launches and serial code.
        load: what they add to the kernels' work, as a factor.
        relaxed: the bounds that do not hold with them.
    """

    kernels: Estimate
    input: Estimate
    copies: Estimate
    host: Estimate
    load: float
    relaxed: RelaxedBounds


def gains_of(actions: tuple[Action, ...]) -> Gains:
    """Return what actions gain together."""
    decodes = any(action.code in _DECODES for action in actions)
    # Copies and the rest of the input are parts of their own here, each with all of its time.
    mending = [replace(action, share=float(action.share > 0.0)) for action in actions]
    return Gains(
        kernels=combined(actions, "kernels"),
        input=combined((a for a in mending if a.mechanism != "copying"), "input"),
        copies=combined((a for a in mending if a.mechanism == "copying"), "input"),
        host=combined(actions, "host"),
        load=_GPU_DECODE_LOAD if decodes else 1.0,
        relaxed=relaxed_by(actions),
    )


_BETWEEN = Message("speed.between")


class Way(NamedTuple):
    """A way to run a job: actions, their codes, and what they gain together."""

    actions: tuple[Action, ...]
    codes: tuple[str, ...]
    gains: Gains

    @classmethod
    def of(cls, actions: tuple[Action, ...]) -> "Way":
        """Return the way with some actions."""
        return cls(actions, tuple([action.code for action in actions]), gains_of(actions))


def with_cores(profile: Profile, after: float | None, *, mended: bool = False) -> Estimate:
    """Return how much faster the input comes with so many cores for each GPU; None = unknown.

    Cores that the input leaves free today would be free elsewhere: where they are measured so, more
    of them change nothing, unless the input is `mended` by an action, which puts them to use.
    """
    cores, reading = profile.hardware.cpu_cores, reading_cores(profile)
    if cores is None or after is None:
        return within(1.0, loader_factor(), Message("speed.cores-unknown"))
    if reading is not None and reading < WAITS:
        return exactly(1.0, Message("speed.input-waits", cores=reading))
    before, busy = cores / profile.gpu_count, profile.cpu_fraction
    if busy is not None and busy < CPU_FULL and not mended:
        slower = min(1.0, after / max(before * busy, _TINY))
        return within(slower, loader_factor(), Message("speed.cores-free", busy=busy, cores=before))
    ratio = loader_rate(after) / loader_rate(before)
    basis = Message("speed.input-scales", before=before, after=after)
    return within(ratio, loader_factor(), basis)


def over_link(profile: Profile, target: hardware.Gpu, copying: float) -> Estimate:
    """Return how much faster copies come to another GPU: by the generations of the host links.

    Args:
        profile: what was measured.
        target: the model.
        copying: share of the time in which copies run. A link that these do not fill is no faster
            where it could be, and slower only where they would fill it.
    """
    before, after = (pcie_gb_s(gpu) for gpu in (named_gpu(profile), target))
    ratio, share = (after / before if before and after else 1.0), pcie_share(profile)
    if share is None:
        return Estimate(low=min(1.0, ratio), mid=1.0, high=max(1.0, ratio), basis="")
    filled = min(1.0, share / copying)
    return exactly(ratio if filled >= LINK_FULL else min(1.0, ratio / max(filled, _TINY)), "")


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
    past_probes = tuple(probes)
    check_probes((profile,), past_probes)
    listed_gpu(profile)
    target = Layout(gpu=hardware.resolve(gpu), gpu_count=gpu_count)
    codes = tuple(actions)
    signals = read_signals(profile) if codes else {}
    chosen = tuple(action(code, signals) for code in codes)
    predictions = Predictions(profile=profile, parts=split_time(profile), probes=past_probes)
    return predictions.speed(target, chosen)


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Predictions of one job: what they have in common is worked out once.

    They belong to the coefficients of the moment; an evaluation, which changes those, starts anew.

    Attributes:
        profile: what was measured.
        parts: where its time goes.
        probes: the same job measured elsewhere.
        record: what became of earlier predictions; it centres and widens what no probe measured.
        timed: whether the seconds of the profile's step are known, not only their shares.
    """

    profile: Profile
    parts: Split
    probes: tuple[Profile, ...] = ()
    record: TrackRecord | None = None
    timed: bool = True

    def speed(self, target: Layout, actions: tuple[Action, ...] = ()) -> Estimate:
        """Return the speed-up, started from the measurement that tells most about the target."""
        return self.speeds(target, (Way.of(actions),))[0]

    def speeds(
        self, target: Layout, ways: Iterable[Way], faster: Estimate | None = None
    ) -> list[Estimate]:
        """Return the speed-up with each of some sets of actions.

        Args:
            target: where the job would run.
            ways: the sets.
            faster: what its kernels gain on one such GPU (`kernels`); None: it is worked out.
        """
        if self.probes:
            return [self._by_probes(target, way.actions) for way in ways]
        if (together := self._together_on(target)) is not None:
            today, all_ways = replace(layout_of(self.profile), cpu_cores=target.cpu_cores), [*ways]
            return [
                bounded(product(s, together), self._limits, target, w.gains.relaxed, (_UNCHANGED,))
                for s, w in zip(self.speeds(today, all_ways), all_ways, strict=True)
            ]
        if faster is None or target.slice is not None:
            faster = kernels_on(self._read, target.chip, target.slice)
        count = self._scaled(target, faster)
        return [self._by_profile(target, way, faster, count) for way in ways]

    def _together_on(self, target: Layout) -> Estimate | None:
        """Return how fast all processes run on fewer of today's GPUs, as jobs that share one do.

        None of other GPUs, and where they may not (`processes_on`). Where nobody saw how much they
        compute on the host, fewer cores may make them slower by as much.
        """
        count = processes_on(self.profile, target.gpu_count)
        if count == 1 or target.slice is not None or target.chip != self._read.source:
            return None
        speed = shared_speed((self.profile,) * count)[0]
        cores, left = self.profile.hardware.cpu_cores, target.cpu_cores
        if self.profile.cpu_fraction is not None:
            return speed
        slowest = min(1.0, left / cores) if cores and left else 1.0 / count
        return msgspec.structs.replace(speed, low=speed.low * slowest)

    def kernels(self, gpu: hardware.Gpu) -> Estimate:
        """Return how much faster one such GPU runs the job's kernels."""
        return kernels_on(self._read, gpu)

    @cached_property
    def _read(self) -> Kernels:
        return read_kernels(self.profile)

    @cached_property
    def _limits(self) -> Limits:
        return limits_of(self.profile)

    @cached_property
    def _busy(self) -> float | None:
        busy = self.profile.mean("util.kernel_time")
        return max(busy, *self._read.engines.values()) if busy and self._read.engines else busy

    @cached_property
    def _start(self) -> tuple[Layout, ProfiledStep]:
        step = profiled_step(self.profile, self.parts.kernels / (self.parts.steps or 1.0))
        if not self.timed:
            step = replace(step, step_s=None, compute_s=None)
        return layout_of(self.profile), step

    @cached_property
    def _serves_split(self) -> bool:
        """Whether the GPUs serve one copy of a language model, each a part of every layer."""
        split = self.profile.job.parallelism is Parallelism.TENSOR
        return split and self.profile.job.kind.serves and serves_language_model(self.profile)

    @cached_property
    def _anchors(self) -> tuple[tuple[Anchor, "Predictions"], ...]:
        return tuple(
            (anchor, Predictions(profile=anchor.profile, parts=self.parts, timed=anchor.timed))
            for anchor in anchors(self.profile, self.probes)
        )

    def _by_profile(self, target: Layout, way: Way, faster: Estimate, count: Estimate) -> Estimate:
        """Return the speed-up started from the profile alone: by the formulas, within bounds.

        Args:
            target: where it would run.
            way: what is done there.
            faster: what the kernels gain on one GPU.
            count: what they gain by the number of GPUs.
        """
        speed, single = self._by_formulas(target, way.gains, faster, count)
        if self.record is not None:
            speed = self._corrected(speed, target, way.actions, self.record)
        return bounded(speed, self._limits, target, way.gains.relaxed, single)

    def _corrected(
        self, speed: Estimate, target: Layout, actions: tuple[Action, ...], record: TrackRecord
    ) -> Estimate:
        """Return a speed-up as far as the record bears it out."""
        today = (self._read.source.name, self.profile.gpu_count)
        moved = (target.chip.name, target.gpu_count) != today
        if not (moved or actions):
            return speed
        return record.of(moved=moved).applied_to(speed)

    def _by_formulas(
        self, target: Layout, gains: Gains, faster: Estimate, count: Estimate
    ) -> tuple[Estimate, tuple[Estimate, ...]]:
        """Return the speed-up of all parts; what one GPU for one gains, each part by itself.

        Each process loads data and launches kernels for its own GPU, so all parts grow with their
        number. Where the GPU waits for a cause that nobody measured, the waiting may shrink with
        the kernels or stay as it is, for each GPU or for all together: the interval spans these.
        """
        parts, more = self.parts, target.gpu_count / self.profile.gpu_count
        per_gpu = product(faster, gains.kernels)
        total, unseen, (fed, mended, link) = product(per_gpu, count), 0.0, self._fed(target, gains)
        if self._busy is not None and self._busy < STARVED and not total.low == total.high == 1.0:
            unseen = max(0.0, parts.kernels - self._busy)

        def speed(end: str, stays: float, gpus: float, late: float) -> float:
            of: Callable[[Estimate], float] = attrgetter(end)
            copies = max(0.0, parts.copies - 1.0 + 1.0 / of(gains.copies)) / of(link)
            work = (parts.kernels - stays) * gains.load / of(total) + stays / gpus
            work += (parts.host / of(gains.host) + copies) / more
            time = fed_time(work, parts.input, of(fed) * more, late) if parts.input else work
            # What is mended is read beside the work: the slower of the two sets the pace.
            return 1.0 / (min(time, max(work, 1.0 / (of(mended) * more))) if mended else time)

        ends = [("low", 0.0, 1.0), ("high", 0.0, 1.0)]
        ends += [(end, unseen, n) for end, n in (("low", more), ("low", 1.0), ("high", more))]
        sooner, expected, later = self._late
        lates = (sooner, later) if parts.input else (later,)
        speeds = [speed(*end, late) for end in (ends if unseen else ends[:2]) for late in lates]
        why = (
            total.basis,
            (mended or fed).basis if parts.input else gains.host.basis if parts.host else "",
            Message("speed.copies", share=parts.copies) if parts.copies >= _WORTH_SAYING else "",
            Message("speed.waits-unexplained", share=unseen) if unseen else "",
        )
        mid, basis = speed("mid", 0.0, 1.0, expected), join(why)
        low, high = min(speeds), max(speeds)
        gain = (per_gpu, fed, mended or fed, link, gains.copies, gains.host)
        return Estimate(low=low, mid=mid, high=high, basis=basis, weak=total.weak), (
            gain if parts.kernels - unseen < 1.0 else gain[:1]
        )

    def _fed(self, target: Layout, gains: Gains) -> tuple[Estimate, Estimate | None, Estimate]:
        """Return how much faster input comes as today, mended by actions, and over the link."""
        fed, mended, link = _UNCHANGED, None, _UNCHANGED
        if self.parts.input:
            cores = None if target.cpu_cores is None else target.cpu_cores / target.gpu_count
            fed = with_cores(self.profile, cores)
            if gains.relaxed.host:
                mended = product(gains.input, with_cores(self.profile, cores, mended=True))
        if self.parts.copies:
            link = over_link(self.profile, target.chip, self.parts.copies)
        return fed, mended, link

    @cached_property
    def _late(self) -> tuple[float, float, float]:
        workers = self.profile.step.loader_workers if self.profile.step else None
        # Cores that are full while kernels run, too, read beside them.
        ahead = workers is None and (self.profile.cpu_fraction or 0.0) >= CPU_FULL
        return LATE if ahead else _LATE.get(workers, LATE)

    def _scaled(self, target: Layout, faster: Estimate) -> Estimate:
        """Return `scaling`, where it is known how much faster the kernels run on one GPU."""
        before, step = self._start
        if self._serves_split:
            return tensor_parallel(before, target, step, faster.mid)
        if self.profile.works_apart:
            return exactly(target.gpu_count / before.gpu_count, Message("scaling.apart"))
        return speed_up(before, target, step, faster=faster.mid)

    def _by_probes(self, target: Layout, actions: tuple[Action, ...]) -> Estimate:
        measured, gpu = self._anchors, target.chip.name
        as_many = [a for a in measured if a[0].layout[1:] == (target.gpu_count, target.machines)]
        same = [start for start in as_many if start[0].layout[0] == gpu]
        scaled = [start for start in measured if start[0].shows_scaling]
        # Of as many GPUs nothing is to be said of how more or fewer scale; of several, what
        # several did tells more than such links usually do.
        nearest = same or as_many or (scaled if target.gpu_count > 1 else ()) or measured
        onward = (self._onward(a, start.speed(target, actions), target) for a, start in nearest)
        speed = narrowest(onward)
        near = [a for a, _ in self._anchors if a.layout[::2] == (gpu, target.machines)]
        speeds = {a.layout[1]: a.speed for a in near}
        low, high = min(speeds.values(), default=0.0), max(speeds.values(), default=0.0)
        is_between = min(speeds, default=0) < target.gpu_count < max(speeds, default=0)
        if same or actions or not is_between or speed.mid > low:
            return speed
        return Estimate(low=low, mid=math.sqrt(low * high), high=high, basis=_BETWEEN)

    def _onward(self, anchor: Anchor, onward: Estimate, target: Layout) -> Estimate:
        """Return the speed-up over the profiled run, by way of a measurement."""
        speed = anchor.towards(target.chip.name, target.gpu_count)
        measured = anchor.profile is not self.profile and anchor.speed != 1.0
        part = f" ({slice_named(anchor.profile)})" if source_slice(anchor.profile) else ""
        where = f"{anchor.profile.gpu_count}x {source_gpu(anchor.profile).name}{part}"
        probed = Message("speed.probed", where=where)
        return onward.times(speed, join((probed if measured else "", onward.basis)))
