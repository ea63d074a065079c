"""What is uncertain, drawn once: 64 stratified draws that all candidates of a plan share.

Each uncertain figure has an axis of its own: the speed on a layout of GPUs, the gain of an action,
the price of a seller. On an axis the 64 equal parts of its distribution come in an order that
follows from its name alone, so every run on every machine draws the same. A candidate's bill is a
row of 64 numbers; two candidates that share an axis rise and fall together on it.

A figure known as (low, mid, high), its 5 %, 50 % and 95 % ends, is taken to be log-normal on either
side of `mid`, and cut off at its ends: an action whose low end gains nothing never hurts.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from statistics import NormalDist
from typing import Literal, NamedTuple

DRAWS = 64
_END = 0.05
_TINY = 1e-9
_BELOW = (
    math.floor(_END * DRAWS) - 1
)  # of 64 draws two lie below the low end, and two above the high
_STANDARD = NormalDist()
_AT_END = _STANDARD.inv_cdf(1.0 - _END)
_SCORES = tuple(
    max(-1.0, min(1.0, _STANDARD.inv_cdf((i + 0.5) / DRAWS) / _AT_END)) for i in range(DRAWS)
)
Row = tuple[float, ...]
"""One number for each draw."""
Source = Literal["speed", "cure", "use"]


class Cause(NamedTuple):
    """A figure that multiplies hours, and how sure it is.

    Attributes:
        source: the speed elsewhere, what actions gain, or how long machines are held otherwise.
        axis: name of its axis.
        low: at the end of fewest hours, > 0 and at most `mid`.
        mid: expected.
        high: at the end of most hours.
    """

    source: Source
    axis: str
    low: float
    mid: float
    high: float

    @property
    def row(self) -> Row:
        """The figure in each draw."""
        return spread(self.axis, self.low, self.mid, self.high)


@lru_cache(maxsize=4096)
def scores(axis: str) -> Row:
    """Return where on an axis each draw lies: -1 at the low end, 0 as expected, 1 at the high."""

    def place(draw: int) -> bytes:
        return blake2b(f"{axis}/{draw}".encode(), digest_size=8).digest()

    order = sorted(range(DRAWS), key=place)
    return tuple(_SCORES[i] for i in order)


@lru_cache(maxsize=4096)
def spread(axis: str, low: float, mid: float, high: float, share: float = 1.0) -> Row:
    """Return a figure in each draw.

    Args:
        axis: name of its axis.
        low: its 5 % end, > 0.
        mid: expected, at least `low`.
        high: its 95 % end, at least `mid`.
        share: of the draws that may differ from `mid`, > 0: the outermost, the ends among them.
    """
    if low == high:
        return (mid,) * DRAWS
    down, up = math.log(mid / low), math.log(high / mid)
    still = min(_STANDARD.inv_cdf(1.0 - share / 2.0) / _AT_END, 1.0 - _TINY)
    moves = [math.copysign(max(0.0, abs(z) - still) / (1.0 - still), z) for z in scores(axis)]
    return tuple([mid * math.exp((up if z > 0.0 else down) * z) for z in moves])


def times(rows: Iterable[Row]) -> Row:
    """Return the product of rows, draw by draw."""
    product: Sequence[float] = (1.0,) * DRAWS
    for row in rows:
        product = [value * factor for value, factor in zip(product, row, strict=True)]
    return tuple(product)


def ends(row: Sequence[float]) -> tuple[float, float]:
    """Return the ends between which at least 90 % of the draws lie."""
    ordered = sorted(row)
    return ordered[_BELOW], ordered[-1 - _BELOW]
