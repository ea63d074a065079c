"""A fleet on shared GPUs as a cluster is told: which jobs share which GPU, and in which mode."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

from planner.documents.task import task_name
from planner.plan.plan import Placement, Plan
from planner.profile.kinds import JobKind
from pricing.errors import InputError
from pricing.hardware import find

_OF_JOB = "{job}"
CLUSTERS = ("kubernetes", "slurm")
By = Literal["device-plugin", "dra", "kai"]
BY: tuple[By, ...] = get_args(By)
"""What shares a GPU on Kubernetes: NVIDIA's device plugin, its DRA driver, KAI Scheduler."""
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
    """

    name: str
    planned: str
    command: str
    image: str | None
    serves: bool
    slice: str | None
    slowest: float


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


def shared_gpus(plan: Plan, cluster: str, asked: FleetRequest) -> tuple[SharedGpu, ...]:
    """Return the GPUs on which the plan puts several jobs.

    Args:
        plan: read back.
        cluster: one of CLUSTERS.
        asked: what runs there.

    Raises:
        InputError: nothing is shared, something was not said, or the cluster cannot do it; all at
            once.
    """
    packed = [one for one in plan.fleet.recommended if len(one.jobs) > 1] if plan.fleet else []
    if not packed:
        raise InputError(
            "the plan puts no two jobs on one GPU: there is nothing to share. Export one job with "
            "--to kubernetes --option JOB/ID."
        )
    problems = [*_unsaid(plan, packed, cluster, asked), *_impossible(packed, cluster, asked)]
    if problems:
        raise InputError(problems)
    names = [task_name(job) for one in packed for job in one.jobs]
    alike = sorted({name for name in names if names.count(name) > 1})
    if alike:
        raise InputError(
            f"several jobs would be called {', '.join(alike)} in the cluster, which takes letters, "
            "digits and dashes: give them other names (`gpucost import --name`)."
        )
    return tuple(_gpu(one, plan, asked) for one in packed)


def _unsaid(
    plan: Plan, packed: list[Placement], cluster: str, asked: FleetRequest
) -> Iterator[str]:
    if not asked.command.strip():
        yield "what runs there? Give --run, such as --run 'python serve.py {job}'."
    if cluster == "kubernetes" and asked.image is None:
        yield "in which container? Give --image, such as --image 'registry/{job}:1'."
    if asked.ttl_s is None and not all(_serves(plan, job) for one in packed for job in one.jobs):
        yield "how long at most? Give --ttl, such as --ttl 8h: nothing runs for ever."


def _impossible(packed: list[Placement], cluster: str, asked: FleetRequest) -> Iterator[str]:
    queue = asked.queue
    if cluster != "kubernetes" and (asked.by or queue):
        yield f"--by and --queue are for --to kubernetes, not for {cluster}."
        return
    if asked.by == "dra" and queue is not None:
        yield "--queue: a claim of DRA has none; give --by device-plugin (Kueue) or --by kai."
    if queue is not None and not _NAME.fullmatch(queue):
        yield f"--queue {queue!r}: a name has lower-case letters, digits and dashes, at most 63."
    foreign = [one for one in packed if not _is_nvidia(one.offer.gpu)]
    if cluster == "kubernetes" and foreign:
        yield (
            f"GPU {', '.join(str(one.id) for one in foreign)}: what is exported to Kubernetes "
            f"configures sharing by NVIDIA's drivers, and this is a {foreign[0].offer.gpu}. "
            "`--to slurm` and `gpucost provision --placement N` can share it."
        )
    of_several = [one.id for one in packed if one.offer.gpu_count > 1]
    if cluster == "kubernetes" and of_several and asked.by != "dra":
        yield (
            f"GPU {', '.join(map(str, of_several))}: stands in a machine of several GPUs, and "
            f"{'KAI' if asked.by == 'kai' else 'the device plugin'} cannot be told which of them. "
            "`--by dra` can share one of several, and so can `gpucost provision --placement N`."
        )


def _is_nvidia(name: str) -> bool:
    gpu = find(name)
    return gpu is None or gpu.vendor == "NVIDIA"


def _serves(plan: Plan, name: str) -> bool:
    job = next(one for one in plan.jobs if one.name == name)
    return JobKind(job.kind).answers


def _gpu(placement: Placement, plan: Plan, asked: FleetRequest) -> SharedGpu:
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
                command=asked.command.replace(_OF_JOB, shlex.quote(job)),
                image=asked.image.replace(_OF_JOB, task_name(job)) if asked.image else None,
                serves=_serves(plan, job) and asked.ttl_s is None,
                slice=piece or None,
                slowest=placement.relative_speed[job].low,
            )
            for job, piece in zip(placement.jobs, slices, strict=True)
        ),
    )
