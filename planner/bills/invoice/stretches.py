"""When the hours of a charge were: by day, and at work, at night or at the weekend.

Only what the bill proves is split. A charge of a part of one day's night is of that night; a longer
one is split by time where the machine ran all through it. All else has no known time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal

from planner.bills.bill import BillLine
from pricing.money import EXACT

WORKDAY, NIGHT, WEEKEND = "workday", "night", "weekend"
"""Parts of a week: Monday to Friday from 8 to 20 h, Monday to Friday outside of it, the rest."""

DAY_BEGINS_H, DAY_ENDS_H = 8, 20
_SATURDAY = 5
# Bills round hours, and some end at 23:59:59: so much of its span is all of it.
_THROUGHOUT = Decimal("0.999")
_HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a charge in one part of one day.

    Attributes:
        day: in the reader's zone.
        part: WORKDAY, NIGHT or WEEKEND.
        usd: exact; the stretches of a charge add up to it.
    """

    day: date
    part: str
    usd: Decimal


def stretches(line: BillLine, zone: tzinfo) -> tuple[Stretch, ...]:
    """Return when a charge was made; empty where the bill does not tell."""
    if line.start is None or line.end is None or line.end <= line.start:
        return ()
    pieces = list(_pieces(line.start, line.end, zone))
    if len(pieces) > 1 and len({piece[:2] for piece in pieces}) > 1 and not _ran_through(line):
        return ()
    return tuple(_priced(line.usd, pieces))


def days(line: BillLine, zone: tzinfo) -> tuple[tuple[date, Decimal], ...]:
    """Return the dollars of a charge by day; empty where the bill does not tell."""
    if line.start is None or line.end is None or line.end <= line.start:
        return ()
    found: dict[date, timedelta] = {}
    for day, _, length in _pieces(line.start, line.end, zone):
        found[day] = found.get(day, timedelta()) + length
    if len(found) > 1 and not _ran_through(line):
        return ()
    pieces = [(day, "", length) for day, length in found.items()]
    return tuple((one.day, one.usd) for one in _priced(line.usd, pieces))


def _ran_through(line: BillLine) -> bool:
    """Return whether one machine is known to have run from start to end."""
    if line.resource is None or line.hours is None or line.start is None or line.end is None:
        return False
    seconds = Decimal(int((line.end - line.start).total_seconds()))
    return line.hours * _HOUR_S >= seconds * _THROUGHOUT


def _pieces(start: datetime, end: datetime, zone: tzinfo) -> Iterator[tuple[date, str, timedelta]]:
    """Yield day, part and length of what lies between two instants, in order."""
    at = start
    while at < end:
        here = at.astimezone(zone)
        after = min(_boundary(here, zone), end)
        yield here.date(), _part(here), after - at
        at = after


def _part(here: datetime) -> str:
    if here.weekday() >= _SATURDAY:
        return WEEKEND
    return WORKDAY if DAY_BEGINS_H <= here.hour < DAY_ENDS_H else NIGHT


def _boundary(here: datetime, zone: tzinfo) -> datetime:
    """Return the next change of day or part, in UTC."""
    for hour in (DAY_BEGINS_H, DAY_ENDS_H):
        if here.hour < hour:
            return datetime.combine(here.date(), time(hour), zone).astimezone(UTC)
    midnight = datetime.combine(here.date() + timedelta(days=1), time(), zone)
    return midnight.astimezone(UTC)


def _priced(usd: Decimal, pieces: list[tuple[date, str, timedelta]]) -> Iterator[Stretch]:
    """Yield the pieces with their dollars; the last one bears what division leaves."""
    whole = sum((length for _, _, length in pieces), timedelta())
    left = usd
    for number, (day, part, length) in enumerate(pieces):
        last = number == len(pieces) - 1
        share = Decimal(length // _TICK) / Decimal(whole // _TICK)
        part_usd = left if last else EXACT.multiply(usd, share).quantize(_FINEST, context=EXACT)
        left = EXACT.subtract(left, part_usd)
        yield Stretch(day=day, part=part, usd=part_usd)


_TICK = timedelta(microseconds=1)
_FINEST = Decimal("1e-12")
"""Of a part in dollars: so few digits that parts are added up exactly by anybody."""
