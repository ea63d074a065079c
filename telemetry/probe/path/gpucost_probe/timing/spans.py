"""Stretches of time that are told beside the steps: evaluation, saving, stalls, loader starts."""

from __future__ import annotations

from ..events import wall
from .pace import width_s
from .tally import plus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..events import Events

AT_ONCE_S = 1.0  # while a line covers less than this, each stretch is written as it ends


class Spans:
    """Writes stretches: each at once in the first ten minutes, later several of a kind as one.

    One that stands for several carries their number `n` and the time `over_s` from the begin of the
    first to the end of the last.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._first_s: float | None = None
        self._held: dict[str, Held] = {}

    def add(
        self,
        kind: str,
        begin_s: float,
        length_s: float,
        wait_s: float | None = None,
        saved: tuple[int | None, int] = (None, 0),
    ) -> None:
        """Take a stretch.

        Args:
            kind: what went on.
            begin_s: when it began, by time.perf_counter().
            length_s: how long it took.
            wait_s: time of it that was spent waiting for input, None where unknown.
            saved: bytes written, None where unknown, and the number of their checkpoint.
        """
        if self._first_s is None:
            self._first_s = begin_s
        width = width_s(begin_s - self._first_s)
        held = self._held.get(kind)
        if held is None:
            held = self._held[kind] = Held(begin_s)
        held.n += 1
        held.length_s += length_s
        held.end_s = begin_s + length_s
        held.wait_s = plus(held.wait_s, wait_s)
        held.size = plus(held.size, saved[0])
        held.number = saved[1]
        if width < AT_ONCE_S or held.end_s - held.begin_s >= width:
            self._write(kind, self._held.pop(kind))

    def flush(self) -> None:
        """Write what was held back."""
        for kind in list(self._held):
            self._write(kind, self._held.pop(kind))

    def _write(self, kind: str, held: Held) -> None:
        fields = {"kind": kind, "s": round(held.length_s, 6)}
        if held.n > 1:
            fields.update(n=held.n, over_s=round(held.end_s - held.begin_s, 6))
        if kind == "evaluation":
            fields["wait_s"] = None if held.wait_s is None else round(held.wait_s, 6)
        if kind == "checkpoint":
            fields.update(bytes=held.size, checkpoint=held.number)
        self._events.write("span", wall(held.begin_s), **fields)


class Held:
    """Stretches of one kind that are not written yet."""

    __slots__ = ("begin_s", "end_s", "length_s", "n", "number", "size", "wait_s")

    def __init__(self, begin_s: float) -> None:
        self.begin_s = self.end_s = begin_s
        self.n = 0
        self.length_s = 0.0
        self.wait_s: float | None = 0.0
        self.size: int | None = 0
        self.number = 0
