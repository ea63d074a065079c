"""The values of a profile. None means "not measured"; fractions run from 0 to 1."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated

from msgspec import Meta
from msgspec.structs import force_setattr

from planner.profile import fields, kinds
from planner.profile.trials import Change, Latency, Replicas, Serving, TracedSteps, TriedInTurns
from pricing.catalog.offer import PURCHASES
from pricing.hardware import SLICE_NAME
from pricing.message import Message, SavedMessage

SCHEMA = "gpucost.profile/v1"


class Statistics(fields.Record, frozen=True, kw_only=True, omit_defaults=True):
    """Time-weighted statistics of one metric over the active window, any subset known."""

    mean: fields.Real | None = None
    min: fields.Real | None = None
    p05: fields.Real | None = None
    p25: fields.Real | None = None
    p50: fields.Real | None = None
    p75: fields.Real | None = None
    p90: fields.Real | None = None
    p95: fields.Real | None = None
    p99: fields.Real | None = None
    max: fields.Real | None = None

    @property
    def typical(self) -> float | None:
        """The mean, else the median."""
        return self.mean if self.mean is not None else self.p50

    @property
    def peak(self) -> float | None:
        """The greatest value known."""
        values = [value for value in _ALL(self) if value is not None]
        return max(values) if values else None


_ALL = attrgetter(*Statistics.__struct_fields__)


class Job(fields.Record, frozen=True, kw_only=True):
    """What runs.

    Attributes:
        name: the job's name.
        kind: what sort of work.
        framework: such as pytorch, tensorflow, jax.
        precision: numeric format of the heavy operations.
        batch_per_gpu: items a GPU takes at a time.
        parallelism: how several GPUs share the work.
        parameters: model parameters.
        dataset_gib: data read by the job, GiB.
        trust: whether strangers' jobs may share a GPU.
        latency_slo_ms: latency target of a whole request, milliseconds, at the strictest percentile
            measured: p99, else p95, else p50.
        latency_ms: measured latency.
        requests_per_s: requests per second of the measured copy.
        replicas: copies of an inference job, each on `gpu_count` GPUs of its own.
        ended: how it ended, where memory or an error ended it.
        serving: what the server reports of itself.
        demand_by_hour: requests per second of all copies, for each hour of a day (24) or week (168,
            from Monday).
        team: whose budget pays for it.
        owner: who answers for it.
        cost_center: where it is booked.
    """

    name: str = "job"
    kind: kinds.JobKind = kinds.JobKind.UNKNOWN
    framework: str | None = None
    precision: Annotated[str, fields.one_of(kinds.PRECISIONS)] | None = None
    batch_per_gpu: fields.AtLeastOne | None = None
    parallelism: kinds.Parallelism | None = None
    parameters: fields.Positive | None = None
    dataset_gib: fields.Measure | None = None
    trust: Annotated[str, fields.one_of(("shared", "isolated"))] | None = None
    latency_slo_ms: fields.Positive | None = None
    latency_ms: Latency | None = None
    requests_per_s: fields.Measure | None = None
    replicas: Replicas | None = None
    ended: Annotated[str, fields.one_of(kinds.ENDINGS)] | None = None
    serving: Serving | None = None
    demand_by_hour: object = None
    team: str | None = None
    owner: str | None = None
    cost_center: str | None = None

    def __post_init__(self) -> None:
        """Take the words of a file for what they mean.

        Raises:
            ValueError: there is no such kind of job, or no such way to share its work.
        """
        force_setattr(self, "kind", kinds.JobKind(self.kind or kinds.JobKind.UNKNOWN))
        if self.parallelism is not None:
            force_setattr(self, "parallelism", kinds.Parallelism(self.parallelism))

    @property
    def splits_the_model(self) -> bool:
        """Whether one GPU holds a part of the model only; an unknown way is taken for whole."""
        return self.parallelism is not None and self.parallelism.splits_the_model

    @property
    def splits_a_step(self) -> bool:
        """Whether its GPUs exchange data in every layer; an unknown way does not."""
        return self.parallelism is not None and self.parallelism.splits_a_step

    @property
    def worst_latency_ms(self) -> float | None:
        """The most that the strictest measured percentile of the latency may be, milliseconds."""
        measured = self.latency_ms and self.latency_ms.strictest
        return self.latency_ms.bucket(measured[1])[1] if self.latency_ms and measured else None

    @property
    def is_unmeasured_service(self) -> bool:
        """Whether somebody waits for its answers and nobody measured how long."""
        return self.kind.answers and self.worst_latency_ms is None

    @property
    def misses_target(self) -> bool | None:
        """Whether requests take longer than they may; None where that is not known.

        It is not where the percentile lies in a bucket of a histogram that holds the target, too.
        """
        measured, target = self.latency_ms and self.latency_ms.strictest, self.latency_slo_ms
        if self.latency_ms is None or not measured or target is None:
            return None
        low, high = self.latency_ms.bucket(measured[1])
        return None if low < target < high else high > target


class Hardware(fields.Record, frozen=True, kw_only=True):
    """Where it ran.

    Attributes:
        gpu: GPU model as the driver or the cloud names it.
        gpu_count: GPUs of the job, over all nodes.
        nodes: machines.
        gpu_memory_gib: memory of one GPU, GiB.
        slice: the slice (MIG profile, such as 2g.20gb) of each GPU that was measured; null: all of
            it.
        cpu_cores: cores the job may use.
        ram_gib: host memory the job may use, GiB.
        interconnect: between the GPUs: single, pcie, nvlink-bridge, nvlink, xgmi.
        network_gbps: between the machines, Gbit/s.
        provider: who bills, as `gpucost prices` names them.
        instance_type: the provider's name of the machine.
        region: the provider's region.
        purchase: how it was bought.
        cluster: managed Kubernetes that it is a node of.
        machine: which machine: host or instance id; jobs of one share its bill.
        owned: whether its owner has paid for it: its hours cost nothing more.
        paid_until: last day that is paid for, whatever runs: of a reservation, YYYY-MM-DD.
    """

    gpu: str | None = None
    gpu_count: fields.AtLeastOne | None = None
    nodes: fields.AtLeastOne | None = None
    gpu_memory_gib: fields.Positive | None = None
    slice: Annotated[str, fields.matching(SLICE_NAME)] | None = None
    cpu_cores: fields.Positive | None = None
    ram_gib: fields.Positive | None = None
    interconnect: str | None = None
    network_gbps: fields.Positive | None = None
    provider: str | None = None
    instance_type: str | None = None
    region: str | None = None
    purchase: Annotated[str, fields.one_of(PURCHASES)] | None = "on_demand"
    cluster: Annotated[str, fields.one_of(("doks", "eks"))] | None = None
    machine: str | None = None
    owned: bool | None = None
    paid_until: Annotated[str, fields.matching(r"\d{4}-\d{2}-\d{2}")] | None = None


_MACHINE_LEFT_ON_S = 1800.0  # for so long machines are commonly let idle before they are ended
_LEAST_AROUND = 0.05


class Window(fields.Record, frozen=True, kw_only=True):
    """What part of the job was measured.

    Attributes:
        start: first sample.
        duration_s: length of the active window, seconds.
        interval_s: typical time between samples, seconds.
        coverage: share of the window with samples.
        idle_before_s: recorded before it, with nothing running, seconds.
        idle_after_s: recorded after it, with nothing running, seconds.
    """

    start: fields.Instant | None = None
    duration_s: fields.Positive | None = None
    interval_s: fields.Positive | None = None
    coverage: fields.Fraction | None = None
    idle_before_s: fields.Measure | None = None
    idle_after_s: fields.Measure | None = None

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


class Work(fields.Record, frozen=True, kw_only=True):
    """What the job got done.

    Attributes:
        unit: such as image, token, sample, step, request.
        done: units done in the window.
        total: units of one whole run.
        rate_per_s: units per second over all GPUs.
    """

    unit: str | None = None
    done: fields.Measure | None = None
    total: fields.Positive | None = None
    rate_per_s: fields.Measure | None = None

    @property
    def is_counted(self) -> bool:
        """Whether units were counted while it ran; that it ran once tells of no work."""
        return self.unit != RUN


RUN = "run"
"""The unit of a job of which is known only that it ran to its end."""


class Stalls(fields.Record, frozen=True, kw_only=True):
    """Steps that took much longer than usual.

    Attributes:
        count: their number.
        total_s: their time together, seconds.
        longest_s: the longest, seconds.
        threshold_s: length from which a step is one, seconds.
    """

    count: fields.Count | None = None
    total_s: fields.Measure | None = None
    longest_s: fields.Measure | None = None
    threshold_s: fields.Positive | None = None


class Step(fields.Record, frozen=True, kw_only=True):
    """Where the time of a training step goes, means in seconds.

    Attributes:
        count: steps measured.
        counted_by: what counts as a step: optimizer steps, backward passes, batches, the program's
            word.
        mean_s: a whole step.
        data_wait_s: waiting for the input pipeline.
        h2d_s: copying to the device.
        compute_s: computing.
        comm_s: communication that nothing hides.
        optimizer: class of the optimiser, as a trace names it.
        optimizer_s: the optimiser.
        checkpoint_s: writing checkpoints, averaged over steps.
        loader_workers: workers of the loader that feeds it; 0: none.
        reading_cores: part of the waits for input on a core; 1: reading works.
        p50_s: half of the steps take no longer, without checkpoints.
        p95_s: 95 % of the steps take no longer, without checkpoints.
        max_s: the longest step, without checkpoints.
        stalls: steps that took much longer than usual.
        early_count: slow first steps, which are in no other figure.
        early_s: a mean one of them.
    """

    count: fields.Count | None = None
    counted_by: Annotated[str, fields.one_of(kinds.COUNTED_BY)] | None = None
    mean_s: fields.Positive | None = None
    data_wait_s: fields.Measure | None = None
    h2d_s: fields.Measure | None = None
    compute_s: fields.Measure | None = None
    comm_s: fields.Measure | None = None
    optimizer: str | None = None
    optimizer_s: fields.Measure | None = None
    checkpoint_s: fields.Measure | None = None
    loader_workers: fields.Count | None = None
    reading_cores: fields.Fraction | None = None
    p50_s: fields.Measure | None = None
    p95_s: fields.Measure | None = None
    max_s: fields.Measure | None = None
    stalls: Stalls | None = None
    early_count: fields.Count | None = None
    early_s: fields.Measure | None = None


class Wait(fields.Record, frozen=True, kw_only=True):
    """A line of the program in which the stepping thread was seen.

    Attributes:
        place: function (file:line), the innermost of the user's own code.
        doing: what went on there.
        phase: what it was part of; null where nothing stepped.
        time_fraction: share of the time from the first step to the last.
        low: low end of its 90 % interval, by the number of looks.
        high: high end of it.
    """

    place: str | None = None
    doing: Annotated[str, fields.one_of(kinds.WORK)] | None = None
    phase: Annotated[str, fields.one_of(kinds.PHASES)] | None = None
    time_fraction: fields.Fraction | None = None
    low: fields.Fraction | None = None
    high: fields.Fraction | None = None


class Rank(fields.Record, frozen=True, kw_only=True):
    """One process of a distributed run.

    Attributes:
        rank: its number.
        steps: steps that it made.
        mean_s: a whole step, seconds.
        data_wait_s: of it waiting for input, seconds.
        own_fraction: share of its time in input and host code of its own.
        place: where most of that time goes: function (file:line).
    """

    rank: fields.Count | None = None
    steps: fields.Count | None = None
    mean_s: fields.Measure | None = None
    data_wait_s: fields.Measure | None = None
    own_fraction: fields.Fraction | None = None
    place: str | None = None


class Phase(fields.Record, frozen=True, kw_only=True):
    """What a part of the recording's time went to, all its stretches together.

    Attributes:
        kind: what the job did.
        total_s: seconds in it.
        time_fraction: share of the whole recording.
        count: stretches of it.
        kernel_time: how busy the busiest GPU was meanwhile, mean.
        data_wait_s: of it waiting for input, seconds; null where unknown.
    """

    kind: Annotated[str, fields.one_of(kinds.PHASES)] | None = None
    total_s: fields.Measure | None = None
    time_fraction: fields.Fraction | None = None
    count: fields.Count | None = None
    kernel_time: fields.Fraction | None = None
    data_wait_s: fields.Measure | None = None


class GpuReadings(fields.Record, frozen=True, kw_only=True):
    """What one GPU reported.

    Attributes:
        index: the driver's index.
        uuid: the driver's identity of the device.
        metrics: statistics by slot.
    """

    index: fields.Count | None = None
    uuid: str | None = None
    metrics: Mapping[str, Statistics] = {}


class Host(fields.Record, frozen=True, kw_only=True):
    """What the job used of the machine around the GPUs; all of it where no job was told apart.

    Attributes:
        cpu_util: share of the cores that the job may use.
        cpu_busiest_core: share of the busiest core in use.
        ram_used_gib: host memory in use, GiB.
        ram_growth_gib_per_h: its growth where it does not level off.
        disk_read_mib_s: disk reads, MiB/s.
        disk_write_mib_s: disk writes, MiB/s.
        net_rx_mib_s: network in, MiB/s.
        net_tx_mib_s: network out, MiB/s.
    """

    cpu_util: Statistics | None = None
    cpu_busiest_core: Statistics | None = None
    ram_used_gib: Statistics | None = None
    ram_growth_gib_per_h: Statistics | None = None
    disk_read_mib_s: Statistics | None = None
    disk_write_mib_s: Statistics | None = None
    net_rx_mib_s: Statistics | None = None
    net_tx_mib_s: Statistics | None = None


class OtherGpu(fields.Record, frozen=True, kw_only=True):
    """A GPU of the machine that the job was not seen on.

    Attributes:
        index: the driver's index.
        uuid: the driver's identity of the device.
        gpu: GPU model as the driver names it.
        users: whose processes were on it; none: nobody's.
        kernel_time: how busy it was meanwhile, mean.
        used_gib: its memory in use meanwhile, mean, GiB.
    """

    index: fields.Count | None = None
    uuid: str | None = None
    gpu: str | None = None
    users: tuple[str, ...] = ()
    kernel_time: fields.Fraction | None = None
    used_gib: fields.Measure | None = None


class Machine(fields.Record, frozen=True, kw_only=True):
    """The whole machine, of which the job may hold a part; `host` is the job's part.

    Attributes:
        gpu_count: GPUs of the machine.
        cpu_cores: cores of the machine.
        ram_gib: memory of the machine, GiB.
        cpu_util: share of all cores in use, by everyone.
        ram_used_gib: memory in use, by everyone, GiB.
        net_rx_mib_s: network in while others worked too, MiB/s.
        net_tx_mib_s: network out while others worked too, MiB/s.
        others: its GPUs that the job was not seen on.
    """

    gpu_count: fields.Count | None = None
    cpu_cores: fields.Positive | None = None
    ram_gib: fields.Positive | None = None
    cpu_util: Statistics | None = None
    ram_used_gib: Statistics | None = None
    net_rx_mib_s: Statistics | None = None
    net_tx_mib_s: Statistics | None = None
    others: fields.Several[OtherGpu] = ()


class MonthlyUse(fields.Record, frozen=True, kw_only=True):
    """What a month of this job looks like.

    Attributes:
        hours_per_month: hours the machine is held, at most 744.
        egress_gib_per_month: data sent out, GiB.
        storage_gib: data kept, GiB.
    """

    hours_per_month: Annotated[float, Meta(ge=0, le=744)] | None = None
    egress_gib_per_month: fields.Measure | None = None
    storage_gib: fields.Measure | None = None


_ByHour = Annotated[tuple[fields.Fraction, ...], fields.of_length(0, 24, 168)]


class UseByHour(fields.Record, frozen=True, kw_only=True):
    """How much of a GPU's time the job took in each hour, over all of the recording.

    24 numbers are the hours of any day from 0 h UTC, 168 those of a week from Monday 0 h UTC.

    Attributes:
        mean: share of the time, mean over GPUs.
        spread: standard deviation of its five-minute means in that hour.
    """

    mean: _ByHour = ()
    spread: _ByHour = ()

    def __post_init__(self) -> None:
        for shares in (self.mean, self.spread):
            if len(shares) not in {0, 24, 168}:
                raise ValueError(f"24 or 168 numbers are wanted, not {len(shares)}")


class Run(fields.Record, frozen=True, kw_only=True):
    """The run of several processes or machines that this profile is a part of.

    Attributes:
        id: what the parts of the run have in common: its scheduler's name for it.
        node: which of its machines, as a hash of the host's name.
        world: processes of the whole run.
        cpus: cores that this part may use, by the system's numbers: 0-3,8.
    """

    id: str | None = None
    node: str | None = None
    world: fields.AtLeastOne | None = None
    cpus: str | None = None


SAMPLES, STEPS = ".samples.parquet", ".steps.jsonl"
"""What the series of NAME.json are called: NAME.samples.parquet, NAME.steps.jsonl."""


class Series(fields.Record, frozen=True, kw_only=True):
    """Files with the raw series, beside the profile.

    Attributes:
        samples: Parquet file: t_s, gpu and slots.
        steps: JSON lines: t_s, step, n, step_s, data_wait_s, loss.
    """

    samples: str | None = None
    steps: str | None = None


class Column(fields.Record, frozen=True, kw_only=True):
    """One column of a source: whole-file figures in the source's own unit.

    Attributes:
        source: the source's name of it.
        slot: the slot it fills.
        scale: factor from the source's unit to the slot's.
        n: values read.
        mean: mean of the values, unweighted.
        min: least value.
        max: greatest value.
    """

    source: str = ""
    slot: str | None = None
    scale: fields.Real | None = None
    n: fields.Count | None = None
    mean: fields.Real | None = None
    min: fields.Real | None = None
    max: fields.Real | None = None


class Source(fields.Record, frozen=True, kw_only=True):
    """One file that the profile was made from.

    Attributes:
        path: the file's name.
        sha256: of its bytes.
        format: what it was read as.
        columns: its columns.
        dropped: rows dropped, by reason.
    """

    path: str | None = None
    sha256: str | None = None
    format: str | None = None
    columns: fields.Several[Column] = ()
    dropped: object = None


class Health(fields.Record, frozen=True, kw_only=True):
    """What is wrong with one GPU, its link or its power limit.

    Attributes:
        gpu: which one.
        code: what is wrong.
        value: number of the error, errors, lanes or watts.
        most: lanes or watts that it could have.
    """

    gpu: str = "the GPU"
    code: Annotated[str, fields.one_of(kinds.FAULTS)] = "lost"
    value: fields.Measure | None = None
    most: fields.Measure | None = None

    @property
    def is_failing(self) -> bool:
        """Whether another host is the cure."""
        return self.value in kinds.HARDWARE_XIDS if self.code == "xid" else self.code != "power-cap"

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


class Provenance(fields.Record, frozen=True, kw_only=True):
    """Where the numbers come from.

    Attributes:
        sources: files read.
        notes: what a reader should know about the data.
        messages: of a file, what its notes were made of; once it is read the notes hold it.
    """

    sources: fields.Several[Source] = ()
    notes: tuple[str, ...] = ()
    messages: Mapping[str, SavedMessage] | None = None


class Profile(fields.Record, frozen=True, kw_only=True):
    """What one job measured, ready to diagnose and plan.

    Attributes:
        job: what runs.
        hardware: where it ran.
        window: what was measured.
        work: what got done.
        step: where a step's time goes.
        phases: what the recording's time went to.
        waits: where the program was seen, most often first.
        ranks: the processes of a distributed run.
        changes: what `gpucost run` applied and left.
        experiment: settings tried in turns within this run.
        trace: steps under the framework's own profiler.
        gpus: one entry per GPU.
        health: what is wrong with GPUs, as logs tell it.
        by_hour: how busy its GPUs were in each hour.
        host: the machine around the GPUs.
        run: the run of several machines that this is a part of.
        machine: the whole machine, where it was measured.
        usage: what a month looks like.
        series: raw series beside this file.
        provenance: where the numbers come from.
    """

    job: Job = Job()
    hardware: Hardware = Hardware()
    window: Window | None = None
    work: Work | None = None
    step: Step | None = None
    phases: fields.Several[Phase] = ()
    waits: fields.Several[Wait] = ()
    ranks: fields.Several[Rank] = ()
    changes: fields.Several[Change] = ()
    experiment: TriedInTurns | None = None
    trace: TracedSteps | None = None
    gpus: fields.Several[GpuReadings] = ()
    health: fields.Several[Health] = ()
    by_hour: UseByHour | None = None
    host: Host | None = None
    run: Run | None = None
    machine: Machine | None = None
    usage: MonthlyUse | None = None
    series: Series | None = None
    provenance: Provenance = Provenance()

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
        return (
            self.gpu_count > 1
            and self.job.parallelism is kinds.Parallelism.NONE
            and not communicates
        )

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
