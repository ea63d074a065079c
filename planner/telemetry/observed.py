"""What a measurement saw of the job itself, beside its devices: its steps, pauses and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from planner.profile.model import Machine

# Columns of `Observed.steps`; the times and items are sums over the row's `n` steps.
STEP_COLUMNS = (
    "t_s",
    "step",
    "n",
    "step_s",
    "data_wait_s",
    "h2d_s",
    "optimizer_s",
    "checkpoint_s",
    "evaluation_s",
    "items",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A stretch in which the job did something other than steps.

    Attributes:
        kind: `evaluation`, `checkpoint` or `loader-start`.
        start_s: when it began, seconds since 1970 UTC.
        length_s: how long it took.
    """

    kind: str
    start_s: float
    length_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineIdentity:
    """Which machine it is, as far as it is known.

    Attributes:
        machine: host or instance id.
        provider: who bills it, as the price list names providers.
        instance_type: the provider's name of its size.
        region: the provider's region.
    """

    machine: str | None = None
    provider: str | None = None
    instance_type: str | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The job as `gpucost profile` watched it.

    Attributes:
        name: the program that ran.
        cpu_cores: cores that it may use.
        ram_gib: host memory that it may use.
        interconnect: between the GPUs, as `model.Hardware` names it.
        framework: the framework that stepped.
        kind: what sort of job, as `model.KINDS` names it.
        precision: as `model.PRECISIONS` names it.
        batch_per_gpu: items a GPU takes at a time.
        parallelism: as `model.PARALLELISMS` names it.
        parameters: of the model.
        steps: rows of the process that sets the pace, by time, with STEP_COLUMNS; None without any.
        step_count: steps of the whole run.
        items: items of all processes over those of the pacing one, >= 1.
        pauses: by time.
        machine: the whole machine, and whose its other GPUs were.
        identity: which machine it is, and who bills it.
        notes: what a reader of the profile should know.
    """

    name: str | None = None
    cpu_cores: float | None = None
    ram_gib: float | None = None
    interconnect: str | None = None
    framework: str | None = None
    kind: str | None = None
    precision: str | None = None
    batch_per_gpu: int | None = None
    parallelism: str | None = None
    parameters: float | None = None
    steps: pd.DataFrame | None = None
    step_count: int = 0
    items: float = 1.0
    pauses: tuple[Pause, ...] = ()
    machine: Machine | None = None
    identity: MachineIdentity = MachineIdentity()
    notes: tuple[str, ...] = ()
