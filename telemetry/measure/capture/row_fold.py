"""The rows of one series of a long capture: the first and last as they are, the rest in blocks."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from telemetry.measure.capture.block import (
    GAP_INTERVALS,
    Block,
    block_of_json,
    folded,
    rates,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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

    def __init__(self, place: int) -> None:
        self.number = 0
        self._head: list[str] = []
        self._recent: deque[str] = deque()
        self._blocks: list[_Folded] = []
        self._due = RECENT + AT_ONCE + _APART * (place % AT_ONCE)
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
        for one in self._blocks:
            yield one.line
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
                part = rows[begin : i + 1]
                self._keep(_block(part, part[-1][0] + min(step, longest)))
                begin = i + 1
        while len(self._blocks) > MOST_BLOCKS:
            self._merge()

    def _read(self, line: str) -> tuple[float, dict[str, float]]:
        number, t_s, *values = json.loads(line)
        columns = self._columns[number]
        return t_s, {name: v for name, v in zip(columns, values, strict=True) if v is not None}

    def _keep(self, block: Block) -> None:
        self._blocks.append(_Folded(block.begin_s, block.end_s, block.as_json(self.number)))

    def _merge(self) -> None:
        """Make one block of the two neighbours that lie in the shortest time."""
        blocks = self._blocks
        first = min(range(len(blocks) - 1), key=lambda i: blocks[i + 1].end_s - blocks[i].begin_s)
        one, other = (block_of_json(json.loads(blocks[i].line)) for i in (first, first + 1))
        both = one.with_following(other)
        blocks[first : first + 2] = [_Folded(both.begin_s, both.end_s, both.as_json(self.number))]


def _block(rows: Sequence[tuple[float, dict[str, float]]], until_s: float) -> Block:
    return folded([t for t, _ in rows], [row for _, row in rows], until_s)
