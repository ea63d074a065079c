"""What a reader returns: the samples of one source, in slot units, with what was left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.profile.join import device_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from planner.profile.model import Health, Source, Statistics
    from planner.profile.trials import Latency, Serving
    from telemetry.recording.observed import Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLabels:
    """Who a job's dollars are counted for, and what a scheduler says of its run.

    Attributes:
        team: whose budget pays.
        owner: who answers for it.
        cost_center: where it is booked.
        is_complete: whether the log holds one whole run of the job, which has ended.
        ended: how, as `kinds.ENDINGS` names it.
    """

    team: str | None = None
    owner: str | None = None
    cost_center: str | None = None
    is_complete: bool = False
    ended: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What a run's configuration says of it.

    Attributes:
        loader_workers: of the loader that feeds its steps.
        batch_per_gpu: items a GPU takes at a time.
        precision: as `kinds.PRECISIONS` names it.
    """

    loader_workers: int | None = None
    batch_per_gpu: int | None = None
    precision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What one server, or the copies of one, reported over a stretch of time.

    Attributes:
        job: the workload that its labels name; None where they name none.
        framework: the server's program.
        kind: what sort of job, as `kinds.KINDS` names it.
        serving: its queue and cache; None where it tells neither.
        requests_per_s: requests answered.
        latency_ms: of whole requests, milliseconds.
        unit: what `done` counts: `token` (generated ones) or `request`.
        done: units done; None where unknown.
        start_s: first reading, seconds.
        length_s: from the first reading to the last; 0 for a single one.
        interval_s: usual time between readings; None for a single one.
        points: readings behind it.
        notes: what a reader of the profile should know.
    """

    job: str | None = None
    framework: str | None = None
    kind: str | None = None
    serving: Serving | None = None
    requests_per_s: float | None = None
    latency_ms: Latency | None = None
    unit: str = "token"
    done: float | None = None
    start_s: float = 0.0
    length_s: float = 0.0
    interval_s: float | None = None
    points: int = 0
    notes: tuple[str, ...] = ()


TIME, GPU, JOB = "t_s", "gpu", "job"
CAPTURE_SCHEMA = "gpucost.capture/v1"  # the first line of a capture of `gpucost profile`
# Facts of a capture: keys of the job's GPUs, and the users of each other one; without the first,
# all are the job's.
JOB_GPUS, GPU_USERS = "job_gpus", "gpu_users"
SERVING = "serving"  # the fact that holds what servers told, a tally each

# Columns of samples that are not slots yet. Counters count up from a start that is not ours;
# `merge.resolve` turns them into the slot beside them, per second.
COUNTERS = {
    "counter.energy_j": "energy.total_j",
    "counter.throttle_s": "throttle.fraction",
    "counter.pcie_rx_mib": "io.pcie_rx_mib_s",
    "counter.pcie_tx_mib": "io.pcie_tx_mib_s",
    "counter.nvlink_rx_mib": "io.nvlink_rx_mib_s",
    "counter.nvlink_tx_mib": "io.nvlink_tx_mib_s",
    # Sums of means that a device gives over the time since its last answer (GPM), from 0.
    "counter.gpm_pcie_rx_mib": "io.pcie_rx_mib_s",
    "counter.gpm_pcie_tx_mib": "io.pcie_tx_mib_s",
    "counter.gpm_nvlink_rx_mib": "io.nvlink_rx_mib_s",
    "counter.gpm_nvlink_tx_mib": "io.nvlink_tx_mib_s",
    "counter.gpm_sm_active_s": "util.sm_active",
    "counter.gpm_sm_occupancy_s": "util.sm_occupancy",
    "counter.gpm_tensor_active_s": "util.tensor_active",
    "counter.gpm_fp32_active_s": "util.fp32_active",
    "counter.gpm_dram_active_s": "util.dram_active",
}
# Share of the device's memory in use, for sources that give no bytes.
MEMORY_FRACTION = "fraction.memory"
EXTRA = (*COUNTERS, MEMORY_FRACTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIdentity:
    """Which device a `gpu` key of the samples stands for.

    Attributes:
        key: the value in the samples' `gpu` column, unique within its recording.
        index: the driver's index.
        uuid: the driver's identity of the device; None for all-zero (redacted) ones.
        model: product name as the source writes it.
        memory_gib: total memory of the device.
        partition: MIG profile or instance, None for a whole device.
        mig_uuid: the driver's identity of a MIG instance.
        host: which machine; tells devices apart, never written out by its name.
    """

    key: str
    index: int | None = None
    uuid: str | None = None
    model: str | None = None
    memory_gib: float | None = None
    partition: str | None = None
    mig_uuid: str | None = None
    host: str | None = None


def boards_of(gpus: Iterable[GpuIdentity]) -> set[str]:
    """Return a name for each board: MIG instances are parts of one, and count as it.

    An instance that does not say of which board it is a part counts where no board is named.
    """
    gpus = tuple(gpus)
    boards = {gpu.key for gpu in gpus if gpu.partition is None}
    parts = [gpu for gpu in gpus if gpu.partition is not None]
    boards |= {device_of(gpu.key) for gpu in parts if gpu.uuid or gpu.index is not None}
    return boards or {"" for _ in parts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The samples of one source, or of the sources of one or more jobs together.

    Attributes:
        samples: one row per GPU and instant: `t_s` (float seconds; since 1970 UTC when `absolute`),
            `gpu` (text key), optionally `job` (text or missing), then slots in slot units and the
            columns of `EXTRA`. Missing values are NaN, which never leaves this package. Of several
            sources together sorted by device and time, `job` missing for readings that belong to
            no job and `*` where the source names none; no row where they were counted elsewhere.
        host: `t_s` and the fields of `model.Host`, or None.
        gpus: one identity per key.
        sources: file name, hash, format, whole-file figures, rows dropped by reason.
        rows_read: rows or points found, used or not.
        rows_used: rows or points behind `samples` and `host`.
        absolute: whether `t_s` counts from 1970 UTC.
        timed: whether the source says when its rows were taken.
        local_time: whether the source's times carry no zone.
        mig: whether a device was split into instances.
        active: whether all of it is the job at work, so that nothing at its ends is taken for idle.
        work: unit and number done, where the source says so.
        host_ram_gib: memory of the machine.
        cpu_cores: of the machine.
        observed: the job itself, where the source watched it.
        settings: what its configuration says, where a tracker keeps it.
        served: what servers of models told of themselves, one value a job.
        labels: whose the jobs are, by name.
        notes: what a reader of the profile should know.
        health: what is wrong with its GPUs.
        summaries: what a source says of a whole job itself, by job ("" for any) and key of a
            device; it goes before what the samples come to.
        names: of its columns or metrics, in lower case; None where its reader does not tell.
    """

    samples: pd.DataFrame
    host: pd.DataFrame | None = None
    gpus: tuple[GpuIdentity, ...]
    sources: tuple[Source, ...]
    rows_read: int = 0
    rows_used: int = 0
    absolute: bool = True
    timed: bool = True
    local_time: bool = False
    mig: bool = False
    active: bool = False
    work: tuple[str, float] | None = None
    host_ram_gib: float | None = None
    cpu_cores: float | None = None
    observed: Observed | None = None
    settings: RunSettings = RunSettings()
    served: tuple[Served, ...] = ()
    labels: Mapping[str, JobLabels] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    health: tuple[Health, ...] = ()
    names: frozenset[str] | None = None
    summaries: Mapping[tuple[str, str], Mapping[str, Statistics]] = field(default_factory=dict)

    @property
    def source(self) -> Source:
        """The first of its sources, of a reader's the only one."""
        return self.sources[0]

    @property
    def slots(self) -> list[str]:
        """The measured columns of the samples, in order."""
        return [str(c) for c in self.samples.columns if c not in (TIME, GPU, JOB)]
