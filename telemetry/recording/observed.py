"""What a measurement saw of the job itself, beside its devices: its steps, pauses and settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from telemetry.recording.step_times import StepTimes

if TYPE_CHECKING:
    import pandas as pd

    from planner.profile.change import Change
    from planner.profile.experiment import Trial, TurnsSeen
    from planner.profile.model import Machine, Run
    from telemetry.recording.program_places import Seen

# Columns of `Observed.steps`; times and items are sums over the row's `n` steps, the loss is of the
# last of them.
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
    "loss",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A stretch in which the job did something other than steps.

    Attributes:
        kind: `evaluation`, `checkpoint`, `stall` or `loader-start`.
        start_s: when it began, seconds since 1970 UTC.
        length_s: how long it took.
        wait_s: time of it that was spent waiting for input; None where unknown.
        count: several that the probe told as one.
        over_s: from the begin of the first to the end of the last; None where it is one.
    """

    kind: str
    start_s: float
    length_s: float
    wait_s: float | None = None
    count: int = 1
    over_s: float | None = None

    @property
    def end_s(self) -> float:
        """The end, of the last one where it stands for several."""
        return self.start_s + max(self.length_s, self.over_s or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSeen:
    """One rank of a distributed run.

    Attributes:
        rank: its number, None where the processes do not say.
        steps: that it made.
        mean_s: a whole step.
        data_wait_s: of it waiting for input; None where unknown.
        places: where its time went.
    """

    rank: int | None
    steps: int
    mean_s: float | None
    data_wait_s: float | None
    places: tuple[Seen, ...] = ()


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
        kind: what sort of job, as `kinds.KINDS` names it.
        precision: as `kinds.PRECISIONS` names it.
        batch_per_gpu: items a GPU takes at a time.
        loader_workers: of the loader that feeds the steps.
        reading_cores: cores that the program wants while it waits for that loader, 0 to 1.
        parallelism: as `kinds.PARALLELISMS` names it.
        parameters: of the model.
        ended: how it ended, as `kinds.ENDINGS` names it.
        counted_by: what counts as a step, as `kinds.COUNTED_BY` names it.
        steps: rows of the process that sets the pace, by time, with STEP_COLUMNS; None without any.
        step_count: steps of the whole run.
        step_times: lengths of the steps of the pacing process, without its first.
        items: items of all processes over those of the pacing one, >= 1.
        pauses: by time.
        places: where the pacing process spent the time of its steps.
        ranks: of a distributed run, by rank.
        changes: what of a recipe was applied, and what was left.
        turns: settings that were tried in turns; None where none were.
        trials: values that were tried one after another.
        machine: the whole machine, and whose its other GPUs were.
        identity: which machine it is, and who bills it.
        run: which run it is a part of, and on which machine.
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
    loader_workers: int | None = None
    reading_cores: float | None = None
    parallelism: str | None = None
    parameters: float | None = None
    ended: str | None = None
    counted_by: str | None = None
    steps: pd.DataFrame | None = None
    step_count: int = 0
    step_times: StepTimes = field(default_factory=StepTimes)
    items: float = 1.0
    pauses: tuple[Pause, ...] = ()
    places: tuple[Seen, ...] = ()
    ranks: tuple[RankSeen, ...] = ()
    changes: tuple[Change, ...] = ()
    turns: TurnsSeen | None = None
    trials: tuple[Trial, ...] = ()
    machine: Machine | None = None
    identity: MachineIdentity = MachineIdentity()
    run: Run | None = None
    notes: tuple[str, ...] = ()
