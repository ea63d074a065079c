"""Which columns of a table have room on a terminal, and how wide each is."""

from collections.abc import Sequence
from dataclasses import dataclass

_GAPS = (3, 2)  # blanks between columns: three where there is room
_LAST_GAP = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedColumn:
    """A column to be fitted.

    Attributes:
        name: in the head.
        width: of its widest cell or its whole head.
        unwrapped: of its widest cell or the longest word of its head, which may take two lines.
        least: how narrow its cells may be cut; equal to `unwrapped` where they may not.
        says: whether any of its cells has a text.
    """

    name: str
    width: int
    unwrapped: int
    least: int
    says: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Which columns are shown, how wide, how far apart, and which were left out."""

    shown: tuple[int, ...]
    widths: tuple[int, ...]
    gap: int
    left_out: tuple[str, ...]


def fitted(columns: Sequence[FittedColumn], spare: Sequence[str], width: int) -> Fitted:
    """Return how columns fit a width.

    What is empty goes first, then blanks, spare columns, long cells and the length of heads.
    What cannot be narrower is wider than the terminal.
    """
    left = dict(enumerate(columns))
    if room([c.width for c in columns], _GAPS[0]) > width:
        left = {at: column for at, column in left.items() if column.says}
    gap = next((g for g in _GAPS if room([c.width for c in left.values()], g) <= width), _GAPS[-1])
    left_out: list[str] = []
    for name in spare:
        if room([c.least for c in left.values()], gap) <= width:
            break
        place = next((at for at, column in left.items() if column.name == name), None)
        if place is not None:
            left_out.append(left.pop(place).name)
    if room([c.least for c in left.values()], gap) > width:
        gap = _LAST_GAP
    kept = list(left.values())
    widths = [c.width for c in kept]
    cut = [c.least if c.least < c.unwrapped else c.width for c in kept]
    if room(cut, gap) > width:  # only then a head takes two lines
        widths = _narrowed(widths, [c.unwrapped for c in kept], width, gap)
        cut = [c.least for c in kept]
    widths = _narrowed(widths, cut, width, gap)
    return Fitted(shown=tuple(left), widths=tuple(widths), gap=gap, left_out=tuple(left_out))


def room(widths: Sequence[int], gap: int) -> int:
    """Return the columns of the terminal that a table takes, with a blank before it."""
    return sum(widths) + gap * (len(widths) - 1) + 1


def _narrowed(widths: list[int], least: list[int], width: int, gap: int) -> list[int]:
    """Return the widths, those with most to give narrowed until all fit."""
    widths = list(widths)
    while room(widths, gap) > width and any(w > n for w, n in zip(widths, least, strict=True)):
        widest = max(range(len(widths)), key=lambda at: (widths[at] - least[at], widths[at]))
        widths[widest] -= 1
    return widths
