"""An invoice read for its GPUs: what was spent on which machine, when; what to measure first."""

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from planner.bills import leftovers as unused
from planner.bills.bill import APART, MACHINE, Bill, BillLine, gpu_in_words, refuse
from planner.bills.reconcile import ComparedBill, compared_bill, six_digits, sum_usd
from planner.choice.baseline import MANAGED
from planner.profile.model import MonthlyUse, Profile
from pricing.catalog.offer import PURCHASES
from pricing.errors import InputError
from pricing.hardware import find
from pricing.listing import listed
from pricing.message import Message
from pricing.money import EXACT, Amount, cents, show, sum_exactly, without_zeros

_SECONDS_PER_HOUR = 3600
Measured = frozenset[tuple[str, str]]
"""Provider and machine type, in lower case, of what was profiled."""


class ReviewTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars in cents: of all use, of GPUs, of what nobody used, of what may be used or not.

    Attributes:
        invoice_usd: what the invoices come to; other sums may spread fees over what they cover.
        usd: of all use.
        gpu_usd: of machines with GPUs.
        gpu_hours: of them [h]; None where a line says none.
        leftover_usd: of what nobody used.
        undecided_usd: of what may be used or not.
        credit_usd: of credits and refunds, which are in no other sum; below 0 for what is given.
        tax_usd: of taxes, as credits.
        fee_usd: of fees, as credits.
    """

    invoice_usd: Amount
    usd: Amount
    gpu_usd: Amount
    gpu_hours: float | None
    leftover_usd: Amount
    undecided_usd: Amount
    credit_usd: Amount
    tax_usd: Amount
    fee_usd: Amount


class ReviewedMachine(msgspec.Struct, frozen=True, kw_only=True):
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
    usd: Amount
    hours: float | None
    gpu_hours: float | None
    machines: int | None
    measured: bool
    lines: tuple[str, ...]


class ReviewedDay(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU dollars of a day.

    Attributes:
        day: in the zone of the review.
        usd: of machines with GPUs.
    """

    day: date
    usd: Amount


class ReviewedWeek(msgspec.Struct, frozen=True, kw_only=True):
    """GPU dollars by part of the week; of the unknown ones the bill has no hours.

    Attributes:
        workday_usd: by day, Monday to Friday.
        night_usd: by night.
        weekend_usd: on Saturday and Sunday.
        unknown_usd: without hours on the bill.
    """

    workday_usd: Amount
    night_usd: Amount
    weekend_usd: Amount
    unknown_usd: Amount


class MeasureFirst(msgspec.Struct, frozen=True, kw_only=True):
    """The dearest machine without a profile, and the commands that measure it and plan.

    Attributes:
        machine: PROVIDER/TYPE/REGION.
        usd: on the bill.
        commands: to type, in order.
    """

    machine: str
    usd: Amount
    commands: tuple[str, ...]


class Review(msgspec.Struct, frozen=True, kw_only=True):
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
    findings: tuple[unused.ReviewFinding, ...]
    undecided: tuple[unused.ReviewQuestion, ...]
    measure_first: MeasureFirst | None
    notes: tuple[str, ...]


def review(
    bills: Sequence[Bill],
    sizes: unused.MachineSizes,
    *,
    zone: tzinfo,
    measured: Measured = frozenset(),
) -> Review:
    """Return what the bills say of GPUs, as it is printed.

    Args:
        bills: every file; two forms of the same charges are refused.
        sizes: of `gpu_sizes`.
        zone: in which days, nights and weekends are counted.
        measured: what was profiled.

    Raises:
        InputError: two files hold the same charges, or a machine more hours than its time has.
    """
    _refuse_twice(bills)
    _refuse_more_hours_than_time(bills)
    lines = [line for bill in bills for line in bill.lines]
    used = [line for line in lines if line.kind not in APART]
    complete = frozenset(line.provider for bill in bills if bill.whole for line in bill.lines)
    findings, undecided = unused.leftovers(lines, complete)
    charges = list(unused.gpu_lines(lines, sizes))
    machines = _machines(charges, measured)
    gpu_hours = _total(charge.gpu_hours for charge in charges)
    gpu_usd = sum_exactly(charge.line.usd for charge in charges)
    start = min((line.start for line in used if line.start), default=None)
    end = max((line.end for line in used if line.end), default=None)
    return Review(
        zone=str(zone),
        bill=compared_bill(bills, start, end),
        totals=ReviewTotals(
            invoice_usd=sum_usd(bill.invoice_usd for bill in bills),
            usd=sum_usd(line.usd for line in used),
            gpu_usd=cents(gpu_usd),
            gpu_hours=six_digits(gpu_hours),
            leftover_usd=sum_usd(finding.usd for finding in findings),
            undecided_usd=sum_usd(question.usd for question in undecided),
            **{f"{kind}_usd": sum_usd(x.usd for x in lines if x.kind == kind) for kind in APART},
        ),
        machines=machines,
        by_day=_by_day(charges, zone),
        by_part=_by_part(charges, zone, gpu_usd),
        findings=findings,
        undecided=undecided,
        measure_first=_measure(machines),
        notes=(
            *(note for bill in bills for note in bill.notes),
            *_unknown_gpus(machines),
            *_naming_a_gpu(used, charges),
            *_months(charges),
        ),
    )


def _months(charges: Iterable[unused.GpuLine]) -> Iterator[Message]:
    """Yield what each month had of GPU dollars, where the bills are of more than one.

    A provider closes its month at midnight UTC, wherever the reader of the bill is.
    """
    months: defaultdict[str, Decimal] = defaultdict(Decimal)
    for line in (charge.line for charge in charges):
        if line.start is not None:  # a line belongs to the month in which it starts
            months[f"{line.start.astimezone(UTC):%Y-%m}"] += line.usd
    parts = [f"{month} USD {show(usd)}" for month, usd in sorted(months.items()) if usd]
    if len(parts) > 1:
        mean = show(sum_exactly(months.values()) / len(parts))
        yield Message("invoice.months", n=len(parts), parts=listed(parts, _MONTHS_SHOWN), mean=mean)


def _unknown_gpus(machines: Iterable[ReviewedMachine]) -> Iterator[Message]:
    """Yield which machines have a GPU, or hours of it, that is not known: they are not counted."""
    for machine in machines:
        if machine.gpu is None or machine.gpu_hours is None:
            name = machine.instance_type or machine.gpu or machine.provider
            yield Message("invoice.unknown-gpu", machine=name, usd=show(machine.usd))


def _naming_a_gpu(used: Iterable[BillLine], charges: Iterable[unused.GpuLine]) -> Iterator[Message]:
    """Yield which lines of use name a GPU and are of no machine that was read as one with GPUs."""
    read = {charge.line.source for charge in charges}
    naming = [
        f"{line.source} ({line.description}, USD {show(line.usd)})"
        for line in used
        if line.kind in (MACHINE, "other") and line.usd > 0 and line.source not in read
        if gpu_in_words(line.description)[0]
    ]
    if naming:
        yield Message("invoice.names-gpu", lines=listed(naming, _SHOWN))


def _machines(charges: Iterable[unused.GpuLine], measured: Measured) -> tuple[ReviewedMachine, ...]:
    """Return what each type of machine cost, in one region, bought one way; the dearest first."""
    groups: dict[
        tuple[str, str | None, str | None, str | None, str | None], list[unused.GpuLine]
    ] = {}
    for charge in charges:
        line = charge.line
        key = (line.provider, line.instance_type, charge.gpu, line.region, line.purchase)
        groups.setdefault(key, []).append(charge)
    machines = []
    for (provider, instance_type, gpu, region, purchase), group in groups.items():
        hours = _total(charge.line.hours for charge in group)
        gpu_hours, gpus = _total(charge.gpu_hours for charge in group), group[0].gpus
        if gpu_hours and not hours:  # its cores name no size, or only its GPUs are on the bill
            hours = EXACT.divide(gpu_hours, gpus) if gpus else None
        machines.append(
            ReviewedMachine(
                provider=provider or "unknown",
                instance_type=instance_type,
                gpu=gpu,
                region=region,
                purchase=purchase,
                usd=without_zeros(sum_exactly(charge.line.usd for charge in group)),
                hours=six_digits(hours),
                gpu_hours=six_digits(gpu_hours),
                machines=_count(group),
                measured=(provider.lower(), (instance_type or "").lower()) in measured,
                lines=tuple(charge.line.source for charge in group),
            )
        )
    machines.sort(key=lambda m: (-m.usd, m.provider, m.instance_type or "", m.region or ""))
    return tuple(machines)


def _count(group: Iterable[unused.GpuLine]) -> int | None:
    """Return how many machines are at least there; None where a line says no resource.

    What is billed under one id, such as an endpoint, has as many as its hours need at a time.
    """
    count, of_each = 0, defaultdict[str | None, list[BillLine]](list)
    for charge in group:
        of_each[charge.line.resource].append(charge.line)
    for lines in of_each.values():
        start = min((line.start for line in lines if line.start), default=None)
        end = max((line.end for line in lines if line.end), default=None)
        has_h = (end - start).total_seconds() / _SECONDS_PER_HOUR if start and end else 0
        ran_h = float(_total(line.hours for line in lines) or 0)
        count += max(1, math.ceil((ran_h - 1) / has_h)) if has_h > 0 else 1  # 1 h: a begun one
    return None if None in of_each else count


def _total(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """Return the sum; None where one is not known."""
    zones = list(amounts)
    return None if None in zones else sum_exactly(amount for amount in zones if amount is not None)


def _refuse_twice(bills: Sequence[Bill]) -> None:
    """Refuse two forms of one bill: they hold the same use, so its dollars would count twice."""
    first_bills: dict[tuple[object, ...], Bill] = {}
    twice: Counter[tuple[str, str]] = Counter()
    for bill in bills:
        for line in bill.lines:
            if line.resource is None or line.start is None or line.kind in APART:
                continue
            key = (line.provider, line.resource, line.kind, line.start, line.end)
            first = first_bills.setdefault(key, bill)
            if first.format != bill.format:
                twice[first.name, bill.name] += 1
    if twice:
        raise InputError(
            f"{first} and {second} hold the same charges ({count} lines of the same thing at the "
            "same time), so their dollars would count twice. Give one of them."
            for (first, second), count in twice.items()
        )


def _refuse_more_hours_than_time(bills: Sequence[Bill]) -> None:
    """Refuse machines that ran for longer than the time from their first line to their last.

    Of AWS alone, whose ids are of one machine each: others bill a set of machines under one id.
    """
    hours: defaultdict[str, Decimal] = defaultdict(Decimal)
    times: defaultdict[str, list[datetime]] = defaultdict(list)
    for bill in bills:
        for line in bill.lines:
            machine = line.resource or ""
            if line.provider == "aws" and machine.startswith("i-") and line.hours:
                hours[machine] += line.hours
                times[machine] += [time for time in (line.start, line.end) if time is not None]
    problems = []
    for machine, ran_h in hours.items():
        if times[machine]:
            first, last = min(times[machine]), max(times[machine])
            has_h = Decimal(int((last - first).total_seconds())) / _SECONDS_PER_HOUR
            if ran_h > has_h + 1:  # a begun hour may be billed whole
                problems.append(
                    f"{machine}: {ran_h:f} h on one machine between {first:%Y-%m-%d %H:%M} and "
                    f"{last:%Y-%m-%d %H:%M}, which are {has_h:f} h: use that is "
                    "given twice, or wrong hours. Give each export once."
                )
    refuse(problems)


def _by_day(charges: Iterable[unused.GpuLine], zone: tzinfo) -> tuple[ReviewedDay, ...]:
    """Return GPU dollars by day, of all machines; what no day is known of is not in it."""
    sums: defaultdict[date, Decimal] = defaultdict(Decimal)
    for charge in charges:
        for day, usd in unused.days(charge.line, zone):
            sums[day] = EXACT.add(sums[day], usd)
    return tuple(ReviewedDay(day=day, usd=without_zeros(usd)) for day, usd in sorted(sums.items()))


def _by_part(charges: Iterable[unused.GpuLine], zone: tzinfo, total: Decimal) -> ReviewedWeek:
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for charge in charges:
        for stretch in unused.stretches(charge.line, zone):
            sums[stretch.part] = EXACT.add(sums[stretch.part], stretch.usd)
    return ReviewedWeek(
        workday_usd=without_zeros(sums[unused.WORKDAY]),
        night_usd=without_zeros(sums[unused.NIGHT]),
        weekend_usd=without_zeros(sums[unused.WEEKEND]),
        unknown_usd=without_zeros(EXACT.subtract(total, sum_exactly(sums.values()))),
    )


def _measure(machines: Iterable[ReviewedMachine]) -> MeasureFirst | None:
    machine = next((m for m in machines if not m.measured and m.usd > 0), None)
    if machine is None:
        return None
    name = machine.instance_type or machine.gpu or machine.provider
    file = f"{name.replace('/', '-')}.json"
    machine_name = "/".join(
        part for part in (machine.provider, machine.instance_type, machine.region) if part
    )
    current = ["--current", machine_name] if machine.instance_type else []
    if name.startswith(MANAGED) and machine.hours:
        current += ["--price", f"{_price(machine):f}"]
    return MeasureFirst(
        machine=machine_name,
        usd=machine.usd,
        commands=(
            shlex.join(["gpucost", "profile", "--duration", "10m", "-o", file]),
            shlex.join(["gpucost", "plan", file, *current]),
        ),
    )


_MONTH_H, _LONGEST_MONTH_H = 730.0, 744.0
_SHOWN, _MONTHS_SHOWN = 3, 12
_PRICE_DIGITS = 6


def with_machines(
    profiles: Sequence[Profile], billed: Review, stated: str | None = None
) -> tuple[tuple[Profile, ...], tuple[str, ...], Decimal | None]:
    """Return the profiles with the machine, purchase and hours that a bill has for them.

    A job that does not say what it runs on is matched where the bill has one kind of machine with
    its GPU model, and as many or more of them.

    Args:
        profiles: what was measured.
        billed: what was paid.
        stated: PROVIDER/TYPE/REGION of jobs that do not say what they run on.

    Returns:
        The profiles, the first with a note on what is billed and not measured; notes on what was
        matched; dollars an hour of one machine, where there is one job and it was matched.
    """
    placed, notes = [], []
    price: Decimal | None = None
    measured_h: defaultdict[ReviewedMachine, float] = defaultdict(float)
    for profile in profiles:
        hardware = profile.hardware
        machine_name = stated or f"{hardware.provider}/{hardware.instance_type}"
        is_stated = bool(stated or hardware.instance_type)
        machine = _billed(profile, billed.machines, machine_name if is_stated else None)
        if machine is not None:
            measured_h[machine] += _machine_hours(profile, billed)
        if machine is None or is_stated:
            placed.append(profile)
            continue
        if len(profiles) == 1 and machine.hours:
            price = _price(machine)
        machine_name = f"{machine.provider}/{machine.instance_type}"
        what = {"job": profile.job.name, "gpu": machine.gpu or ""}
        notes.append(Message("invoice.only-machine", place=machine_name, **what))
        placed.append(_on(profile, machine, billed))
    placed[0] = _noting(placed[0], _not_covered(measured_h, billed))
    months = (n for n in billed.notes if isinstance(n, Message) and n.code == "invoice.months")
    return tuple(placed), (*notes, *months), price


def _price(machine: ReviewedMachine) -> Decimal:
    """Return dollars an hour of a machine with hours."""
    price = round(machine.usd / Decimal(repr(machine.hours)), _PRICE_DIGITS)
    return without_zeros(price)


def _on(profile: Profile, machine: ReviewedMachine, billed: Review) -> Profile:
    """Return a profile of a job on a machine of a bill."""
    hardware = replace(
        profile.hardware,
        provider=machine.provider,
        instance_type=machine.instance_type,
        region=machine.region,
        purchase=machine.purchase if machine.purchase in PURCHASES else "on_demand",
    )
    usage = profile.usage or MonthlyUse()
    hours = usage.hours_per_month or _hours_a_month(machine, billed)
    return replace(profile, hardware=hardware, usage=replace(usage, hours_per_month=hours))


def _noting(profile: Profile, note: str) -> Profile:
    notes = (*profile.provenance.notes, *([note] if note else []))
    return replace(profile, provenance=replace(profile.provenance, notes=notes))


def _machine_hours(profile: Profile, billed: Review) -> float:
    """Return the machine hours of a recording that lie in the days of a bill."""
    window, start, end = profile.window, billed.bill.start, billed.bill.end
    if window is None or not window.duration_s:
        return 0.0
    seconds = window.recorded_s
    if window.start and start and end:
        begin = window.start - timedelta(seconds=window.idle_before_s or 0.0)
        until = min(end, begin + timedelta(seconds=seconds))
        seconds = max(0.0, (until - max(start, begin)).total_seconds())
    return seconds / _SECONDS_PER_HOUR * (profile.hardware.nodes or 1)


def _not_covered(measured_h: Mapping[ReviewedMachine, float], billed: Review) -> str:
    """Return what of the GPU machines of a bill no telemetry covers; empty where all is covered."""
    usd, uncovered, names = Decimal(0), Decimal(0), dict[str, float]()
    for machine in sorted(billed.machines, key=lambda m: -m.usd):
        hours = machine.hours or 0.0
        part = min(1.0, measured_h.get(machine, 0.0) / hours) if hours else 0.0
        unseen = machine.usd * (1 - Decimal(repr(part)))
        usd, uncovered = usd + machine.usd, uncovered + unseen
        if cents(unseen) > 0:
            name = f"{machine.provider}/{machine.instance_type or machine.gpu}"
            names[name] = names.get(name, 0.0) + (1 - part) * hours
    if not names:
        return ""
    params = {"usd": show(usd), "covered": show(usd - uncovered), "rest": show(uncovered)}
    machines = [f"{name} {hours:,.0f} h" if hours else name for name, hours in names.items()]
    return Message("invoice.covered", **params, machines=listed(machines, _SHOWN))


def _billed(
    profile: Profile, machines: Iterable[ReviewedMachine], machine_name: str | None
) -> ReviewedMachine | None:
    """Return the machine on a bill that a job is on, or the only kind of one that it can be on."""
    model = find(profile.hardware.gpu)
    count = profile.gpu_count / (profile.hardware.nodes or 1)
    sizes = [
        (machine.gpu_hours / machine.hours, machine)
        for machine in machines
        if machine.instance_type and machine.gpu_hours and machine.hours
        if (machine_name or "").startswith(f"{machine.provider}/{machine.instance_type}")
        or (not machine_name and model and machine.gpu == model.name)
    ]
    exact = [machine for gpus, machine in sizes if machine_name or round(gpus) == count]
    larger = [machine for gpus, machine in sizes if gpus >= count]
    fitting = exact or larger
    if len({(m.provider, m.instance_type, m.region) for m in fitting}) != 1:
        return None
    bought = profile.hardware.purchase or "on_demand"
    return next((m for m in fitting if m.purchase == bought), fitting[0])


def _hours_a_month(machine: ReviewedMachine, billed: Review) -> float | None:
    """Return the hours a month that one of a kind of machines ran, from the span of the bill."""
    start, end = billed.bill.start, billed.bill.end
    if not (machine.hours and machine.machines and start and end) or end <= start:
        return None
    span_h = (end - start).total_seconds() / 3600.0
    return min(machine.hours / machine.machines / span_h * _MONTH_H, _LONGEST_MONTH_H)
