"""Work a second with its unit: what can be put in proportion, and what cannot.

`job.batch_per_gpu` counts items that a GPU takes at a time: images, samples, sequences. A rate in
items or in steps tells the time of a step; a rate in tokens does not, for nothing says how many
tokens an item has. A mismatch is unknown, with the reason, and never a ratio.
"""

from dataclasses import dataclass

from planner.baseline.workload import rate_per_s
from planner.profile.kinds import Parallelism
from planner.profile.model import Profile

# Names of what one place of a batch holds, and of one pass over a batch.
_ITEMS = frozenset(
    (
        "item",
        "sample",
        "example",
        "instance",
        "record",
        "row",
        "pair",
        "graph",
        "request",
        "image",
        "picture",
        "frame",
        "clip",
        "video",
        "utterance",
        "sequence",
        "sentence",
        "document",
        "prompt",
    )
)
_STEPS = frozenset(("step", "iteration", "batch", "update"))
_TOKENS = frozenset(("token",))

# Operations a parameter and token: forward 2, backward 4 (Kaplan et al., arXiv 2001.08361).
_TRAINING = 6.0
_FORWARD = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A figure, or the reason for which there is none."""

    value: float | None
    reason: str = ""


def step_s(profile: Profile) -> Rate:
    """Return the time of a step, seconds: measured, else from the rate where its unit allows it."""
    step, batch, rate = profile.step, profile.job.batch_per_gpu, rate_per_s(profile)
    if step is not None and step.mean_s:
        return Rate(value=step.mean_s)
    if not rate:
        return Rate(value=None, reason="neither a step's time nor a rate was measured")
    unit = _unit(profile)
    if unit in _STEPS:
        return Rate(value=1.0 / rate)
    if unit not in _ITEMS:
        said = f"{unit}s" if unit else "no stated unit"
        return Rate(value=None, reason=f"the batch counts items, the rate {said}")
    if batch is None:
        return Rate(value=None, reason="the batch is not stated")
    return Rate(value=batch * profile.gpu_count / rate)


def operations_per_s(profile: Profile) -> Rate:
    """Return the operations a second that the parameters need, over all GPUs, FLOP/s.

    Six a parameter and token in training, two else; for dense models with a rate in tokens.
    """
    job, rate = profile.job, rate_per_s(profile)
    if not job.parameters or not rate:
        return Rate(value=None, reason="parameters or rate are not known")
    if _unit(profile) not in _TOKENS:
        return Rate(value=None, reason="the rate is not in tokens")
    if job.parallelism is Parallelism.EXPERT:
        return Rate(value=None, reason="a token passes some of the experts only")
    return Rate(value=(_TRAINING if job.kind.trains else _FORWARD) * job.parameters * rate)


def _unit(profile: Profile) -> str:
    """Return the unit of work as one word, singular; empty where it is not stated."""
    word = (profile.work.unit or "") if profile.work else ""
    word = word.strip().lower()
    return word.removesuffix("s")
