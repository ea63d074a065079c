"""What tools answer: documents that are short enough for an agent to read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from gpucost.agents.spending import AgentPreview
from gpucost.schemas.from_fields import Schema, one_of
from gpucost.schemas.small_documents import DiagnosedJob
from gpucost.views.run_documents import RUN_SCHEMA, DeploymentDocument
from planner.plan_document.bill import CostRange
from planner.plan_document.document import PlanDocument
from planner.plan_document.encode import encode
from planner.plan_document.jobs import JobDocument
from pricing.errors import InputError

MOST_ANSWER = 20_000
"""Characters of an answer; what is longer is cut, and says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOffer:
    """An offer, as `prices` answers it.

    Attributes:
        provider: as in the catalog.
        instance_type: the provider's size.
        region: the provider's name for it; `*` where one price holds everywhere.
        gpu: canonical model.
        gpu_count: GPUs of one machine; below 1 it is a slice of one GPU.
        purchase: how it is bought.
        usd_per_hour: of the whole machine.
        as_of: day on which the price was read.
        stale: whether the price is too old today.
    """

    provider: str
    instance_type: str
    region: str
    gpu: str
    gpu_count: float
    purchase: str
    usd_per_hour: Decimal
    as_of: date
    stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPrices:
    """What `prices` answers.

    Attributes:
        offers: the cheapest first.
        left_out: how many more there are.
    """

    offers: tuple[AgentOffer, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDiagnosis:
    """What `diagnose` answers.

    Attributes:
        jobs: with what they waste.
        left_out: how many more there are.
    """

    jobs: tuple[DiagnosedJob, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRuns:
    """What `list` answers.

    Attributes:
        asked: providers that were asked.
        runs: with their cost so far.
        left_out: how many more there are.
    """

    asked: tuple[str, ...]
    runs: tuple[DeploymentDocument, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnd:
    """What `down` answers.

    Attributes:
        run: its name.
        gone: true: each of its machines is proved to be gone.
        said: what was done, a sentence each.
    """

    run: str
    gone: bool
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlannedJob:
    """What a plan recommends for one job.

    Attributes:
        name: of the job.
        cause: the first finding, one sentence; None where nothing was found.
        today_usd: what it costs today, of the period; None where no price is known.
        recommended: the option's id; `o0` means leave it.
        placement: the GPU of the fleet that it is to share; None: its own way.
        machine: what is rented, PROVIDER/TYPE, or what the shared GPU is of; None where it is left.
        count: machines; None where it is left, or shares a GPU, as in the next.
        actions: codes of what changes.
        cost: of the option in the period [USD].
        why: one sentence.
    """

    name: str
    cause: str | None
    today_usd: Decimal | None
    recommended: str
    placement: int | None
    machine: str | None
    count: int | None
    actions: tuple[str, ...]
    cost: CostRange | None
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """What `plan` answers; the whole plan is in its file.

    Attributes:
        file: where it was written, below the root.
        as_of: day of prices and rules.
        period: every dollar is of it.
        cost_before: today's bill of all jobs with a known price [USD].
        cost: the bill of what is recommended [USD]; None where it is not known.
        saves_usd: the difference; None where it is not known.
        jobs: in the plan's order.
        left_out: how many more there are.
    """

    file: str
    as_of: date
    period: Literal["month", "run"]
    cost_before: Decimal | None
    cost: CostRange | None
    saves_usd: Decimal | None
    jobs: tuple[AgentPlannedJob, ...]
    left_out: int


def provision_schema() -> Schema:
    """Return the JSON Schema (2020-12) of the answers of `provision`: a preview, then a run."""
    said = "A launch before it is confirmed; the run, once it is."
    made = one_of("agent-provision", said, (AgentPreview, DeploymentDocument))
    made["$defs"]["DeploymentDocument"]["properties"]["schema"] = {"const": RUN_SCHEMA}
    return made


def priced(offers: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answer of `prices` of what the command prints."""
    names = tuple(AgentOffer.__dataclass_fields__)
    return shortened({"offers": [{n: one[n] for n in names} for one in offers]}, "offers")


def planned(plan: PlanDocument, file: str) -> dict[str, Any]:
    """Return the answer of `plan`."""
    total = plan.recommended
    told = AgentPlan(
        file=file,
        as_of=plan.as_of,
        period=plan.period,
        cost_before=None if total is None else total.cost_before,
        cost=None if total is None else total.cost,
        saves_usd=None if total is None else total.saves.usd,
        jobs=tuple(_job(plan, job) for job in plan.jobs),
        left_out=0,
    )
    return shortened(encode(told), "jobs")


def _job(plan: PlanDocument, job: JobDocument) -> AgentPlannedJob:
    place = plan.placement_of(job)
    chosen = job.choice if place is None else None
    rented = chosen or place
    offer = None if rented is None else rented.offer
    return AgentPlannedJob(
        name=job.name,
        cause=None if job.verdict is None else job.verdict.cause,
        today_usd=job.baseline.cost.total,
        recommended=job.recommended,
        placement=job.placement,
        machine=None if offer is None else f"{offer.provider}/{offer.instance_type}",
        count=None if chosen is None else chosen.count,
        actions=() if chosen is None else chosen.actions,
        cost=None
        if chosen is None
        else CostRange(low=chosen.cost.low, mid=chosen.cost.mid, high=chosen.cost.high),
        why=None if chosen is None else chosen.why,
    )


def shortened(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a document with so many of a list as an answer holds, and how many were left out.

    Raises:
        InputError: not even the first of them can be answered.
    """
    whole = list(told[name])
    rest = len(json.dumps({**told, name: [], "left_out": len(whole)}, ensure_ascii=False))
    kept: list[Any] = []
    for one in whole:
        rest += len(json.dumps(one, ensure_ascii=False)) + 2
        if rest > MOST_ANSWER:
            break
        kept.append(one)
    if whole and not kept:
        raise InputError(f"the answer is longer than {MOST_ANSWER:,} characters; ask for less.")
    return {**told, name: kept, "left_out": len(whole) - len(kept)}
