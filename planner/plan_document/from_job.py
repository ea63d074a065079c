"""What is planned for one job, of a plan that was just made: rounded as it is written."""

from collections.abc import Iterable
from datetime import date

from planner.actions.action import Action, Range
from planner.actions.settings import MachineSettings
from planner.choice.changes import FirstStep
from planner.choice.machine_sizes import MachineSize
from planner.diagnosis.rules.rule import Finding
from planner.plan.confidence import Assurance, Part
from planner.plan.experiment import Experiment
from planner.plan.plan import JobPlan
from planner.plan_document.bill import CostRange
from planner.plan_document.from_option import (
    baseline_document,
    digits,
    digits_if_set,
    digits_of,
    in_cents,
    offer_document,
    option_document,
    rounded,
)
from planner.plan_document.jobs import (
    Effect,
    ExperimentDocument,
    FindingDocument,
    JobDocument,
    ReadingDocument,
    RejectedDocument,
    RemedyDocument,
    ShapeDocument,
    StepDocument,
    Sureness,
    SurePart,
)
from planner.signals.condition import Evidence
from planner.signals.signals import SIGNALS
from pricing.money import cents


def job_document(job: JobPlan, as_of: date, placement: int | None = None) -> JobDocument:
    """Return what is planned for one job.

    Args:
        job: its plan.
        as_of: day of prices and rules.
        placement: the GPU that it is to share; None where it goes its own way.
    """
    return JobDocument(
        name=job.name,
        kind=job.profile.job.kind,
        baseline=baseline_document(job, as_of),
        findings=tuple(finding_document(finding) for finding in job.findings),
        remedies=remedy_documents(job.remedies, job.machine),
        options=tuple(option_document(option, job, as_of) for option in job.options),
        rejected=tuple(
            RejectedDocument(offer=r.offer, reason=r.reason, detail=r.detail) for r in job.rejected
        ),
        recommended=job.recommended,
        smallest_change=job.named.smallest_change,
        cheapest=job.named.cheapest,
        first_launchable=job.named.first_launchable,
        confidence=_sureness(job.assurance),
        first_step=_step(job.first_step),
        placement=placement,
        shapes=tuple(_machine_size(one, as_of) for one in job.machine_sizes),
        probe=_experiment(job.probe, as_of) if job.probe else None,
        busy_fraction=digits_if_set(job.profile.busy_fraction),
    )


def finding_document(finding: Finding) -> FindingDocument:
    """Return one cause of waste, as a plan and a diagnosis carry it."""
    return FindingDocument(
        code=finding.code,
        severity=finding.severity,
        confidence=finding.confidence,
        cause=finding.cause,
        evidence=_readings(finding.evidence),
        against=_readings(finding.against),
        actions=finding.actions,
        waste_fraction=finding.waste_fraction,
        waste_usd=in_cents(finding.waste_usd),
    )


def remedy_documents(
    remedies: Iterable[Action], machine: MachineSettings
) -> tuple[RemedyDocument, ...]:
    """Return the actions on the job itself that apply to it, with what they would set and gain."""
    return tuple(
        RemedyDocument(
            code=one.code,
            kind=one.kind,
            acts_on=one.part,
            effect=_effect(one.gain),
            rests_on=one.grade,
            settings=dict(machine.values[one.code]),
        )
        for one in remedies
    )


def _effect(gain: Range | None) -> Effect | None:
    if gain is None:
        return None
    low, mid, high = (round(speed, 3) for speed in gain)
    return Effect(low=low, mid=mid, high=high)


def _readings(evidence: Iterable[Evidence]) -> tuple[ReadingDocument, ...]:
    return tuple(
        ReadingDocument(
            metric=e.metric,
            value=e.value,
            test=e.test,
            name=SIGNALS[e.metric].name,
            unit=SIGNALS[e.metric].unit,
        )
        for e in evidence
    )


def _sureness(sure: Assurance) -> Sureness:
    return Sureness(
        level=sure.level,
        diagnosis=_part(sure.diagnosis),
        speed=_part(sure.speed) if sure.speed else None,
        price=_part(sure.price),
    )


def _part(part: Part) -> SurePart:
    return SurePart(level=part.level, why=part.why)


def _step(step: FirstStep | None) -> StepDocument | None:
    if step is None:
        return None
    return StepDocument(kind=step.kind, what=step.what, command=step.command)


def _machine_size(size: MachineSize, as_of: date) -> ShapeDocument:
    return ShapeDocument(
        offer=offer_document(size.offer, as_of),
        count=size.count,
        gpus=size.gpus,
        hours=rounded(size.hours),
        cost=CostRange(low=cents(size.cost_low), mid=cents(size.cost), high=cents(size.cost_high)),
        efficiency=rounded(size.efficiency),
        break_even_efficiency=digits_of(size.break_even),
        remark=size.remark,
    )


def _experiment(probe: Experiment, as_of: date) -> ExperimentDocument:
    return ExperimentDocument(
        option=probe.option,
        what=probe.what,
        offer=offer_document(probe.offer, as_of) if probe.offer else None,
        count=probe.count,
        minutes=probe.minutes,
        usd=cents(probe.usd),
        factor_now=digits(probe.factor_now),
        factor_after=digits(probe.factor_after),
    )
