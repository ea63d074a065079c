"""Holds a run after a change against the run before it: proved, not proved, or worse.

`verify` asks in order: is it one job, does it learn the same, how much faster is it, what is that
worth, was it predicted, and what does the invoice say.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

import msgspec
from msgspec import structs

from planner.bills.bill import Bill
from planner.bills.reconcile import Comparison, compare_dollars, sum_usd
from planner.choice.requirements import Requirements
from planner.documents.selection import Selection
from planner.models.costs import saving
from planner.models.estimate import Estimate, as_written, digits, digits_of
from planner.plan.plan import Plan
from planner.plan.read import FoundOption
from planner.proof.comparability import (
    Comparability,
    LossCurves,
    changed_by,
    compare,
    compare_losses,
)
from planner.proof.dollars import (
    Dollars,
    Predicted,
    by_catalog,
    by_plan,
    not_applied,
    option_run,
    prediction_of,
)
from planner.proof.speed import (
    CONFIDENCE,
    MeasuredRatio,
    MeasuredRun,
    mean_step_s,
    settled,
    speed_up,
)
from planner.signals.compute_share import others_work
from pricing.catalog.catalog import Catalog
from pricing.errors import InputError
from pricing.message import Message
from pricing.money import EXACT, Amount, cents, in_cents

Verdict = Literal["proved", "not-proved", "worse"]
Subject = Literal["dollars", "speed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the two runs are held against.

    Attributes:
        plan: that proposed the change; None without one.
        option: JOB/ID of it; None: the one that fits the run after.
        changed: what was changed on purpose of what must agree.
        bills: the files of an invoice; empty without one.
        requirements: hours and prices, as of a plan.
    """

    plan: Plan | None = None
    option: str | None = None
    changed: tuple[str, ...] = ()
    bills: tuple[Bill, ...] = ()
    requirements: Requirements = field(default_factory=Requirements)


SCHEMA = "gpucost.verification/v1"


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs.

    Attributes:
        file: its name.
        gpu: as it was recorded.
        gpu_count: GPUs of the job.
        steps: of the run; None where none were seen.
        mean_step_s: seconds; None where none were seen.
        rate_per_s: units of work a second; None where not measured.
        unit: of work.
        changes: what `gpucost run` applied and left; empty where it did not run it.
    """

    file: str
    gpu: str | None
    gpu_count: int
    steps: int | None
    mean_step_s: float | None
    rate_per_s: float | None
    unit: str | None
    changes: tuple[str, ...] = ()


class MeasuredSpeedup(msgspec.Struct, frozen=True, kw_only=True):
    """Work a second after over before; `confidence` is the interval's.

    Attributes:
        low: the low end [x].
        mid: as measured [x].
        high: the high end [x].
        confidence: of the interval [0 to 1].
        basis: the method, and the data behind it.
    """

    low: float
    mid: float
    high: float
    confidence: float
    basis: str


class PredictedSpeedup(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan said of this run.

    Attributes:
        option: JOB/ID.
        actions: what it changes.
        speedup: over the profiled run, a 90 % interval.
        held: whether what was measured lies inside; None where that is unknown.
        usd: its bill of the period; None where unknown.
    """

    option: str
    actions: tuple[str, ...]
    speedup: Estimate
    held: bool | None
    usd: Amount | None


class MeasuredSaving(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars of the period saved, negative where it costs more, at the ends of the interval.

    Attributes:
        usd: as measured.
        low: least.
        high: most.
        period: `month` or `run`.
        fraction: of the bill before; None where that is nothing.
        usd_before: the bill before.
        usd_after: the bill after, as measured.
        hours_before: of the period.
        hours_after: of the period, as measured.
    """

    usd: Amount
    low: Amount
    high: Amount
    period: Literal["month", "run"]
    fraction: float | None
    usd_before: Amount
    usd_after: Amount
    hours_before: float
    hours_after: float


class InvoiceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The invoice beside the measured bill.

    Attributes:
        measured_usd: of the lines that the invoice has, too.
        billed_usd: of the same lines.
        difference_usd: billed less measured.
        only_measured_usd: what the invoice lacks.
        notes: what a reader must know.
    """

    measured_usd: Amount
    billed_usd: Amount
    difference_usd: Amount
    only_measured_usd: Amount
    notes: tuple[str, ...]


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, as it is written.

    `speedup` is None where its interval is wider than x/: 10, and then dollars are, too.

    Attributes:
        schema: `gpucost.verification/v1`.
        job: its name.
        verdict: proved, not-proved or worse.
        about: what the verdict is of: dollars or speed.
        why: one sentence.
        speedup: after over before.
        saves: dollars; None where they are unknown.
        predicted: what the plan said; None without one.
        bill: the invoice; None without one.
        before: the run before the change.
        after: the run after it.
        same_job: why the two are one job.
        losses: whether it still learns the same.
        notes: what a reader must know.
    """

    schema: str = SCHEMA
    job: str
    verdict: Verdict
    about: Subject
    why: str
    speedup: MeasuredSpeedup | None
    saves: MeasuredSaving | None
    predicted: PredictedSpeedup | None
    bill: InvoiceSummary | None
    before: RunSummary
    after: RunSummary
    same_job: Comparability
    losses: LossCurves
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The answer, and what it was worked out from.

    Attributes:
        before: the run before.
        after: the run after.
        speed: how many times as fast.
        predicted: what the plan said; None where it said nothing of this run.
        verification: the answer, rounded.
    """

    before: MeasuredRun
    after: MeasuredRun
    speed: MeasuredRatio
    predicted: Predicted | None
    verification: Verification


def verify(
    before: MeasuredRun,
    after: MeasuredRun,
    assumptions: Assumptions,
    catalog: Callable[[], Catalog],
) -> Proof:
    """Return whether a change made a job faster, or cheaper, than it was.

    Args:
        before: the run before the change.
        after: the run after it.
        assumptions: what they are held against.
        catalog: every known price; asked for only where a plan does not tell the dollars.

    Raises:
        InputError: they are two jobs, or have no measure in common; the plan or the option does
            not fit.
    """
    plan = assumptions.plan
    option = option_run(plan, before.profile, after.profile, assumptions.option) if plan else None
    changed = {*assumptions.changed, *(changed_by(option.actions) if option else ())}
    speed = speed_up(before, after)
    same = compare(before.profile, after.profile, changed)
    losses = compare_losses(before.steps, after.steps)
    dollars, unpriced = _dollars(before, after, assumptions, option, speed, catalog)
    predicted = prediction_of(option) if option else None
    subject = _subject(plan, dollars)
    verdict, why = _judged(before, after, speed, _verdict(subject, speed, dollars, losses))
    bill = _bill(dollars, assumptions.bills, before.profile.job.name)
    return Proof(
        before=before,
        after=after,
        speed=speed,
        predicted=predicted,
        verification=Verification(
            job=before.profile.job.name,
            verdict=verdict,
            about=subject,
            why=why,
            speedup=_speedup(speed) if speed.is_known else None,
            saves=_saves(dollars) if dollars and speed.is_known else None,
            predicted=_predicted(predicted, speed) if predicted else None,
            bill=_invoice(bill) if bill and speed.is_known else None,
            before=_run(before),
            after=_run(after),
            same_job=same,
            losses=losses,
            notes=(
                *unpriced,
                *(dollars.notes if dollars else ()),
                *_notes(before, after, assumptions, option),
            ),
        ),
    )


def crowded(before: MeasuredRun, after: MeasuredRun) -> str | None:
    """Return why nothing can be proved: others' work filled the machine; None where it did not."""
    if after.profile.experiment is not None and after.profile.experiment.is_known:
        return None  # they met both settings alike: which came when was drawn
    disturbed = [
        f"{name}, {reason}"
        for name, run in (("before", before), ("after", after))
        if (reason := others_work(run.profile)) is not None
    ]
    if not disturbed:
        return None
    return Message("input.disturbed", runs="; ".join(disturbed))


def _dollars(  # noqa: PLR0913, PLR0917 - where a plan tells them, else a catalog
    before: MeasuredRun,
    after: MeasuredRun,
    assumptions: Assumptions,
    option: FoundOption | None,
    speed: MeasuredRatio,
    catalog: Callable[[], Catalog],
) -> tuple[Dollars | None, tuple[str, ...]]:
    """Return the dollars, and why they are not known."""
    if assumptions.plan is not None and option is not None:
        planned = by_plan(assumptions.plan, option, speed)
        if planned is not None:
            return planned, ()
    try:
        return by_catalog(
            before.profile, after.profile, catalog(), speed, assumptions.requirements
        ), ()
    except InputError as error:
        return None, tuple(f"dollars are not known: {problem}" for problem in error.problems)


def _subject(plan: Plan | None, dollars: Dollars | None) -> Subject:
    """Return what is to be proved: dollars where the price an hour changed, else the speed.

    At one price an hour a fixed amount of work costs less exactly where it is done faster.
    """
    if dollars is None or (plan is not None and plan.objective == "time"):
        return "speed"
    if not dollars.follows_speed:
        return "speed" if dollars.saved == 0 else "dollars"
    return "dollars"


_TOO_WIDE = ": run longer."


def _verdict(
    subject: Subject, speed: MeasuredRatio, dollars: Dollars | None, losses: LossCurves
) -> tuple[Verdict, str]:
    if subject == "dollars" and dollars is not None:
        better, worse = dollars.saved_low > 0, dollars.saved_high < 0
        subject_text = "the bill after the change"
        directions = ("lower", "higher")
    else:
        better, worse = speed.is_faster, speed.is_slower
        subject_text = "the speed after the change"
        directions = ("higher", "lower")
    if worse:
        return "worse", f"{subject_text} is {directions[1]}, at both ends of the 95 % interval."
    if not better:
        return (
            "not-proved",
            f"the 95 % interval of {subject_text} holds no change, too{_TOO_WIDE}",
        )
    if losses.alike == "changed":
        return "not-proved", losses.why
    return "proved", f"{subject_text} is {directions[0]}, at both ends of the 95 % interval."


def _judged(
    before: MeasuredRun, after: MeasuredRun, speed: MeasuredRatio, verdict: tuple[Verdict, str]
) -> tuple[Verdict, str]:
    """Return the verdict of two runs, or why they prove nothing; a drift that widens it is said."""
    judged, why = _unprovable(before, after, speed) or verdict
    drift = _drift(before, after)
    if drift and why.endswith(_TOO_WIDE):
        why = f"{why.removesuffix(_TOO_WIDE)}: {drift} widens it. Run again once it has settled."
    return judged, why


def _unprovable(
    before: MeasuredRun, after: MeasuredRun, speed: MeasuredRatio
) -> tuple[Verdict, str] | None:
    """Return why nothing can be proved by these runs; None where something can."""
    crowd = crowded(before, after)
    if crowd is not None:
        return "not-proved", crowd
    return None if speed.is_known else ("not-proved", _too_few(before, after))


def _too_few(before: MeasuredRun, after: MeasuredRun) -> str:
    counts = [run.profile.step.count if run.profile.step else None for run in (before, after)]
    counts_seen = [count for count in counts if count is not None]
    steps = f"{min(counts_seen)} steps are" if counts_seen else "what was measured is"
    return f"the speed-up is unknown: {steps} too few for what they differ by: run longer."


def _bill(dollars: Dollars | None, bills: tuple[Bill, ...], job: str) -> Comparison | None:
    """Return the invoice held against the bill of the run after, at its measured speed."""
    if dollars is None or not bills:
        return None
    rented = dollars.rented
    measured = Selection(
        job=job,
        option="measured",
        offer=rented.offer,
        machines=rented.count,
        hours=Decimal(str(rented.hours)),
        low=dollars.low,
        mid=dollars.mid,
        high=dollars.high,
        lines=rented.lines,
    )
    return compare_dollars((measured,), bills, period=dollars.period)


def _notes(
    before: MeasuredRun, after: MeasuredRun, assumptions: Assumptions, option: FoundOption | None
) -> list[str]:
    notes = []
    machines = {run.profile.hardware.machine for run in (before, after)}
    if len(machines) == 1 and None not in machines:
        notes.append(
            "both runs stood on one machine: the second may have found its data in memory (page "
            "cache) that the first had to read."
        )
    if assumptions.plan is not None and option is None:
        notes.append("no option of the plan is on the machine of the run after: none is compared.")
    skipped = not_applied(option, after.profile) if option else ()
    if skipped:
        notes.append(
            f"{', '.join(skipped)} of {option.name if option else ''} was not applied in the run "
            "after; the prediction is of all its actions."
        )
    if drift := _drift(before, after):
        notes.append(f"{drift}: it had not settled, or the machine changed meanwhile.")
    return notes


_DRIFTS = 0.1  # our choice of what is worth a line


def _drift(before: MeasuredRun, after: MeasuredRun) -> str:
    """Return how a run drifted, in words; empty where none did."""
    trends = [f"{name} {t:+.0%}" for name, t in _trends(before, after) if abs(t) > _DRIFTS]
    return (
        f"a drift within a run ({', '.join(trends)} time a step in its second half)"
        if trends
        else ""
    )


def _trends(before: MeasuredRun, after: MeasuredRun) -> list[tuple[str, float]]:
    """Return by how much the mean step of each run's second half differs from its first."""
    trends = []
    for name, run in (("before", before), ("after", after)):
        rows = settled(run.steps)
        half = len(rows) // 2
        if half:
            first, second = (mean_step_s(part) for part in (rows[:half], rows[half:]))
            trends.append((name, second / first - 1.0))
    return trends


def _speedup(speed: MeasuredRatio) -> MeasuredSpeedup:
    return MeasuredSpeedup(**structs.asdict(as_written(speed)), confidence=CONFIDENCE)


def _saves(dollars: Dollars) -> MeasuredSaving:
    return MeasuredSaving(
        usd=cents(dollars.saved),
        low=cents(dollars.saved_low),
        high=cents(dollars.saved_high),
        period=dollars.period,
        fraction=saving(dollars.before, dollars.mid).fraction,
        usd_before=cents(dollars.before),
        usd_after=cents(dollars.mid),
        hours_before=digits(dollars.hours_before),
        hours_after=digits(dollars.hours_after),
    )


def _predicted(prediction: Predicted, speed: MeasuredRatio) -> PredictedSpeedup:
    cost = prediction.option.cost
    return PredictedSpeedup(
        option=prediction.option.name,
        actions=prediction.option.actions,
        speedup=as_written(prediction.speedup),
        held=prediction.held(speed) if speed.is_known else None,
        usd=in_cents(cost.mid if cost else None),
    )


def _invoice(bill: Comparison) -> InvoiceSummary:
    matched = bill.of("both")
    measured = sum_usd(line.predicted_usd for line in matched)
    billed = sum_usd(line.actual_usd for line in matched)
    return InvoiceSummary(
        measured_usd=measured,
        billed_usd=billed,
        difference_usd=EXACT.subtract(billed, measured),
        only_measured_usd=sum_usd(line.predicted_usd for line in bill.of("plan")),
        notes=bill.notes,
    )


def _run(run: MeasuredRun) -> RunSummary:
    profile = run.profile
    step, work = profile.step, profile.work
    return RunSummary(
        file=run.name,
        gpu=profile.hardware.gpu,
        gpu_count=profile.gpu_count,
        steps=step.count if step else None,
        mean_step_s=digits_of(step.mean_s) if step else None,
        rate_per_s=digits_of(work.rate_per_s) if work else None,
        unit=work.unit if work else None,
        changes=tuple(change.sentence for change in profile.changes),
    )
