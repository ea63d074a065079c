"""An invoice read for its GPUs: what was spent on which machine, when; what to measure first."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from decimal import Decimal

from planner.bills.bill import APART, Bill, BillLine
from planner.bills.invoice.gpu_lines import GpuLine, MachineSizes, gpu_lines
from planner.bills.invoice.leftovers import Leftover, Undecided, leftovers
from planner.bills.invoice.stretches import days, stretches
from pricing.errors import InputError
from pricing.money import EXACT

_ZERO = Decimal(0)
Measured = frozenset[tuple[str, str]]
"""Provider and machine type, in lower case, of what was profiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one type of GPU machine cost, in one region, bought one way.

    Attributes:
        provider: our name for it, else the bill's.
        instance_type: None where the bill does not say.
        gpu: canonical name, else the bill's word; None where neither is known.
        region: None where the bill does not say.
        purchase: as on the bill's lines.
        usd: exact.
        hours: of machines; None where a line does not say.
        gpu_hours: of GPUs; None where a line does not say.
        machines: how many are told apart; None where the bill does not tell them apart.
        lines: of the bill.
        by_day: dollars of the days that the bill tells.
        by_part: dollars by part of the week, where the bill tells.
        measured: whether a profile of such a machine was given.
    """

    provider: str
    instance_type: str | None
    gpu: str | None
    region: str | None
    purchase: str | None
    usd: Decimal
    hours: Decimal | None
    gpu_hours: Decimal | None
    machines: int | None
    lines: tuple[BillLine, ...]
    by_day: tuple[tuple[date, Decimal], ...]
    by_part: tuple[tuple[str, Decimal], ...]
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What an invoice says of GPUs.

    Attributes:
        spent: the dearest first.
        leftovers: the dearest first.
        undecided: disks and addresses that may or may not be used.
        usd: of all use, GPUs or not, without taxes, credits and fees.
        start: first instant of the use; None where the bill does not say.
        end: the instant after the last.
        notes: what a reader must know.
    """

    spent: tuple[Spent, ...]
    leftovers: tuple[Leftover, ...]
    undecided: tuple[Undecided, ...]
    usd: Decimal
    start: datetime | None
    end: datetime | None
    notes: tuple[str, ...]

    @property
    def first(self) -> Spent | None:
        """What to measure first: the dearest machine without a profile."""
        return next((one for one in self.spent if not one.measured and one.usd > 0), None)


@dataclass(slots=True)
class _Sum:
    """Charges of one type of machine, added up."""

    found: list[GpuLine] = field(default_factory=list)
    usd: Decimal = _ZERO
    by_day: dict[date, Decimal] = field(default_factory=dict)
    by_part: dict[str, Decimal] = field(default_factory=dict)

    def add(self, one: GpuLine, zone: tzinfo) -> None:
        self.found.append(one)
        self.usd = EXACT.add(self.usd, one.line.usd)
        for day, usd in days(one.line, zone):
            self.by_day[day] = EXACT.add(self.by_day.get(day, _ZERO), usd)
        for stretch in stretches(one.line, zone):
            before = self.by_part.get(stretch.part, _ZERO)
            self.by_part[stretch.part] = EXACT.add(before, stretch.usd)


def review(
    bills: Sequence[Bill],
    sizes: MachineSizes,
    *,
    zone: tzinfo,
    measured: Measured = frozenset(),
) -> Review:
    """Return what the bills say of GPUs.

    Args:
        bills: every file; two forms of the same charges are refused.
        sizes: of `gpu_sizes`.
        zone: in which days, nights and weekends are counted.
        measured: what was profiled.

    Raises:
        InputError: two files hold the same charges.
    """
    _refuse_twice(bills)
    lines = [line for bill in bills for line in bill.lines]
    used = [line for line in lines if line.kind not in APART]
    whole = frozenset(line.provider for bill in bills if bill.whole for line in bill.lines)
    found, undecided = leftovers(lines, whole)
    sums: dict[tuple[str | None, ...], _Sum] = {}
    for one in gpu_lines(lines, sizes):
        line = one.line
        key = (line.provider, line.instance_type, one.size.gpu, line.region, line.purchase)
        sums.setdefault(key, _Sum()).add(one, zone)
    total = _ZERO
    for line in used:
        total = EXACT.add(total, line.usd)
    spent = [_spent(key, one, measured) for key, one in sums.items()]
    spent.sort(key=lambda one: (-one.usd, one.provider, one.instance_type or "", one.region or ""))
    return Review(
        spent=tuple(spent),
        leftovers=found,
        undecided=undecided,
        usd=total,
        start=min((line.start for line in used if line.start), default=None),
        end=max((line.end for line in used if line.end), default=None),
        notes=tuple(note for bill in bills for note in bill.notes),
    )


def _spent(key: tuple[str | None, ...], one: _Sum, measured: Measured) -> Spent:
    provider, instance_type, gpu, region, purchase = key
    resources = {each.line.resource for each in one.found}
    return Spent(
        provider=provider or "unknown",
        instance_type=instance_type,
        gpu=gpu,
        region=region,
        purchase=purchase,
        usd=one.usd,
        hours=_total(each.line.hours for each in one.found),
        gpu_hours=_total(each.gpu_hours for each in one.found),
        machines=None if None in resources else len(resources),
        lines=tuple(each.line for each in one.found),
        by_day=tuple(sorted(one.by_day.items())),
        by_part=tuple(sorted(one.by_part.items())),
        measured=((provider or "").lower(), (instance_type or "").lower()) in measured,
    )


def _total(amounts: Iterable[Decimal | None]) -> Decimal | None:
    total = _ZERO
    for amount in amounts:
        if amount is None:
            return None
        total = EXACT.add(total, amount)
    return total


def _refuse_twice(bills: Sequence[Bill]) -> None:
    """Refuse two forms of one bill: they hold the same use, so its dollars would count twice."""
    seen: dict[tuple[object, ...], Bill] = {}
    twice: Counter[tuple[str, str]] = Counter()
    for bill in bills:
        for line in bill.lines:
            if line.resource is None or line.start is None or line.kind in APART:
                continue
            key = (line.provider, line.resource, line.kind, line.start, line.end)
            first = seen.setdefault(key, bill)
            if first.format != bill.format:
                twice[first.name, bill.name] += 1
    if twice:
        raise InputError(
            f"{one} and {other} hold the same charges ({count} lines of the same thing at the same "
            "time), so their dollars would count twice. Give one of them."
            for (one, other), count in twice.items()
        )
