"""The values of `gpucost verify -f json` (`gpucost.verification/v1`)."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from planner.bills.reconcile import Reconciliation
from planner.bills.reconcile_document import sum_usd
from planner.models.estimate import Estimate
from planner.models.saving import saving
from planner.plan_document.from_option import digits, digits_of, in_cents, rounded
from planner.proof.dollars import Dollars
from planner.proof.interval import CONFIDENCE, MeasuredRatio
from planner.proof.same_job import Difference
from planner.proof.speed import MeasuredRun
from planner.proof.verify import Subject, Verdict, Verification
from pricing.money import EXACT, cents

SCHEMA = "gpucost.verification/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SamenessDocument:
    """Why the two are one job: what agreed, what differs and may, what a run does not say.

    Attributes:
        agreed: what is the same, a sentence each.
        differs: what is not, and may be.
        unknown: what a run does not say.
    """

    agreed: tuple[str, ...]
    differs: tuple[Difference, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LossesDocument:
    """Whether the job still learns the same: identical, alike, changed or not recorded.

    Attributes:
        alike: one of the words.
        why: one sentence.
    """

    alike: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupDocument:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedDocument:
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
    usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavesDocument:
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

    usd: Decimal
    low: Decimal
    high: Decimal
    period: Literal["month", "run"]
    fraction: float | None
    usd_before: Decimal
    usd_after: Decimal
    hours_before: float
    hours_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceDocument:
    """The invoice beside the measured bill.

    Attributes:
        measured_usd: of the lines that the invoice has, too.
        billed_usd: of the same lines.
        difference_usd: billed less measured.
        only_measured_usd: what the invoice lacks.
        notes: what a reader must know.
    """

    measured_usd: Decimal
    billed_usd: Decimal
    difference_usd: Decimal
    only_measured_usd: Decimal
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationDocument:
    """The answer, as it is written; see `Verification`.

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
    speedup: SpeedupDocument | None
    saves: SavesDocument | None
    predicted: PredictedDocument | None
    bill: InvoiceDocument | None
    before: RunDocument
    after: RunDocument
    same_job: SamenessDocument
    losses: LossesDocument
    notes: tuple[str, ...]


def verification_document(one: Verification) -> VerificationDocument:
    """Return the answer as it is written, rounded."""
    speed = one.speed
    return VerificationDocument(
        job=one.before.profile.job.name,
        verdict=one.verdict,
        about=one.subject,
        why=one.why,
        speedup=_speedup(speed) if speed.is_known else None,
        saves=_saves(one.dollars) if one.dollars and speed.is_known else None,
        predicted=_predicted(one),
        bill=_invoice(one.bill) if one.bill and speed.is_known else None,
        before=_run(one.before),
        after=_run(one.after),
        same_job=SamenessDocument(
            agreed=one.same.agreed, differs=one.same.differs, unknown=one.same.unknown
        ),
        losses=LossesDocument(alike=one.losses.alike, why=one.losses.why),
        notes=one.notes,
    )


def _speedup(speed: MeasuredRatio) -> SpeedupDocument:
    return SpeedupDocument(
        low=digits(speed.low),
        mid=digits(speed.mid),
        high=digits(speed.high),
        confidence=CONFIDENCE,
        basis=speed.basis,
    )


def _saves(dollars: Dollars) -> SavesDocument:
    return SavesDocument(
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


def _predicted(one: Verification) -> PredictedDocument | None:
    said = one.predicted
    if said is None:
        return None
    cost = said.found.cost
    return PredictedDocument(
        option=said.found.name,
        actions=said.found.actions,
        speedup=rounded(said.speedup),
        held=said.held(one.speed) if one.speed.is_known else None,
        usd=in_cents(cost.mid if cost else None),
    )


def _invoice(bill: Reconciliation) -> InvoiceDocument:
    measured = sum_usd(line.predicted for line in bill.matched)
    billed = sum_usd(line.actual for line in bill.matched)
    return InvoiceDocument(
        measured_usd=measured,
        billed_usd=billed,
        difference_usd=EXACT.subtract(billed, measured),
        only_measured_usd=sum_usd(line.predicted for line in bill.only_planned),
        notes=bill.notes,
    )


def _run(run: MeasuredRun) -> RunDocument:
    profile = run.profile
    step, work = profile.step, profile.work
    return RunDocument(
        file=run.name,
        gpu=profile.hardware.gpu,
        gpu_count=profile.gpu_count,
        steps=step.count if step else None,
        mean_step_s=digits_of(step.mean_s) if step else None,
        rate_per_s=digits_of(work.rate_per_s) if work else None,
        unit=work.unit if work else None,
        changes=tuple(one.sentence for one in profile.changes),
    )
