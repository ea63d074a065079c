"""The machines on whose GPUs a job could share: today's, and one that it may move to."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import cached_property
from typing import ClassVar

from msgspec import structs

from planner.choice.baseline import Baseline, at_price, bill_of_work
from planner.choice.candidate import Candidate
from planner.choice.context import JobContext
from planner.choice.offers import OnSale
from planner.choice.ranking import may_move
from planner.choice.workload import Workload
from planner.choice.worth import data_bytes, move
from planner.models.draws import Cause
from planner.models.estimate import Estimate, exactly
from planner.prediction.slices import on_whole
from planner.profile.model import Profile
from planner.profile.source import source_slice
from planner.signals.compute_share import busy_there
from pricing.billing.lines import QuoteLine
from pricing.billing.quote import OF_THE_DATA, Quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.price_age import PriceRange
from pricing.message import Message

# Limits that say where a job may run; a packing must keep them as every option does.
_PLACES = ("unavailable", "region", "purchase", "capability")
_UNPRICED = Decimal("1e-9")  # dollars an hour: GPUs that nobody priced are counted, none is billed


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledHome:
    """A home whose bill is made: what is packed first.

    Attributes:
        offer: the machine.
        hours: how long the job, alone there, holds it in the period.
        quote: the bill of the job alone there.
        speed: of the job alone there, relative to today.
        profile: what was measured, its use of the GPU as it would be there.
        moved: whether it is another machine than today's.
        ends: the bill at the low end of hours and price, and at the high one; as expected where it
            is paid today.
        effort_hours: engineering time to bring the job there, our estimate.
        moving_usd: what it costs to bring its data there, once; None: not known.
    """

    offer: Offer
    hours: float
    quote: Quote
    speed: Estimate
    profile: Profile
    moved: bool = False
    ends: tuple[Decimal, Decimal]
    effort_hours: float = 0.0
    moving_usd: Decimal | None = Decimal(0)

    @property
    def usd(self) -> Decimal:
        """The bill of the job alone there, exact."""
        return self.quote.exact

    @property
    def data_lines(self) -> tuple[QuoteLine, ...]:
        """What the job's own traffic and storage cost; sharing a GPU does not save them."""
        return of_the_data(self.quote)


def of_the_data(bill: Quote) -> tuple[QuoteLine, ...]:
    """Return the lines that are billed for a job's data, whoever else uses the machine."""
    return tuple(line for line in bill.lines if line.what in OF_THE_DATA)


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """Another machine of one GPU on which a job keeps every limit.

    Attributes:
        offer: the machine.
        hours: how long the job, alone there, holds it in the period, expected.
        causes: how sure that is.
        usd: its bill, alone there.
        speed: alone there, relative to today.
        factor: its share of the GPU's time there, over its share today.
        price: the factors between which the hourly price lies today.
        effort_hours: engineering time to bring the job there, our estimate.
    """

    offer: Offer
    hours: float
    causes: tuple[Cause, ...]
    usd: Decimal
    speed: Estimate
    factor: float
    price: PriceRange
    effort_hours: float


def today(profile: Profile, baseline: Baseline) -> "Home | None":
    """Return today's machine; None where its price is not known."""
    if baseline.offer is None or baseline.quote is None:
        return None
    return BilledHome(
        offer=baseline.offer,
        hours=baseline.hours.mid,
        quote=baseline.quote,
        ends=(baseline.quote.exact, baseline.quote.exact),
        speed=exactly(1.0, Message("speed.today")),
        profile=on_whole(profile),
    )


def find_home(context: JobContext, candidates: Iterable[Candidate]) -> "Home | None":
    """Return where a job is packed: today's machine, where it keeps the limits of place.

    Else the cheapest machine of one GPU that keeps every limit, of today's model unless others
    were asked for; None where there is none.
    """
    if not any(broken.reason in _PLACES for broken in context.baseline.broken):
        return today(context.profile, _with_own_machine(context))
    fitting = [
        candidate
        for candidate in candidates
        if not candidate.actions
        and candidate.offer.gpu_count == 1
        and candidate.count == 1
        and (candidate.offer.gpu == context.gpu.name or context.asked.gpus)
    ]
    best = min(fitting, key=lambda d: (d.comparable, d.offer.place), default=None)
    if best is None:
        return None
    return BilledHome(
        offer=best.offer,
        hours=best.hours_mid,
        quote=best.quote,
        speed=best.speed,
        profile=busy_there(context.profile, _busier(context, best)),
        moved=True,
        ends=(best.usd_range.low, best.usd_range.high),
        effort_hours=best.effort_hours,
        moving_usd=moving_usd(
            context.profile, context.baseline, context.work, best.offer, context.catalog
        ),
    )


def _with_own_machine(context: JobContext) -> Baseline:
    """Return what runs today; GPUs that are owned can be shared without anybody naming a price."""
    baseline, catalog = context.baseline, context.catalog
    if baseline.offer is not None or not context.profile.hardware.owned:
        return baseline
    offer = at_price(None, context.profile, _UNPRICED, catalog.as_of)
    offer = structs.replace(offer, source="owned; no price was given")
    work = replace(context.work, boot_disk_bytes=0, public_address=False)
    bill = bill_of_work(offer, baseline.count, baseline.hours.mid, work, catalog)
    return replace(baseline, offer=offer, quote=bill)


def moving_usd(
    profile: Profile, baseline: Baseline, work: Workload, offer: Offer, catalog: Catalog
) -> Decimal | None:
    """Return what it costs once to bring a job's data to another machine; None: not known."""
    moved = move(baseline, offer, data_bytes(profile, work), None, catalog.as_of)
    return Decimal(0) if moved is None else moved.once_usd


def find_elsewhere(
    context: JobContext, candidates: Iterable[Candidate], home: "Home | None"
) -> tuple[Elsewhere, ...]:
    """Return the other machines of one GPU on which a job of one GPU keeps every limit.

    Only what may be recommended: a dated price and a speed within what the method was fitted on,
    no spot capacity, which may go from under several jobs at once.
    """
    one_gpu = context.profile.gpu_count == 1 and context.work.replicas == 1
    if home is None or not one_gpu or not may_move(context):
        return ()
    return tuple(
        Elsewhere(
            offer=item.offer,
            hours=item.hours_mid,
            causes=item.causes,
            usd=item.expected,
            speed=item.speed,
            factor=_busier(context, item),
            price=item.moved,
            effort_hours=item.effort_hours,
        )
        for item in candidates
        if not item.actions
        and item.scaling is None
        and item.offer.gpu_count == 1
        and item.count == 1
        and item.offer.purchase != "spot"
        and item.offer.dated
        and not item.speed.weak
        and not item.at_least
        and item.offer.sale != home.offer.sale
    )


def _busier(context: JobContext, candidate: Candidate) -> float:
    """Return the job's share of a GPU's time on the candidate's GPU, over its share today.

    Held time stays, so a GPU twice as fast is busy half as long; fixed work also takes less time.
    """
    if candidate.offer.gpu == context.gpu.name and source_slice(context.profile) is None:
        return 1.0
    kernels = context.predictions.kernels(candidate.offer.card).mid
    return (candidate.speed.mid if context.work.fixed_work else 1.0) / kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class Movable:
    """One job of the fleet.

    Attributes:
        profile: what was measured.
        baseline: what runs it today.
        work: its hours and data.
        home: where it is packed; None where there is nowhere.
        elsewhere: the other machines of one GPU that keep every limit.
        remaining_usd: of a job that is to end, dollars of the period that are still paid while its
            machine stays as it is; None: it goes on.
    """

    profile: Profile
    baseline: Baseline
    work: Workload
    home: "Home | None"
    elsewhere: tuple[Elsewhere, ...] = ()
    remaining_usd: Decimal | None = None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.profile.job.name

    @property
    def peers(self) -> tuple[str, ...]:
        """Names of the jobs that stand on its machine today."""
        tenancy = self.baseline.tenancy
        return tenancy.beside if tenancy else ()


def ended_jobs(jobs: Iterable[Movable]) -> dict[str, Decimal]:
    """Return the jobs that are to end, with the dollars of the period that they leave."""
    return {job.name: job.remaining_usd for job in jobs if job.remaining_usd is not None}


@dataclass(frozen=True, kw_only=True)
class Away(Elsewhere):
    """A home that a job would move to.

    More homes are tried than are taken: what is known without a bill is told at once, a bill and
    what follows from it are made when they are asked for.

    Attributes:
        job: who would move.
        catalog: for the day.
    """

    job: Movable
    catalog: Catalog
    moved: ClassVar[bool] = True

    @cached_property
    def profile(self) -> Profile:
        """What was measured, its use of the GPU as it would be there."""
        return busy_there(self.job.profile, self.factor)

    @cached_property
    def quote(self) -> Quote:
        """The bill of the job alone there, with its lines."""
        return self._bill.quote

    @cached_property
    def data_lines(self) -> tuple[QuoteLine, ...]:
        """What the job's own traffic and storage cost; no bill is made where it has neither."""
        work = self.job.work
        has_data = work.egress_bytes or work.storage_bytes
        return of_the_data(self.quote) if has_data else ()

    @cached_property
    def ends(self) -> tuple[Decimal, Decimal]:
        """The bill at the low and at the high end."""
        bill = self._bill.usd_range
        return bill.low, bill.high

    @cached_property
    def moving_usd(self) -> Decimal | None:
        """What it costs to bring its data there, once; None: not known."""
        job = self.job
        return moving_usd(job.profile, job.baseline, job.work, self.offer, self.catalog)

    @cached_property
    def _bill(self) -> Candidate:
        return Candidate(
            size=OnSale(self.offer, machines=1, used=1, idle=0, today=False),
            count=1,
            actions=(),
            codes=(),
            effort_hours=self.effort_hours,
            speed=self.speed,
            hours_of_work=self.job.work.hours.mid,
            causes=self.causes,
            basis="",
            work=self.job.work,
            interruptions=None,
            catalog=self.catalog,
            dearest=lambda _, __: None,  # no part of its bill is unknown
            moved=self.price,
            owed=self.job.baseline.owed,
        )


Home = BilledHome | Away
"""Where a job is packed."""


def remote_home(job: Movable, to: Elsewhere, catalog: Catalog) -> Away:
    """Return a machine as the home that a job would move to."""
    values = {f.name: getattr(to, f.name) for f in fields(Elsewhere)}
    return Away(**values, job=job, catalog=catalog)
