"""The words of a job: what kind it is, how its GPUs share the work, in which precision it counts.

What a kind or a way to share means for a decision is a property here, asked everywhere else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class JobKind(StrEnum):
    """What sort of work a job does."""

    TRAINING = "training"
    INTERACTIVE = "interactive"
    DATA_PREPARATION = "data_preparation"
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
        return self.trains or self in {JobKind.DATA_PREPARATION, JobKind.INFERENCE_OFFLINE}


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
PRECISIONS = (
    "fp64",
    "fp32",
    "tf32",
    "amp-fp16",
    "amp-bf16",
    "fp16",
    "bf16",
    "fp8",
    "int8",
    "int4",
    "fp4",
)
PHASES = (
    "start-up",
    "data-preparation",
    "steady",
    "stall",
    "evaluation",
    "checkpoint",
    "teardown",
    "idle",
)
# How a job ended, where that is known to be other than by itself.
ENDINGS = ("gpu-out-of-memory", "host-out-of-memory", "failed")
# What became of an action that a recipe asked for.
APPLIED, LEFT = "applied", "left"
OUTCOMES = (APPLIED, LEFT)
COUNTED_BY = ("optimizer", "backward", "batch", "program")
# What a thread does at a place: waits for or feeds the device, prepares input, waits for others...
WORK = (
    "input",
    "model",
    "device",
    "communication",
    "save",
    "compile",
    "network",
    "logging",
    "lock",
    "sleep",
    "thread",
    "import",
    "host",
)


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


def _fraction(name: str, meaning: str) -> Slot:
    return Slot(name=name, unit="fraction", meaning=meaning, high=1.0)


_TABLE = (
    _fraction("util.kernel_time", "time in which at least one kernel ran (nvidia-smi's GPU-Util)"),
    _fraction("util.mem_controller", "time in which the memory controller was busy"),
    _fraction("util.sm_active", "cycles in which an SM had a warp, mean over SMs"),
    _fraction("util.sm_occupancy", "resident warps over the most that fit"),
    _fraction("util.tensor_active", "cycles in which the tensor pipe was busy"),
    _fraction("util.fp32_active", "cycles in which the FP32 pipe was busy"),
    _fraction("util.fp64_active", "cycles in which the FP64 pipe was busy"),
    _fraction("util.dram_active", "cycles in which device memory moved data"),
    _fraction("util.encoder", "time in which the video encoder was busy"),
    _fraction("util.decoder", "time in which the video decoder was busy"),
    Slot(name="mem.used_gib", unit="GiB", meaning="device memory in use, all processes"),
    Slot(name="mem.process_gib", unit="GiB", meaning="device memory of this job's processes"),
    Slot(name="power.board_w", unit="W", meaning="board power"),
    Slot(name="power.limit_w", unit="W", meaning="enforced power limit"),
    Slot(name="temp.core_c", unit="°C", meaning="core temperature", low=-50.0, high=150.0),
    _fraction("throttle.fraction", "time in which clocks were held down by heat or power"),
    Slot(name="clock.sm_mhz", unit="MHz", meaning="SM clock"),
    Slot(name="io.pcie_rx_mib_s", unit="MiB/s", meaning="PCIe, into the GPU"),
    Slot(name="io.pcie_tx_mib_s", unit="MiB/s", meaning="PCIe, out of the GPU"),
    Slot(name="io.nvlink_rx_mib_s", unit="MiB/s", meaning="NVLink, into the GPU"),
    Slot(name="io.nvlink_tx_mib_s", unit="MiB/s", meaning="NVLink, out of the GPU"),
    Slot(name="energy.total_j", unit="J", meaning="energy over the window"),
)

SLOTS: dict[str, Slot] = {slot.name: slot for slot in _TABLE}


# What a log tells of a GPU that another host would not have, or that its limit was lowered.
FAULTS = ("xid", "memory", "remapping", "lanes", "lost", "power-cap")
# Xid errors of hardware; others may be the program's.
HARDWARE_XIDS = (48.0, 64.0, 79.0)
