"""What to launch: an option of a plan, a placement of its fleet, or a type that was named."""

from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec import UNSET, structs

from gpucost.files.plan_file import load_plan
from planner.actions.settings import MachineSettings, plain_settings, shared_settings
from planner.documents.machine import read_machine
from planner.plan.bill import RentedOffer, that_start
from planner.plan.job import JobPlan
from planner.plan.option import Option
from planner.plan.plan import Placement, Plan
from planner.plan.read import FoundOption, find_option, find_recommended
from pricing.catalog import sizes
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import BOUGHT, EVERYWHERE, Offer, parse_place
from pricing.errors import InputError
from pricing.listing import as_typed
from pricing.message import Message
from pricing.money import show
from providers.interface import OWN, NodePool
from providers.ownership_tags import clean
from providers.registry import CLOUDS, launchable
from providers.ssh.connection import check_address


def page_of(provider: str) -> str:
    """Return where to rent there; a provider that can be launched on states it in its folder."""
    page = CLOUDS[provider].page if provider in CLOUDS else sizes.page_of(provider)
    return page or f"the page of {provider}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchChoice:
    """What is to be launched.

    Attributes:
        offers: with the planned price each, best first; the later ones are fallbacks. Empty for a
            machine of the user's own.
        region: asked for; empty: the offer's, or chosen at launch.
        count: machines.
        plan: name of what it is for.
        machines: what is set on the machines of each offer; one more where there is no offer.
        sharing: how jobs share its GPU; None: one job.
        jobs: that share it.
        slices: MIG profile of each job's slice; empty: they share the whole GPU.
        host: of the user's own machine.
        pool: it is a node pool of a cluster; None: machines of their own.
        dearest: for each offer, the dearest price known of it: planned, listed or of its history.
    """

    offers: tuple[Offer, ...]
    region: str = ""
    count: int = 1
    plan: str = "none"
    machines: tuple[MachineSettings, ...] = (plain_settings(1, 1, None),)
    sharing: str | None = None
    jobs: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    host: str = ""
    dearest: tuple[Decimal, ...] = ()
    pool: NodePool | None = None

    @property
    def provider(self) -> str:
        """Where it is launched."""
        if self.pool is not None:
            return self.pool.provider
        return self.offers[0].provider if self.offers else OWN


def check_asked(  # noqa: PLR0913 - what a command line may name
    plan: str | None,
    option_id: str | None,
    placement: int | None,
    type_: str | None,
    *,
    region: str | None,
    ttl_s: Decimal | None,
) -> None:
    """Refuse a command line that names no life, or more than one thing to launch.

    Args:
        plan: the plan's file; None where it is not named, as in all that follows.
        option_id: of --option.
        placement: of --placement.
        type_: of --type.
        region: of --region.
        ttl_s: of --ttl.

    Raises:
        InputError: all that is wrong with it, at once.
    """
    problems: list[str] = []
    if ttl_s is None:
        problems.append(Message("launch.ttl-required"))
    elif ttl_s < 1:
        problems.append("--ttl must be a second or more.")
    named = {"--option": option_id, "--placement": placement, "--type": type_}
    ways = [flag for flag, value in named.items() if value is not None]
    if len(ways) > 1:
        problems.append(f"{' and '.join(ways)} name different things to launch; give one.")
    if type_ is not None and plan is not None:
        problems.append(Message("launch.type-or-plan"))
    if type_ is None and plan is not None and _names_machine(plan):
        problems.append(f"{plan} is a machine, not a plan: give it as --type {plan}.")
    if type_ is None and region is not None:
        problems.append(Message("launch.region-needs-type"))
    if problems:
        raise InputError(problems)


def _names_machine(plan: str) -> bool:
    """Return whether what stands in the place of a plan is PROVIDER/TYPE, and no file."""
    provider, _, size = plan.partition("/")
    return provider in CLOUDS and bool(size) and not Path(plan).exists()


def choose_type(
    type_: str, region: str | None, purchase: str | None, count: int, catalog: Catalog
) -> LaunchChoice:
    """Return the choice of --type.

    Raises:
        InputError: it is not an offer, or gpucost cannot launch there.
    """
    provider, _, host = type_.partition("/")
    if provider == OWN:
        if not host or count != 1:
            raise InputError(f"--type {type_}: write ssh/USER@HOST[:PORT], one machine at a time.")
        return LaunchChoice(offers=(), host=check_address(host))
    provider, instance_type, in_place = parse_place(type_)
    if region and in_place and region != in_place:
        raise InputError(Message("launch.two-regions", place=type_, region=region))
    chosen_region = region or in_place
    _check_launchable(provider)
    offer = catalog.find(provider, instance_type, chosen_region, purchase or "on_demand")
    machine = plain_settings(max(1, int(offer.gpu_count)), count, offer.vcpus)
    region = chosen_region or _region_text(offer.region)
    return LaunchChoice(offers=(offer,), region=region, count=count, machines=(machine,))


def choose_option(plan_path: str, name: str | None, catalog: Catalog) -> LaunchChoice:
    """Return the choice of a plan: the named option, or the recommended one of its only job.

    Raises:
        InputError: there is nothing to launch, or gpucost cannot launch it; what can be is named.
    """
    plan = load_plan(plan_path)
    selected = find_option(plan, name) if name is not None else _recommended(plan, plan_path)
    option = selected.option
    if option is None:
        raise InputError(_nothing_to_launch(selected.job))
    if not _can_launch(option):
        raise InputError(_instead(selected.job, option))
    options = selected.job.options
    later = options[options.index(option) + 1 :]
    key = _fallback_key(option)
    fallbacks = [o for o in later if _can_launch(o) and _fallback_key(o) == key]
    return LaunchChoice(
        offers=tuple(
            _offer(choice_option.offer, catalog) for choice_option in (option, *fallbacks)
        ),
        machines=tuple(
            read_machine(FoundOption(job=selected.job, option=choice_option))
            for choice_option in (option, *fallbacks)
        ),
        region=_region_text(option.offer.region),
        count=option.count,
        plan=clean(f"{Path(plan_path).stem}-{selected.job.name}-{option.id}"),
    )


def choose_placement(plan_path: str, number: int, catalog: Catalog) -> LaunchChoice:
    """Return the choice of a placement of the plan's fleet.

    Raises:
        InputError: there is no such placement, gpucost cannot launch it, or it has not as many
            slices as jobs.
    """
    plan = load_plan(plan_path)
    placements = plan.fleet.known if plan.fleet else ()
    placement = next((candidate for candidate in placements if candidate.id == number), None)
    if placement is None:
        ids = ", ".join(str(candidate.id) for candidate in placements) or "none"
        raise InputError(f"--placement {number} is not in {plan_path}; known: {ids}.")
    slices = _slices(placement, plan_path)
    shared = (len(placement.jobs) > 1 and placement.timetable is UNSET) or bool(slices)
    _check_launchable(placement.offer.provider)
    offer = _offer(placement.offer, catalog)
    return LaunchChoice(
        offers=(offer,),
        machines=(_shared(str(placement.mode), len(placement.jobs) if shared else 1, offer),),
        region=_region_text(placement.offer.region),
        plan=clean(f"{Path(plan_path).stem}-placement-{number}"),
        sharing=placement.mode if shared else None,
        jobs=placement.jobs if shared else (),
        slices=slices,
    )


def _slices(placement: Placement, path: str) -> tuple[str, ...]:
    """Return the MIG profile of each job's slice; empty where they share the whole GPU."""
    if placement.mode != "mig":
        return ()
    slices_text = tuple(word.strip() for word in (placement.slice or "").split(",") if word.strip())
    slices = slices_text * len(placement.jobs) if len(slices_text) == 1 else slices_text
    if len(slices) != len(placement.jobs):
        raise InputError(
            Message(
                "launch.slices-differ",
                id=placement.id,
                path=path,
                jobs=len(placement.jobs),
                count=len(slices_text),
                slice=placement.slice or "none",
            )
        )
    return slices


def change(
    choice: LaunchChoice, count: int | None, purchase: str | None, catalog: Catalog
) -> LaunchChoice:
    """Return the choice of a plan with another number of machines, or bought in another way.

    Bought in another way it has the catalog's price, and no fallbacks: the plan compared none.

    Raises:
        InputError: it is not sold so.
    """
    if purchase is not None and purchase != choice.offers[0].purchase:
        first = choice.offers[0]
        region = None if first.region == EVERYWHERE else first.region
        offer = catalog.find(first.provider, first.instance_type, region, purchase)
        choice = replace(choice, offers=(offer,), machines=choice.machines[:1])
    return choice if count is None else replace(choice, **_counted(choice, count))


def _counted(choice: LaunchChoice, count: int) -> dict[str, Any]:
    """Return the changes for another number of machines: of the one copy, or of those that stay."""
    one_copy = all(machine.nodes == choice.count for machine in choice.machines)
    machines = tuple(m.on_nodes(count) if one_copy else m for m in choice.machines)
    return {"count": count, "machines": machines}


def _shared(mode: str, jobs: int, offer: Offer) -> MachineSettings:
    if jobs > 1:
        return shared_settings(mode, jobs, offer.vcpus)
    return plain_settings(max(1, int(offer.gpu_count)), 1, offer.vcpus)


def with_dearest(choice: LaunchChoice, catalog: Catalog) -> LaunchChoice:
    """Return the choice with what its offers cost at most, as far as known offline."""
    return replace(choice, dearest=tuple(_dearest(offer, catalog) for offer in choice.offers))


def _dearest(offer: Offer, catalog: Catalog) -> Decimal:
    region = None if offer.region == EVERYWHERE else offer.region
    rows = catalog.history(offer.provider, offer.instance_type, region, offer.purchase)
    # A price that another one replaced says nothing of today's.
    begun = {row.region: row.starts for row in rows if row.starts <= catalog.as_of}
    prices = (row.usd_per_hour for row in rows if row.starts == begun.get(row.region))
    return max(offer.usd_per_hour, *prices)


def _recommended(plan: Plan, path: str) -> FoundOption:
    """Return what the plan recommends for its only job.

    Of several, what could be launched is listed.
    """
    if len(plan.jobs) == 1:
        return find_recommended(plan)
    named = [f"--option {as_typed(job.name)}/{job.recommended}" for job in plan.jobs if job.choice]
    named += [f"--placement {placement.id}" for placement in plan.placements]
    choices = ", ".join(named) or "none"
    raise InputError(Message("launch.choose-one", path=path, jobs=len(plan.jobs), named=choices))


def _nothing_to_launch(job: JobPlan) -> str:
    names = [f"{job.name}/{candidate.id}" for candidate in job.options if _can_launch(candidate)]
    options = ", ".join(map(as_typed, names)) or "of another plan"
    who = f"{job.name}/o0 is" if job.choice else "The plan says"
    return Message("launch.stays", who=who, job=job.name, options=options)


def _can_launch(option: Option) -> bool:
    return option.offer.provider in launchable() and option.offer.purchase in BOUGHT


def _fallback_key(option: Option) -> tuple[object, ...]:
    """Return what an option that may stand in has as well: provider, purchase, machines."""
    offer = option.offer
    return option.count, offer.provider, offer.purchase, offer.gpu_count


def _instead(job: JobPlan, option: Option) -> list[str]:
    """Return where to get what gpucost cannot launch, and the best option that it can."""
    offer, name = option.offer, f"{job.name}/{option.id}"
    how = "" if offer.purchase in BOUGHT else f", {offer.purchase}"
    place_text = f"{offer.provider}/{offer.instance_type}{how}"
    refusal = f"{name} is {place_text}, which gpucost cannot launch. {_other_ways(name, option)}"
    best = next((candidate for candidate in job.options if _can_launch(candidate)), None)
    if best is None:
        again = " ".join(f"--provider {provider}" for provider in sorted(launchable()))
        return [refusal, Message("launch.none-launchable", job=job.name, again=again)]
    machine = f"{best.offer.provider}/{best.offer.instance_type}"
    named, usd = as_typed(f"{job.name}/{best.id}"), f"${show(best.cost.mid)}"
    details = {"name": named, "place": machine, "cost": usd}
    return [refusal, Message("launch.best-launchable", **details)]


def _other_ways(name: str, option: Option) -> str:
    """Return what starts it instead: another tool, or a person."""
    tools = that_start(option.offer)
    by_hand = f"Rent it at {page_of(option.offer.provider)}."
    if not tools:
        return by_hand
    named = f"--to {tools[0]} --option {as_typed(name)} --ttl 8h --run 'python train.py'"
    return f"{by_hand} Or launch it with another tool: gpucost export {named}"


def _check_launchable(provider: str) -> None:
    if provider not in launchable():
        places = ", ".join((*sorted(launchable()), f"{OWN}/USER@HOST"))
        details = {"provider": provider, "places": places, "page": page_of(provider)}
        raise InputError(Message("launch.nowhere", **details))


def _offer(rented: RentedOffer, catalog: Catalog) -> Offer:
    """Return the catalog's offer at the planned price."""
    region = None if rented.region == EVERYWHERE else rented.region
    offer = catalog.find(rented.provider, rented.instance_type, region, rented.purchase)
    return structs.replace(offer, usd_per_hour=rented.usd_per_hour)


def _region_text(region: str) -> str:
    return "" if region == EVERYWHERE else region
