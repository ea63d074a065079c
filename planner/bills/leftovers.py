"""What lines of a bill prove: which are of GPUs, when their hours were, and what nobody used.

Only what the bill proves is split by time. A charge of a part of one day's night is of that night;
a longer one is split where the machine ran all through it. All else has no known time.

A bill does not say what a disk is attached to. So a disk or an address counts as left over only
where the bill says so itself, or where no machine ran that could have used it: none of its account,
in its region and zone, from some day to the end of the bill. What is not proved so is a sum apart.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal

import msgspec

from planner.bills.bill import APART, MACHINE, WORDS, BillLine, may_host
from pricing import hardware
from pricing.catalog.catalog import Catalog
from pricing.message import Message
from pricing.money import EXACT, Amount, sum_exactly, without_zeros

_Resource = tuple[str, str | None, str]


GpuSize = tuple[str | None, Decimal | None]
"""The GPUs of a machine: canonical name, else the bill's word, and how many; None where only the
family is known."""
MachineSizes = Mapping[tuple[str, str], GpuSize]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLine:
    """A charge for a machine with GPUs.

    Attributes:
        line: of the bill.
        gpu: canonical name, else the bill's word; None where only the family is known.
        gpus: how many; None where only the family is known.
        gpu_hours: of all its GPUs; None where neither bill nor catalog tell.
    """

    line: BillLine
    gpu: str | None
    gpus: Decimal | None
    gpu_hours: Decimal | None


def gpu_sizes(catalog: Catalog) -> MachineSizes:
    """Return the GPUs of every size in the catalog, by provider and size in lower case."""
    return {
        (row.provider, row.instance_type.lower()): (row.gpu, Decimal(str(row.gpu_count)))
        for row in catalog.rows
    }


def gpu_lines(lines: Iterable[BillLine], sizes: MachineSizes) -> Iterator[GpuLine]:
    """Yield the charges for machines with GPUs, in the bill's order.

    A machine that is billed in parts (cores, memory, GPU, local disks) is one with GPUs if one part
    is of them; a part that names no size has that of the others, and what holds no GPU is bought as
    the GPU of its machine.

    Args:
        lines: of all files.
        sizes: of `gpu_sizes`.
    """
    machines = [line for line in lines if line.kind == MACHINE]
    parts = _sizes_of_resources(machines, sizes)
    types = {_resource(line): line.instance_type for line in machines if line.instance_type}
    bought = {_resource(line): line.purchase for line in machines if line.gpu_hours != 0}
    for line in machines:
        size = _size(line, sizes) or parts.get(_resource(line))
        if size is not None:
            is_part = line.gpu_hours == 0 and line.resource is not None
            named = replace(
                line,
                instance_type=line.instance_type or types.get(_resource(line)),
                purchase=bought.get(_resource(line), line.purchase) if is_part else line.purchase,
            )
            gpu, gpus = size
            yield GpuLine(line=named, gpu=gpu, gpus=gpus, gpu_hours=_gpu_hours(line, gpus))


def _sizes_of_resources(
    machines: Iterable[BillLine], sizes: MachineSizes
) -> dict[_Resource | None, GpuSize]:
    size_of: dict[_Resource | None, GpuSize] = {}
    for line in machines:
        resource, size = _resource(line), _size(line, sizes)
        if resource is not None and size is not None:
            size_of.setdefault(resource, size)
    return size_of


def _resource(line: BillLine) -> _Resource | None:
    return None if line.resource is None else (line.provider, line.account, line.resource)


def _size(line: BillLine, sizes: MachineSizes) -> GpuSize | None:
    """Return a machine's GPUs: as the catalog has them, else as the bill or its family says."""
    name = (line.instance_type or "").lower().removeprefix("ml.")
    size = sizes.get((line.provider, name))
    if size is not None:
        return size
    if line.gpu is not None or line.gpus:
        model = hardware.find(line.gpu)
        return model.name if model else line.gpu, line.gpus
    family = WORDS["gpu_families"].get(line.provider)
    return (None, None) if family and re.match(family, name) else None


def _gpu_hours(line: BillLine, gpus: Decimal | None) -> Decimal | None:
    if line.gpu_hours is not None:
        return line.gpu_hours
    if line.hours is None or gpus is None:
        return None
    return EXACT.multiply(line.hours, gpus)


WORKDAY, NIGHT, WEEKEND = "workday", "night", "weekend"
"""Parts of a week: Monday to Friday from 8 to 20 h, Monday to Friday outside of it, the rest."""

DAY_BEGINS_H, DAY_ENDS_H = 8, 20
_SATURDAY = 5
# Bills round hours, and some end at 23:59:59: so much of its span is all of it.
_THROUGHOUT = Decimal("0.999")
_HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """A part of a charge in one part of one day.

    Attributes:
        day: in the reader's zone.
        part: WORKDAY, NIGHT or WEEKEND.
        usd: exact; the stretches of a charge add up to it.
    """

    day: date
    part: str
    usd: Decimal


_Piece = tuple[date, str, timedelta]
"""A day, the part of it, and how long."""


def stretches(line: BillLine, zone: tzinfo) -> tuple[_Stretch, ...]:
    """Return when a charge was made; empty where the bill does not tell."""
    return _stretches(line, list(_pieces(line, zone)))


def days(line: BillLine, zone: tzinfo) -> tuple[tuple[date, Decimal], ...]:
    """Return the dollars of a charge by day; empty where the bill does not tell."""
    lengths: defaultdict[date, timedelta] = defaultdict(timedelta)
    for day, _, length in _pieces(line, zone):
        lengths[day] += length
    pieces = [(day, "", length) for day, length in lengths.items()]
    return tuple((stretch.day, stretch.usd) for stretch in _stretches(line, pieces))


def _stretches(line: BillLine, pieces: list[_Piece]) -> tuple[_Stretch, ...]:
    """Return the pieces with their dollars; none where it may have run in some of them only."""
    if len({piece[:2] for piece in pieces}) > 1 and not _ran_through(line):
        return ()
    return tuple(_priced(line.usd, pieces))


def _ran_through(line: BillLine) -> bool:
    """Return whether one machine is known to have run from start to end."""
    if line.resource is None or line.hours is None or line.start is None or line.end is None:
        return False
    seconds = Decimal(int((line.end - line.start).total_seconds()))
    return line.hours * _HOUR_S >= seconds * _THROUGHOUT


def _pieces(line: BillLine, zone: tzinfo) -> Iterator[_Piece]:
    """Yield day, part and length of the time of a charge, in order; nothing where it has none."""
    at = line.start
    while at is not None and line.end is not None and at < line.end:
        moment = at.astimezone(zone)
        after = min(_boundary(moment, zone), line.end)
        yield moment.date(), _part(moment), after - at
        at = after


def _part(moment: datetime) -> str:
    if moment.weekday() >= _SATURDAY:
        return WEEKEND
    return WORKDAY if DAY_BEGINS_H <= moment.hour < DAY_ENDS_H else NIGHT


def _boundary(moment: datetime, zone: tzinfo) -> datetime:
    """Return the next change of day or part, in UTC."""
    for hour in (DAY_BEGINS_H, DAY_ENDS_H):
        if moment.hour < hour:
            return datetime.combine(moment.date(), time(hour), zone).astimezone(UTC)
    midnight = datetime.combine(moment.date() + timedelta(days=1), time(), zone)
    return midnight.astimezone(UTC)


def _priced(usd: Decimal, pieces: list[_Piece]) -> Iterator[_Stretch]:
    """Yield the pieces with their dollars; the last one bears what division leaves."""
    total = sum((length for _, _, length in pieces), timedelta())
    remaining_usd = usd
    for number, (day, part, length) in enumerate(pieces):
        last = number == len(pieces) - 1
        share = Decimal(length // _TICK) / Decimal(total // _TICK)
        part_usd = (
            remaining_usd if last else EXACT.multiply(usd, share).quantize(_FINEST, context=EXACT)
        )
        remaining_usd = EXACT.subtract(remaining_usd, part_usd)
        yield _Stretch(day=day, part=part, usd=part_usd)


_TICK = timedelta(microseconds=1)
_FINEST = Decimal("1e-12")
"""Of a part in dollars: so few digits that parts are added up exactly by anybody."""


ADDRESS, DISK, COMMITMENT = "idle-address", "idle-disk", "idle-commitment"
_ATTACHED = {"address": ADDRESS, "disk": DISK}
# A machine that is off for the night, a weekend or some holidays comes back: its disk is not left.
LONGEST_PAUSE = timedelta(days=7)
_NEVER = datetime.min.replace(tzinfo=UTC)
_ALWAYS = datetime.max.replace(tzinfo=UTC)
_Host = tuple[str, str | None, str | None, str | None]


class ReviewedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the bill: its file and line, its dollars.

    Attributes:
        source: FILE:LINE.
        usd: on it.
    """

    source: str
    usd: Amount


class ReviewFinding(msgspec.Struct, frozen=True, kw_only=True):
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
    usd: Amount
    proof: str
    lines: tuple[ReviewedLine, ...]


class ReviewQuestion(msgspec.Struct, frozen=True, kw_only=True):
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
    usd: Amount
    lines: int
    look_up: str | None


@dataclass(frozen=True, slots=True)
class _Thing:
    """One disk, address or commitment: what its lines have in common."""

    kind: str
    provider: str
    account: str | None
    region: str | None
    zone: str | None
    what: str
    idle: bool


def leftovers(
    lines: Sequence[BillLine], complete: frozenset[str] = frozenset()
) -> tuple[tuple[ReviewFinding, ...], tuple[ReviewQuestion, ...]]:
    """Return what nobody used, the dearest first, and what the bill cannot tell.

    Args:
        lines: of all files.
        complete: providers whose bills are of everything that an account used. Of others a machine
            must be on the bill, or it may be an export without machines.
    """
    ends = {kind: _last_uses(lines, kind) for kind in _ATTACHED}
    until = max((line.end for line in lines if line.end and line.kind not in APART), default=None)
    findings: list[ReviewFinding] = []
    open_: list[tuple[_Thing, list[BillLine]]] = []
    for thing, its in _things(lines).items():
        if thing.idle:
            findings.append(_leftover(thing, its, Message("bill.unused-as-it-says")))
            continue
        near = ends[thing.kind]
        shows = thing.provider in complete or any(host[0] == thing.provider for host in near)
        last = _last_use(thing, near) if shows else _ALWAYS
        unused, remaining = _split(its, last, until)
        if unused:
            findings.append(_leftover(thing, unused, _proof(thing, last)))
        open_.append((thing, remaining))
    findings.sort(
        key=lambda finding: (-finding.usd, finding.code, finding.what, finding.region or "")
    )
    return tuple(findings), _undecided(open_)


def _last_uses(lines: Iterable[BillLine], kind: str) -> dict[_Host, datetime]:
    """Return when each place last had something running that disks or addresses belong to."""
    last_use: dict[_Host, datetime] = {}
    for line in lines:
        if line.idle:
            continue  # reserved, and no machine on it
        if line.kind == MACHINE or (
            line.kind in ("other", "control-plane") and may_host(kind, line.description)
        ):
            host = (line.provider, line.account, line.region, line.zone)
            last_use[host] = max(last_use.get(host, _NEVER), line.end or _ALWAYS)
    return last_use


def _things(lines: Iterable[BillLine]) -> dict[_Thing, list[BillLine]]:
    things: dict[_Thing, list[BillLine]] = {}
    for line in lines:
        kind = line.kind if line.kind in _ATTACHED else COMMITMENT if line.idle else None
        if kind is None or line.usd <= 0 or line.idle is False:
            continue
        thing = _Thing(
            kind,
            line.provider,
            line.account,
            line.region,
            line.zone,
            line.resource or line.description,
            bool(line.idle),
        )
        things.setdefault(thing, []).append(line)
    return things


def _last_use(thing: _Thing, ends: Mapping[_Host, datetime]) -> datetime:
    """Return when something last ran that could have used it; an unknown time is always."""
    location = (thing.account, thing.region, thing.zone)
    near = (
        end
        for (provider, *where), end in ends.items()
        if provider == thing.provider
        and all(a is None or b is None or a == b for a, b in zip(location, where, strict=True))
    )
    return max(near, default=_NEVER)


def _split(
    its: Iterable[BillLine], last: datetime, until: datetime | None
) -> tuple[list[BillLine], list[BillLine]]:
    """Return the lines for a time in which nothing could use it up to the end, and the others."""
    unused: list[BillLine] = []
    remaining: list[BillLine] = []
    ended = last == _NEVER or (until is not None and until - last >= LONGEST_PAUSE)
    for line in its:
        after = last == _NEVER or (line.start is not None and line.start >= last)
        (unused if ended and after else remaining).append(line)
    return unused, remaining


def _proof(thing: _Thing, last: datetime) -> str:
    where = thing.zone or thing.region or ""
    if last == _NEVER:
        return Message("bill.no-machine-ran-in" if where else "bill.no-machine-ran", where=where)
    code = "bill.no-machine-after-in" if where else "bill.no-machine-after"
    return Message(code, where=where, time=f"{last:%Y-%m-%d %H:%M}")


def _leftover(thing: _Thing, its: Sequence[BillLine], proof: str) -> ReviewFinding:
    return ReviewFinding(
        code=_ATTACHED.get(thing.kind, thing.kind),
        provider=thing.provider,
        what=thing.what,
        region=thing.region,
        usd=without_zeros(sum_exactly(line.usd for line in its)),
        lines=tuple(ReviewedLine(source=i.source, usd=without_zeros(i.usd)) for i in its),
        proof=proof,
    )


def _undecided(open_: Iterable[tuple[_Thing, Sequence[BillLine]]]) -> tuple[ReviewQuestion, ...]:
    by_kind: defaultdict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for thing, remaining in open_:
        by_kind[thing.provider, thing.kind] += (line.usd for line in remaining)
    return tuple(
        ReviewQuestion(
            what=kind,
            provider=provider,
            usd=without_zeros(sum_exactly(amounts)),
            lines=len(amounts),
            look_up=WORDS["look_up"].get(provider, {}).get(kind),
        )
        for (provider, kind), amounts in sorted(by_kind.items())
        if amounts
    )
