"""Blocks of bytes to fields: where each cell of each row of a table begins and ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

_NEWLINE, _RETURN, _SPACE, _QUOTE = 10, 13, 32, 34
BLOCK_BYTES = 2 << 20
PADDING = 64  # bytes behind a block, so that reading ahead of a cell stays inside


class UnfitError(Exception):
    """A log is not plain enough for the fast reader; the exact one reads it."""


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows of one block that have the right number of cells.

    Attributes:
        data: the block, `PADDING` bytes longer than its lines.
        starts: first byte of each cell, by column, then row.
        ends: the byte behind each cell, likewise.
    """

    data: bytes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    _begins: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.starts.shape[1])

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The block, a number a byte."""
        return np.frombuffer(self.data, np.uint8)

    @property
    def words(self) -> NDArray[np.uint64]:
        """The eight bytes from each place on as one number, the first byte the lowest."""
        return np.ndarray((len(self.data) - 7,), "<u8", self.data, strides=(1,))

    def begins(self, column: int) -> NDArray[np.int64]:
        """Return where a column's cells begin, the space behind the delimiter left out."""
        if column not in self._begins:
            starts = self.starts[column]
            self._begins[column] = starts + (self.bytes[starts] == _SPACE)
        return self._begins[column]

    def cell(self, column: int, row: int) -> str:
        """Return one cell as text."""
        cell = self.data[self.starts[column, row] : self.ends[column, row]]
        return cell.decode("utf-8", "replace").strip()


def blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks joined to blocks of whole lines; the last one may lack its newline."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size < BLOCK_BYTES:
            continue
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            continue
        parts[-1] = chunk[:cut]
        yield b"".join(parts)
        parts, size = [chunk[cut:]], len(chunk) - cut
    if size:
        yield b"".join(parts)


def rows_of(
    block: bytes, delimiter: int, width: int, special: Callable[[str], bool]
) -> tuple[BlockRows, int]:
    """Return the rows of a block, and how many lines have another number of cells.

    Args:
        block: whole lines, each with its newline.
        delimiter: the byte between cells.
        width: cells of a row.
        special: whether a line that begins with a letter is not a row.

    Raises:
        UnfitError: cells are quoted, or there are NUL bytes.
    """
    if b'"' in block or b"\0" in block:
        raise UnfitError
    data = block + bytes(PADDING)
    view = np.frombuffer(data, np.uint8, len(block))
    marked = view == delimiter
    marked |= view == _NEWLINE
    marks = np.flatnonzero(marked)
    lines = block.count(b"\n")
    wrong = 0
    if len(marks) == lines * width and (view[marks[width - 1 :: width]] == _NEWLINE).all():
        table = marks.reshape(lines, width)
        starts = np.concatenate(([0], table[:-1, -1] + 1))
        kept, _ = _kept(data, view, starts, table[:, -1], special)
        if kept is not None:
            table, starts = table[kept], starts[kept]
    else:
        ends = np.flatnonzero(view[marks] == _NEWLINE)
        table, starts, wrong = _uneven(data, view, (marks, ends), width, special)
    ends_by_column = np.ascontiguousarray(table.T)
    begins = np.empty_like(ends_by_column)
    begins[0], begins[1:] = starts, ends_by_column[:-1] + 1
    last = ends_by_column[-1]
    last -= (view[last - 1] == _RETURN) if len(last) else 0
    return BlockRows(data, begins, ends_by_column), wrong


def _kept(
    data: bytes,
    view: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    special: Callable[[str], bool],
) -> tuple[NDArray[np.bool_] | None, int]:
    """Return which lines may be rows, None for all, and how many are not."""
    lettered = np.flatnonzero(((view[starts] | 32) - 97) < 26)  # noqa: PLR2004 - letters
    if len(lettered) > len(starts) / 2 and len(starts) > 1:
        raise UnfitError
    out = [
        i
        for i in lettered.tolist()
        if special(data[starts[i] : ends[i]].decode("utf-8", "replace").rstrip("\r"))
    ]
    if not out:
        return None, 0
    kept = np.ones(len(starts), dtype=bool)
    kept[out] = False
    return kept, len(out)


def _uneven(
    data: bytes,
    view: NDArray[np.uint8],
    found: tuple[NDArray[np.int64], NDArray[np.int64]],
    width: int,
    special: Callable[[str], bool],
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return the rows of a block in which lines have different numbers of cells."""
    marks, last = found
    sizes = np.diff(last, prepend=-1)
    ends = marks[last]
    starts = np.concatenate(([0], ends[:-1] + 1))
    kept, _ = _kept(data, view, starts, ends, special)
    possible = np.ones(len(starts), dtype=bool) if kept is None else kept
    whole = possible & (sizes == width)
    odd = np.flatnonzero(possible & ~whole)
    wrong = sum(1 for i in odd.tolist() if data[starts[i] : ends[i]].strip())
    rows = np.flatnonzero(whole)
    table = marks[(last[rows] - width + 1)[:, None] + np.arange(width)]
    return table.reshape(-1, width), starts[rows], wrong
