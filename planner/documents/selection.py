"""What a plan document chose for each job: the lines that an invoice will be held against."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from planner.plan.bill import CostLine, OptionCost, RentedOffer
from planner.plan.find import FoundOption, find_option
from planner.plan.plan import Placement, Plan
from pricing.catalog.offer import EVERYWHERE
from pricing.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How one job is to run, and what that costs in the period of the plan.

    Attributes:
        job: its name; of jobs that share a GPU all names, with `+` between them.
        option: its id; `o0` is as today, `placement-1` a shared GPU.
        offer: what is rented.
        machines: how many.
        hours: expected hours of the period.
        low: dollars at the low end of the hours.
        mid: expected dollars.
        high: dollars at the high end.
        lines: they add up to `mid`, but for its rounding to cents.
    """

    job: str
    option: str
    offer: RentedOffer
    machines: int
    hours: Decimal
    low: Decimal
    mid: Decimal
    high: Decimal
    lines: tuple[CostLine, ...]

    @property
    def region(self) -> str | None:
        """The provider's name for it; None where one price holds everywhere."""
        return None if self.offer.region == EVERYWHERE else self.offer.region


def select(plan: Plan, named: Iterable[str] = ()) -> tuple[tuple[Selection, ...], tuple[str, ...]]:
    """Return what each job runs on, and a sentence for each job whose cost is not known.

    Jobs that are recommended to share a GPU are one entry, unless an option of one is named.

    Args:
        plan: made now, or read back.
        named: JOB/ID, in place of the recommended option of that job; JOB may be left out where
            there is only one.

    Raises:
        InputError: a name fits no option, two are given for one job, or no job has a known cost.
    """
    wanted = _wanted(plan, named)
    shared = _shared(plan, wanted)
    packed = {name for place in shared for name in place.jobs}
    chosen, unknown = [_placed(place) for place in shared], []
    for job in plan.jobs:
        if job.name in packed:
            continue
        found = wanted.get(job.name) or FoundOption(job=job, option=job.choice)
        if found.offer is None or found.cost is None:
            unknown.append(f"{found.name}: its cost is not known; it is left out.")
            continue
        if found.cost.at_least:
            parts = ", ".join(found.cost.unknown)
            unknown.append(
                f"{found.name}: no price is known of {parts}; it costs at least so much."
            )
        chosen.append(_alone(found, found.offer, found.cost))
    if not chosen:
        raise InputError(unknown or ["the plan has no job; plan one with `gpucost plan`."])
    return tuple(chosen), tuple(unknown)


def recommended_usd(plan: Plan) -> Decimal:
    """Return the one total that a plan recommends, dollars of its period.

    Raises:
        InputError: the cost of a job is not known.
    """
    total = plan.recommended
    if total is None:  # a plan of an earlier version
        found, unknown = select(plan)
        if unknown:
            raise InputError(unknown)
        return sum((one.mid for one in found), Decimal(0))
    if total.unknown:
        raise InputError(f"{name}: its cost is not known." for name in total.unknown)
    return total.cost.mid


def _wanted(plan: Plan, named: Iterable[str]) -> dict[str, FoundOption]:
    """Return the named option of each job; the problems of all names are raised together."""
    wanted: dict[str, FoundOption] = {}
    problems: list[str] = []
    for name in named:
        try:
            found = find_option(plan, name)
        except InputError as error:
            problems.extend(error.problems)
            continue
        if found.job.name in wanted:
            problems.append(f"{name!r}: --option names {found.job.name} twice; a job runs one way.")
        wanted[found.job.name] = found
    if problems:
        raise InputError(problems)
    return wanted


def _shared(plan: Plan, wanted: Mapping[str, object]) -> list[Placement]:
    """Return the placements of jobs that are recommended to share, no option of theirs named."""
    packed = {job.name for job in plan.jobs if job.placement is not None}
    return [
        place
        for place in (plan.fleet.recommended if plan.fleet else ())
        if packed.issuperset(place.jobs) and not wanted.keys() & set(place.jobs)
    ]


def _placed(place: Placement) -> Selection:
    """Return the jobs of one GPU as one thing that is billed."""
    return Selection(
        job="+".join(place.jobs),
        option=f"placement-{place.id}",
        offer=place.offer,
        machines=1,
        hours=_exact(place.hours or 0.0),
        low=place.cost,
        mid=place.cost,
        high=place.cost,
        lines=place.lines,
    )


def _alone(found: FoundOption, offer: RentedOffer, cost: OptionCost) -> Selection:
    return Selection(
        job=found.job.name,
        option=found.id,
        offer=offer,
        machines=found.count,
        hours=_exact(found.hours.mid),
        low=cost.low,
        mid=cost.mid,
        high=cost.high,
        lines=cost.lines,
    )


def _exact(hours: float) -> Decimal:
    return Decimal(str(hours))
