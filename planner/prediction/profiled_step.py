"""What a step of the profiled job computes and sends: the start of every prediction of scaling."""

from dataclasses import dataclass

from planner.prediction.work_rate import step_s
from planner.profile.model import Profile

# Gradients of a job of unknown size, as shares of the memory that it holds: at most a quarter (fp32
# weights, gradients and two moments alike); the rest is our estimate.
_OF_MEMORY = (0.01, 0.05, 0.25)
_BYTES_OF_GRADIENT = {"fp16": 2.0, "bf16": 2.0, "fp64": 8.0}  # AMP keeps single precision
_SINGLE_BYTES = 4.0
_GIB = 2.0**30
# A step that is said to be nearly all communication: what is left to compute is at least that.
_LEAST_COMPUTING = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledStep:
    """What one GPU sends and computes in a step.

    Attributes:
        gradient_bytes: of a step: least, expected, most; None = unknown.
        step_s: a step as profiled, its communication included, seconds; None = unknown.
        compute_s: computing of a step, measured; None = not measured.
        exposed_ratio: communication that nothing hides, over computing; None = not measured.
    """

    gradient_bytes: tuple[float, float, float] | None = None
    step_s: float | None = None
    compute_s: float | None = None
    exposed_ratio: float | None = None


UNKNOWN_STEP = ProfiledStep()


def profiled_step(profile: Profile, kernels: float = 1.0) -> ProfiledStep:
    """Return what a profile says about a step: measured communication, gradients, time.

    Args:
        profile: what was measured.
        kernels: share of the step in which the GPU works or communicates; the rest waits for data
            or for the host.
    """
    step, whole_s = profile.step, step_s(profile).value
    busy_s = None if whole_s is None else max(1e-6, whole_s * kernels)
    return ProfiledStep(
        gradient_bytes=_gradients(profile),
        step_s=busy_s,
        compute_s=None if step is None else step.compute_s,
        exposed_ratio=_exposed_ratio(profile, busy_s),
    )


def _exposed_ratio(profile: Profile, busy_s: float | None) -> float | None:
    step = profile.step
    if step is None or step.comm_s is None or busy_s is None or profile.gpu_count == 1:
        return None
    computing = max(busy_s - step.comm_s, busy_s * _LEAST_COMPUTING)
    if step.compute_s is not None and step.compute_s <= busy_s:
        computing = max(computing, step.compute_s)
    # One GPU alone is no faster than all together: else nobody would have started them.
    return min(max(0.0, busy_s / computing - 1.0), profile.gpu_count - 1.0)


def _gradients(profile: Profile) -> tuple[float, float, float] | None:
    job, held = profile.job, profile.peak("mem.used_gib")
    if job.parameters:
        size = job.parameters * _BYTES_OF_GRADIENT.get(job.precision or "", _SINGLE_BYTES)
        return size, size, size
    if held:
        low, mid, high = (held * _GIB * share for share in _OF_MEMORY)
        return low, mid, high
    return None
