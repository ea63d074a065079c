"""The plan: for every job the baseline, the findings, the options and the choice; and the fleet."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

from planner.actions import ACTIONS
from planner.actions.settings import MachineSettings
from planner.choice.baseline import Baseline
from planner.choice.changes import LOOK
from planner.choice.option import Option
from planner.choice.ranking import STAY, Named, recommended_option
from planner.choice.requirements import Objective, Period, Rejected
from planner.choice.workload import Workload
from planner.fleet.fleet import Fleet
from planner.fleet.placements import Elsewhere, Home
from planner.models.costs import WorkCost
from planner.models.estimate import digits, digits_of
from planner.models.power import EnergyUse, PowerCap
from planner.models.track_record import TrackRecord
from planner.plan.bill import ClusterBill
from planner.plan.job import Confidence, Now, Proof, Remedy
from planner.plan.plan import CatalogSummary, Roi
from planner.plan.recommendation import JobAlone, Recommendation
from planner.profile.model import Profile
from planner.signals.finding import Finding, Saved
from pricing.billing.lines import QuoteLine
from pricing.catalog.offer import Offer
from pricing.errors import NoFeasibleOptionError
from pricing.message import Message
from pricing.money import HOURS_PER_MONTH, cents

# What fails these has passed every other check, so it came nearest.
_LAST_CHECKED = ("deadline", "budget")
_NOTHING_RAN = ("idle", "idle-held")  # the findings that say so


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What the plan as a whole says of options and findings that a job's plan no longer holds.

    Attributes:
        codes: of the actions that all of them name.
        offers: of those options.
        blind: providers of spot options whose interruptions are unknown.
        text: the job as it would stand in plan.json if it shared no GPU, UTF-8, compressed by zlib.
    """

    codes: frozenset[str] = frozenset()
    offers: tuple[Offer, ...] = ()
    blind: frozenset[str] = frozenset()
    text: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDraft:
    """What is planned for one job.

    Attributes:
        profile: what was measured.
        baseline: what runs today; it is the option `o0`.
        work: hours and data of the period.
        findings: ranked, the verdict first.
        options: in order of the objective.
        rejected: one per machine size and reason.
        recommended: an option's id; `o0` means leave it.
        named: the smallest change, the cheapest, the first that can be launched.
        confidence: how sure the advice is.
        now: the cure on today's machine; None where none is known, or nothing is lost.
        reason: why it stays on today's machine; None where it does not.
        proof: what would settle what is open; None where nothing is worth measuring.
        steady: what a term of its machine costs; None where it is used too little for one.
        off_hours: what it costs if it is off when nobody uses it; None where that is not known.
        machine: how it runs today.
        remedies: the actions on the job itself that apply today, with what they set and gain.
        priced: what each of them saves alone, by its code; without those of unknown gain.
        work_cost: what an amount of work costs today; None where cost or work is unknown.
        energy: of the period today.
        power_cap: the power limit that takes least energy at little loss; None where none saves.
        home: the machine on whose GPU it could share; None where there is none.
        elsewhere: other machines of one GPU on which it could share.
        remaining: lines of its bill that are still paid where it is to end; None: it goes on.
        leaving_first: jobs on its machine that move away before ending it gives money back.
        left_out: of a plan in brief (`planner.plan.draft`), what it no longer holds.
    """

    profile: Profile
    baseline: Baseline
    work: Workload
    findings: tuple[Finding, ...]
    options: tuple[Option, ...]
    rejected: tuple[Rejected, ...]
    recommended: str
    named: Named
    confidence: Confidence
    machine: MachineSettings | None = None
    remedies: tuple[Remedy, ...] = ()
    priced: Mapping[str, Saved] = field(default_factory=dict)
    work_cost: WorkCost | None = None
    energy: EnergyUse = field(default_factory=EnergyUse)
    power_cap: PowerCap | None = None
    now: Now | None = None
    reason: str | None = None
    proof: Proof | None = None
    steady: str | None = None
    off_hours: str | None = None
    home: Home | None = None
    elsewhere: tuple[Elsewhere, ...] = ()
    remaining: tuple[QuoteLine, ...] | None = None
    leaving_first: tuple[str, ...] = ()
    left_out: LeftOut = LeftOut()

    @property
    def name(self) -> str:
        """The job's name."""
        return self.profile.job.name

    @property
    def choice(self) -> Option | None:
        """The recommended option; None for "leave it"."""
        return self.option(self.recommended)

    def option(self, id_: str) -> Option | None:
        """Return the option with an id; None for today's machine."""
        return recommended_option(self.options, id_)

    @property
    def does_nothing(self) -> bool:
        """Whether no kernel of it ran in all of its recording, so that it can be ended."""
        # Where work goes on beside the GPU, ending the machine is none of the actions.
        return self.profile.paid_busy_fraction == 0 and "idle-shutdown" in self._idle_actions

    @property
    def looks_first(self) -> bool:
        """Whether somebody has to see whether anything still runs there before it is moved."""
        return not self.does_nothing and LOOK in self._idle_actions

    @property
    def may_end(self) -> bool:
        """Whether no kernel of it ran, so that it is ended, at once or after a look."""
        return self.does_nothing or (
            self.looks_first and self.profile.paid_busy_fraction == 0 and not self.baseline.broken
        )

    @property
    def _idle_actions(self) -> tuple[str, ...]:
        idle = (f for f in self.findings[:1] if f.code in _NOTHING_RAN)
        return next((f.actions for f in idle if f.confidence != "possible"), ())

    @property
    def remaining_usd(self) -> Decimal | None:
        """Dollars that are still paid where it is to end; None: it goes on, or they are unknown."""
        if self.remaining is None or self.baseline.cost is None:
            return None
        return sum((line.usd for line in self.remaining), Decimal(0))

    @property
    def alone(self) -> JobAlone:
        """What is recommended for the job alone, in dollars."""
        before, choice, bill = self.baseline.cost, self.choice, self.baseline.quote
        is_partial = bill is not None and bill.at_least
        mid = before if self.remaining is None else self.remaining_usd
        stays = JobAlone(
            job=self.name,
            before=before,
            low=mid,
            mid=mid,
            high=mid,
            at_least=is_partial and self.remaining is None,
            before_at_least=is_partial,
        )
        if choice is None or self.remaining is not None:
            return stays
        return replace(
            stays,
            low=choice.usd_range.low,
            mid=choice.cost,
            high=choice.usd_range.high,
            at_least=choice.quote.at_least,
            effort_hours=choice.benefit.effort_hours,
            moving_usd=choice.benefit.moving_usd or Decimal(0),
        )

    @property
    def codes(self) -> set[str]:
        """Codes of the actions that its findings and options name."""
        of_findings = {code for finding in self.findings for code in finding.actions}
        of_options = {code for option in self.options for code in option.actions}
        return of_findings | of_options | self.left_out.codes

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The offers of all its options."""
        return (*(option.offer for option in self.options), *self.left_out.offers)

    @property
    def feasible(self) -> bool:
        """Whether anything keeps every limit, today's machine included."""
        return bool(self.options) or not self.baseline.broken


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDraft:
    """The answer.

    Attributes:
        as_of: day of prices and rules.
        objective: what was minimised.
        period: `run` or `month`; every dollar and hour is for it.
        catalog: the prices.
        jobs: by name.
        fleet: the jobs on fewer GPUs; None for a single job.
        recommended: what all jobs are to do, and the one total of it.
        roi: saving against effort.
        assumptions: what was assumed rather than stated.
        warnings: what a reader must know.
        history: what the user's own record did to the predictions; None without one.
        clusters: as in `Plan`; empty where the jobs run in none.
    """

    as_of: date
    objective: Objective
    period: Period
    catalog: CatalogSummary
    jobs: tuple[JobDraft, ...]
    fleet: Fleet | None
    recommended: Recommendation
    roi: Roi
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    history: TrackRecord | None = None
    clusters: tuple[ClusterBill, ...] = ()

    @property
    def total(self) -> Recommendation:
        """What all jobs are to do, and the one total of it, that of their cluster included."""
        if not self.clusters:
            return self.recommended
        jobs, (today, after) = self.recommended, self.clusters[:2]
        more = after.beside_usd
        return replace(
            jobs,
            before=jobs.before + today.beside_usd,
            low=jobs.low + more,
            mid=jobs.mid + more,
            high=jobs.high + more,
            effort_hours=jobs.effort_hours + after.effort_hours,
        )

    @property
    def titles(self) -> dict[str, str]:
        """The title of every action that a finding or an option names, by code."""
        codes = {code for job in self.jobs for code in job.codes}
        return {code: ACTIONS[code].title for code in sorted(codes)}

    @property
    def shared_gpus(self) -> dict[str, int]:
        """The GPU that a job is recommended to share, by job; without those that go their own way.

        It is built anew each time, from all placements.
        """
        placements = self.recommended.placements(self.fleet)
        return {job: placement.id for job, placement in placements.items()}

    def check_feasible(self) -> None:
        """Raise when no job has a feasible option.

        Raises:
            NoFeasibleOptionError: names each job's tightest constraint.
        """
        if any(job.feasible for job in self.jobs):
            return
        raise NoFeasibleOptionError(
            f"{job.name}: no option meets every limit; the tightest is {tightest(job)}."
            for job in self.jobs
        )


def tightest(job: JobDraft) -> str:
    """Return the limit that most offers failed, with the case that came nearest."""
    if not job.rejected:
        return "the choice of providers, regions or GPUs: nothing is sold that fits it"
    reasons, broken = [r.reason for r in job.rejected], {b.reason for b in job.baseline.broken}
    last = broken.union(_LAST_CHECKED)  # what today's machine breaks is what others have to keep
    reason = max(sorted(set(reasons)), key=lambda r: (r in last, reasons.count(r)))
    cases = (r for r in job.rejected if r.reason == reason)
    example = min(cases, key=lambda r: (r.excess, r.offer))
    return f"{reason} ({example.offer}: {example.detail})"


def summarize(job: JobDraft, text: bytes) -> JobDraft:
    """Return a job's plan with the option that is recommended alone, and without what explains it.

    Where today's machine breaks a limit an option stays, if there is one, as that keeps them; why
    nothing does stays, too, as a plan that finds nothing says it; so does what is to be done now,
    which the first screen counts.

    Args:
        job: what is planned for it.
        text: see `LeftOut`.
    """
    listed = job.options
    chosen = tuple(option for option in listed if option.id == job.recommended)
    options = chosen or (listed[:1] if job.baseline.broken else ())
    ids = {option.id for option in options}
    return replace(
        job,
        findings=job.findings[:1],  # the verdict, which the first screen names
        options=options,
        rejected=() if job.feasible else job.rejected,
        named=Named(),
        machine=None,
        remedies=(),
        priced={},
        work_cost=None,
        energy=EnergyUse(),
        power_cap=None,
        reason=None,
        proof=None,
        steady=None,
        off_hours=None,
        left_out=LeftOut(
            codes=frozenset(job.codes),
            offers=tuple(option.offer for option in listed if option.id not in ids),
            blind=frozenset(
                option.offer.provider
                for option in listed
                if option.offer.purchase == "spot" and not option.interruptions_known
            ),
            text=text,
        ),
    )


def leave_together(jobs: Iterable[JobDraft], *, is_fleet: bool) -> tuple[JobDraft, ...]:
    """Return the plans, those that would leave their neighbours behind staying where they are.

    In a fleet nobody rents a machine for a job of which nobody knows whether it still runs. A job
    whose machine breaks a limit of the command line leaves all the same.
    """
    plans = {job.name: _looked_at(job) if is_fleet else job for job in jobs}
    return tuple(_stay(job, plans) for job in plans.values())


def _stay(job: JobDraft, plans: dict[str, JobDraft]) -> JobDraft:
    tenancy = job.baseline.tenancy
    if tenancy is None or not leaves(job) or job.baseline.broken:
        return job
    staying = [name for name in tenancy.beside if not leaves(plans[name])]
    if not staying:
        return job
    return replace(job, recommended=STAY, reason=Message("keep.neighbors", jobs=staying))


def _looked_at(job: JobDraft) -> JobDraft:
    if not job.looks_first or job.baseline.broken:
        return job
    if not _moves(job):  # what is done on its own machine
        return replace(job, elsewhere=())
    return replace(
        job, recommended=STAY, named=Named(), elsewhere=(), reason=Message("keep.look-first")
    )


def keeping(job: JobDraft) -> JobDraft:
    """Return a job's plan as it runs today, alone on its machine."""
    return replace(job, recommended=STAY, home=None, elsewhere=())


def leaving(job: JobDraft) -> JobDraft:
    """Return a job's plan with the cheapest machine that it may leave for, whatever that saves.

    It is a node that is kept all month, as a pool of DOKS has one at least.
    """

    def held_usd(option: Option) -> Decimal:
        return max(option.cost, HOURS_PER_MONTH * option.offer.usd_per_hour * option.count)

    cheapest = min(job.options, key=held_usd, default=None)
    return replace(job, home=None, recommended=cheapest.id if cheapest else STAY)


def leaves(job: JobDraft) -> bool:
    """Return whether a job is to end, or to run on another machine, or the same one elsewhere."""
    return job.may_end or _moves(job)


def _moves(job: JobDraft) -> bool:
    choice, today = job.choice, job.baseline
    return choice is not None and today.offer is not None and not today.has_size_there(choice.offer)


_DAYS_PER_MONTH = 30.4  # 730 h


def roi(recommended: Recommendation, period: Period, rate_usd_per_hour: Decimal) -> Roi:
    """Return what the plan saves, and when its effort and the moving of data have paid off.

    Args:
        recommended: what all jobs are to do.
        period: of the plan.
        rate_usd_per_hour: what an engineer costs.
    """
    saves, hours = recommended.saves, recommended.effort_hours
    payback = None
    if saves > 0 and period == "month":
        once = rate_usd_per_hour * Decimal(str(hours)) + recommended.moving_usd
        payback = float(once / saves) * _DAYS_PER_MONTH
    return Roi(saves_usd=cents(saves), effort_hours=digits(hours), payback_days=digits_of(payback))
