"""Readings of one series over a stretch of time, folded: their distribution, and how it went.

A block keeps of each reading a sketch of its distribution (`sketch`) and its mean in `PARTS` equal
parts of the time. Counters are kept where each part begins; what they count a second is a reading.
Two neighbouring blocks make one of both their times, as often as needed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from planner.profile.metrics import SLOTS
from telemetry.measure.capture.sketch import Point, shortened, sketched
from telemetry.recording.recording import COUNTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PARTS = 24
KEPT_COUNTERS = ("counter.energy_j",)
# A pause this much longer than usual between two readings is none of their time.
GAP_INTERVALS = 3.0

Means = list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
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
    counts: Mapping[str, Means] = field(default_factory=dict)

    @property
    def length_s(self) -> float:
        """Seconds from begin to end."""
        return self.end_s - self.begin_s

    def with_following(self, other: Self) -> Block:
        """Return one block of this and the next."""
        begin_s, end_s = self.begin_s, other.end_s
        both = (self, other)
        readings = sorted({name for block in both for name in block.points})
        counters = sorted({name for block in both for name in block.counts})
        edges = [begin_s + (end_s - begin_s) * i / PARTS for i in range(PARTS + 1)]
        return Block(
            begin_s=begin_s,
            end_s=end_s,
            n=self.n + other.n,
            points={
                name: sketched(p for block in both for p in block.points.get(name, ()))
                for name in readings
            },
            means={name: _regridded(both, name, edges) for name in readings},
            counts={name: _recounted(both, name, edges) for name in counters},
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
            "means": {name: _written(means) for name, means in self.means.items()},
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
    begin_s, end_s = (float(t) for t in line["t_s"])
    block = Block(
        begin_s=begin_s,
        end_s=end_s,
        n=int(line["n"]),
        points={
            str(name): [(float(v), float(w)) for v, w in points]
            for name, points in line["points"].items()
        },
        means={str(name): _read(means) for name, means in line["means"].items()},
        counts={str(name): _read(counts) for name, counts in line["counts"].items()},
    )
    if not begin_s < end_s or block.points.keys() != block.means.keys():
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
    place = [min(PARTS - 1, int((t - begin_s) / part_s)) for t in times]
    names = sorted({name for row in rows for name in row})
    points: dict[str, list[Point]] = {}
    means: dict[str, Means] = {}
    counts: dict[str, Means] = {}
    for name in names:
        known = [(i, row[name]) for i, row in enumerate(rows) if name in row]
        if name in COUNTERS:
            counts[name] = _first_of_part([(place[i], value) for i, value in known])
            continue
        points[name] = sketched((value, stood[i]) for i, value in known if stood[i] > 0)
        means[name] = _mean_of_part([(place[i], value, stood[i]) for i, value in known])
    return Block(
        begin_s=begin_s, end_s=end_s, n=len(times), points=points, means=means, counts=counts
    )


def rates(
    t_s: float, row: Mapping[str, float], next_s: float, following: Mapping[str, float]
) -> dict[str, float]:
    """Return a row with what its counters count a second until the next one, as slots."""
    found = {name: value for name, value in row.items() if name not in COUNTERS}
    for counter, slot in COUNTERS.items():
        if counter not in row:
            continue
        found.pop(slot, None)
        if counter in KEPT_COUNTERS:
            found[counter] = row[counter]
        elif counter in following and following[counter] >= row[counter] and next_s > t_s:
            rate = (following[counter] - row[counter]) / (next_s - t_s)
            most = SLOTS[slot].high
            found[slot] = rate if most is None else min(rate, most)
    return found


def _mean_of_part(known: Sequence[tuple[int, float, float]]) -> Means:
    sums, weights = [0.0] * PARTS, [0.0] * PARTS
    for part, value, stood in known:
        sums[part] += value * stood
        weights[part] += stood
    return [s / w if w > 0 else None for s, w in zip(sums, weights, strict=True)]


def _first_of_part(known: Sequence[tuple[int, float]]) -> Means:
    found: Means = [None] * PARTS
    for part, value in known:
        if found[part] is None:
            found[part] = value
    return found


def _regridded(blocks: Sequence[Block], name: str, edges: Sequence[float]) -> Means:
    """Return the means of the parts between the edges, each from the old parts it overlaps."""
    old = [
        (block.begin_s + i * block.length_s / PARTS, block.length_s / PARTS, mean)
        for block in blocks
        for i, mean in enumerate(block.means.get(name, ()))
        if mean is not None
    ]
    sums, weights = [0.0] * PARTS, [0.0] * PARTS
    width = edges[1] - edges[0]
    for begin, length, mean in old:
        first = int((begin - edges[0]) / width)
        for part in range(max(0, first), min(PARTS, int((begin + length - edges[0]) / width) + 1)):
            shared = min(begin + length, edges[part + 1]) - max(begin, edges[part])
            if shared > 0:
                sums[part] += mean * shared
                weights[part] += shared
    return [s / w if w > 0 else None for s, w in zip(sums, weights, strict=True)]


def _recounted(blocks: Sequence[Block], name: str, edges: Sequence[float]) -> Means:
    """Return the first count known in each part."""
    found: Means = [None] * PARTS
    width = edges[1] - edges[0]
    for block in blocks:
        for i, count in enumerate(block.counts.get(name, ())):
            at = block.begin_s + i * block.length_s / PARTS
            part = min(PARTS - 1, max(0, int((at - edges[0]) / width)))
            if count is not None and found[part] is None:
                found[part] = count
    return found


def _written(means: Means) -> Means:
    return [None if value is None else shortened(value) for value in means]


def _read(values: Sequence[Any]) -> Means:
    if len(values) != PARTS:
        raise ValueError(len(values))
    return [None if value is None else float(value) for value in values]
