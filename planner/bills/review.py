"""An invoice read for its GPUs: what was spent on which machine, when; what to measure first."""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from decimal import Decimal

from planner.bills.bill import APART, Bill, BillLine
from planner.bills.leftovers import (
    NIGHT,
    WEEKEND,
    WORKDAY,
    GpuLine,
    Leftover,
    MachineSizes,
    Undecided,
    days,
    gpu_lines,
    leftovers,
    stretches,
)
from planner.bills.reconcile import BillFile, ComparedBill, six_digits
from pricing.errors import InputError
from pricing.money import EXACT, cents, without_zeros

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


# How to ask a provider what is attached to nothing; the words of their own command lines.
_LOOK_UP = {
    ("aws", "disk"): "aws ec2 describe-volumes --filters Name=status,Values=available",
    ("aws", "address"): "aws ec2 describe-addresses --query 'Addresses[?!AssociationId]'",
    ("azure", "disk"): "az disk list --query '[?!managedBy]' -o table",
    ("azure", "address"): "az network public-ip list --query '[?!ipConfiguration]' -o table",
    ("digitalocean", "disk"): "doctl compute volume list",
    ("digitalocean", "address"): "doctl compute reserved-ip list",
    ("gcp", "disk"): "gcloud compute disks list --filter='-users:*'",
    ("gcp", "address"): "gcloud compute addresses list --filter='status=RESERVED'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewTotals:
    """Dollars in cents: of all use, of GPUs, of what nobody used, of what may be used or not.

    Attributes:
        usd: of all use.
        gpu_usd: of machines with GPUs.
        gpu_hours: of them [h]; None where a line says none.
        leftover_usd: of what nobody used.
        undecided_usd: of what may be used or not.
    """

    usd: Decimal
    gpu_usd: Decimal
    gpu_hours: float | None
    leftover_usd: Decimal
    undecided_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedMachine:
    """One type of GPU machine in one region, bought one way; every digit of its dollars.

    Attributes:
        provider: our name for it.
        instance_type: the provider's size; None where the bill names none.
        gpu: canonical model; None where it is not known.
        region: None where the bill says none.
        purchase: how it is bought; None where the bill does not say.
        usd: of its lines.
        hours: of machines [h]; None where a line says none, as in the next two.
        gpu_hours: of GPUs [h].
        machines: how many different ones.
        measured: whether a profile of it was given.
        lines: FILE:LINE of each.
    """

    provider: str
    instance_type: str | None
    gpu: str | None
    region: str | None
    purchase: str | None
    usd: Decimal
    hours: float | None
    gpu_hours: float | None
    machines: int | None
    measured: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedDay:
    """The GPU dollars of a day.

    Attributes:
        day: in the zone of the review.
        usd: of machines with GPUs.
    """

    day: date
    usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedWeek:
    """GPU dollars by part of the week; of the unknown ones the bill has no hours.

    Attributes:
        workday_usd: by day, Monday to Friday.
        night_usd: by night.
        weekend_usd: on Saturday and Sunday.
        unknown_usd: without hours on the bill.
    """

    workday_usd: Decimal
    night_usd: Decimal
    weekend_usd: Decimal
    unknown_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedLine:
    """A line of the bill: its file and line, its dollars.

    Attributes:
        source: FILE:LINE.
        usd: on it.
    """

    source: str
    usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFinding:
    """What nobody used, with what proves it.

    Attributes:
        code: of the kind of waste.
        provider: our name for it.
        what: it is.
        region: None where the bill says none.
        usd: of its lines.
        proof: one sentence.
        lines: of the bill.
    """

    code: str
    provider: str
    what: str
    region: str | None
    usd: Decimal
    proof: str
    lines: tuple[ReviewedLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQuestion:
    """What the bill cannot tell, and how to ask the provider; None where no way is known.

    Attributes:
        what: kind of cost.
        provider: our name for it.
        usd: of its lines.
        lines: how many they are.
        look_up: the command that asks the provider.
    """

    what: str
    provider: str
    usd: Decimal
    lines: int
    look_up: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureFirst:
    """The dearest machine without a profile, and the commands that measure it and plan.

    Attributes:
        machine: PROVIDER/TYPE/REGION.
        usd: on the bill.
        commands: to type, in order.
    """

    machine: str
    usd: Decimal
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDocument:
    """What `gpucost bill -f json` prints; `planner.models.document` writes it.

    Attributes:
        schema: `gpucost.bill/v1`.
        currency: of every amount.
        zone: in which days and nights were counted.
        bill: what was read.
        totals: of all lines.
        machines: GPU machines, the dearest first.
        by_day: GPU dollars of each day.
        by_part: GPU dollars by part of the week.
        findings: what nobody used.
        undecided: what the bill cannot tell.
        measure_first: where a profile is worth most; None where all is measured.
        notes: what a reader must know.
    """

    schema: str = "gpucost.bill/v1"
    currency: str = "USD"
    zone: str
    bill: ComparedBill
    totals: ReviewTotals
    machines: tuple[ReviewedMachine, ...]
    by_day: tuple[ReviewedDay, ...]
    by_part: ReviewedWeek
    findings: tuple[ReviewFinding, ...]
    undecided: tuple[ReviewQuestion, ...]
    measure_first: MeasureFirst | None
    notes: tuple[str, ...]


def review_document(bills: Sequence[Bill], found: Review, zone: tzinfo) -> ReviewDocument:
    """Return the review as it is printed.

    Args:
        bills: every file.
        found: what they say.
        zone: in which days, nights and weekends were counted.
    """
    gpu_usd = _sum(one.usd for one in found.spent)
    gpu_hours = [one.gpu_hours for one in found.spent]
    known = [hours for hours in gpu_hours if hours is not None]
    return ReviewDocument(
        zone=str(zone),
        bill=ComparedBill(
            files=tuple(BillFile(name=b.name, format=b.format, lines=len(b.lines)) for b in bills),
            start=found.start,
            end=found.end,
        ),
        totals=ReviewTotals(
            usd=cents(found.usd),
            gpu_usd=cents(gpu_usd),
            gpu_hours=six_digits(_sum(known)) if len(known) == len(gpu_hours) else None,
            leftover_usd=cents(_sum(one.usd for one in found.leftovers)),
            undecided_usd=cents(_sum(one.usd for one in found.undecided)),
        ),
        machines=tuple(_machine(one) for one in found.spent),
        by_day=_by_day(found.spent),
        by_part=_by_part(found.spent, gpu_usd),
        findings=tuple(_finding(one) for one in found.leftovers),
        undecided=tuple(_question(one) for one in found.undecided),
        measure_first=None if found.first is None else _measure(found.first),
        notes=found.notes,
    )


def _machine(one: Spent) -> ReviewedMachine:
    return ReviewedMachine(
        provider=one.provider,
        instance_type=one.instance_type,
        gpu=one.gpu,
        region=one.region,
        purchase=one.purchase,
        usd=without_zeros(one.usd),
        hours=six_digits(one.hours),
        gpu_hours=six_digits(one.gpu_hours),
        machines=one.machines,
        measured=one.measured,
        lines=tuple(line.source for line in one.lines),
    )


def _by_day(spent: Iterable[Spent]) -> tuple[ReviewedDay, ...]:
    """Return GPU dollars by day, of all machines; what no day is known of is not in it."""
    sums: dict[date, Decimal] = {}
    for one in spent:
        for day, usd in one.by_day:
            sums[day] = EXACT.add(sums.get(day, _ZERO), usd)
    return tuple(ReviewedDay(day=day, usd=without_zeros(usd)) for day, usd in sorted(sums.items()))


def _by_part(spent: Iterable[Spent], whole: Decimal) -> ReviewedWeek:
    sums = dict.fromkeys((WORKDAY, NIGHT, WEEKEND), _ZERO)
    for one in spent:
        for part, usd in one.by_part:
            sums[part] = EXACT.add(sums[part], usd)
    return ReviewedWeek(
        workday_usd=without_zeros(sums[WORKDAY]),
        night_usd=without_zeros(sums[NIGHT]),
        weekend_usd=without_zeros(sums[WEEKEND]),
        unknown_usd=without_zeros(EXACT.subtract(whole, _sum(sums.values()))),
    )


def _finding(one: Leftover) -> ReviewFinding:
    return ReviewFinding(
        code=one.code,
        provider=one.provider,
        what=one.what,
        region=one.region,
        usd=without_zeros(one.usd),
        proof=one.proof,
        lines=tuple(ReviewedLine(source=i.source, usd=without_zeros(i.usd)) for i in one.lines),
    )


def _question(one: Undecided) -> ReviewQuestion:
    return ReviewQuestion(
        what=one.kind,
        provider=one.provider,
        usd=without_zeros(one.usd),
        lines=one.lines,
        look_up=_LOOK_UP.get((one.provider, one.kind)),
    )


def _measure(one: Spent) -> MeasureFirst:
    name = one.instance_type or one.gpu or one.provider
    file = f"{name.replace('/', '-')}.json"
    place = "/".join(part for part in (one.provider, one.instance_type, one.region) if part)
    current = ["--current", place] if one.instance_type else []
    return MeasureFirst(
        machine=place,
        usd=without_zeros(one.usd),
        commands=(
            shlex.join(["gpucost", "profile", "--duration", "10m", "-o", file]),
            shlex.join(["gpucost", "plan", file, *current]),
        ),
    )


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    total = _ZERO
    for amount in amounts:
        total = EXACT.add(total, amount)
    return total
