"""The same work on two sets of machines: dollars, hours, what their links cost, break-even."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import msgspec

from planner.choice.baseline import gpu_memory_gib
from planner.choice.feasibility import holds
from planner.models.document import Number
from planner.models.estimate import Estimate, Interval, exactly
from planner.prediction.layout import Layout
from planner.prediction.predict import Predictions, split_time
from planner.profile.kinds import JobKind, Parallelism
from planner.profile.model import Hardware, Job, Profile
from planner.profile.source import named_gpu
from planner.signals.signals import memory_need_gib
from pricing.catalog.catalog import Catalog, unknown_names
from pricing.catalog.offer import EVERYWHERE, Offer, parse_place
from pricing.errors import InputError
from pricing.hardware import is_socketed, matching
from pricing.message import Message
from pricing.money import HOURS_PER_MONTH, Amount, cents

_MACHINES = re.compile(r"(?:(\d{1,4})x)??(?:(\d{1,2})x)?([A-Za-z][\w .-]*)")
_UNMEASURED_WORK = "training on all GPUs, data-parallel (nothing measured)"
_PLACE = re.compile(r"(?:(\d{1,4})x)?(\S+/\S+)")


class ComparedMachines(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison.

    Attributes:
        name: as it was asked for.
        provider: who rents the machines.
        instance_type: the provider's size.
        machines: how many.
        gpus: of all machines.
        gpu: their model.
        usd_per_hour: of all machines.
        usd_per_gpu_hour: of one GPU.
        links: between the GPUs.
        hours: that the work takes there [h].
        usd: that it costs, machines alone, at the low, mid and high of the hours.
        price_age_days: since the price was read; None: on no stated day.
    """

    name: str
    provider: str
    instance_type: str
    machines: int
    gpus: int
    gpu: str
    usd_per_hour: Amount
    usd_per_gpu_hour: Amount
    links: str
    hours: Interval
    usd: tuple[Amount, Amount, Amount]
    price_age_days: int | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What `gpucost compare -f json` prints.

    Attributes:
        schema: name and version of this form.
        work: what both do, in words.
        sides: both, in the order of the command line.
        links_usd: that slower links cost on the second side, against the first one's speed a GPU;
            None where the models differ.
        break_even: the second is cheaper while its hours are less than this many times the first's.
        busy_fraction: of the measured GPUs, 0-1; None where nothing was measured.
        warnings: what a reader must know of the prices.
    """

    schema: str = "gpucost.comparison/v1"
    work: str
    sides: tuple[ComparedMachines, ComparedMachines]
    links_usd: Amount | None
    break_even: Amount
    busy_fraction: Number | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machines:
    """So many machines of an offer."""

    name: str
    offer: Offer
    count: int

    @property
    def layout(self) -> Layout:
        return Layout.of(self.offer, self.count)

    @property
    def gpus(self) -> int:
        return round(self.offer.gpu_count) * self.count

    @property
    def usd_per_hour(self) -> Decimal:
        return self.offer.usd_per_hour * self.count


def compare(
    names: tuple[str, str],
    catalog: Catalog,
    providers: tuple[str, ...],
    profile: Profile | None,
    hours: float | None = None,
) -> Comparison:
    """Return the same work on two sets of machines.

    Args:
        names: `8xH100` (one machine with 8), `8x1xH100` (8 machines with 1), or PROVIDER/TYPE,
            `8xPROVIDER/TYPE`. Each is taken where it costs least, one model where one provider
            rents both; a name of several models (A100) is any of them, boards that NVLink joins
            before cards in machines of several GPUs. Prices count as they were read, as in a plan.
        catalog: of the day.
        providers: who may rent them; empty: all.
        profile: the work; None: data-parallel training on the first side.
        hours: that it takes there [h]; None: on the measured machine, as the profile says, else a
            month.

    Raises:
        InputError: a name is malformed, both are one, nobody rents it, or the job does not fit.
    """
    problems = unknown_names("--provider", providers, (o.provider for o in catalog.offers))
    if names[0] == names[1]:
        problems.append(f"{names[0]} is compared with itself; name two sets of machines.")
    if problems:
        raise InputError(problems)
    first, second = _chosen(names, catalog, providers, profile)
    work = profile or _typical(first)
    predictions = Predictions(profile=work, parts=split_time(work))
    measured_h = float((work.usage and work.usage.hours_per_month) or HOURS_PER_MONTH)
    speeds = [predictions.speed(side.layout) for side in (first, second)]
    speeds = speeds if profile else [exactly(1.0, "the first side"), speeds[1]]
    speeds = _never_faster_apart(first, second, speeds)
    all_h = measured_h if hours is None else hours * speeds[0].mid
    pairs = zip((first, second), speeds, strict=True)
    sides = [_side(machines, speed, all_h, catalog.as_of) for machines, speed in pairs]
    ideal_h = sides[0].hours.mid * sides[0].gpus / sides[1].gpus
    lost = Decimal(repr(sides[1].hours.mid - ideal_h)) * second.usd_per_hour
    of_what = f"{profile.job.name} as measured" if profile else _UNMEASURED_WORK
    warned = (text for m in (first, second) for text in m.offer.warnings(catalog.as_of))
    return Comparison(
        work=f"{all_h:g} h of {of_what}",
        sides=(sides[0], sides[1]),
        links_usd=cents(lost) if first.offer.gpu == second.offer.gpu else None,
        break_even=round(first.usd_per_hour / second.usd_per_hour, 4),
        busy_fraction=None if profile is None else profile.busy_fraction,
        warnings=tuple(dict.fromkeys((*_region_notes(first, second), *warned))),
    )


def _never_faster_apart(
    first: _Machines, second: _Machines, speeds: Sequence[Estimate]
) -> list[Estimate]:
    """Return the speeds; as many of the same GPUs on more machines are at best as fast."""
    capped = list(speeds)
    gpus = {(side.offer.gpu, side.offer.gpu_count * side.count) for side in (first, second)}
    if len(gpus) > 1 or first.count == second.count:
        return capped
    larger = 0 if first.count > second.count else 1
    fastest, speed = speeds[1 - larger].mid, speeds[larger]
    ends = {end: min(fastest, getattr(speed, end)) for end in ("low", "mid", "high")}
    capped[larger] = msgspec.structs.replace(speed, **ends)
    return capped


def _typical(machines: _Machines) -> Profile:
    offer = machines.offer
    return Profile(
        job=Job(name="work", kind=JobKind.TRAINING, parallelism=Parallelism.DDP),
        hardware=Hardware(
            gpu=offer.gpu,
            gpu_count=machines.gpus,
            nodes=machines.count,
            interconnect=offer.interconnect,
            network_gbps=offer.network_gbps,
        ),
    )


def _side(machines: _Machines, speed: Estimate, hours: float, as_of: date) -> ComparedMachines:
    offer, gpus = machines.offer, round(machines.offer.gpu_count * machines.count)
    hours_there = Interval(low=hours / speed.high, mid=hours / speed.mid, high=hours / speed.low)
    inside = offer.interconnect or "unknown"
    between = "" if machines.count == 1 else f"{machines.count} machines over the network"
    low, mid, high = (
        cents(machines.usd_per_hour * Decimal(repr(h)))
        for h in (hours_there.low, hours_there.mid, hours_there.high)
    )
    return ComparedMachines(
        name=machines.name,
        provider=offer.provider,
        instance_type=offer.instance_type,
        machines=machines.count,
        gpus=gpus,
        gpu=offer.gpu,
        usd_per_hour=machines.usd_per_hour,
        usd_per_gpu_hour=machines.usd_per_hour / gpus,
        links=between or ("none" if gpus == 1 else f"{inside}, one machine"),
        hours=hours_there,
        usd=(low, mid, high),
        price_age_days=offer.age_days(as_of),
    )


def _chosen(
    names: tuple[str, str], catalog: Catalog, providers: tuple[str, ...], profile: Profile | None
) -> tuple[_Machines, _Machines]:
    first, second = (_that_hold(_candidates(n, catalog, providers), profile) for n in names)
    pairs = [
        (machines_a, machines_b)
        for machines_a in first
        for machines_b in second
        if machines_a.offer.provider == machines_b.offer.provider
        if machines_a.offer.gpu == machines_b.offer.gpu
    ]

    def rank(*sides: _Machines) -> tuple[bool, Decimal]:
        cards = any(s.offer.gpu_count > 1 and not is_socketed(s.offer.gpu) for s in sides)
        return cards, sum((side.usd_per_hour for side in sides), Decimal(0))

    if pairs:
        return min(pairs, key=lambda pair: rank(*pair))
    return min(first, key=rank), min(second, key=rank)


def _that_hold(machines: list[_Machines], profile: Profile | None) -> list[_Machines]:
    """Return the machines whose GPUs hold what each GPU of the measured job held."""
    need_gib = None if profile is None else memory_need_gib(profile)
    if profile is None or need_gib is None:
        return machines
    gpu = named_gpu(profile)
    model = gpu.name if gpu else None
    holding = [m for m in machines if holds(m.offer, m.gpus, profile, model, need_gib)]
    if not holding:
        most_gib = max(gpu_memory_gib(side.offer) for side in machines)
        sizes = {"need": need_gib, "most": most_gib}
        raise InputError(
            Message("compare.no-room", name=machines[0].name, job=profile.job.name, **sizes)
        )
    return holding


def _sold_as(name: str, catalog: Catalog) -> list[Offer]:
    """Return the offer of a name; of one without a region those of all its regions."""
    provider, instance_type, region = parse_place(name)
    key = (provider, instance_type, "on_demand")
    sold = [
        o
        for o in catalog.offers
        if (o.provider, o.instance_type, o.purchase) == key and not o.withdrawn
    ]
    is_open = region is None and len({o.usd_per_hour for o in sold}) > 1
    return sold if is_open else [catalog.find(provider, instance_type, region)]


def _region_notes(*sides: _Machines) -> Iterator[str]:
    """Yield the region of a price, where the name of the machine says none."""
    for side in sides:
        offer = side.offer
        if offer.region != EVERYWHERE and side.name.endswith(
            f"{offer.provider}/{offer.instance_type}"
        ):
            yield Message("note.region", job=side.name, region=offer.region)


def _candidates(name: str, catalog: Catalog, providers: tuple[str, ...]) -> list[_Machines]:
    full = catalog.full_place(name)
    if place := _PLACE.fullmatch(full):
        return [
            _Machines(name=name, offer=offer, count=int(place[1] or 1))
            for offer in _sold_as(place[2], catalog)
        ]
    match = _MACHINES.fullmatch(name)
    if match is None:
        raise InputError(Message("compare.not-machines", name=repr(name)))
    models = {gpu.name for gpu in matching(match[3])}
    gpus, count = int(match[2] or 1), int(match[1] or 1)
    sold = [
        offer
        for offer in catalog.offers
        if offer.gpu in models and offer.gpu_count >= 1 and offer.purchase == "on_demand"
        if not (offer.withdrawn or offer.is_community or offer.not_for_rent_reason(catalog.as_of))
        if not providers or offer.provider in providers
    ]
    machines = [
        _Machines(name=name, offer=offer, count=count) for offer in sold if offer.gpu_count == gpus
    ]
    if not machines:
        counts = ", ".join(f"{n:g}" for n in sorted({offer.gpu_count for offer in sold}))
        seller = f" of {', '.join(providers)}" if providers else ""
        sizes = {"gpus": gpus, "gpu": match[3], "counts": counts or "none"}
        raise InputError(Message("compare.no-machine", name=name, seller=seller, **sizes))
    return machines
