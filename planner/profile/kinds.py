"""The words of a job: what kind it is, how its GPUs share the work, in which precision it counts.

What a kind or a way to share means for a decision is a property here, asked everywhere else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from msgspec import convert

from pricing.tables import read_toml


class JobKind(StrEnum):
    """What sort of work a job does."""

    TRAINING = "training"
    INTERACTIVE = "interactive"
    DATA_PREPARATION = "data_preparation"
    SIMULATION = "simulation"
    INFERENCE_ONLINE = "inference_online"
    INFERENCE_OFFLINE = "inference_offline"
    UNKNOWN = "unknown"

    @property
    def trains(self) -> bool:
        """Whether it computes gradients, and so spreads over GPUs."""
        return self is JobKind.TRAINING

    @property
    def may_train(self) -> bool:
        """Whether it may compute gradients: a session at a keyboard may run anything."""
        return self in {JobKind.TRAINING, JobKind.INTERACTIVE}

    @property
    def serves(self) -> bool:
        """Whether it computes forwards only, for requests or for a pile of items."""
        return self in {JobKind.INFERENCE_ONLINE, JobKind.INFERENCE_OFFLINE}

    @property
    def answers(self) -> bool:
        """Whether somebody waits for each answer: latency counts, and it stays near its users."""
        return self is JobKind.INFERENCE_ONLINE

    @property
    def has_fixed_work(self) -> bool:
        """Whether it does an amount of work and ends.

        A faster machine then needs fewer hours, and an interruption costs time, not answers.
        """
        return self not in {JobKind.INTERACTIVE, JobKind.INFERENCE_ONLINE, JobKind.UNKNOWN}


class Parallelism(StrEnum):
    """How the GPUs of a job share its work."""

    NONE = "none"
    DDP = "ddp"
    FSDP = "fsdp"
    TENSOR = "tensor"
    PIPELINE = "pipeline"
    EXPERT = "expert"
    MIXED = "mixed"

    @property
    def works_together(self) -> bool:
        """Whether several GPUs do one job."""
        return self is not Parallelism.NONE

    @property
    def splits_the_model(self) -> bool:
        """Whether one GPU holds a part of the model only."""
        return self.works_together and self is not Parallelism.DDP

    @property
    def splits_a_step(self) -> bool:
        """Whether activations or parameters are exchanged in every layer: it needs fast links."""
        return self in {Parallelism.TENSOR, Parallelism.FSDP, Parallelism.EXPERT}

    @property
    def survives_a_lost_machine(self) -> bool:
        """Whether the others can go on with the work of one that is gone."""
        return self in {Parallelism.DDP, Parallelism.FSDP}


KINDS = tuple(kind.value for kind in JobKind)
PARALLELISMS = tuple(way.value for way in Parallelism)
WORDS = read_toml(str(Path(__file__).with_name("words.toml"))) or {}
"""The words of `words.toml`."""
PRECISIONS: tuple[str, ...] = tuple(WORDS["precisions"])
PHASES: tuple[str, ...] = tuple(WORDS["phases"])
WORK: tuple[str, ...] = tuple(WORDS["work"])
# How a job ended, where that is known to be other than by itself.
GPU_OUT_OF_MEMORY, HOST_OUT_OF_MEMORY = "gpu-out-of-memory", "host-out-of-memory"
ENDINGS = (GPU_OUT_OF_MEMORY, "gpu-out-of-memory-likely", HOST_OUT_OF_MEMORY, "failed")
# What became of an action that a recipe asked for.
APPLIED, LEFT = "applied", "left"
OUTCOMES = (APPLIED, LEFT)
COUNTED_BY = ("optimizer", "backward", "batch", "program")


def kinds(holds: Callable[[JobKind], bool], *, or_unknown: bool = False) -> tuple[JobKind, ...]:
    """Return the kinds of job for which something holds, in order.

    Args:
        holds: the question; an unknown kind is not asked.
        or_unknown: whether an unknown kind counts, too.
    """
    named = (kind for kind in JobKind if kind is not JobKind.UNKNOWN and holds(kind))
    return (*named, JobKind.UNKNOWN) if or_unknown else tuple(named)


def ways(holds: Callable[[Parallelism], bool]) -> tuple[Parallelism, ...]:
    """Return the ways to share work for which something holds, in order."""
    return tuple(way for way in Parallelism if holds(way))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A metric that a GPU can report.

    Attributes:
        name: the key in `profile.json`.
        unit: the unit of every value; `fraction` runs from 0 to 1.
        low: the least possible value.
        high: the greatest possible value, None where there is no bound.
        meaning: what is counted.
    """

    name: str
    unit: str
    meaning: str
    low: float | None = 0.0
    high: float | None = None


def kind_named(job: str | None) -> JobKind:
    """Return the kind of a job that a scheduler calls so: a session at a keyboard, or unknown."""
    is_session = any(word in (job or "").lower() for word in WORDS["sessions"])
    return JobKind.INTERACTIVE if is_session else JobKind.UNKNOWN


SLOTS: dict[str, Slot] = {slot["name"]: convert(slot, Slot) for slot in WORDS["slots"]}


# What a log tells of a GPU that another host would not have, or that its limit was lowered.
FAULTS = ("xid", "memory", "remapping", "lanes", "lost", "power-cap")
# Xid errors of hardware; others may be the program's.
HARDWARE_XIDS = (48.0, 64.0, 79.0)
