"""The hours and the data of a job for the period of the plan."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal

from planner.baseline.demand import hourly_demand, measured_requests_per_s
from planner.baseline.requirements import Period, Requirements
from planner.models.estimate import Estimate, exactly
from planner.profile.model import Profile
from planner.signals.compute_share import compute_share
from pricing.billing.usage import Usage
from pricing.errors import InputError
from pricing.money import HOURS_PER_MONTH

GIB = 2**30
_FOR_SHARING = (
    "job.demand_by_hour says when it is busy, for sharing a GPU; replicas follow it only where "
    "job.kind is inference_online."
)
_LONGEST_H = 1e7  # a thousand years


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What one job asks for in the period.

    Attributes:
        hours: hours on today's machine.
        units: work done in the period, in the profile's unit; None where it was not measured.
        fixed_work: whether a faster machine needs fewer hours; else hours are held time and stay.
        egress_bytes: data sent out.
        storage_bytes: data kept, as stated.
        storage_h: how long data are kept.
        dataset_bytes: the data set, kept on a disk beside the machines; 0 where it is left out.
        boot_disk_bytes: disk that each machine boots from; 0 where it is left out.
        public_address: whether each machine has a public IPv4 address.
        egress_to: country or continent that data are sent to, in words; empty: not said.
        replicas: copies of the job, each on machines of its own.
        demand: of a service, hour by hour, in what one copy was measured to answer (1.0: as much
            as that); 24 or 168 numbers; None where it is not stated.
        notes: what was assumed.
        uses: of machines, by how many and for how long; kept by `planner.baseline.bill_of_work`.
    """

    hours: Estimate
    units: float | None
    fixed_work: bool
    egress_bytes: int
    storage_bytes: int
    storage_h: Decimal | None
    dataset_bytes: int = 0
    boot_disk_bytes: int = 0
    public_address: bool = False
    egress_to: str = ""
    replicas: int = 1
    demand: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()
    uses: dict[object, Usage] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __getstate__(self) -> list[object]:
        """Return the values of all fields, for a copy that is sent: nothing was priced for it."""
        return [{} if one.name == "uses" else getattr(self, one.name) for one in fields(self)]


def apply_requirements(profile: Profile, requirements: Requirements) -> Profile:
    """Return the profile with the command line's totals and targets in place of its own."""
    job, work, usage = profile.job, profile.work, profile.usage
    if requirements.slo_ms is not None:
        job = replace(job, latency_slo_ms=requirements.slo_ms)
    if requirements.work_total is not None and work is not None:
        work = replace(work, total=requirements.work_total)
    if requirements.hours_per_month is not None and usage is not None:
        usage = replace(usage, hours_per_month=requirements.hours_per_month)
    return replace(profile, job=job, work=work, usage=usage)


def check_asked(profiles: tuple[Profile, ...], period: Period, requirements: Requirements) -> None:
    """Refuse what a plan would have to pass over in silence.

    Raises:
        InputError: a deadline without an amount of work to do by then, or a demand by the hour that
            cannot be used.
    """
    problems = [problem for one in profiles for problem in _unusable_demand(one, period)]
    if requirements.deadline_h is not None and period == "month":
        problems.append(
            "--deadline is for one run, and nothing says how much work a run is: add --work-total "
            "N (in the profile's work.unit; its rate must be measured), or state work.total in "
            "every profile."
        )
    if problems:
        raise InputError(problems)


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
        yield (
            f"{name}: job.demand_by_hour needs job.requests_per_s beside it: how many requests a "
            "second the measured copy answered. Without it nobody knows how many copies they need."
        )
    if compute_share(profile) is None:
        yield (
            f"{name}: job.demand_by_hour needs the GPU's use (util.kernel_time): without it nobody "
            "knows how much more a copy can answer."
        )
    if period == "run":
        yield (
            f"{name}: job.demand_by_hour is of the hours of a day or week, and this plan is per "
            "run; give --hours-per-month, or take work.total out of the profile."
        )


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
            raise InputError(
                f"{name}: --work-total needs work.rate_per_s in the profile; "
                f"import with --work UNIT=DONE, or plan by --hours-per-month."
                for name in blind
            )
        return "run"
    totals = [p.work is not None and p.work.total is not None and rate_per_s(p) for p in profiles]
    return "run" if totals and all(totals) else "month"


def check_horizon(period: Period, requirements: Requirements) -> None:
    """Check that a horizon is asked for where months are planned.

    Raises:
        InputError: the plan is per run; how many runs a horizon holds is not known.
    """
    if period == "run" and requirements.horizon_months is not None:
        raise InputError(
            "--horizon is for plans per month, and this plan is per run, which counts one run; "
            "leave it out, or give --hours-per-month."
        )


def workload(profile: Profile, requirements: Requirements, period: Period) -> Workload:
    """Return the hours and the data of one job for the period."""
    usage, notes = profile.usage, []
    if period == "run":
        hours, total = _run_hours(profile)
        units: float | None = total
    else:
        declared = requirements.hours_per_month or (usage.hours_per_month if usage else None)
        if declared is None:
            declared = float(HOURS_PER_MONTH)
            notes.append(f"{profile.job.name}: hours were not given; 730 a month assumed.")
        hours = exactly(declared, "declared")
        rate = rate_per_s(profile)
        units = rate * declared * 3600.0 if rate is not None else None
    month, replicas = period == "month", _replicas(profile)
    if profile.job.demand_by_hour is not None and not profile.job.kind.answers:
        notes.append(f"{profile.job.name}: {_FOR_SHARING}")
    dataset = profile.job.dataset_gib
    if dataset and not requirements.machine_only:
        notes.append(
            f"{profile.job.name}: its data set of {dataset:g} GiB is kept on a disk beside the "
            "machine, today and in every option (--machine-only leaves it out)."
        )
    if replicas > 1:
        notes.append(
            f"{profile.job.name}: {replicas} replicas, each on machines of its own and as busy as "
            "the one that was measured."
        )
    return Workload(
        hours=hours,
        units=None if units is None else units * replicas,
        fixed_work=profile.job.kind.has_fixed_work or period == "run",
        egress_bytes=_bytes(
            requirements.egress_bytes, usage.egress_gib_per_month if usage and month else None
        ),
        storage_bytes=_bytes(
            requirements.storage_bytes, usage.storage_gib if usage and month else None
        ),
        storage_h=HOURS_PER_MONTH if month else None,
        dataset_bytes=0 if requirements.machine_only else _bytes(None, profile.job.dataset_gib),
        boot_disk_bytes=0 if requirements.machine_only else requirements.boot_disk_bytes,
        public_address=requirements.public_address and not requirements.machine_only,
        egress_to=requirements.egress_to,
        replicas=replicas,
        demand=_demand(profile),
        notes=tuple(notes),
    )


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
    hours = work.total / rate / 3600.0
    if hours > _LONGEST_H:
        raise InputError(
            f"{profile.job.name}: work.total {work.total:g} at work.rate_per_s {rate:g} takes "
            f"{hours:.3g} h; one of the two is wrong."
        )
    return exactly(hours, "work.total / work.rate_per_s"), work.total


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


def _bytes(asked: int | None, gib: float | None) -> int:
    if asked is not None:
        return asked
    return round(gib * GIB) if gib else 0
