"""Paid for and used by nobody: addresses, disks and commitments, each with its proof.

A bill does not say what a disk is attached to. So a disk or an address counts as left over only
where the bill says so itself, or where no machine ran that could have used it: none of its account,
in its region and zone, from some day to the end of the bill. What is not proved so is a sum apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from planner.bills import kinds
from planner.bills.bill import APART, MACHINE, BillLine
from pricing.money import EXACT

ADDRESS, DISK, COMMITMENT = "idle-address", "idle-disk", "idle-commitment"
_ATTACHED = {"address": ADDRESS, "disk": DISK}
# A machine that is off for the night, a weekend or some holidays comes back: its disk is not left.
LONGEST_PAUSE = timedelta(days=7)
_NEVER = datetime.min.replace(tzinfo=UTC)
_ALWAYS = datetime.max.replace(tzinfo=UTC)
_ZERO = Decimal(0)
_SAID = "the bill itself says that nothing used it"
_Host = tuple[str, str | None, str | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Dollars for something that nobody used.

    Attributes:
        code: ADDRESS, DISK or COMMITMENT.
        provider: as on the bill's lines.
        what: the resource, else the bill's words.
        region: None where the bill does not say.
        usd: exact, of `lines`.
        lines: of the bill.
        proof: what the bill shows, in a sentence.
    """

    code: str
    provider: str
    what: str
    region: str | None
    usd: Decimal
    lines: tuple[BillLine, ...]
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """Disks and addresses that the bill does not prove to be used or not.

    Attributes:
        kind: as on the bill: disk or address.
        provider: as on the bill's lines.
        usd: exact.
        lines: how many.
    """

    kind: str
    provider: str
    usd: Decimal
    lines: int


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
    lines: Sequence[BillLine], whole: frozenset[str] = frozenset()
) -> tuple[tuple[Leftover, ...], tuple[Undecided, ...]]:
    """Return what nobody used, the dearest first, and what the bill cannot tell.

    Args:
        lines: of all files.
        whole: providers whose bills are of everything that an account used. Of others a machine
            must be on the bill, or it may be an export without machines.
    """
    ends = {kind: _last_uses(lines, kind) for kind in _ATTACHED}
    until = max((line.end for line in lines if line.end and line.kind not in APART), default=None)
    found: list[Leftover] = []
    open_: list[tuple[_Thing, list[BillLine]]] = []
    for thing, its in _things(lines).items():
        if thing.idle:
            found.append(_leftover(thing, its, _SAID))
            continue
        near = ends[thing.kind]
        shows = thing.provider in whole or any(host[0] == thing.provider for host in near)
        last = _last_use(thing, near) if shows else _ALWAYS
        unused, rest = _split(its, last, until)
        if unused:
            found.append(_leftover(thing, unused, _proof(thing, last)))
        open_.append((thing, rest))
    found.sort(key=lambda one: (-one.usd, one.code, one.what, one.region or ""))
    return tuple(found), _undecided(open_)


def _last_uses(lines: Iterable[BillLine], kind: str) -> dict[_Host, datetime]:
    """Return when each place last had something running that disks or addresses belong to."""
    found: dict[_Host, datetime] = {}
    for line in lines:
        if line.idle:
            continue  # reserved, and no machine on it
        if line.kind == MACHINE or (
            line.kind in ("other", "control-plane") and kinds.may_host(kind, line.description)
        ):
            host = (line.provider, line.account, line.region, line.zone)
            found[host] = max(found.get(host, _NEVER), line.end or _ALWAYS)
    return found


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
    place = (thing.account, thing.region, thing.zone)
    near = (
        end
        for (provider, *where), end in ends.items()
        if provider == thing.provider
        and all(a is None or b is None or a == b for a, b in zip(place, where, strict=True))
    )
    return max(near, default=_NEVER)


def _split(
    its: Iterable[BillLine], last: datetime, until: datetime | None
) -> tuple[list[BillLine], list[BillLine]]:
    """Return the lines for a time in which nothing could use it up to the end, and the others."""
    unused: list[BillLine] = []
    rest: list[BillLine] = []
    ended = last == _NEVER or (until is not None and until - last >= LONGEST_PAUSE)
    for line in its:
        after = last == _NEVER or (line.start is not None and line.start >= last)
        (unused if ended and after else rest).append(line)
    return unused, rest


def _proof(thing: _Thing, last: datetime) -> str:
    where = f" in {thing.zone or thing.region}" if thing.zone or thing.region else ""
    if last == _NEVER:
        return f"no machine of its account ran{where} on this bill"
    return f"no machine of its account ran{where} after {last:%Y-%m-%d %H:%M} UTC"


def _leftover(thing: _Thing, its: Sequence[BillLine], proof: str) -> Leftover:
    total = _ZERO
    for line in its:
        total = EXACT.add(total, line.usd)
    return Leftover(
        code=_ATTACHED.get(thing.kind, thing.kind),
        provider=thing.provider,
        what=thing.what,
        region=thing.region,
        usd=total,
        lines=tuple(its),
        proof=proof,
    )


def _undecided(open_: Iterable[tuple[_Thing, Sequence[BillLine]]]) -> tuple[Undecided, ...]:
    sums: dict[tuple[str, str], tuple[Decimal, int]] = {}
    for thing, rest in open_:
        usd, count = sums.get((thing.provider, thing.kind), (_ZERO, 0))
        for line in rest:
            usd, count = EXACT.add(usd, line.usd), count + 1
        if rest:
            sums[thing.provider, thing.kind] = (usd, count)
    return tuple(
        Undecided(kind=kind, provider=provider, usd=usd, lines=count)
        for (provider, kind), (usd, count) in sorted(sums.items())
    )
