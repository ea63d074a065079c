"""Finds what a job costs today: the offer it runs on, its price, and the bill of the period."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache

from msgspec import structs

from planner.choice.requirements import Reason, Rejected, Requirements
from planner.choice.workload import Tenancy, Workload, assumption, impossible_figures
from planner.models.estimate import Estimate
from planner.models.interruption import Billed
from planner.profile.kinds import GPU_OUT_OF_MEMORY, HOST_OUT_OF_MEMORY, Parallelism
from planner.profile.model import Profile
from planner.profile.source import (
    contradiction,
    measured_gpu,
    named_gpu,
    shown_memory_gib,
    source_gpu,
)
from planner.profile.trials import Replicas
from planner.signals.signals import SIGNALS
from planner.signals.thresholds import USABLE
from pricing.billing.provider_rules import rules_of
from pricing.billing.quote import OF_THE_DATA, Quote, Usage, part_of, quote
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import EVERYWHERE, TERMS_H, Offer, parse_place
from pricing.catalog.regions import placed
from pricing.errors import InputError
from pricing.hardware import find, nearest
from pricing.listing import as_typed
from pricing.message import Message
from pricing.money import HOURS_PER_MONTH, show

OWN = "own"
"""The provider of a machine that no price list has."""
MANAGED = "ml."
"""What SageMaker writes before the name of the type that it runs on."""
_SOURCE = "--price, given by the user"


def at_price(listed: Offer | None, profile: Profile, usd_per_hour: Decimal, day: date) -> Offer:
    """Return today's machine at the user's price.

    Args:
        listed: the machine in the catalog; None where it was not stated.
        profile: what was measured.
        usd_per_hour: for one whole machine, > 0.
        day: of the plan.

    Raises:
        InputError: the profile names no known GPU.
    """
    if listed is not None:
        dated = {"as_of": day, "as_of_text": "", "dated": True, "withdrawn": False}
        valid = {"valid_from": None, "valid_until": None}
        return structs.replace(listed, usd_per_hour=usd_per_hour, source=_SOURCE, **dated, **valid)
    hardware, gpu = profile.hardware, source_gpu(profile)
    nodes = hardware.nodes or 1
    count = profile.gpu_count // nodes or 1
    return Offer(
        provider=hardware.provider or OWN,
        region=hardware.region or "*",
        instance_type=hardware.instance_type or "-".join((f"{count}x", *gpu.name.split())),
        gpu=gpu.name,
        gpu_count=count,
        gpu_memory_gib=hardware.gpu_memory_gib or gpu.memory_gib,
        vcpus=hardware.cpu_cores and hardware.cpu_cores / nodes,
        ram_gib=hardware.ram_gib and hardware.ram_gib / nodes,
        interconnect=hardware.interconnect,
        network_gbps=hardware.network_gbps,
        purchase=hardware.purchase or "on_demand",
        usd_per_hour=usd_per_hour,
        source=_SOURCE,
        as_of=day,
    )


_FLASH = "balanced"  # GCP's; its usual kind turns, those of the others do not


def bill_of_work(  # noqa: PLR0913, PLR0917 - one bill has that many parts
    offer: Offer,
    count: int,
    hours: float,
    work: Workload,
    catalog: Catalog,
    extra: Billed | None = None,
    *,
    tenancy: Tenancy | None = None,
) -> Quote:
    """Return the bill of so many machines for so many hours of work, with the job's data.

    Each machine has its boot disk and its public address; those of an own machine are its owner's.
    Data that a GPU reads lie on flash, so a provider whose usual disk is none is asked for its own.
    `extra` adds what interruptions cost: lost work and checkpoints, lines of their own. Of a
    machine that several jobs share the job bears its part, for as long as anyone holds it.
    """
    if tenancy is not None:
        hours = max(hours, tenancy.hours)
    bought, day = offer.provider != OWN, catalog.as_of
    flash = _FLASH in rules_of(offer.provider, day).kinds("volume_storage")
    use = Usage(
        duration_s=seconds(hours * 3600.0),
        lost_work_s=0 if extra is None else seconds(extra.lost_s),
        checkpoint_s=0 if extra is None else seconds(extra.checkpoint_s),
        count=count,
        boot_disk_bytes=work.boot_disk_bytes if bought else 0,
        boot_disk_h=None if work.boot_disk_h is None else Decimal(str(work.boot_disk_h)),
        addresses=count if work.public_address and bought else 0,
        egress_bytes=work.egress_bytes,
        egress_to=work.egress_to,
        storage_bytes=work.storage_bytes,
        storage_h=work.storage_h,
        storage_kind=_FLASH if flash else "",
        commitment="term" if work.storage_h is None else "month",
        as_of=day,
    )
    bill = quote(offer, use)
    return bill if tenancy is None else part_of(bill, tenancy.held, tenancy.of)


@lru_cache(maxsize=1024)
def seconds(value: float) -> Decimal:
    """Return a time as bills count it, to the millisecond."""
    return Decimal(str(round(value, 3)))


LIMITS = frozenset(("deadline", "budget", "latency", "memory", "region"))
_DAYS_A_MONTH = HOURS_PER_MONTH / 24
_TINY = 1e-9  # a limit of zero is exceeded by any amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The job as it runs now.

    Attributes:
        offer: what is paid today; None where no price is known.
        count: machines, of all replicas together.
        hours: hours of the period.
        quote: the bill of the period; None without a price.
        assumed: whether the offer was assumed rather than stated.
        replicas: copies of the job, on `count` / `replicas` machines each.
        tenancy: the job's part in the bill of a machine that others use; None where it bears all.
        owed: dollars of the period for its machines that are owed whatever runs: it is the owner's,
            or paid for until a day that is not over.
        broken: the limits and wishes that it breaks.
        notes: what was assumed.
        warnings: what contradicts itself.
    """

    offer: Offer | None
    count: int
    hours: Estimate
    quote: Quote | None
    assumed: bool
    replicas: int = 1
    tenancy: Tenancy | None = None
    owed: Decimal = Decimal(0)
    broken: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def must_change(self) -> bool:
        """Whether it breaks a limit, not only a wish for a seller, a GPU or a way of buying."""
        return any(broken.reason in LIMITS for broken in self.broken)

    @property
    def cost(self) -> Decimal | None:
        """The bill of the period, exact; None without a price."""
        return self.quote.exact if self.quote else None

    @property
    def machine_cost(self) -> Decimal | None:
        """Return the part of the bill that is for machines: what a job's waste is a share of."""
        if self.quote is None:
            return None
        machines = (line.usd for line in self.quote.lines if line.what not in OF_THE_DATA)
        return sum(machines, Decimal(0))

    def signals(self, profile: Profile) -> dict[str, float | None]:
        """Return the signals of the machine and its bill; None without a price or its figures."""
        quote, offer, job = self.quote, self.offer, profile.job
        if quote is None or offer is None:
            return {}
        out = sum((line.usd for line in quote.lines if line.what == "egress"), Decimal(0))
        network, disk = profile.hardware.network_gbps, offer.scratch_disk_gib
        disk = disk or offer.local_disk_gib
        return {
            "bill.egress": float(out / quote.exact) if quote.exact else None,
            "network.of_offered": network / offer.network_gbps
            if network and offer.network_gbps
            else None,
            "data.of_scratch": job.dataset_gib / (disk * self.count)
            if job.dataset_gib and disk
            else None,
        }

    def has_size(self, offer: Offer) -> bool:
        """Return whether an offer is today's size, wherever and however bought."""
        today = self.offer and (self.offer.provider, self.offer.instance_type)
        return today == (offer.provider, offer.instance_type)

    def has_size_bought_alike(self, offer: Offer) -> bool:
        """Return whether it is that size, bought in the same way."""
        is_alike = self.offer is not None and offer.purchase == self.offer.purchase
        return is_alike and self.has_size(offer)

    def has_size_there(self, offer: Offer) -> bool:
        """Return whether it is that size where the job runs today."""
        return self.has_size(offer) and self.keeps_data(offer)

    def is_here(self, offer: Offer) -> bool:
        """Return whether it is that size, bought alike, where the job runs today."""
        return self.has_size_bought_alike(offer) and self.keeps_data(offer)

    def keeps_data(self, offer: Offer) -> bool:
        """Return whether data may stay where they are.

        A size sold everywhere is taken where they are.
        """
        today = self.offer
        if today is None or today.provider != offer.provider:
            return False
        return today.region == offer.region or EVERYWHERE in (today.region, offer.region)

    def is_paid(self, offer: Offer, count: int) -> bool:
        """Return whether so many of an offer are the machines paid today, at their price."""
        if self.offer is None or count != self.count or not self.has_size_bought_alike(offer):
            return False
        everywhere = self.offer.region == EVERYWHERE
        return offer == self.offer or (everywhere and offer.usd_per_hour == self.offer.usd_per_hour)


def find_baseline(
    profile: Profile,
    work: Workload,
    catalog: Catalog,
    requirements: Requirements,
    tenancy: Tenancy | None = None,
) -> Baseline:
    """Return today's machine, its hours and its bill.

    Args:
        profile: what was measured.
        work: hours and data of the period.
        catalog: for the day.
        requirements: what was asked.
        tenancy: the job's part in the bill of its machine; None where it bears all.

    Raises:
        InputError: the stated provider, type or region is not in the catalog, or neither a GPU nor
            a machine is named.
    """
    offer, assumed, notes = find_today(profile, catalog, requirements)
    count = _machines(profile, offer) * work.replicas
    hours = work.hours.mid
    if profile.hardware.owned:  # its disk and its address are the owner's
        work = replace(work, boot_disk_bytes=0, public_address=False)
    bill = bill_of_work(offer, count, hours, work, catalog, tenancy=tenancy) if offer else None
    if offer and tenancy:
        notes = (*notes, assumption(profile.job.name, tenancy, offer))
    notes, machine = (*notes, *_unlisted(profile, offer, assumed=assumed)), profile.machine
    if machine and machine.others and machine.gpu_count == profile.gpu_count:
        notes = (*notes, Message("note.alone", job=profile.job.name, n=len(machine.others)))
    baseline = Baseline(
        offer=offer,
        count=count,
        hours=work.hours,
        quote=bill,
        assumed=assumed,
        replicas=work.replicas,
        tenancy=tenancy if offer else None,
        notes=(*work.notes, *notes),
        warnings=_other_form(profile, offer) if offer and not assumed else (),
    )
    owed, note = _owed(profile, baseline, requirements, catalog.as_of)
    return replace(
        baseline,
        owed=owed,
        broken=tuple(_broken(profile, baseline, requirements)),
        notes=(*baseline.notes, *note),
    )


def _unlisted(profile: Profile, offer: Offer | None, *, assumed: bool) -> Iterator[str]:
    """Yield that the hardware table lacks the card of the recording, and which come near."""
    gpu = measured_gpu(profile)
    is_known = offer is not None and not assumed and offer.card.is_listed
    if gpu is not None and not gpu.is_listed and not is_known:
        near = nearest(gpu.name)
        code = "note.gpu-unlisted-near" if near else "note.gpu-unlisted"
        yield Message(code, job=profile.job.name, gpu=gpu.name, near=near)


def _owed(
    profile: Profile, baseline: Baseline, requirements: Requirements, day: date
) -> tuple[Decimal, tuple[str, ...]]:
    """Return what is owed for today's machines whatever runs, in the period, and what is said.

    A reservation without a last day is taken to last for the horizon.
    """
    hardware, bill, name = profile.hardware, baseline.quote, profile.job.name
    reserved = baseline.offer is not None and baseline.offer.purchase.startswith("reserved")
    until = _paid_until(profile, requirements)
    if bill is None or not (hardware.owned or until or reserved):
        return Decimal(0), ()
    machines = bill.by_time
    if hardware.owned:
        return machines, (Message("note.owned", job=name),)
    if until is None:
        return machines, (Message("note.reserved", job=name),)
    if until < day:
        return Decimal(0), (Message("note.term-over", job=name, day=until.isoformat()),)
    days_left = Decimal((until - day).days)
    horizon_d = requirements.horizon * _DAYS_A_MONTH
    part = min(Decimal(1), days_left / horizon_d) if horizon_d else Decimal(1)
    return machines * part, (Message("note.paid-until", job=name, day=until.isoformat()),)


def _paid_until(profile: Profile, requirements: Requirements) -> date | None:
    stated = profile.hardware.paid_until
    return requirements.paid_until or (date.fromisoformat(stated) if stated else None)


def with_machine(profile: Profile, offer: Offer | None, *, assumed: bool) -> Profile:
    """Return the profile with the GPU and the host of a stated machine filled in where missing.

    A name that no model of the table has is of the machine's GPU. A service was measured on the
    machines of one copy.
    """
    hardware = profile.hardware
    if offer is None or assumed:
        return profile
    machines = _machines(profile, offer)
    count = hardware.gpu_count or (len(profile.gpus) or round(offer.gpu_count) * machines)
    return structs.replace(
        profile,
        hardware=structs.replace(
            hardware,
            gpu=hardware.gpu if named_gpu(profile) else offer.gpu,
            gpu_count=max(1, count),
            cpu_cores=hardware.cpu_cores or (offer.vcpus and offer.vcpus * machines),
            interconnect=hardware.interconnect or offer.interconnect,
            nodes=hardware.nodes or machines,
            network_gbps=hardware.network_gbps or offer.network_gbps,
        ),
    )


def as_copies(profile: Profile, catalog: Catalog, requirements: Requirements) -> Profile:
    """Return a service on several machines that answer apart as one copy, and how many there are.

    They are as many as its stated copies, or have a GPU each. A service is returned as it is where
    a GPU may hold a part of its model, or where its copies are counted otherwise. Copies on the
    GPUs of one machine are one job, whose GPUs work apart.
    """
    job, work = profile.job, profile.work
    weights = SIGNALS["weights.of_gpu"].read(profile) if job.parameters else 0.0
    is_cut = job.splits_the_model or not isinstance(weights, float) or weights > USABLE
    if not job.kind.answers or is_cut:
        return profile
    try:
        offer, assumed, _ = find_today(profile, catalog, requirements)
    except InputError:
        return profile  # planning it says what is wrong
    profile = with_machine(profile, offer, assumed=assumed)
    hardware = profile.hardware
    gpus, machines = profile.gpu_count, _machines(profile, offer)
    copies = job.replicas.now if job.replicas else None if job.serving else gpus
    if machines == 1 and job.replicas and job.parallelism and copies == gpus:
        rate = job.requests_per_s and job.requests_per_s * gpus
        job = structs.replace(job, parallelism=Parallelism.NONE, replicas=None, requests_per_s=rate)
        return structs.replace(profile, job=job)
    if machines == 1 or copies != machines or gpus % machines:
        return profile
    if job.replicas is None:
        rate = job.requests_per_s and job.requests_per_s / machines
        job = structs.replace(job, requests_per_s=rate, replicas=Replicas(now=machines))
    if work is not None and work.rate_per_s:
        work = structs.replace(work, rate_per_s=work.rate_per_s / machines)
    cores = hardware.cpu_cores and min(hardware.cpu_cores, (offer and offer.vcpus) or math.inf)
    hardware = structs.replace(hardware, gpu_count=gpus // machines, nodes=1, cpu_cores=cores)
    copy = structs.replace(profile, job=job, hardware=hardware, work=work)
    return profile if any(impossible_figures(copy)) else copy


def find_today(
    profile: Profile, catalog: Catalog, requirements: Requirements
) -> tuple[Offer | None, bool, tuple[str, ...]]:
    """Return what runs the job today, whether that is assumed, and what was assumed.

    Raises:
        InputError: the stated machine is not in the catalog, or not the one of the recording, or
            no GPU is named.
    """
    paid, profile = requirements.price_usd_per_hour, _on_machine_named(profile, requirements)
    if paid is None:
        offer, assumed, notes = _listed(profile, catalog, requirements)
        if offer is not None and not assumed:
            check_machine(profile, offer, catalog)
        return offer, assumed, notes
    name, hardware = profile.job.name, profile.hardware
    size = (hardware.provider, hardware.instance_type)
    try:
        stated = all(size)
        listed, _, notes = _listed(profile, catalog, requirements) if stated else (None, False, ())
    except InputError as error:
        if requirements.current and size in {(o.provider, o.instance_type) for o in catalog.rows}:
            raise InputError(error.reasons) from error
        listed, notes = None, ()  # a size that no list has; its price is given
    if listed is not None:
        check_machine(profile, listed, catalog)
    offer = at_price(listed, profile, paid, catalog.as_of)
    note = Message("note.price", job=name, machine=offer.name, usd=f"{paid:f}")
    return offer, False, (*notes, note)


def _on_machine_named(profile: Profile, requirements: Requirements) -> Profile:
    """Return the profile on the machine that the user named, where one was."""
    if requirements.current is None:
        return profile
    provider, instance_type, region = parse_place(requirements.current)
    where = {"provider": provider, "instance_type": instance_type, "region": region}
    return structs.replace(profile, hardware=structs.replace(profile.hardware, **where))


def _listed(
    profile: Profile, catalog: Catalog, requirements: Requirements
) -> tuple[Offer | None, bool, tuple[str, ...]]:
    name, hardware = profile.job.name, profile.hardware
    purchase, until = hardware.purchase or "on_demand", _paid_until(profile, requirements)
    if until is not None and until < catalog.as_of and purchase in TERMS_H:
        purchase = "on_demand"  # what a machine costs whose term is over
    provider, instance_type, region = hardware.provider, hardware.instance_type, hardware.region
    if provider and instance_type:
        host = instance_type.removeprefix(MANAGED)
        managed = Message("note.managed", job=name, machine=instance_type, host=host)
        try:
            offer, assumed, notes = _stated(catalog, (provider, host, region, purchase), name)
        except InputError:
            if hardware.gpu:
                source_gpu(profile)  # of a chip that is not known no machine is
            raise
        return offer, assumed, notes if host == instance_type else (*notes, managed)
    if hardware.owned:
        return None, False, (Message("note.owned-unpriced", job=name),)
    return _assumed(profile, catalog, requirements, provider)


def _stated(
    catalog: Catalog, key: tuple[str, str, str | None, str], name: str
) -> tuple[Offer, bool, tuple[str, ...]]:
    provider, instance_type, region, purchase = key
    try:
        return catalog.find(provider, instance_type, region, purchase), False, ()
    except InputError as error:
        matching = [
            o
            for o in catalog.offers
            if (o.provider, o.instance_type, o.purchase) == (provider, instance_type, purchase)
        ]
        if region is not None or not matching:
            hint = "State what it costs: --price USD (an hour)."
            hint += " Spot needs checkpoints: it may be taken back." * (purchase == "spot")
            reasons = [f"{name}: {reason}" for reason in error.reasons]
            raise InputError(reasons, hint=hint) from error
    offer = min(matching, key=lambda o: (o.usd_per_hour, o.region))
    note = Message("note.region", job=name, region=offer.region)
    return offer, False, (note,)


def check_machine(profile: Profile, offer: Offer, catalog: Catalog) -> None:
    """Refuse a machine that is not the one of the recording, and name one that may be.

    Raises:
        InputError: the recording names a GPU of another model, or shows more memory than the
            GPUs of the machine have.
    """
    recorded = contradiction(profile, offer)
    if recorded is None:
        return
    gpu, need_gib = named_gpu(profile), shown_memory_gib(profile) or 0.0
    sold = [
        o
        for o in catalog.offers
        if o.purchase == "on_demand" and o.gpu_count >= 1 and not o.is_community
        if (gpu is None or o.gpu == gpu.name) and o.gpu_memory_gib >= need_gib
    ]
    best = min(
        sold,
        key=lambda o: (
            o.gpu_count != profile.gpu_count,
            o.provider != offer.provider,
            " " in o.place,
            0 if gpu else o.gpu_memory_gib,
            o.usd_per_hour,
            o.place,
        ),
        default=None,
    )
    typed = as_typed(best.place) if best else "PROVIDER/TYPE --price USD"
    machine = {"place": offer.place, "gpu": offer.gpu, "gib": f"{offer.gpu_memory_gib:g}"}
    name, without = profile.job.name, Message("input.without-machine") if gpu else ""
    advice = {"typed": typed, "without": without}
    raise InputError(
        Message("input.other-machine", name=name, recorded=recorded, **machine, **advice)
    )


def _other_form(profile: Profile, offer: Offer) -> tuple[str, ...]:
    """Return that the machine has the measured GPU in another form; both are kept as they are."""
    gpu = measured_gpu(profile)
    if gpu is None or gpu.name == offer.gpu:
        return ()
    job, machine = profile.job.name, offer.name
    return (Message("note.other-gpu", job=job, gpu=gpu.name, machine=machine, other=offer.gpu),)


def _assumed(
    profile: Profile, catalog: Catalog, requirements: Requirements, provider: str | None
) -> tuple[Offer | None, bool, tuple[str, ...]]:
    """Return a machine of so many GPUs, within what was asked for; None if none is sold.

    Of as many as the job has, else more, else several machines with fewer: but where the number of
    machines is stated and nobody sells one with so many, it may be its owner's, and nothing is
    assumed. It is of the seller that rents one GPU for least, so that jobs on more of them pay the
    same for each; where that one has no such machine, the cheapest, which the note says.
    """
    gpu, name, nodes = source_gpu(profile), profile.job.name, profile.hardware.nodes
    each = max(1, profile.gpu_count // (nodes or 1))
    listed = _on_sale(gpu.name, catalog, requirements, provider)
    sold = [o for o in listed if o.gpu_count >= (each if nodes else 1)]
    count = min((o.gpu_count for o in sold), key=lambda n: (n < each, abs(n - each)), default=0)
    sold = [o for o in sold if o.gpu_count == count]
    if not sold:
        code = "note.no-price-there" if provider else "note.no-price"
        machine = gpu.name if each == 1 else f"{each}x {gpu.name}"
        note = Message(code, job=name, gpu=machine, provider=provider or "")
        return None, True, (note,)
    cheapest = min(sold, key=_by_price)
    single = min((o for o in listed if o.gpu_count == 1), key=_by_price, default=None)
    same_seller = [o for o in sold if single is not None and o.provider == single.provider]
    offer = min(same_seller or sold, key=_by_price)
    how = "" if offer == cheapest else "-same-seller"
    if single is not None and not same_seller:
        how = "-other-seller"
    prices = [o.usd_per_gpu_hour for o in listed]
    about = {
        "place": offer.place,
        "gpus": f"{offer.gpu_count:g}x {gpu.name}",
        "usd": show(offer.usd_per_gpu_hour),
        "low": show(min(prices)),
        "high": show(max(prices)),
        "seller": single.provider if single else "",
        "one": f"${show(single.usd_per_hour)}" if single else "",
    }
    return offer, True, (Message(f"note.machine-assumed{how}", job=name, **about),)


def _on_sale(
    gpu: str, catalog: Catalog, requirements: Requirements, provider: str | None
) -> list[Offer]:
    """Return the machines with a GPU that a job may be assumed to run on."""
    sold = [
        o
        for o in catalog.offers
        if o.gpu == gpu and o.purchase == "on_demand" and o.gpu_count >= 1
        if (o.provider == provider if provider else not o.is_community)
    ]
    sold = [o for o in sold if o.not_for_rent_reason(catalog.as_of) is None] or sold
    sold = [o for o in sold if o.provider in requirements.providers] or sold
    return [o for o in sold if placed(o, requirements.regions) is not None] or sold


def _by_price(offer: Offer) -> tuple[Decimal, str]:
    return offer.usd_per_hour, offer.place


def _machines(profile: Profile, offer: Offer | None) -> int:
    gpus = profile.hardware.gpu_count or len(profile.gpus)
    by_gpus = math.ceil(gpus / offer.gpu_count) if gpus and offer and offer.gpu_count >= 1 else 1
    return max(1, by_gpus, profile.hardware.nodes or 1)


def _broken(profile: Profile, baseline: Baseline, caps: Requirements) -> list[Rejected]:
    """Return the limits of the command line and the profile that today's machine breaks."""
    offer, hours, cost = baseline.offer, baseline.hours, baseline.cost
    name = offer.place if offer else Message("speed.today")
    fails: list[Rejected] = []

    def reject(reason: Reason, detail: str) -> None:
        fails.append(Rejected(offer=name, reason=reason, detail=detail))

    if offer is not None:
        if caps.providers and offer.provider not in caps.providers:
            reject("unavailable", Message("breaks.provider", provider=offer.provider))
        if caps.regions and placed(where(offer, profile), caps.regions) is None:
            area = where(offer, profile).region
            code = "breaks.region-unknown" if area == EVERYWHERE else "breaks.region"
            reject("region", Message(code, region=area))
        if caps.purchases and offer.purchase not in caps.purchases:
            reject("purchase", Message("breaks.purchase", purchase=offer.purchase))
        if caps.gpus and offer.gpu not in caps.gpus:
            reject("capability", Message("breaks.gpu", gpu=offer.gpu))
    if caps.gpu_counts and not caps.gpu_counts[0] <= profile.gpu_count <= caps.gpu_counts[1]:
        reject("gpu-count", Message("breaks.gpus", n=profile.gpu_count))
    if profile.job.misses_target and (latency := profile.job.worst_latency_ms):
        target = profile.job.latency_slo_ms or 0.0
        reject("latency", Message("breaks.latency", ms=latency, target=target))
    ran_out = {GPU_OUT_OF_MEMORY: "breaks.memory", HOST_OUT_OF_MEMORY: "breaks.host-memory"}
    if (shortage := ran_out.get(profile.job.ended or "")) is not None:
        reject("memory", Message(shortage))
    fails.extend(over_limits(name, hours, cost, caps))
    return fails


def where(offer: Offer, profile: Profile) -> Offer:
    """Return today's machine in the profile's region, where its price is for everywhere."""
    region = profile.hardware.region
    return structs.replace(offer, region=region) if region and offer.region == EVERYWHERE else offer


def over_limits(
    name: str, hours: Estimate, cost_high: Decimal | None, caps: Requirements
) -> list[Rejected]:
    """Return how hours and cost break the deadline and the budget, at the end of their interval."""
    fails: list[Rejected] = []
    if caps.deadline_h is not None and hours.high > caps.deadline_h:
        detail = Message("no.deadline", mid=hours.mid, high=hours.high, limit=caps.deadline_h)
        over = hours.high / max(caps.deadline_h, _TINY)
        fails.append(Rejected(offer=name, reason="deadline", detail=detail, excess=round(over, 4)))
    if caps.budget_usd is not None and cost_high is not None and cost_high > caps.budget_usd:
        detail = Message("no.budget", usd=show(cost_high), budget=show(caps.budget_usd))
        times_over = cost_high / max(caps.budget_usd, Decimal(str(_TINY)))
        over = round(float(times_over), 4)
        fails.append(Rejected(offer=name, reason="budget", detail=detail, excess=over))
    return fails


def gpu_memory_gib(offer: Offer) -> float:
    """Return the memory of one GPU of the offer that a process can use, GiB."""
    gpu = find(offer.gpu)
    usable = gpu.usable_memory_gib if gpu and offer.gpu_count >= 1 else None
    return usable or offer.gpu_memory_gib
