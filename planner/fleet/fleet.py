"""Jobs packed on fewer GPUs, as values: who runs where, what it costs, who stays and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from planner.fleet.tenant import Unmoved
from planner.models.costs import Saving, saving
from planner.models.estimate import Estimate
from pricing.billing.lines import QuoteLine
from pricing.catalog.offer import Offer
from pricing.money import sum_exactly

TIMETABLE = "timetable"
"""Jobs hold a GPU at other hours, and fit on it no other way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One GPU after consolidation.

    Attributes:
        id: 1, 2 ... unique within the fleet.
        offer: the machine.
        gpu: index of the GPU in it.
        mode: `mps` (`time-slicing` on AMD's GPUs) or `mig` when shared, `timetable` where they
            fit by the clock alone, None for a job alone.
        slices: with `mig` the profile of each job's slice, in order of `jobs`; else empty.
        jobs: who runs there.
        speed: relative speed of each job, 1.0 = alone.
        hours: how long it is held: the longest of its jobs' hours.
        lines: its bill; the machine for that long, and the data of every job.
        busy_fraction: share of the time that kernels run there, of all jobs together while they
            run, at most 1; None where it was not read of one of them.
    """

    id: int
    offer: Offer
    gpu: int
    mode: str | None
    jobs: tuple[str, ...]
    speed: dict[str, Estimate]
    hours: float
    lines: tuple[QuoteLine, ...]
    slices: tuple[str, ...] = ()
    busy_fraction: float | None = None

    @property
    def cost(self) -> Decimal:
        """Dollars of the period, exact."""
        return total(self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Jobs that are packed all or none: on one GPU, or on machines whose bill they share.

    Attributes:
        jobs: their names.
        placements: ids.
        cost: dollars of the period, exact.
        low: at the low end of hours and prices; what is paid today has no width.
        high: at the high end.
        effort_hours: engineering time until they share, our estimate.
        moving_usd: to bring their data there, once.
        other_lines: lines of the bill of jobs among them that share no GPU, but a machine.
        free_lines: of the GPUs of these machines that nobody holds.
    """

    jobs: tuple[str, ...]
    placements: tuple[int, ...]
    cost: Decimal
    low: Decimal
    high: Decimal
    effort_hours: float
    moving_usd: Decimal
    other_lines: tuple[QuoteLine, ...] = ()
    free_lines: tuple[QuoteLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The fleet with some jobs on another machine type.

    Attributes:
        offer: the machine.
        jobs: who moves to it.
        fleet: all jobs packed so; its placements are numbered on from those at home.
        unknown: of them, whose data move at a cost that is not known.
    """

    offer: Offer
    jobs: tuple[str, ...]
    fleet: "Fleet"
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The jobs packed on fewer GPUs of the same machine type.

    Attributes:
        gpus_before: GPUs held now.
        gpus_after: GPUs after packing.
        gpus_lower_bound: proven: no packing under these limits needs fewer.
        cost_before: today's bill of all jobs with a known price.
        cost_after: the bill after packing.
        placements: who runs where; jobs with several GPUs are not among them.
        unmoved: whom a GPU is held for while others are, and why it cannot join them.
        together: the jobs that share something, as groups to be packed or left.
        notes: what happens to machines of which GPUs become free.
        search_ended_early: a time limit ended the search for a better packing.
        alternatives: other machine types on which the fleet would cost less, cheapest first.
    """

    gpus_before: int
    gpus_after: int
    gpus_lower_bound: int
    cost_before: Decimal
    cost_after: Decimal
    placements: tuple[Placement, ...]
    unmoved: tuple[Unmoved, ...]
    together: tuple[Together, ...] = ()
    notes: tuple[str, ...] = ()
    search_ended_early: bool = False
    alternatives: tuple[Alternative, ...] = ()

    @property
    def gap_fraction(self) -> float | None:
        """How far the GPUs are above the bound, as a share of it: 0 is proven best."""
        bound = self.gpus_lower_bound
        return self.gpus_after / bound - 1.0 if bound else None

    @property
    def saving(self) -> Saving:
        """What packing saves in the period, of what is paid today."""
        return saving(self.cost_before, self.cost_after, of_nothing=0.0)


def total(lines: Iterable[QuoteLine]) -> Decimal:
    """Return the sum of lines, exact."""
    return sum_exactly(line.usd for line in lines)
