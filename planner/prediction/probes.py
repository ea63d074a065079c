"""Probes: the same job measured elsewhere, which a prediction starts from or is held against.

A probe is a profile of the same job on other hardware or with other settings. Its rate over the
profile's is a measured speed-up, so a prediction may start from whichever measurement lies nearest
to the target. Probes on the same GPU model and another number of GPUs measure what communication
costs, and so how more GPUs scale.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from planner.models.estimate import Estimate
from planner.prediction.layout import layout_of
from planner.prediction.profiled_step import rate_per_s, step_s
from planner.profile.model import Profile, Step
from planner.profile.source import slice_named, source_gpu, source_slice, unknown_slice
from planner.signals.condition import Value
from pricing.errors import InputError
from pricing.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A measurement that a prediction may start from.

    Attributes:
        profile: what was measured.
        speed: its rate over that of the profile itself; 1 for the profile.
        linear: what as many GPUs do at most by a measurement on one of them; None without one.
        timed: whether the seconds of its step are known, not only their shares.
    """

    profile: Profile
    speed: float
    linear: float | None = None
    timed: bool = True

    @property
    def layout(self) -> tuple[str, int, int]:
        """Its model, with the slice where it was one, its GPUs, and the machines of them."""
        return _model(self.profile), self.profile.gpu_count, layout_of(self.profile).machines

    @property
    def shows_scaling(self) -> bool:
        """Whether communication on several GPUs was measured, here or against one of them."""
        step = self.profile.step
        return self.profile.gpu_count > 1 and step is not None and step.comm_s is not None

    def towards(self, gpu: str, gpu_count: int) -> float:
        """Return the speed to go on from: as measured there, elsewhere no better than linear.

        Two GPUs that measured more than twice one show a run-to-run spread, and no law of scaling.
        """
        measured_on = (source_gpu(self.profile).name, self.profile.gpu_count)
        if self.linear is None or measured_on == (gpu, gpu_count):
            return self.speed
        return min(self.speed, self.linear)


def check_probes(jobs: Sequence[Profile], probes: Sequence[Profile]) -> None:
    """Check that every probe belongs to a job and can be compared with it.

    Raises:
        InputError: a probe has no job of its name, or one of the two has no rate: all listed.
    """
    by_name = {job.job.name: job for job in jobs}
    problems = []
    for probe in probes:
        job = by_name.get(probe.job.name)
        if job is None:
            names = ", ".join(sorted(by_name))
            problems.append(
                f"--probe: {probe.job.name} is the name of no job here ({names}); a probe is the "
                "same job measured elsewhere, so give it the same job.name: gpucost import SOURCE "
                f"--name {shlex.quote(next(iter(by_name), probe.job.name))} -o probe.json."
            )
        elif relative_speed(job, probe) is None:
            problems.append(
                f"--probe: {probe.job.name}: to be compared, job and probe need a rate in one unit:"
                " work.rate_per_s with work.unit, or step.mean_s and job.batch_per_gpu."
            )
    if problems:
        raise InputError(problems)


def probes_of(profile: Profile, probes: Iterable[Profile]) -> tuple[Profile, ...]:
    """Return the probes of one job."""
    return tuple(probe for probe in probes if probe.job.name == profile.job.name)


def relative_speed(profile: Profile, probe: Profile) -> float | None:
    """Return the probe's rate over the profile's; None where they cannot be compared."""
    rate, probe_rate = rate_per_s(profile), rate_per_s(probe)
    if rate is not None and probe_rate is not None and _unit(profile) == _unit(probe):
        return probe_rate / rate
    rate, probe_rate = _items(profile), _items(probe)
    return None if rate is None or probe_rate is None else probe_rate / rate


def _unit(profile: Profile) -> str | None:
    return profile.work.unit if profile.work else None


def _items(profile: Profile) -> float | None:
    """Return items a second by steps: batch x GPUs over the time of a step."""
    batch, step = profile.job.batch_per_gpu, profile.step
    if batch is None or step is None or not step.mean_s:
        return None
    return batch * profile.gpu_count / step.mean_s


def fewer_gpus(profile: Profile, probes: Iterable[Profile]) -> dict[int, float]:
    """Return the speed over today's that fewer GPUs of the same model measured, by their number."""
    fewer = (a for a in anchors(profile, probes) if a.profile.gpu_count < profile.gpu_count)
    model = _model(profile)
    return {anchor.layout[1]: anchor.speed for anchor in fewer if anchor.layout[0] == model}


def _model(profile: Profile) -> str:
    return source_gpu(profile).name + (slice_named(profile) or "")


def scaling_signals(profile: Profile, probes: Iterable[Profile]) -> dict[str, Value]:
    """Return the signals of the fewer GPUs that were measured to take the least GPU time."""
    today, fewer = profile.gpu_count, fewer_gpus(profile, probes)
    if not fewer:
        return {}
    n = max(fewer, key=lambda count: fewer[count] / count)
    unit = _unit(profile) or ""
    code = "cause.fewer-steps" if unit.startswith(("step", "iter")) else "cause.fewer-measured"
    text = Message(code, n=n, of=today, times=fewer[n])
    saves, name = max(0.0, 1.0 - n / (today * fewer[n])), "scaling.fewer"
    return {name: text, f"{name}_speed": fewer[n], f"{name}_saves": saves}


def speed_on_slice(profile: Profile, probes: Iterable[Profile]) -> tuple[str, float] | None:
    """Return the slice that a job was also measured on, and its speed there, at most 1.

    The speed is relative to the whole GPU of the same model: one of the two measurements is of the
    slice, the other of the whole GPU. None where no probe, or a rate, shows that.
    """
    for probe in probes_of(profile, probes):
        speed, pair = relative_speed(profile, probe), (profile, probe)
        gpus = {source_gpu(profile).name for profile in pair}
        parts = [source_slice(profile) for profile in pair]
        if not speed or len(gpus) > 1 or {profile.gpu_count for profile in pair} != {1}:
            continue
        if any(unknown_slice(profile) for profile in pair) or parts.count(None) != 1:
            continue
        piece = parts[1] or parts[0]
        speed_there = speed if parts[1] else 1.0 / speed
        if piece is not None and piece in source_gpu(profile).mig:  # no part of a slice
            return piece.profile, min(1.0, speed_there)
    return None


def anchors(profile: Profile, probes: Iterable[Profile]) -> tuple[Anchor, ...]:
    """Return the profile and its probes, each with the communication that the others measured."""
    measured = [Anchor(profile=profile, speed=1.0)]
    for probe in probes:
        speed = relative_speed(profile, probe)
        if speed:
            measured.append(Anchor(profile=_like(profile, probe), speed=speed))
    return tuple(_with_overhead(anchor, measured) for anchor in measured)


def _like(profile: Profile, probe: Profile) -> Profile:
    """Return the probe with what it does not say of the job taken from the profile."""
    job = structs.replace(
        probe.job,
        kind=profile.job.kind,
        precision=probe.job.precision or profile.job.precision,
        parameters=probe.job.parameters or profile.job.parameters,
        parallelism=probe.job.parallelism or profile.job.parallelism,
    )
    return structs.replace(probe, job=job)


def _with_overhead(anchor: Anchor, anchors_known: Sequence[Anchor]) -> Anchor:
    """Return an anchor on several GPUs with the overhead that one on fewer GPUs shows."""
    layout = layout_of(anchor.profile)
    if layout.gpu_count == 1 or (anchor.profile.step and anchor.profile.step.comm_s is not None):
        return anchor
    single = [a for a in anchors_known if a.layout[:2] == (anchor.layout[0], 1)]
    if not single:
        return anchor
    linear = layout.gpu_count * single[0].speed
    over = max(0.0, linear / anchor.speed - 1.0)
    step = anchor.profile.step or Step()
    known_s = step_s(anchor.profile)
    mean_s = known_s or 1.0
    split = structs.replace(step, mean_s=mean_s, comm_s=mean_s * over / (1.0 + over))
    profile = structs.replace(anchor.profile, step=split)
    return replace(anchor, profile=profile, linear=linear, timed=known_s is not None)


def narrowest(estimates: Iterable[Estimate]) -> Estimate:
    """Return the estimate with the least width; none that is weak where another is not."""
    return min(estimates, key=lambda e: (e.weak, e.high / e.low))
