"""The values of a profile. None means "not measured"; fractions run from 0 to 1."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter

from planner.profile.fields import (
    FieldRule,
    anything,
    flag,
    fraction,
    integer,
    number,
    numbers,
    record,
    records,
    statistics,
    text,
    texts,
    time,
)
from planner.profile.kinds import (
    COUNTED_BY,
    ENDINGS,
    FAULTS,
    HARDWARE_XIDS,
    KINDS,
    PARALLELISMS,
    PHASES,
    PRECISIONS,
    WORK,
    JobKind,
    Parallelism,
)
from planner.profile.trials import Change, Latency, Replicas, Serving, TracedSteps, TriedInTurns
from pricing.catalog.offer import PURCHASES
from pricing.hardware import SLICE_NAME
from pricing.message import Message

SCHEMA = "gpucost.profile/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Time-weighted statistics of one metric over the active window, any subset known."""

    mean: float | None = None
    min: float | None = None
    p05: float | None = None
    p25: float | None = None
    p50: float | None = None
    p75: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None

    @property
    def typical(self) -> float | None:
        """The mean, else the median."""
        return self.mean if self.mean is not None else self.p50

    @property
    def peak(self) -> float | None:
        """The greatest value known."""
        values = [value for value in _ALL(self) if value is not None]
        return max(values) if values else None


_ALL = attrgetter(*(field_.name for field_ in fields(Statistics)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What runs."""

    name: str = text("the job's name", default="job")
    kind: JobKind = text("what sort of work", choices=KINDS, default="unknown")
    framework: str | None = text("pytorch, tensorflow, jax ...")
    precision: str | None = text("numeric format of the heavy operations", choices=PRECISIONS)
    batch_per_gpu: int | None = integer("items a GPU takes at a time", low=1)
    parallelism: Parallelism | None = text("how several GPUs share the work", choices=PARALLELISMS)
    parameters: float | None = number("model parameters", above=0.0)
    dataset_gib: float | None = number("data read by the job, GiB")
    trust: str | None = text(
        "whether strangers' jobs may share a GPU", choices=("shared", "isolated")
    )
    latency_slo_ms: float | None = number("latency target, milliseconds", above=0.0)
    latency_ms: Latency | None = record(Latency, "measured latency")
    requests_per_s: float | None = number("requests per second of the measured copy")
    replicas: Replicas | None = record(
        Replicas, "copies of an inference job, each on `gpu_count` GPUs of its own"
    )
    ended: str | None = text("how it ended, where memory or an error ended it", choices=ENDINGS)
    serving: Serving | None = record(Serving, "what the server reports of itself")
    demand_by_hour: object | None = anything(
        "requests per second of all copies, for each hour of a day (24) or week (168, from Monday)"
    )
    team: str | None = text("whose budget pays for it")
    owner: str | None = text("who answers for it")
    cost_center: str | None = text("where it is booked")

    def __post_init__(self) -> None:
        """Take the words of a file for what they mean.

        Raises:
            ValueError: there is no such kind of job, or no such way to share its work.
        """
        object.__setattr__(self, "kind", JobKind(self.kind or JobKind.UNKNOWN))
        if self.parallelism is not None:
            object.__setattr__(self, "parallelism", Parallelism(self.parallelism))

    @property
    def splits_the_model(self) -> bool:
        """Whether one GPU holds a part of the model only; an unknown way is taken for whole."""
        return self.parallelism is not None and self.parallelism.splits_the_model

    @property
    def splits_a_step(self) -> bool:
        """Whether its GPUs exchange data in every layer; an unknown way does not."""
        return self.parallelism is not None and self.parallelism.splits_a_step


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Where it ran."""

    gpu: str | None = text("GPU model as the driver or the cloud names it")
    gpu_count: int | None = integer("GPUs of the job, over all nodes", low=1)
    nodes: int | None = integer("machines", low=1)
    gpu_memory_gib: float | None = number("memory of one GPU, GiB", above=0.0)
    slice: str | None = text(
        "the slice (MIG profile, such as 2g.20gb) of each GPU that was measured; null: all of it",
        pattern=SLICE_NAME,
    )
    cpu_cores: float | None = number("cores the job may use", above=0.0)
    ram_gib: float | None = number("host memory the job may use, GiB", above=0.0)
    interconnect: str | None = text("between the GPUs: single, pcie, nvlink-bridge, nvlink, xgmi")
    network_gbps: float | None = number("between the machines, Gbit/s", above=0.0)
    provider: str | None = text("who bills, as `gpucost prices` names them")
    instance_type: str | None = text("the provider's name of the machine")
    region: str | None = text("the provider's region")
    purchase: str | None = text("how it was bought", choices=PURCHASES, default="on_demand")
    cluster: str | None = text("managed Kubernetes that it is a node of", choices=("doks", "eks"))
    machine: str | None = text("which machine: host or instance id; jobs of one share its bill")
    owned: bool | None = flag("whether its owner has paid for it: its hours cost nothing more")
    paid_until: str | None = text(
        "last day that is paid for, whatever runs: of a reservation, YYYY-MM-DD",
        pattern=r"\d{4}-\d{2}-\d{2}",
    )


_MACHINE_LEFT_ON_S = 1800.0  # for so long machines are commonly let idle before they are ended
_LEAST_AROUND = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What part of the job was measured."""

    start: datetime | None = time("first sample")
    duration_s: float | None = number("length of the active window, seconds", above=0.0)
    interval_s: float | None = number("typical time between samples, seconds", above=0.0)
    coverage: float | None = fraction("share of the window with samples")
    idle_before_s: float | None = number("recorded before it, with nothing running, seconds")
    idle_after_s: float | None = number("recorded after it, with nothing running, seconds")

    @property
    def idle_around_s(self) -> float:
        """Seconds recorded before and after the job in which nothing ran.

        0 where neither is half an hour long: recordings begin a little early and end a little late.
        """
        around = (self.idle_before_s or 0.0, self.idle_after_s or 0.0)
        return sum(around) if max(around) >= _MACHINE_LEFT_ON_S else 0.0

    @property
    def recorded_s(self) -> float:
        """Seconds of the job, and of what is idle around it where that is long."""
        return self.idle_around_s + (self.duration_s or 0.0)

    @property
    def idle_around_fraction(self) -> float:
        """Share of what was recorded that these are, 0-1; a gap in the job counts as the job's."""
        share = self.idle_around_s / self.recorded_s if self.recorded_s else 0.0
        return share if share >= _LEAST_AROUND else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the job got done."""

    unit: str | None = text("image, token, sample, step, request ...")
    done: float | None = number("units done in the window")
    total: float | None = number("units of one whole run", above=0.0)
    rate_per_s: float | None = number("units per second over all GPUs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """Steps that took much longer than usual."""

    count: int | None = integer("their number")
    total_s: float | None = number("their time together, seconds")
    longest_s: float | None = number("the longest, seconds")
    threshold_s: float | None = number("length from which a step is one, seconds", above=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where the time of a training step goes, means in seconds."""

    count: int | None = integer("steps measured")
    counted_by: str | None = text(
        "what counts as a step: optimizer steps, backward passes, batches, the program's word",
        choices=COUNTED_BY,
    )
    mean_s: float | None = number("a whole step", above=0.0)
    data_wait_s: float | None = number("waiting for the input pipeline")
    h2d_s: float | None = number("copying to the device")
    compute_s: float | None = number("computing")
    comm_s: float | None = number("communication that nothing hides")
    optimizer_s: float | None = number("the optimiser")
    checkpoint_s: float | None = number("writing checkpoints, averaged over steps")
    loader_workers: int | None = integer("workers of the loader that feeds it; 0: none", low=0)
    reading_cores: float | None = fraction(
        "part of the waits for input on a core; 1: reading works"
    )
    p50_s: float | None = number("half of the steps take no longer, without checkpoints")
    p95_s: float | None = number("95 % of the steps take no longer, without checkpoints")
    max_s: float | None = number("the longest step, without checkpoints")
    stalls: Stalls | None = record(Stalls, "steps that took much longer than usual")
    early_count: int | None = integer("slow first steps, which are in no other figure")
    early_s: float | None = number("a mean one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A line of the program in which the stepping thread was seen."""

    place: str | None = text("function (file:line), the innermost of the user's own code")
    doing: str | None = text("what went on there", choices=WORK)
    phase: str | None = text("what it was part of; null where nothing stepped", choices=PHASES)
    time_fraction: float | None = fraction("share of the time from the first step to the last")
    low: float | None = fraction("low end of its 90 % interval, by the number of looks")
    high: float | None = fraction("high end of it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One process of a distributed run."""

    rank: int | None = integer("its number")
    steps: int | None = integer("steps that it made")
    mean_s: float | None = number("a whole step, seconds")
    data_wait_s: float | None = number("of it waiting for input, seconds")
    own_fraction: float | None = fraction("share of its time in input and host code of its own")
    place: str | None = text("where most of that time goes: function (file:line)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What a part of the recording's time went to, all its stretches together."""

    kind: str | None = text("what the job did", choices=PHASES)
    total_s: float | None = number("seconds in it")
    time_fraction: float | None = fraction("share of the whole recording")
    count: int | None = integer("stretches of it")
    kernel_time: float | None = fraction("how busy the busiest GPU was meanwhile, mean")
    data_wait_s: float | None = number("of it waiting for input, seconds; null where unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReadings:
    """What one GPU reported."""

    index: int | None = integer("the driver's index")
    uuid: str | None = text("the driver's identity of the device")
    metrics: Mapping[str, Statistics] = statistics("statistics by slot")


def _host(doc: str, high: float | None = None) -> Statistics | None:
    rule = FieldRule(kind="record", doc=doc, record=Statistics, low=0.0, high=high)
    statistics_field: Statistics | None = field(default=None, metadata={"rule": rule})
    return statistics_field


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the job used of the machine around the GPUs; all of it where no job was told apart."""

    cpu_util: Statistics | None = _host("share of the cores that the job may use", 1.0)
    cpu_busiest_core: Statistics | None = _host("share of the busiest core in use", 1.0)
    ram_used_gib: Statistics | None = _host("host memory in use, GiB")
    ram_growth_gib_per_h: Statistics | None = _host("its growth where it does not level off")
    disk_read_mib_s: Statistics | None = _host("disk reads, MiB/s")
    disk_write_mib_s: Statistics | None = _host("disk writes, MiB/s")
    net_rx_mib_s: Statistics | None = _host("network in, MiB/s")
    net_tx_mib_s: Statistics | None = _host("network out, MiB/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherGpu:
    """A GPU of the machine that the job was not seen on."""

    index: int | None = integer("the driver's index")
    uuid: str | None = text("the driver's identity of the device")
    gpu: str | None = text("GPU model as the driver names it")
    users: tuple[str, ...] = texts("whose processes were on it; none: nobody's")
    kernel_time: float | None = fraction("how busy it was meanwhile, mean")
    used_gib: float | None = number("its memory in use meanwhile, mean, GiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The whole machine, of which the job may hold a part; `host` is the job's part."""

    gpu_count: int | None = integer("GPUs of the machine")
    cpu_cores: float | None = number("cores of the machine", above=0.0)
    ram_gib: float | None = number("memory of the machine, GiB", above=0.0)
    cpu_util: Statistics | None = _host("share of all cores in use, by everyone", 1.0)
    ram_used_gib: Statistics | None = _host("memory in use, by everyone, GiB")
    net_rx_mib_s: Statistics | None = _host("network in while others worked too, MiB/s")
    net_tx_mib_s: Statistics | None = _host("network out while others worked too, MiB/s")
    others: tuple[OtherGpu, ...] = records(OtherGpu, "its GPUs that the job was not seen on")


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthlyUse:
    """What a month of this job looks like."""

    hours_per_month: float | None = number("hours the machine is held, at most 744", high=744.0)
    egress_gib_per_month: float | None = number("data sent out, GiB")
    storage_gib: float | None = number("data kept, GiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class UseByHour:
    """How much of a GPU's time the job took in each hour, over all of the recording.

    24 numbers are the hours of any day from 0 h UTC, 168 those of a week from Monday 0 h UTC.
    """

    mean: tuple[float, ...] = numbers(
        "share of the time, mean over GPUs", counts=(24, 168), high=1.0
    )
    spread: tuple[float, ...] = numbers(
        "standard deviation of its five-minute means in that hour", counts=(24, 168), high=1.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run of several processes or machines that this profile is a part of."""

    id: str | None = text("what the parts of the run have in common: its scheduler's name for it")
    node: str | None = text("which of its machines, as a hash of the host's name")
    world: int | None = integer("processes of the whole run", low=1)
    cpus: str | None = text("cores that this part may use, by the system's numbers: 0-3,8")


SAMPLES, STEPS = ".samples.parquet", ".steps.jsonl"
"""What the series of NAME.json are called: NAME.samples.parquet, NAME.steps.jsonl."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Files with the raw series, beside the profile."""

    samples: str | None = text("Parquet file: t_s, gpu and slots")
    steps: str | None = text("JSON lines: t_s, step, n, step_s, data_wait_s, loss")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a source: whole-file figures in the source's own unit."""

    source: str = text("the source's name of it", default="")
    slot: str | None = text("the slot it fills")
    scale: float | None = number("factor from the source's unit to the slot's", low=None)
    n: int | None = integer("values read")
    mean: float | None = number("mean of the values, unweighted", low=None)
    min: float | None = number("least value", low=None)
    max: float | None = number("greatest value", low=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file that the profile was made from."""

    path: str | None = text("the file's name")
    sha256: str | None = text("of its bytes")
    format: str | None = text("what it was read as")
    columns: tuple[Column, ...] = records(Column, "its columns")
    dropped: object = anything("rows dropped, by reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What is wrong with one GPU, its link or its power limit."""

    gpu: str = text("which one", default="the GPU")
    code: str = text("what is wrong", choices=FAULTS, default="lost")
    value: float | None = number("number of the error, errors, lanes or watts")
    most: float | None = number("lanes or watts that it could have")

    @property
    def is_failing(self) -> bool:
        """Whether another host is the cure."""
        return self.value in HARDWARE_XIDS if self.code == "xid" else self.code != "power-cap"

    @property
    def is_grave(self) -> bool:
        """Whether it comes before all else: half of a link's lanes is what many boards give."""
        half = self.code == "lanes" and 2 * (self.value or 0.0) >= (self.most or 0.0)
        return self.is_failing and not half

    @property
    def sentence(self) -> Message:
        """The evidence, without a full stop."""
        code = f"{self.code}-{self.value:g}" if self.code == "xid" else self.code
        value, limit = self.value or 0.0, self.most or 0.0
        return Message(
            f"cause.fault-{code}",
            gpu=f"GPU {self.gpu}" if self.gpu.isdigit() else self.gpu,
            value=f"{value:g}",
            most=f"{limit:g}",
            times=f"{limit / value:.3g}" if value else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the numbers come from."""

    sources: tuple[Source, ...] = records(Source, "files read")
    notes: tuple[str, ...] = texts("what a reader should know about the data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one job measured, ready to diagnose and plan."""

    job: Job = record(Job, "what runs", default=Job())
    hardware: Hardware = record(Hardware, "where it ran", default=Hardware())
    window: Window | None = record(Window, "what was measured")
    work: Work | None = record(Work, "what got done")
    step: Step | None = record(Step, "where a step's time goes")
    phases: tuple[Phase, ...] = records(Phase, "what the recording's time went to")
    waits: tuple[Wait, ...] = records(Wait, "where the program was seen, most often first")
    ranks: tuple[Rank, ...] = records(Rank, "the processes of a distributed run")
    changes: tuple[Change, ...] = records(Change, "what `gpucost run` applied and left")
    experiment: TriedInTurns | None = record(
        TriedInTurns, "settings tried in turns within this run"
    )
    trace: TracedSteps | None = record(TracedSteps, "steps under the framework's own profiler")
    gpus: tuple[GpuReadings, ...] = records(GpuReadings, "one entry per GPU")
    health: tuple[Health, ...] = records(Health, "what is wrong with GPUs, as logs tell it")
    by_hour: UseByHour | None = record(UseByHour, "how busy its GPUs were in each hour")
    host: Host | None = record(Host, "the machine around the GPUs")
    run: Run | None = record(Run, "the run of several machines that this is a part of")
    machine: Machine | None = record(Machine, "the whole machine, where it was measured")
    usage: MonthlyUse | None = record(MonthlyUse, "what a month looks like")
    series: Series | None = record(Series, "raw series beside this file")
    provenance: Provenance = record(Provenance, "where the numbers come from", default=Provenance())

    @property
    def gpu_count(self) -> int:
        """GPUs of the job: declared, else as many as reported, at least one."""
        return self.hardware.gpu_count or max(1, len(self.gpus))

    @property
    def works_apart(self) -> bool:
        """Whether each of several GPUs does work of its own, as stated; an unknown way does not.

        Nor does what was seen to communicate, whatever is stated.
        """
        communicates = self.step is not None and bool(self.step.comm_s)
        return self.gpu_count > 1 and self.job.parallelism is Parallelism.NONE and not communicates

    def readings(self, slot: str) -> tuple[Statistics, ...]:
        """Return the statistics of one slot, one per GPU that reported it."""
        return tuple(gpu.metrics[slot] for gpu in self.gpus if slot in gpu.metrics)

    def mean(self, slot: str) -> float | None:
        """Return the mean over GPUs of a slot's typical value; None when no GPU reported it."""
        values = [gpu.metrics.get(slot) for gpu in self.gpus]  # most are asked of what none read
        means = [value for gpu in values if gpu and (value := gpu.typical) is not None]
        return sum(means) / len(means) if means else None

    @property
    def busy_fraction(self) -> float | None:
        """Share of the time that kernels ran, mean over GPUs; None where it was not read."""
        loads = (self.mean(slot) for slot in ("util.kernel_time", "util.sm_active"))
        return next((load for load in loads if load is not None), None)

    @property
    def cpu_fraction(self) -> float | None:
        """Share of its cores in use, 0-1, mean; None where it was not read."""
        return self.host.cpu_util.typical if self.host and self.host.cpu_util else None

    @property
    def idle_around_fraction(self) -> float:
        """Share of the recorded, paid time before and after the job in which nothing ran, 0-1."""
        return self.window.idle_around_fraction if self.window is not None else 0.0

    @property
    def paid_busy_fraction(self) -> float | None:
        """Share of the hours that are paid for in which kernels ran; `busy_fraction` is the job's.

        Idle hours before and after the job are in it; None where use was not read.
        """
        busy = self.busy_fraction
        return busy if busy is None else busy * (1.0 - self.idle_around_fraction)

    def peak(self, slot: str) -> float | None:
        """Return the greatest value of a slot on any GPU; None when no GPU reported it."""
        values = [gpu.metrics.get(slot) for gpu in self.gpus]
        peaks = [value for gpu in values if gpu and (value := gpu.peak) is not None]
        return max(peaks, default=None)
