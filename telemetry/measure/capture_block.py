"""Long stretches of readings, folded: how they are distributed, and how they went over time.

A block holds the readings of one series over a stretch of time: of each reading a sketch of its
distribution, and its mean in `PARTS` equal parts of the time. Counters are kept where each part
begins; what they count a second is a reading. Two neighboring blocks merge into one of both their
times, as often as needed. `RowFold` keeps the first and last rows as they are, and blocks between.

The sketch is the merging t-digest of Dunning and Ertl (Computing Extremely Accurate Quantiles Using
t-Digests, arXiv:1902.04023): neighboring values are averaged, few at the ends and more in the
middle. Its mean, least and greatest values are exact.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import asin, pi, sin
from statistics import median
from typing import Any, Self

import msgspec

from planner.profile.kinds import SLOTS
from telemetry.recording.recording import COUNTERS

Point = tuple[float, float]
MOST_POINTS = 128
_DIGITS = 6


def sketched(points: Iterable[Point], size: int = MOST_POINTS) -> list[Point]:
    """Return the distribution of points in at most so many.

    Args:
        points: values and their weights (> 0), in any order.
        size: points to keep; where no more values than this differ, nothing is lost.

    Returns:
        Values in ascending order, with their weights.
    """
    distinct: list[Point] = []
    for value, weight in sorted(points):
        if distinct and distinct[-1][0] == value:
            distinct[-1] = (value, distinct[-1][1] + weight)
        else:
            distinct.append((value, weight))
    return distinct if len(distinct) <= size else _merged(distinct, size)


def _merged(points: list[Point], size: int) -> list[Point]:
    """Merge neighbours as long as a point spans at most one unit of the scale function k1.

    The first and the last stay by themselves.
    """
    *points, last = points
    total = sum(weight for _, weight in points) + last[1]
    merged: list[Point] = []
    value, weight = points[0]
    before, limit = 0.0, 0.0
    for following, more in points[1:]:
        if (before + weight + more) / total <= limit:
            value += (following - value) * more / (weight + more)
            weight += more
            continue
        merged.append((value, weight))
        before += weight
        limit = _limit(before / total, size)
        value, weight = following, more
    return [*merged, (value, weight), last]


def _limit(rank: float, size: int) -> float:
    """Return how far a point may reach that begins at a rank."""
    angle = size * asin(2.0 * min(rank, 1.0) - 1.0) / (2.0 * pi) + 1.0
    return (sin(min(2.0 * pi * angle / size, pi / 2.0)) + 1.0) / 2.0


def shortened(value: float) -> float:
    """Return a number as it is written: six significant digits."""
    return float(f"{value:.{_DIGITS}g}")


# Ten minutes and half an hour at a reading a second; a block is eight minutes at first.
HEAD, RECENT, AT_ONCE = 600, 1800, 480
MOST_BLOCKS = 80
# Series fold at moments of their own, so that no reading comes much later than due.
_APART = 16


@dataclass(frozen=True, slots=True)
class _Folded:
    """A block as its line, which takes a tenth of the memory."""

    begin_s: float
    end_s: float
    line: str


class RowFold:
    """Keeps the rows of one series within bounds.

    Attributes:
        number: the series, as rows name it; the last one where its columns changed.
    """

    def __init__(self, index: int) -> None:
        self.number = 0
        self._head: list[str] = []
        self._recent: deque[str] = deque()
        self._blocks: list[_Folded] = []
        self._due = RECENT + AT_ONCE + _APART * (index % AT_ONCE)
        self._columns: dict[int, Sequence[str]] = {}

    def declare(self, number: int, columns: Sequence[str]) -> None:
        """Take what the rows of a number hold."""
        self.number = number
        self._columns[number] = columns

    def add(self, line: str) -> bool:
        """Take a row; return whether older ones were folded."""
        if len(self._head) < HEAD:
            self._head.append(line)
            return False
        self._recent.append(line)
        if len(self._recent) < self._due:
            return False
        self._fold()
        self._due = RECENT + AT_ONCE
        return True

    def lines(self) -> Iterator[str]:
        """Yield what is kept."""
        yield from self._head
        for block in self._blocks:
            yield block.line
        yield from self._recent

    def _fold(self) -> None:
        parsed = [self._read(self._recent.popleft()) for _ in range(AT_ONCE)]
        parsed.append(self._read(self._recent[0]))
        steps = [b[0] - a[0] for a, b in pairwise(parsed)]
        longest = GAP_INTERVALS * median(steps)
        rows = [
            (t, rates(t, row, next_s, following))
            for (t, row), (next_s, following) in pairwise(parsed)
        ]
        begin = 0
        for i, step in enumerate(steps):
            if step > longest or i == len(steps) - 1:
                times, readings = zip(*rows[begin : i + 1], strict=True)
                block = folded(times, readings, times[-1] + min(step, longest))
                self._blocks.append(self._as_line(block))
                begin = i + 1
        while len(self._blocks) > MOST_BLOCKS:
            self._merge()

    def _read(self, line: str) -> tuple[float, dict[str, float]]:
        number, t_s, *values = json.loads(line)
        columns = self._columns[number]
        return t_s, {name: v for name, v in zip(columns, values, strict=True) if v is not None}

    def _as_line(self, block: "Block") -> _Folded:
        return _Folded(block.begin_s, block.end_s, block.as_json(self.number))

    def _merge(self) -> None:
        """Make one block of the two neighbours that lie in the shortest time."""
        blocks = self._blocks
        first = min(range(len(blocks) - 1), key=lambda i: blocks[i + 1].end_s - blocks[i].begin_s)
        earlier, later = (block_of_json(json.loads(blocks[i].line)) for i in (first, first + 1))
        blocks[first : first + 2] = [self._as_line(earlier.with_following(later))]


PARTS = 24
KEPT_COUNTERS = ("counter.energy_j",)
# A pause this much longer than usual between two readings is none of their time.
GAP_INTERVALS = 3.0

Means = list[float | None]
Share = tuple[int, float, float]  # of a part: its number, a value, its weight


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A folded stretch.

    Attributes:
        begin_s: first reading, seconds since 1970 UTC.
        end_s: until when the last one stood.
        n: instants that were read.
        points: by reading, values and the seconds that they stood.
        means: by reading, of each part; None where it was not read.
        counts: by counter, where each part begins; None where it was not read.
    """

    begin_s: float
    end_s: float
    n: int
    points: Mapping[str, Sequence[Point]]
    means: Mapping[str, Means]
    counts: Mapping[str, Means] = {}

    @property
    def length_s(self) -> float:
        """Seconds from begin to end."""
        return self.end_s - self.begin_s

    def with_following(self, following: Self) -> "Block":
        """Return one block of this and the next."""
        begin_s, end_s = self.begin_s, following.end_s
        pair = (self, following)
        readings = sorted({name for block in pair for name in block.points})
        counters = sorted({name for block in pair for name in block.counts})
        edges = [begin_s + (end_s - begin_s) * i / PARTS for i in range(PARTS + 1)]
        return Block(
            begin_s=begin_s,
            end_s=end_s,
            n=self.n + following.n,
            points={
                name: sketched(p for block in pair for p in block.points.get(name, ()))
                for name in readings
            },
            means={name: _means(_regridded(pair, name, edges)) for name in readings},
            counts={name: _firsts(_recounted(pair, name, edges)) for name in counters},
        )

    def as_json(self, number: int) -> str:
        """Return the line of a capture; `number` is that of the series."""
        line = {
            "folded": number,
            "t_s": [round(self.begin_s, 3), round(self.end_s, 3)],
            "n": self.n,
            "points": {
                name: [[shortened(v), round(w, 3)] for v, w in points]
                for name, points in self.points.items()
            },
            "means": {
                name: [None if value is None else shortened(value) for value in means]
                for name, means in self.means.items()
            },
            "counts": {
                name: [None if v is None else round(v, 3) for v in counts]
                for name, counts in self.counts.items()
            },
        }
        return json.dumps(line, separators=(",", ":"), allow_nan=False)


def block_of_json(line: Mapping[str, Any]) -> Block:
    """Return the block of a line.

    Raises:
        ValueError, TypeError, KeyError: it is none, or damaged.
    """
    begin_s, end_s = line["t_s"]
    block = msgspec.convert({**line, "begin_s": begin_s, "end_s": end_s}, Block)
    parts = {len(values) for values in (*block.means.values(), *block.counts.values())}
    if not begin_s < end_s or block.points.keys() != block.means.keys() or parts - {PARTS}:
        raise ValueError(line["t_s"])
    return block


def folded(times: Sequence[float], rows: Sequence[Mapping[str, float]], until_s: float) -> Block:
    """Return the block of some instants of one series.

    Args:
        times: ascending, seconds since 1970 UTC; at least one.
        rows: what was read at each of them; counters as what they count a second (see `rates`),
            those of `KEPT_COUNTERS` also as they are.
        until_s: how long the last reading stood.
    """
    begin_s, end_s = times[0], max(until_s, times[0] + 1e-3)
    stood = [max(b - a, 0.0) for a, b in zip(times, [*times[1:], end_s], strict=True)]
    part_s = (end_s - begin_s) / PARTS
    parts_of = [min(PARTS - 1, int((t - begin_s) / part_s)) for t in times]
    names = sorted({name for row in rows for name in row})
    points: dict[str, list[Point]] = {}
    means: dict[str, Means] = {}
    counts: dict[str, Means] = {}
    for name in names:
        values = [(i, row[name]) for i, row in enumerate(rows) if name in row]
        if name in COUNTERS:
            counts[name] = _firsts((parts_of[i], value) for i, value in values)
            continue
        points[name] = sketched((value, stood[i]) for i, value in values if stood[i] > 0)
        means[name] = _means((parts_of[i], value, stood[i]) for i, value in values)
    return Block(
        begin_s=begin_s, end_s=end_s, n=len(times), points=points, means=means, counts=counts
    )


def rates(
    t_s: float, row: Mapping[str, float], next_s: float, following: Mapping[str, float]
) -> dict[str, float]:
    """Return a row with what its counters count a second until the next one, as slots."""
    readings = {name: value for name, value in row.items() if name not in COUNTERS}
    for counter, slot in COUNTERS.items():
        if counter not in row:
            continue
        readings.pop(slot, None)
        if counter in KEPT_COUNTERS:
            readings[counter] = row[counter]
        elif counter in following and following[counter] >= row[counter] and next_s > t_s:
            rate = (following[counter] - row[counter]) / (next_s - t_s)
            ceiling = SLOTS[slot].high
            readings[slot] = rate if ceiling is None else min(rate, ceiling)
    return readings


def _means(shares: Iterable[Share]) -> Means:
    """Return the mean of each part, of its values by their weights."""
    sums, weights = [0.0] * PARTS, [0.0] * PARTS
    for part, value, weight in shares:
        sums[part] += value * weight
        weights[part] += weight
    return [s / w if w > 0 else None for s, w in zip(sums, weights, strict=True)]


def _firsts(counts: Iterable[tuple[int, float]]) -> Means:
    """Return the first count of each part."""
    first_counts: Means = [None] * PARTS
    for part, count in counts:
        if first_counts[part] is None:
            first_counts[part] = count
    return first_counts


def _regridded(blocks: Sequence[Block], name: str, edges: Sequence[float]) -> Iterator[Share]:
    """Yield part, mean and seconds of each overlap of an old part with one between the edges."""
    width = edges[1] - edges[0]
    for block in blocks:
        length = block.length_s / PARTS
        for i, mean in enumerate(block.means.get(name, ())):
            if mean is None:
                continue
            begin = block.begin_s + i * length
            first, last = (int((t - edges[0]) / width) for t in (begin, begin + length))
            for part in range(max(0, first), min(PARTS, last + 1)):
                shared = min(begin + length, edges[part + 1]) - max(begin, edges[part])
                if shared > 0:
                    yield part, mean, shared


def _recounted(
    blocks: Sequence[Block], name: str, edges: Sequence[float]
) -> Iterator[tuple[int, float]]:
    """Yield the new part of each count that is known."""
    width = edges[1] - edges[0]
    for block in blocks:
        for i, count in enumerate(block.counts.get(name, ())):
            at = block.begin_s + i * block.length_s / PARTS
            if count is not None:
                yield min(PARTS - 1, max(0, int((at - edges[0]) / width))), count
