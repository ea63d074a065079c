"""A job that may move to share a GPU, and the machine that it would move to."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from planner.baseline.baseline import Baseline
from planner.baseline.workload import Workload
from planner.fleet.home import Elsewhere, Home, moving_usd, of_the_data
from planner.models.estimate import Estimate
from planner.options.candidate import Candidate
from planner.profile.model import Profile
from planner.signals.compute_share import busy_there
from pricing.billing.lines import QuoteLine
from pricing.billing.quote import Quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Movable:
    """One job of the fleet.

    Attributes:
        profile: what was measured.
        baseline: what runs it today.
        work: its hours and data.
        home: where it is packed; None where there is nowhere.
        elsewhere: the other machines of one GPU that keep every limit.
    """

    profile: Profile
    baseline: Baseline
    work: Workload
    home: Home | None
    elsewhere: tuple[Elsewhere, ...] = ()

    @property
    def name(self) -> str:
        """The job's name."""
        return self.profile.job.name

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the jobs that stand on its machine today."""
        tenancy = self.baseline.tenancy
        return tenancy.beside if tenancy else ()


@dataclass(frozen=True, kw_only=True)
class Away:
    """A home that a job would move to.

    More homes are tried than are taken: what is known without a bill is told at once, a bill and
    what follows from it are made when they are asked for.

    Attributes:
        job: who would move.
        to: where.
        catalog: for the day.
    """

    job: Movable
    to: Elsewhere
    catalog: Catalog

    @property
    def offer(self) -> Offer:
        """The machine."""
        return self.to.offer

    @property
    def hours(self) -> float:
        """How long the job, alone there, holds it in the period."""
        return self.to.hours.mid

    @property
    def usd(self) -> Decimal:
        """The bill of the job alone there, exact."""
        return self.to.usd

    @property
    def speed(self) -> Estimate:
        """The speed of the job alone there, relative to today."""
        return self.to.speed

    @property
    def moved(self) -> bool:
        """Whether it is another machine than today's."""
        return True

    @property
    def effort_hours(self) -> float:
        """Engineering time to bring the job there, our estimate."""
        return self.to.effort_hours

    @cached_property
    def profile(self) -> Profile:
        """What was measured, its use of the GPU as it would be there."""
        return busy_there(self.job.profile, self.to.factor)

    @cached_property
    def quote(self) -> Quote:
        """The bill of the job alone there, with its lines."""
        return self._bill.quote

    @cached_property
    def data_lines(self) -> tuple[QuoteLine, ...]:
        """What the job's own traffic and storage cost; no bill is made where it has neither."""
        work = self.job.work
        has_data = work.egress_bytes or work.storage_bytes or work.dataset_bytes
        return of_the_data(self.quote) if has_data else ()

    @cached_property
    def ends(self) -> tuple[Decimal, Decimal]:
        """The bill at the low and at the high end."""
        return self._bill.cost_at("low"), self._bill.cost_at("high")

    @cached_property
    def moving_usd(self) -> Decimal | None:
        """What it costs to bring its data there, once; None: not known."""
        one = self.job
        return moving_usd(one.profile, one.baseline, one.work, self.offer, self.catalog)

    @cached_property
    def _bill(self) -> Candidate:
        return Candidate(
            offer=self.offer,
            count=1,
            actions=(),
            speed=self.speed,
            work_hours=self.to.hours,
            work=self.job.work,
            interruptions=None,
            catalog=self.catalog,
            dearest=lambda _, __: None,  # no part of its bill is unknown
            moved=self.to.price,
        )
