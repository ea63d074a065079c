"""An option: an offer with actions applied, its hours and its bill; a rejection is a value too."""

from dataclasses import dataclass, field
from decimal import Decimal

from planner.actions.settings import MachineSettings
from planner.models.copies import Scaling
from planner.models.estimate import Estimate
from planner.models.saving import Saving
from planner.models.work_cost import WorkCost
from planner.options.candidate import UsdRange
from planner.options.energy import Energy
from planner.options.parallelism import Distribution
from pricing.billing.quote import Quote
from pricing.catalog.offer import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What moving the data costs once.

    Attributes:
        once_usd: egress at today's provider, or its traffic between regions; None = price unknown.
        hours: transfer time at the stated bandwidth; None where that is unknown.
        pays_back_days: days until the saving has paid for it; None where it never does.
    """

    once_usd: Decimal | None
    hours: float | None
    pays_back_days: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Benefit:
    """What a change is worth over the horizon; formula in `planner.ranking.benefit`.

    Attributes:
        periods: how many of the plan's periods the horizon holds; 1 for a run.
        saves_usd: today's cost less the option's at its high end, over them; None where today's
            cost is unknown.
        effort_hours: engineering time, our estimate.
        effort_usd: at the engineer's rate.
        moving_usd: once; 0 where the data stay, None where their amount or its price is unknown.
        net_usd: what is left of the saving; a move of unknown cost is not in it.
    """

    periods: Decimal
    saves_usd: Decimal | None
    effort_hours: float
    effort_usd: Decimal
    moving_usd: Decimal | None
    net_usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """Dollars of the period for one cause of doubt each, the others as expected.

    Attributes:
        speed: how fast the job is predicted to run there.
        cure: what the actions on the job gain.
        use: how long machines are held for other reasons: interruptions, idle time that is saved,
            copies by the hour.
    """

    speed: UsdRange
    cure: UsdRange
    use: UsdRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A way to run the job.

    Attributes:
        id: `o1`, `o2` ... in order of the objective; unique within the job.
        offer: what is rented.
        count: machines, of all replicas together.
        provisionable: whether this version can launch it.
        actions: codes of what changes against today.
        speed: speed-up over today.
        hours: hours of the period.
        quote: the bill at the expected hours.
        cost_low: the bill at the low end of hours and price.
        cost_high: the bill at the high end, what an old price may have risen by included.
        by_hours: what it may be for its hours alone.
        by_price: what it may be for the age of its price alone.
        doubts: what `by_hours` comes from; None but for the option that is told most about.
        saves: against today, expected.
        work_cost: what an amount of work costs; None where work is not measured.
        energy: of the period.
        benefit: what changing to it is worth.
        move: what moving there costs once; None in the same provider's region.
        why: one sentence.
        interruptions_known: whether lost work on spot is in hours and bill.
        distribution: how training spreads over several GPUs; None for one GPU and other jobs.
        machine: what to set on each of its machines.
        scaling: copies by the hour; None where as many run as today, all the time.
    """

    id: str
    offer: Offer
    count: int
    provisionable: bool
    actions: tuple[str, ...]
    speed: Estimate
    hours: Estimate
    quote: Quote
    cost_low: Decimal
    cost_high: Decimal
    by_hours: UsdRange
    by_price: UsdRange
    saves: Saving
    work_cost: WorkCost | None
    energy: Energy
    benefit: Benefit
    move: Move | None
    why: str
    interruptions_known: bool = False
    distribution: Distribution | None = None
    machine: MachineSettings = field(default_factory=MachineSettings)
    scaling: Scaling | None = None
    doubts: Doubts | None = None

    @property
    def cost(self) -> Decimal:
        """The expected bill, exact."""
        return self.quote.exact
