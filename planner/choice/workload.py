"""The hours, the data, the demand by the hour of a job, and its share of a machine.

Jobs of one machine share its bill once, split by the GPUs that they hold.
A job without a neighbour that holds k of its machine's n GPUs bears k/n of the bill: others are
taken to pay for the rest, which is an assumption and is said.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from statistics import fmean

from msgspec.structs import replace

from planner.choice.requirements import Period, Requirements
from planner.models.estimate import Estimate, exactly
from planner.prediction.profiled_step import rate_per_s
from planner.profile.frameworks import ends
from planner.profile.join import by_shared_gpus, devices_of
from planner.profile.kinds import JobKind
from planner.profile.model import Profile
from planner.profile.source import part_measured
from planner.serving.measured_service import MeasuredService, measured_service
from planner.signals.compute_share import compute_share
from planner.signals.signals import idle_pause_s, nights_between
from planner.signals.thresholds import FAST_READS_MIB_S
from pricing.catalog.offer import Offer
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import HOURS_PER_MONTH

GIB = 2**30
_LONGEST_H = 1e7  # a thousand years
END_WHEN_IDLE = "idle-shutdown"
IDLE_END_S = 600.0  # a machine that did nothing for so long is ended; as the action says
_MOST_SLICES = 64  # of one GPU; MIG has 7
_LEAST_KEPT = 0.05  # other days may be less idle than the one recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What one job asks for in the period.

    Attributes:
        hours: hours on today's machine.
        units: work done in the period, in the profile's unit, else a service's tokens of answers;
            None where it was not measured.
        fixed_work: whether a faster machine needs fewer hours; else hours are held time and stay.
        egress_bytes: data sent out.
        storage_bytes: data kept, as stated.
        storage_h: how long data are kept.
        boot_disk_bytes: disk that each machine boots from; 0 where it is left out.
        boot_disk_h: how long those are kept, also while their machines are off; None: as long as
            the machines live, which is so where work or requests start afresh.
        public_address: whether each machine has a public IPv4 address.
        egress_to: country or continent that data are sent to, in words; empty: not said.
        replicas: copies of the job, each on machines of its own.
        demand: of a service, hour by hour, in what one copy was measured to answer (1.0: as much
            as that); 24 or 168 numbers; None where it is not stated.
        service: of a measured language model: what one copy can take; None for other jobs.
        idle_hours: of `hours` those before, after and between its runs; 0 of held time.
        ended_idle_hours: what is left of them where the machine is ended when it is idle.
        notes: what was assumed.
    """

    hours: Estimate
    units: float | None
    fixed_work: bool
    egress_bytes: int = 0
    storage_bytes: int = 0
    storage_h: Decimal | None = None
    boot_disk_bytes: int = 0
    boot_disk_h: float | None = None
    public_address: bool = False
    egress_to: str = ""
    replicas: int = 1
    demand: tuple[float, ...] | None = None
    service: MeasuredService | None = None
    idle_hours: float = 0.0
    ended_idle_hours: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def hours_at_work(self) -> float:
        """Hours on today's machine in which the job runs."""
        return self.hours.mid - self.idle_hours

    def idle_hours_with(self, actions: Collection[str]) -> float:
        """Return the hours outside of the job that machines stay on, with these actions."""
        return self.ended_idle_hours if END_WHEN_IDLE in actions else self.idle_hours

    def time_factor(self, hours: float, actions: Collection[str]) -> float:
        """Return how long the job itself takes over today, of machine hours with these actions."""
        return (hours - self.idle_hours_with(actions)) / self.hours_at_work


def apply_requirements(profile: Profile, requirements: Requirements) -> Profile:
    """Return the profile with the command line's totals and targets in place of its own.

    A job of unstated kind is a simulation where its program is known to be one, and to end.
    """
    job, work, usage = profile.job, profile.work, profile.usage
    if requirements.slo_ms is not None:
        job = replace(job, latency_slo_ms=requirements.slo_ms)
    if job.kind is JobKind.UNKNOWN and ends(job.framework):
        job = replace(job, kind=JobKind.SIMULATION)
    if requirements.work_total is not None and work is not None:
        work = replace(work, total=requirements.work_total)
    if requirements.hours_per_month is not None and usage is not None:
        usage = replace(usage, hours_per_month=requirements.hours_per_month)
    hardware = profile.hardware
    if requirements.owned:
        hardware = replace(hardware, owned=True)
    return replace(profile, hardware=hardware, job=job, work=work, usage=usage)


def check_asked(profiles: tuple[Profile, ...], period: Period, requirements: Requirements) -> None:
    """Refuse what a plan would have to pass over in silence.

    Raises:
        InputError: a deadline without an amount of work to do by then, a demand by the hour that
            cannot be used, or figures of a profile that contradict each other.
    """
    problems = [problem for profile in profiles for problem in _unusable_demand(profile, period)]
    problems += [line for profile in profiles for line in impossible_figures(profile)]
    if requirements.deadline_h is not None and period == "month":
        problems.append(Message("input.deadline"))
    if problems:
        raise InputError(problems)


_ROUNDING = 1.05  # figures of one profile that are rounded or timed apart
_FEWEST_BYTES = 0.5  # of a weight: 4 bits


def impossible_figures(profile: Profile) -> Iterator[str]:
    """Yield figures of the step and of the model that cannot all be true."""
    name, step, parameters = profile.job.name, profile.step, profile.job.parameters
    if step is not None and step.mean_s:
        parts = (step.data_wait_s, step.h2d_s, (step.compute_s or 0.0) + (step.comm_s or 0.0))
        longest_s = max(part or 0.0 for part in parts)
        if longest_s > step.mean_s * _ROUNDING:
            yield Message("input.step", job=name, part=longest_s, step=step.mean_s)
        if step.comm_s and profile.hardware.gpu_count == 1 and not (profile.run or profile.ranks):
            yield Message("input.communication", job=name)
    used_gib = (profile.peak("mem.used_gib") or 0.0) * profile.gpu_count
    weights_gib = (parameters or 0.0) * _FEWEST_BYTES / GIB
    if weights_gib > used_gib * _ROUNDING > 0.0:
        sizes = {"parameters": parameters or 0.0, "need": weights_gib, "used": used_gib}
        yield Message("input.parameters", job=name, **sizes)


def _unusable_demand(profile: Profile, period: Period) -> Iterator[str]:
    """Yield why the demand of a service cannot be used; other jobs have it for sharing alone."""
    try:
        demand = hourly_demand(profile)
    except InputError as error:
        yield from error.problems
        return
    if demand is None or not profile.job.kind.answers:
        return
    name = profile.job.name
    if measured_requests_per_s(profile) is None:
        yield Message("input.demand-rate", job=name)
    if compute_share(profile) is None:
        yield Message("input.demand-use", job=name)
    if period == "run":
        yield Message("input.demand-period", job=name)


def choose_period(profiles: tuple[Profile, ...], requirements: Requirements) -> Period:
    """Return `run` when every job has a total amount of work, else `month`.

    Raises:
        InputError: a total was asked for and a job has no measured rate.
    """
    if requirements.hours_per_month is not None:
        return "month"
    if requirements.work_total is not None:
        blind = [p.job.name for p in profiles if rate_per_s(p) is None]
        if blind:
            raise InputError(Message("input.work-total", job=name) for name in blind)
        return "run"
    totals = [p.work is not None and p.work.total is not None and rate_per_s(p) for p in profiles]
    return "run" if totals and all(totals) else "month"


def check_horizon(period: Period, requirements: Requirements) -> None:
    """Check that a horizon is asked for where months are planned.

    Raises:
        InputError: the plan is per run; how many runs a horizon holds is not known.
    """
    if period == "run" and requirements.horizon_months is not None:
        raise InputError(Message("input.horizon"))


def _copies_note(profile: Profile, copies: int) -> Message:
    gpus = 1 if profile.job.splits_the_model else profile.gpu_count
    code = "note.replicas" if gpus == 1 else "note.replicas-of-gpus"
    return Message(code, job=profile.job.name, n=copies, gpus=gpus, all=copies * gpus)


def workload(profile: Profile, requirements: Requirements, period: Period) -> Workload:
    """Return the hours and the data of one job for the period."""
    usage, notes, around = profile.usage, list[str](), profile.idle_around_fraction
    idle, ended = idle_shares(profile, requirements, nights_between(profile))
    is_session = profile.job.kind is JobKind.INTERACTIVE  # its hours are those it was left open
    fixed = profile.job.kind.has_fixed_work or (period == "run" and not is_session)
    if period == "run":
        hours, total = _run_hours(profile)
        units: float | None = total
    else:
        declared = requirements.hours_per_month or (usage.hours_per_month if usage else None)
        if declared is None:
            declared = float(HOURS_PER_MONTH)
            notes.append(Message("note.no-hours", job=profile.job.name, n=int(HOURS_PER_MONTH)))
        hours = exactly(declared, Message("hours.declared"))
        rate = rate_per_s(profile)
        at_work_s = declared * 3600.0 * (1.0 if profile.job.kind.answers else 1.0 - around)
        units = rate * at_work_s if rate is not None else None
    month, replicas, demand = period == "month", _replicas(profile), _demand(profile)
    stated = fmean(demand) * float(HOURS_PER_MONTH) / hours.mid if month and demand else replicas
    service = measured_service(profile, notes) if month else None
    if service is not None and profile.work is None:
        units = service.rate * service.question.traffic.output * hours.mid * 3600.0
    if profile.job.demand_by_hour is not None and not profile.job.kind.answers:
        notes.append(Message("note.demand-for-sharing", job=profile.job.name))
    storage = _bytes(requirements.storage_bytes, usage.storage_gib if usage and month else None)
    notes += _data_set(profile, storage, requirements)
    if replicas > 1:
        notes.append(_copies_note(profile, replicas))
    return Workload(
        hours=hours,
        units=None if units is None else units * stated,
        fixed_work=fixed,
        egress_bytes=_bytes(
            requirements.egress_bytes, usage.egress_gib_per_month if usage and month else None
        ),
        storage_bytes=storage,
        storage_h=HOURS_PER_MONTH if month else None,
        boot_disk_bytes=0 if requirements.machine_only else requirements.boot_disk_bytes,
        boot_disk_h=None if fixed or profile.job.kind.answers else hours.mid,
        public_address=requirements.public_address and not requirements.machine_only,
        egress_to=requirements.egress_to,
        replicas=replicas,
        demand=demand,
        service=service,
        idle_hours=hours.mid * idle if fixed else 0.0,
        ended_idle_hours=hours.mid * ended if fixed else 0.0,
        notes=tuple(notes),
    )


def _data_set(profile: Profile, stored: int, requirements: Requirements) -> Iterator[str]:
    """Yield what is taken of the data set, which is billed only where it is stated as stored."""
    name, gib = profile.job.name, profile.job.dataset_gib
    if not gib or requirements.machine_only:
        return
    if round(gib * GIB) <= stored:
        yield Message("note.data-within", job=name, gib=gib, stored=stored / GIB)
    elif _reads_elsewhere(profile):
        yield Message("note.data-elsewhere", job=name, gib=gib)
    elif gib * GIB > requirements.boot_disk_bytes:
        yield Message("note.data-unbilled", job=name, gib=gib)


def _reads_elsewhere(profile: Profile) -> bool:
    """Return whether the data come over the network and hardly any are seen to come from a disk."""
    host = profile.host
    if host is None or host.net_rx_mib_s is None:
        return False
    read = host.disk_read_mib_s.typical if host.disk_read_mib_s else None
    return (host.net_rx_mib_s.typical or 0.0) >= max(FAST_READS_MIB_S, 10.0 * (read or 0.0))


def _demand(profile: Profile) -> tuple[float, ...] | None:
    stated = hourly_demand(profile) if profile.job.kind.answers else None
    each = measured_requests_per_s(profile)
    return tuple(rate / each for rate in stated) if stated and each else None


def _replicas(profile: Profile) -> int:
    stated = profile.job.replicas
    return max(1, stated.now or 1) if stated else 1


def _run_hours(profile: Profile) -> tuple[Estimate, float]:
    rate, work = rate_per_s(profile), profile.work
    if rate is None or work is None or work.total is None:
        raise InputError(f"{profile.job.name}: a run needs work.total and work.rate_per_s.")
    hours = work.total / rate / 3600.0 / (1.0 - profile.idle_around_fraction)
    if hours > _LONGEST_H:
        figures = {"total": work.total, "rate": rate, "hours": hours}
        raise InputError(Message("input.too-long", job=profile.job.name, **figures))
    return exactly(hours, Message("hours.of-work")), work.total


def idle_shares(profile: Profile, requirements: Requirements, nights: float) -> tuple[float, float]:
    """Return the shares of paid time, 0-1, idle today and where the machine ends when idle.

    Before, after and between runs. Of each pause the wait until it ends and the next start stay.

    Args:
        profile: what was measured; one pause is before and after the job, where that is long.
        requirements: how long a start takes.
        nights: the share of the job's window in long pauses between its runs.
    """
    around, window = profile.idle_around_fraction, profile.window
    idle, pause_s = around + (1.0 - around) * nights, idle_pause_s(profile)
    if window is None or not idle:
        return 0.0, 0.0
    between = nights * (window.duration_s or 0.0) / pause_s if nights and pause_s else 0.0
    pauses = between + (around > 0.0)
    lost_s = (IDLE_END_S + requirements.checkpoints.restart_s) * pauses
    kept = lost_s / (idle * window.recorded_s)
    return idle, idle * max(_LEAST_KEPT / pauses, min(1.0, kept))


def _bytes(stated: int | None, gib: float | None) -> int:
    if stated is not None:
        return stated
    return round(gib * GIB) if gib else 0


DAY_H = 24
WEEK_H = 168
_REQUEST = "request"


def hourly_demand(profile: Profile) -> tuple[float, ...] | None:
    """Return requests a second in each hour, of all copies of the job together.

    24 numbers are the hours of every day from 0 h; 168 those of a week from Monday 0 h. None where
    none are stated.

    Raises:
        InputError: what is stated cannot be used: other things than numbers, another count of them,
            or no request in any hour.
    """
    stated = profile.job.demand_by_hour
    if stated is None:
        return None
    wrong = _wrong(stated)
    if wrong is not None or not isinstance(stated, Sequence):
        raise InputError(Message("input.demand", job=profile.job.name, wrong=wrong or ""))
    return tuple(float(rate) for rate in stated)


def _wrong(stated: object) -> str | None:
    """Return what is wrong with the stated demand, as the end of a sentence."""
    if not isinstance(stated, Sequence) or isinstance(stated, str):
        return f"is {stated!r:.40}, not a list"
    for hour, rate in enumerate(stated):
        is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
        if not is_number or not math.isfinite(rate) or rate < 0.0:
            return f"has {rate!r:.40} at place {hour + 1}, not a number of at least 0"
    if len(stated) not in {DAY_H, WEEK_H}:
        return f"has {len(stated)} numbers"
    return None if any(stated) else "is 0 in every hour"


def measured_requests_per_s(profile: Profile) -> float | None:
    """Return requests a second that the one measured copy answered; None where not measured."""
    if profile.job.requests_per_s:
        return profile.job.requests_per_s
    work = profile.work
    counted = work is not None and (work.unit or "").lower() == _REQUEST
    return (work.rate_per_s or None) if work is not None and counted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenancy:
    """A job's part in the bill of a machine.

    Attributes:
        held: GPUs that it holds, in parts of a GPU.
        of: those that the bill is split over, >= `held`, in the same parts.
        parts: of each GPU: 1, or as many as its smallest slice is a part of.
        beside: names of the other jobs on the machine.
        hours: how long the others hold it, h; the machine is paid for as long as anyone does.
    """

    held: int
    of: int
    parts: int = 1
    beside: tuple[str, ...] = ()
    hours: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A job on a known machine.

    Attributes:
        profile: what was measured.
        offer: what the machine is rented as.
        hours: how long the job holds it in the period, h.
        assumed: whether nothing says that it runs there.
    """

    profile: Profile
    offer: Offer
    hours: float
    assumed: bool = False

    @property
    def name(self) -> str:
        """The job's name."""
        return self.profile.job.name


def gpus_held(profile: Profile, offer: Offer) -> int:
    """Return the GPUs of one machine that a job holds: all of them where it does not say."""
    return profile.hardware.gpu_count or len(profile.gpus) or round(offer.gpu_count)


def tenancies(residents: Iterable[Resident], *, whole_machine: bool) -> Mapping[str, Tenancy]:
    """Return the part of each job that does not bear a machine's bill alone, by its name.

    Args:
        residents: jobs on one machine of a stated type each, or on an assumed one.
        whole_machine: a job without a neighbour bears all of the bill.

    Raises:
        InputError: the recordings show more GPUs on a host than the machine that is stated has.
    """
    jobs = list(residents)
    machines: dict[object, list[Resident]] = defaultdict(list)
    for job in jobs:
        # Without an id nothing shows that two jobs are neighbours: each is a machine of its own.
        key = (None if job.assumed else job.profile.hardware.machine) or ("alone", job.name)
        machines[key, job.offer.name, job.offer.region, job.offer.purchase].append(job)
    neighbors = {
        jobs[index].name: [jobs[other] for other in group if other != index]
        for group in by_shared_gpus([job.profile for job in jobs])
        for index in group
    }
    users = Counter(device for job in jobs for device in devices_of(job.profile))
    result: dict[str, Tenancy] = {}
    for group in machines.values():
        if len(group) > 1:
            _check_gpus(group)
            shares = {job.name: _share(job) for job in group}
            result.update((job.name, _beside(job, group, shares)) for job in group)
        else:
            (job,) = group
            near = [job, *neighbors[job.name]]
            if len(near) > 1 and any(part_measured(other.profile) < 1.0 for other in near):
                result[job.name] = _beside(job, near, {other.name: _share(other) for other in near})
                continue
            part = _part(job, users, near[1:], whole_machine=whole_machine)
            if part.held < part.of:
                result[job.name] = part
    return result


def _check_gpus(group: Sequence[Resident]) -> None:
    """Refuse a machine with fewer GPUs than its jobs were seen on, by index or by identity."""
    offer, readings = group[0].offer, [gpu for job in group for gpu in job.profile.gpus]
    devices = frozenset[str]().union(*(devices_of(job.profile) for job in group))
    count = max(len({gpu.index for gpu in readings} - {None}), len(devices))
    if offer.gpu_count >= 1 and count > offer.gpu_count:
        jobs, where = ", ".join(sorted(job.name for job in group)), offer.place
        counts = {"gpus": float(offer.gpu_count), "count": count}
        raise InputError(Message("machine.more-gpus", jobs=jobs, place=where, **counts))


def _part(
    job: Resident, users: Mapping[str, int], neighbors: Sequence[Resident], *, whole_machine: bool
) -> Tenancy:
    """Return the part of a job with no neighbour on its machine but those on its own GPUs.

    Of a GPU that several jobs held, together or in turns, each bears the same part.
    """
    gpus = gpus_held(job.profile, job.offer)
    of = gpus if whole_machine else max(gpus, round(job.offer.gpu_count))
    if not neighbors:
        share = Fraction(gpus) if whole_machine else _share(job)
        parts = share.denominator
        return Tenancy(held=share.numerator, of=of * parts, parts=parts)
    not_paid = (1 - Fraction(1, users[device]) for device in devices_of(job.profile))
    part = (gpus - sum(not_paid, Fraction(0))) / of
    return Tenancy(
        held=part.numerator,
        of=part.denominator,
        beside=tuple(sorted(other.name for other in neighbors)),
        hours=max(other.hours for other in neighbors),
    )


def _beside(job: Resident, group: list[Resident], shares: Mapping[str, Fraction]) -> Tenancy:
    neighbors = [other for other in group if other is not job]
    parts = math.lcm(*(share.denominator for share in shares.values()))
    return Tenancy(
        held=int(shares[job.name] * parts),
        of=int(sum(shares.values()) * parts),
        parts=parts,
        beside=tuple(sorted(other.name for other in neighbors)),
        hours=max(other.hours for other in neighbors),
    )


def _share(job: Resident) -> Fraction:
    """Return the GPUs of one machine that a job holds, a slice as its part of one."""
    part = Fraction(part_measured(job.profile)).limit_denominator(_MOST_SLICES)
    return gpus_held(job.profile, job.offer) * part


def assumption(name: str, tenancy: Tenancy, offer: Offer) -> str:
    """Return how a machine's bill was split, as a sentence."""
    gpus, of = tenancy.held, tenancy.of
    if not tenancy.beside:
        code = "note.part-of-machine" if tenancy.parts == 1 else "note.slice-of-machine"
        return Message(code, job=name, machine=offer.name, held=gpus, of=of)
    free = round(offer.gpu_count - of / tenancy.parts)
    return Message(
        "note.shares-machine" if free <= 0 else "note.shares-machine-with-free-gpus",
        job=name,
        machine=offer.name,
        others=tenancy.beside,
        held=gpus,
        of=of,
        n=free,
    )
