"""Cells of digits, eight bytes at a time: in a block, most columns' numbers are of one form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from telemetry.large.lines import BlockRows

_BYTES = 8
_ZEROS, _HIGH = np.uint64(0x3030303030303030), np.uint64(0x8080808080808080)
_TO_HIGH = np.uint64(0x7676767676767676)  # what lifts a byte above 9 to its highest bit


def uniform(rows: BlockRows, column: int, suffix: bytes) -> tuple[NDArray[np.int64], int] | None:
    """Return a column's numbers times ten to their decimals, and how many decimals they have.

    None unless each cell is at most eight bytes of digits and the suffix, with a dot at the same
    place before the suffix in all cells or in none.

    Args:
        rows: the rows of a block.
        column: which column.
        suffix: what stands behind each number.
    """
    begins = rows.begins(column)
    behind = rows.ends[column] - len(suffix)
    lengths = behind - begins
    if not 1 <= lengths.min(initial=_BYTES) <= lengths.max(initial=_BYTES) <= _BYTES:
        return None
    # The eight bytes that end with the first number must not begin before the block.
    if len(suffix) > _BYTES or behind[0] < _BYTES:
        return None
    if suffix:
        unit = np.uint64(int.from_bytes(suffix, "little"))
        if ((rows.words[behind] & low_bytes(len(suffix))) != unit).any():
            return None
    word = rows.words[behind - _BYTES]
    word ^= _ZEROS
    word &= ~np.uint64(0) << ((_BYTES - lengths) * 8).astype(np.uint64)
    number = rows.cell(column, 0).encode()[: int(lengths[0])]
    decimals = int(lengths[0]) - 1 - number.find(b".") if b"." in number else 0
    if decimals:
        if lengths.min() < decimals + 2:
            return None
        dotless = _without_dot(word, _BYTES - 1 - decimals)
        if dotless is None:
            return None
        word = dotless
    if not digits_only(word).all():
        return None
    return _number(word), decimals


def low_bytes(count: int) -> np.uint64:
    """Return a mask of the first bytes of a word."""
    return np.uint64((1 << (8 * count)) - 1)


def digits_only(word: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which words are bytes of at most 9 each."""
    return np.asarray(((word + _TO_HIGH) | word) & _HIGH == 0)


def _without_dot(word: NDArray[np.uint64], place: int) -> NDArray[np.uint64] | None:
    """Return words with what stands before a dot moved over it; None where one has none there."""
    shift = np.uint64(8 * place)
    dot = np.uint64(ord(".") ^ ord("0")) << shift
    if ((word & (np.uint64(0xFF) << shift)) != dot).any():
        return None
    before = word & low_bytes(place)
    behind = word & ~low_bytes(place + 1)
    return np.asarray(behind | (before << np.uint64(8)))


def _number(word: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number that eight digits are, the first in the lowest byte: pairs, then fours."""
    for tens, bits, mask in (
        (10, 8, 0x00FF00FF00FF00FF),
        (100, 16, 0x0000FFFF0000FFFF),
        (10_000, 32, 0x00000000FFFFFFFF),
    ):
        higher = word * np.uint64(tens)
        higher += word >> np.uint64(bits)
        higher &= np.uint64(mask)
        word = higher
    return word.view(np.int64)
