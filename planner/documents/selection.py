"""What a plan document chose for each job: the lines that an invoice will be held against."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

from msgspec import UNSET

from planner.documents.task import task_name
from planner.plan.bill import CostLine, OptionCost, RentedOffer
from planner.plan.job import JobPlan
from planner.plan.plan import Placement, Plan
from planner.plan.read import FoundOption, find_option
from pricing.catalog.offer import EVERYWHERE
from pricing.errors import InputError
from pricing.hardware import find
from pricing.message import Message

FREE = "free"
"""The job of GPUs that are paid and that no job holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How one job is to run, and what that costs in the period of the plan.

    Attributes:
        job: its name; of jobs that share a GPU all names, with `+` between them; `FREE` of none.
        option: its id; `o0` is as today, `placement-1` a shared GPU.
        offer: what is rented.
        machines: how many.
        hours: expected hours of the period.
        low: dollars at the low end of the hours.
        mid: expected dollars.
        high: dollars at the high end.
        lines: they add up to `mid`, but for its rounding to cents.
    """

    job: str
    option: str
    offer: RentedOffer
    machines: int
    hours: Decimal
    low: Decimal
    mid: Decimal
    high: Decimal
    lines: tuple[CostLine, ...]

    @property
    def region(self) -> str | None:
        """The provider's name for it; None where one price holds everywhere."""
        return None if self.offer.region == EVERYWHERE else self.offer.region


def select(plan: Plan, named: Iterable[str] = ()) -> tuple[tuple[Selection, ...], tuple[str, ...]]:
    """Return what each job runs on, and a sentence for each job whose cost is not known.

    Jobs that are recommended to share a GPU are one entry, unless an option of one is named; those
    that are to end are none, unless their bill goes on. GPUs that are paid with them and that
    nobody holds are one, too.

    Args:
        plan: made now, or read back.
        named: JOB/ID, in place of the recommended option of that job; JOB may be left out where
            there is only one.

    Raises:
        InputError: a name fits no option, two are given for one job, or no job has a known cost.
    """
    named_options = _named_options(plan, named)
    shared = _shared(plan, named_options)
    packed = {name for slot in shared for name in slot.jobs}
    chosen, unpriced = [_placed(slot) for slot in shared], []
    chosen.extend(_free(plan, shared))
    for job in plan.jobs:
        if job.name in packed or (_is_over(job, plan) and job.name not in named_options):
            continue
        option = named_options.get(job.name) or FoundOption(job=job, option=job.choice)
        if option.offer is None or option.cost is None:
            unpriced.append(f"{option.name}: its cost is not known; it is left out.")
            continue
        if option.cost.at_least:
            parts = ", ".join(option.cost.unknown)
            unpriced.append(Message("export.at-least", job=option.name, parts=parts))
        chosen.append(_alone(option, option.offer, option.cost))
    if not chosen:
        raise InputError(unpriced or ["the plan has no job; plan one with `gpucost plan`."])
    return tuple(chosen), tuple(unpriced)


def recommended_usd(plan: Plan) -> Decimal:
    """Return the one total that a plan recommends, dollars of its period.

    Raises:
        InputError: the cost of a job is not known.
    """
    total = plan.recommended
    if total is None:  # a plan of an earlier version
        selections, unpriced = select(plan)
        if unpriced:
            raise InputError(unpriced)
        return sum((selection.mid for selection in selections), Decimal(0))
    if total.unknown:
        raise InputError(f"{name}: its cost is not known." for name in total.unknown)
    return total.cost.mid


def _named_options(plan: Plan, named: Iterable[str]) -> dict[str, FoundOption]:
    """Return the named option of each job; the problems of all names are raised together."""
    options: dict[str, FoundOption] = {}
    problems: list[str] = []
    for name in named:
        try:
            option = find_option(plan, name)
        except InputError as error:
            problems.extend(error.problems)
            continue
        if option.job.name in options:
            problems.append(Message("export.twice", option=name, job=option.job.name))
        options[option.job.name] = option
    if problems:
        raise InputError(problems)
    return options


def _shared(plan: Plan, named_options: Mapping[str, object]) -> list[Placement]:
    """Return the placements of jobs that are recommended to share, no option of theirs named."""
    return [slot for slot in plan.placements if not named_options.keys() & set(slot.jobs)]


def _is_over(job: JobPlan, plan: Plan) -> bool:
    """Return whether a job is to end, and nothing more is paid for it."""
    packed = plan.recommended.packed if plan.recommended else ()
    return job.ended is not UNSET and (not job.ended.cost or job.name in packed)


def _free(plan: Plan, shared: Sequence[Placement]) -> Iterator[Selection]:
    """Yield what nobody holds of the machines of placements."""
    for group in plan.fleet.recommended_groups if plan.fleet else ():
        places = [slot for slot in shared if slot.id in group.placements]
        usd = sum((line.usd for line in group.free), Decimal(0))
        if not places or not usd:
            continue
        yield Selection(
            job=FREE,
            option=f"placement-{places[0].id}",
            offer=places[0].offer,
            machines=1,
            hours=_exact(places[0].hours or 0.0),
            low=usd,
            mid=usd,
            high=usd,
            lines=group.free,
        )


def _placed(slot: Placement) -> Selection:
    """Return the jobs of one GPU as one thing that is billed."""
    return Selection(
        job="+".join(slot.jobs),
        option=f"placement-{slot.id}",
        offer=slot.offer,
        machines=1,
        hours=_exact(slot.hours or 0.0),
        low=slot.cost,
        mid=slot.cost,
        high=slot.cost,
        lines=slot.lines,
    )


def _alone(option: FoundOption, offer: RentedOffer, cost: OptionCost) -> Selection:
    return Selection(
        job=option.job.name,
        option=option.id,
        offer=offer,
        machines=option.count,
        hours=_exact(option.hours.mid),
        low=cost.low,
        mid=cost.mid,
        high=cost.high,
        lines=cost.lines,
    )


def _exact(hours: float) -> Decimal:
    return Decimal(str(hours))


_OF_JOB = "{job}"
CLUSTERS = ("kubernetes", "slurm")
By = Literal["device-plugin", "dra", "kai", "hami"]
BY: tuple[By, ...] = get_args(By)
"""What shares a GPU on Kubernetes: NVIDIA's device plugin, its DRA driver, KAI Scheduler, HAMi."""
_SHARERS = {"kai": "KAI", "hami": "HAMi"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SURELY_THERE = 0.9  # of the memory that a GPU is named after: drivers report a little less


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedJob:
    """One job on a shared GPU.

    Attributes:
        name: lower-case letters, digits and dashes.
        planned: its name in the plan.
        command: what runs, in a shell.
        image: of its container; None where it runs without.
        serves: whether it answers requests and has no end of its own.
        slice: the MIG profile that it gets; None without MIG.
        slowest: its speed at the low end, alone = 1.
        memory_mib: the most that it may take of the GPU's memory; None: no limit is known.
        cores_percent: the same of its time.
    """

    name: str
    planned: str
    command: str
    image: str | None
    serves: bool
    slice: str | None
    slowest: float
    memory_mib: int | None = None
    cores_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedGpu:
    """One GPU and who is on it.

    Attributes:
        id: of the placement in the plan.
        where: the machine, in words.
        mode: mps, time-slicing or mig; None: one job alone.
        jobs: who runs there.
        cost: dollars of the period.
        memory_gib: that a GPU as good as this one has at least, GiB.
        risks: what may go wrong there, a sentence each.
    """

    id: int
    where: str
    mode: str | None
    jobs: tuple[SharedJob, ...]
    cost: Decimal
    memory_gib: float
    risks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """What only the user knows; `{job}` in it stands for each job's name.

    Attributes:
        command: what to run.
        image: container to run it in.
        ttl_s: longest life of what does not serve; None: not said.
        by: what shares a GPU on Kubernetes; None: not said, so the device plugin.
        queue: of Kueue or KAI; None: none.
    """

    command: str
    image: str | None
    ttl_s: float | None
    by: By | None = None
    queue: str | None = None


def shared_gpus(plan: Plan, cluster: str, request: FleetRequest) -> tuple[SharedGpu, ...]:
    """Return the GPUs on which the plan puts several jobs.

    Args:
        plan: read back.
        cluster: one of CLUSTERS.
        request: what runs there.

    Raises:
        InputError: nothing is shared, something was not said, or the cluster cannot do it; all at
            once.
    """
    packed = [slot for slot in plan.placements if slot.is_exportable]
    if not packed and any(len(slot.jobs) > 1 for slot in plan.placements):
        raise InputError(Message("export.not-nodes"))
    if not packed:
        raise InputError(Message("export.nothing-shared"))
    problems = [*_unsaid(plan, packed, cluster, request), *_impossible(packed, cluster, request)]
    if problems:
        raise InputError(problems)
    names = [task_name(job) for slot in packed for job in slot.jobs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(Message("export.same-name", names=", ".join(repeated)))
    return tuple(_gpu(slot, plan, request) for slot in packed)


def _unsaid(
    plan: Plan, packed: list[Placement], cluster: str, request: FleetRequest
) -> Iterator[str]:
    if not request.command.strip():
        yield "what runs there? Give --run, such as --run 'python serve.py {job}'."
    if cluster == "kubernetes" and request.image is None:
        yield "in which container? Give --image, such as --image 'registry/{job}:1'."
    if request.ttl_s is None and not all(
        _serves(plan, job) for slot in packed for job in slot.jobs
    ):
        yield "how long at most? Give --ttl, such as --ttl 8h: nothing runs for ever."


def _impossible(packed: list[Placement], cluster: str, request: FleetRequest) -> Iterator[str]:
    queue = request.queue
    if cluster != "kubernetes" and (request.by or queue):
        yield f"--by and --queue are for --to kubernetes, not for {cluster}."
        return
    if request.by == "dra" and queue is not None:
        yield "--queue: a claim of DRA has none; give --by device-plugin (Kueue) or --by kai."
    if queue is not None and not _NAME.fullmatch(queue):
        yield f"--queue {queue!r}: a name has lower-case letters, digits and dashes, at most 63."
    foreign = [slot for slot in packed if not _is_nvidia(slot.offer.gpu)]
    if cluster == "kubernetes" and foreign:
        ids = ", ".join(str(slot.id) for slot in foreign)
        yield Message("export.not-nvidia", gpus=ids, gpu=foreign[0].offer.gpu)
    if request.by == "hami" and any(not slot.memory_limit_mib for slot in packed):
        yield Message("export.no-limit")
    of_several = [slot.id for slot in packed if slot.offer.gpu_count > 1]
    if cluster == "kubernetes" and of_several and request.by != "dra":
        by = _SHARERS.get(request.by or "", "the device plugin")
        yield Message("export.of-several", gpus=", ".join(map(str, of_several)), by=by)


def _is_nvidia(name: str) -> bool:
    gpu = find(name)
    return gpu is None or gpu.vendor == "NVIDIA"


def _serves(plan: Plan, name: str) -> bool:
    return next(job for job in plan.jobs if job.name == name).answers


def _gpu(placement: Placement, plan: Plan, request: FleetRequest) -> SharedGpu:
    slices = (placement.slice or "").split(",") if placement.mode == "mig" else [""]
    slices = slices * len(placement.jobs) if len(slices) == 1 else slices
    offer = placement.offer
    gpu = find(offer.gpu)
    return SharedGpu(
        id=placement.id,
        where=f"{offer.provider}/{offer.instance_type}",
        mode=placement.mode,
        cost=placement.cost,
        memory_gib=_SURELY_THERE * ((gpu.memory_gib if gpu else None) or 0.0),
        risks=placement.risks or (),
        jobs=tuple(
            SharedJob(
                name=task_name(job),
                planned=job,
                command=request.command.replace(_OF_JOB, shlex.quote(job)),
                image=request.image.replace(_OF_JOB, task_name(job)) if request.image else None,
                serves=_serves(plan, job) and request.ttl_s is None,
                slice=piece or None,
                slowest=placement.relative_speed[job].low,
                memory_mib=(placement.memory_limit_mib or {}).get(job),
                cores_percent=(placement.core_limit_percent or {}).get(job),
            )
            for job, piece in zip(placement.jobs, slices, strict=True)
        ),
    )
