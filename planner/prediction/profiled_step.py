"""The work a second and the step of the profiled job: the start of predictions of scaling.

Work a second with its unit: what can be put in proportion, and what cannot.
`job.batch_per_gpu` counts items that a GPU takes at a time: images, samples, sequences. A rate in
items or in steps tells the time of a step; a rate in tokens does not, for nothing says how many
tokens an item has. A mismatch is unknown, and never a ratio.
"""

from dataclasses import dataclass

from planner.profile.kinds import WORDS, Parallelism
from planner.profile.model import Profile

# Operations a parameter and token: forward 2, backward 4 (Kaplan et al., arXiv 2001.08361).
_TRAINING = 6.0
_FORWARD = 2.0


def step_s(profile: Profile) -> float | None:
    """Return the time of a step, seconds: measured, else from the rate where its unit allows it."""
    step, batch, rate = profile.step, profile.job.batch_per_gpu, rate_per_s(profile)
    if step is not None and step.mean_s:
        return step.mean_s
    unit = _unit(profile)
    if rate and unit in WORDS["steps"]:
        return 1.0 / rate
    if rate and batch is not None and unit in WORDS["items"]:
        return batch * profile.gpu_count / rate
    return None


def operations_per_s(profile: Profile) -> float | None:
    """Return the operations a second that the parameters need, over all GPUs, FLOP/s.

    Six a parameter and token in training, two else; for dense models with a rate in tokens: of a
    mixture a token passes some of the experts only.
    """
    job, rate = profile.job, rate_per_s(profile)
    dense = job.parallelism is not Parallelism.EXPERT
    if not job.parameters or not rate or _unit(profile) != "token" or not dense:
        return None
    return (_TRAINING if job.kind.trains else _FORWARD) * job.parameters * rate


def _unit(profile: Profile) -> str:
    """Return the unit of work as one word, singular; empty where it is not stated."""
    word = (profile.work.unit or "") if profile.work else ""
    word = word.strip().lower()
    return word.removesuffix("s")


def rate_per_s(profile: Profile) -> float | None:
    """Return the units of work a second: measured, else done over the window."""
    work, window = profile.work, profile.window
    if work is None:
        return None
    if work.rate_per_s:
        return work.rate_per_s
    if work.done and window and window.duration_s:
        return work.done / window.duration_s
    return None


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
    step, whole_s = profile.step, step_s(profile)
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
    job, used_gib = profile.job, profile.peak("mem.used_gib")
    if job.parameters:
        size = job.parameters * _BYTES_OF_GRADIENT.get(job.precision or "", _SINGLE_BYTES)
        return size, size, size
    if used_gib:
        low, mid, high = (used_gib * _GIB * share for share in _OF_MEMORY)
        return low, mid, high
    return None
