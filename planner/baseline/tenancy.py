"""Jobs of one machine share its bill once, split by the GPUs that they hold.

A job without a neighbour that holds k of its machine's n GPUs bears k/n of the bill: others are
taken to pay for the rest, which is an assumption and is said.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.profile.model import Profile
from pricing.catalog.offer import Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenancy:
    """A job's part in the bill of a machine.

    Attributes:
        held: GPUs that it holds.
        of: GPUs that the bill is split over, >= `held`.
        beside: names of the other jobs on the machine.
        hours: how long the others hold it, h; the machine is paid for as long as anyone does.
    """

    held: int
    of: int
    beside: tuple[str, ...] = ()
    hours: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A job on a known machine.

    Attributes:
        profile: what was measured.
        offer: what the machine is rented as.
        hours: how long the job holds it in the period, h.
    """

    profile: Profile
    offer: Offer
    hours: float

    @property
    def name(self) -> str:
        """The job's name."""
        return self.profile.job.name


def gpus_held(profile: Profile, offer: Offer) -> int:
    """Return the GPUs of one machine that a job holds: all of them where it does not say."""
    return profile.hardware.gpu_count or len(profile.gpus) or round(offer.gpu_count)


def tenancies(residents: Iterable[Resident], *, whole_machine: bool) -> Mapping[str, Tenancy]:
    """Return the part of each job that does not bear a machine's bill alone, by its name.

    Args:
        residents: jobs on one machine of a stated type each.
        whole_machine: a job without a neighbour bears all of the bill.
    """
    machines: dict[object, list[Resident]] = defaultdict(list)
    for one in residents:
        # Without an id nothing shows that two jobs are neighbours: each is a machine of its own.
        place = one.profile.hardware.machine or ("alone", one.name)
        machines[place, one.offer.name, one.offer.region, one.offer.purchase].append(one)
    found: dict[str, Tenancy] = {}
    for group in machines.values():
        if len(group) > 1:
            found.update((one.name, _beside(one, group)) for one in group)
        elif not whole_machine:
            (one,) = group
            held = gpus_held(one.profile, one.offer)
            if held < one.offer.gpu_count:
                found[one.name] = Tenancy(held=held, of=round(one.offer.gpu_count))
    return found


def _beside(one: Resident, group: list[Resident]) -> Tenancy:
    others = [other for other in group if other is not one]
    return Tenancy(
        held=gpus_held(one.profile, one.offer),
        of=sum(gpus_held(other.profile, other.offer) for other in group),
        beside=tuple(sorted(other.name for other in others)),
        hours=max(other.hours for other in others),
    )


def assumption(name: str, tenancy: Tenancy, offer: Offer) -> str:
    """Return how a machine's bill was split, as a sentence."""
    if not tenancy.beside:
        return (
            f"{name}: holds {tenancy.held} of the {tenancy.of} GPUs of {offer.name} and bears "
            f"{tenancy.held}/{tenancy.of} of its bill; --whole-machine makes it bear all."
        )
    free = round(offer.gpu_count) - tenancy.of
    idle = f" ({free} GPUs are held by no job given)" if free > 0 else ""
    return (
        f"{name}: shares one {offer.name} with {', '.join(tenancy.beside)} and bears "
        f"{tenancy.held}/{tenancy.of} of its bill, by GPUs held{idle}."
    )
