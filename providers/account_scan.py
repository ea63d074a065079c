"""What runs in an account, whoever started it: read, priced, judged by its use; nothing is changed.

A provider's `scan` module asks and returns a `ScanDraft`; verdict and dollars are made here.
Idle is what was measured or shown to do nothing. What was not measured is unknown, never idle.
"""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from pricing.billing.provider_rules import rules_of
from pricing.catalog.offer import Offer
from pricing.catalog.regions import is_in
from pricing.money import EXACT, HOURS_PER_MONTH, Amount, sum_exactly, without_zeros
from providers.budgets import BudgetUse, Spending, names_of
from providers.interface import MACHINE, ListingDraft, NotQueried

DISK, ADDRESS, NODE_POOL, USE = "disk", "address", "pool", "use"
SCHEMA = "gpucost.scan/v1"

DAYS = 7
"""How far back use is read."""
LEAST_HOURS = 24
"""A machine is judged by no less: one that has just booted, or waits for a night, is not idle."""
IDLE_GPU_FRACTION = 0.01
"""Busiest hour of an idle machine's GPUs: 36 s of any kernel. Ours."""
IDLE_CPU_FRACTION = 0.05
"""The same of its CPU, and less than one core of it: a loop that feeds a GPU keeps a core busy.

5 % is a usual line (trimcloud.io/faq, read 2026-11-28: "under 5% CPU utilization for a continuous
24 hour period"); the core is ours, as 5 % of 192 vCPUs are ten.
"""

_MOST_VCPUS = 192  # of a machine with GPUs, where its own are not known: p5, p6-b200


class ScannedItem(Struct, frozen=True, kw_only=True):
    """A GPU machine, or a disk or a public address that no machine holds.

    Attributes:
        provider: as in offers.
        kind: `machine`, `disk` or `address`.
        id: as the provider gave it.
        name: as its owner gave it; empty where it has none.
        region: where it is; empty where the provider does not say.
        type: the provider's size of a machine, or its kind of disk; empty where it has none.
        purchase: how a machine is bought; savings plans and reservations are not seen.
        state: in the provider's word.
        pool: node pool or group that would replace a machine that is ended; empty: none.
        tags: as its owner set them.
        owner: by its tag; None where it has none.
        run: launch of gpucost that made it; None: gpucost did not.
        started_at: of a machine its last start; None where the provider does not say.
        vcpus: of a machine; None where they are not known.
        disk_gib: of all its disks; None where they could not be read.
        is_billed: whether machine time is, in its state.
        attached_usd_per_hour: disks and addresses that a machine holds, as far as their price is
            known.
        usd_per_hour: at list price, with them, as far as it is known; None where nothing is.
        usd_so_far: the same since `started_at`; None where either is not known.
        at_least: whether a part has no known price.
        price_source: where the price of its time was read; empty where there is none.
        price_as_of: day of that price as the source has it.
        cpu_fraction: mean of the week; None where it was not measured.
        gpu_fraction: the same of its GPUs.
        busiest_fraction: mean of the busiest hour, of the GPUs where they were measured.
        measured_h: hours of it; None where nothing was measured.
        idle: None where nothing shows it.
        why: what shows it, or why nothing does.
        command: what ends it there; empty where its id cannot stand in a command.
    """

    provider: str
    kind: str
    id: str
    name: str
    region: str
    type: str = ""
    purchase: str = "on_demand"
    state: str = ""
    pool: str = ""
    tags: Mapping[str, str] = {}
    owner: str | None = None
    run: str | None = None
    started_at: Annotated[datetime, Meta(tz=True)] | None = None
    vcpus: int | None = None
    disk_gib: float | None = None
    is_billed: bool = True
    attached_usd_per_hour: Amount = Decimal(0)
    usd_per_hour: Amount | None = None
    usd_so_far: Amount | None = None
    at_least: bool = False
    price_source: str = ""
    price_as_of: str = ""
    cpu_fraction: float | None = None
    gpu_fraction: float | None = None
    busiest_fraction: float | None = None
    measured_h: float | None = None
    idle: bool | None = None
    why: str = ""
    command: str = ""


class AccountScan(Struct, frozen=True, kw_only=True):
    """What runs in the accounts, and what of it is idle.

    Attributes:
        schema: `gpucost.scan/v1`.
        as_of: when the providers were asked.
        items: idle ones first, then those of unknown use; machines without a known price, then
            the dearest first.
        unseen: parts of an account that could not be asked, a sentence each.
        skipped: providers without credentials, a sentence each.
        idle_usd_per_month: of idle items, as far as prices are known: 730 hours.
        usd_per_month: of all of them.
        at_least: whether more may be there: a part was not seen, or has no known price.
        budgets: of teams and owners in a budget.toml, this month.
    """

    schema: str
    as_of: Annotated[datetime, Meta(tz=True)]
    items: tuple[ScannedItem, ...]
    unseen: tuple[str, ...]
    skipped: tuple[str, ...]
    idle_usd_per_month: Amount
    usd_per_month: Amount
    at_least: bool
    budgets: tuple[BudgetUse, ...] = ()


@dataclass(kw_only=True)
class ScanDraft(ListingDraft):
    """What one account shows, while it is asked.

    Attributes:
        places: regions or groups of them that are looked at; none: all.
        items: by kind, region and id, so that what two answers show is one.
        answered: parts that were.
    """

    places: tuple[str, ...] = ()
    items: dict[tuple[str, str, str], ScannedItem] = field(default_factory=dict)
    answered: int = 0

    def take(self, item: ScannedItem) -> None:
        """Add an item that is where was looked."""
        if is_in(item.provider, item.region, self.places):
            self.items[item.kind, item.region, item.id] = item

    @contextmanager
    def asking(self, kind: str = "", region: str = "") -> Iterator[None]:
        """Note the part that the block asks about where it cannot be asked, and go on."""
        missed = len(self.gaps)
        with super().asking(kind, region):
            yield
        self.answered += len(self.gaps) == missed

    def join(self, part: ListingDraft) -> None:
        """Take everything of another draft, as of a region."""
        super().join(part)
        if isinstance(part, ScanDraft):
            self.items |= part.items
            self.answered += part.answered


def command(*arguments: str) -> str:
    """Return a command line of words, quoted for a shell.

    It is empty where a word holds what a terminal would obey.
    """
    return shlex.join(arguments) if all(word.isprintable() and word for word in arguments) else ""


def read_instant(text: object) -> datetime | None:
    """Return a time that a provider wrote, UTC where it names no zone; None where it is none."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def disk_usd_per_hour(
    provider: str, day: date, region: str, gib: Decimal, kind: str = ""
) -> Decimal | None:
    """Return what a disk costs an hour; None where its price is not known or has tiers."""
    terms = rules_of(provider, day).terms("volume_storage", region=region, kind=kind)
    if len(terms) != 1:
        return None
    rule = terms[0]
    month_h = rule.month_h if isinstance(rule.month_h, Decimal) else HOURS_PER_MONTH
    units = EXACT.divide(gib * 2**30, rule.bytes_per_unit)
    return EXACT.divide(EXACT.multiply(units, rule.amount), month_h)


def address_usd_per_hour(provider: str, day: date) -> Decimal | None:
    """Return what a public IPv4 address costs an hour; None where it is not known."""
    rule = rules_of(provider, day).rule("ipv4")
    return None if rule is None else rule.amount


def attach(item: ScannedItem, prices: Iterable[Decimal | None]) -> ScannedItem:
    """Return a machine with disks and addresses; None is the price of one that is not known."""
    listed = tuple(prices)
    total = sum_exactly(price for price in listed if price is not None)
    return replace(item, attached_usd_per_hour=total, at_least=item.at_least or None in listed)


def measured(
    item: ScannedItem, cpu_hours: Sequence[float] = (), gpu_hours: Sequence[float] = ()
) -> ScannedItem:
    """Return a machine with its use.

    Args:
        item: the machine.
        cpu_hours: share of its CPU that was busy, in each hour that was measured.
        gpu_hours: the same of its GPUs, which tell more.
    """
    hours = gpu_hours or cpu_hours
    if not hours:
        return item
    return replace(
        item,
        cpu_fraction=sum(cpu_hours) / len(cpu_hours) if cpu_hours else None,
        gpu_fraction=sum(gpu_hours) / len(gpu_hours) if gpu_hours else None,
        busiest_fraction=max(hours),
        measured_h=float(len(hours)),
    )


def judge(item: ScannedItem, now: datetime) -> ScannedItem:
    """Return an item with whether it is idle; what its state shows already stays so.

    Readings from before a start say nothing of what was started.
    """
    hours, busiest = item.measured_h, item.busiest_fraction
    if item.kind != MACHINE:  # listed where nothing has it
        return replace(item, idle=True, why=item.why or "attached to nothing")
    if item.idle is not None:
        return item
    if hours is None or busiest is None:
        return replace(item, why=item.why or "use was not measured")
    name = "CPU" if item.gpu_fraction is None else "GPU"
    why = f"busiest of {hours:.0f} hours: {name} {busiest:.1%}"
    if item.started_at is not None and now - item.started_at < timedelta(hours=LEAST_HOURS):
        return replace(item, why=f"{why}; started less than {LEAST_HOURS} h ago")
    if hours < LEAST_HOURS:
        return replace(item, why=f"{why}; too few to judge, {LEAST_HOURS} are needed")
    cpu = min(IDLE_CPU_FRACTION, 1 / (item.vcpus or _MOST_VCPUS))
    limit = cpu if item.gpu_fraction is None else IDLE_GPU_FRACTION
    return replace(item, idle=busiest < limit, why=why)


def priced(item: ScannedItem, offer: Offer | None, now: datetime) -> ScannedItem:
    """Return an item with its dollars, at today's list price, and vCPUs as they are sold.

    Args:
        item: a machine with what is attached to it, or something that has its price already.
        offer: of a machine; None: no price of it is known.
        now: the end of what it has cost so far.
    """
    if item.kind == MACHINE:
        is_unknown = offer is None and item.is_billed
        time_usd = offer.usd_per_hour if offer is not None and item.is_billed else Decimal(0)
        total = EXACT.add(time_usd, item.attached_usd_per_hour)
        item = replace(
            item,
            usd_per_hour=None if is_unknown and not total else total,
            at_least=item.at_least or is_unknown,
            vcpus=item.vcpus or (int(offer.vcpus) if offer and offer.vcpus else None),
            price_source=offer.source if offer is not None else "",
            price_as_of=offer.date_text if offer is not None else "",
        )
    else:
        item = replace(item, at_least=item.usd_per_hour is None)
    if item.usd_per_hour is None or item.started_at is None:
        return item
    age = now - item.started_at
    hours = EXACT.divide(Decimal(max(0, age.days * 86_400 + age.seconds)), Decimal(3600))
    return replace(item, usd_so_far=without_zeros(EXACT.multiply(item.usd_per_hour, hours)))


def owned(item: ScannedItem, key: str) -> ScannedItem:
    """Return an item with its owner: the value of a tag, whose name is written in any case."""
    values = (value for name, value in item.tags.items() if name.lower() == key.lower() and value)
    return replace(item, owner=next(values, None))


def assemble(
    items: Iterable[ScannedItem],
    unseen: Iterable[NotQueried],
    skipped: Iterable[str],
    now: datetime,
) -> AccountScan:
    """Return the scan of all accounts: priced items in order, with their totals."""
    listed, parts = sorted(items, key=_rank), tuple(unseen)
    is_part = any(part.kind not in _WITHOUT_COST for part in parts)
    return AccountScan(
        schema=SCHEMA,
        as_of=now,
        items=tuple(listed),
        unseen=_sentences(parts),
        skipped=tuple(skipped),
        idle_usd_per_month=per_month(item for item in listed if item.idle),
        usd_per_month=per_month(listed),
        at_least=is_part or any(item.at_least for item in listed),
    )


def per_month(items: Iterable[ScannedItem]) -> Decimal:
    """Return what items cost in 730 hours, as far as their prices are known."""
    rates = (item.usd_per_hour for item in items if item.usd_per_hour is not None)
    return without_zeros(EXACT.multiply(sum_exactly(rates), HOURS_PER_MONTH))


def spending(
    items: Iterable[ScannedItem], journal_runs: Collection[str], now: datetime
) -> Iterator[Spending]:
    """Yield what items have cost since they started, and what they will in the next 31 days.

    Args:
        items: with owner and price.
        journal_runs: launches of gpucost that count already.
        now: until when they have cost.
    """
    for item in items:
        if item.run in journal_runs or item.usd_per_hour is None:
            continue
        tags = {name.lower(): value for name, value in item.tags.items()}
        names = names_of(item.owner, tags.get("team"), tags.get("owner"), tags.get("gpucost:owner"))
        if item.started_at is not None and item.usd_so_far is not None:
            yield Spending(names=names, begins=item.started_at, ends=now, usd=item.usd_so_far)
        month_usd = EXACT.multiply(item.usd_per_hour, _MONTH_H)
        yield Spending(names=names, begins=now, ends=now + _MONTH, usd=month_usd)


_MONTH, _MONTH_H = timedelta(days=31), Decimal(31 * 24)
_WITHOUT_COST = (USE, NODE_POOL)  # whose absence hides nothing that costs money
_IDLE_ORDER = {True: 0, None: 1, False: 2}


def _rank(item: ScannedItem) -> tuple[int, Decimal, str, str, str]:
    is_unpriced = item.kind == MACHINE and item.is_billed and not item.price_source
    dollars = Decimal("Infinity") if is_unpriced else item.usd_per_hour or Decimal(0)
    return _IDLE_ORDER[item.idle], -dollars, item.provider, item.region, item.id


def _sentences(unseen: Iterable[NotQueried]) -> tuple[str, ...]:
    """Return a sentence for each provider, region and reason, with all kinds it is about."""
    kinds: dict[tuple[str, str], list[NotQueried]] = {}
    for part in unseen:
        kinds.setdefault((part.provider, part.region), []).append(part)
    return tuple(_sentence(provider, region, parts) for (provider, region), parts in kinds.items())


def _sentence(provider: str, region: str, parts: Collection[NotQueried]) -> str:
    scope = f"{provider}{f' in {region}' if region else ''}"
    names = ", ".join(dict.fromkeys(part.kind for part in parts if part.kind))
    return f"{scope}{f' ({names})' if names else ''}: {next(iter(parts)).why}"
