"""The live view of a measurement: the last lines of the terminal, below the job's own output.

The job keeps the terminal: its output scrolls in the lines above, as a scroll region keeps them
apart. Each drawing is one write that saves and restores the cursor.
"""

import io
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_MOST_GPUS = 8
_LEAST_ABOVE = 8
_REDRAW_S = 0.5
_VERDICT_S = 10.0
_BAR_WIDTH = 20
_GIB_SLOT, _BUSY_SLOT, _POWER_SLOT = "mem.used_gib", "util.kernel_time", "power.board_w"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSnapshot:
    """What the view shows.

    Attributes:
        gpus: readings of each device by its label, slots in slot units.
        host: readings of the host, as `model.Host` names them.
        step: mean seconds of the last steps: `step_s`, `data_wait_s`; empty where none are seen.
        elapsed_s: since the measurement began.
    """

    gpus: Mapping[str, Mapping[str, float]]
    host: Mapping[str, float]
    step: Mapping[str, float]
    elapsed_s: float


class LiveView:
    """Draws a snapshot now and then, on standard error.

    Args:
        snapshot: returns what to show.
        verdict: returns the finding so far, in a few words; asked every ten seconds.
        terminal: returns whether we may draw now: whether the job is in the foreground.
        color: whether colours may be used.
    """

    def __init__(
        self,
        snapshot: Callable[[], LiveSnapshot],
        verdict: Callable[[], str],
        terminal: Callable[[], bool],
        *,
        color: bool,
    ) -> None:
        self._snapshot = snapshot
        self._verdict = verdict
        self._terminal = terminal
        self._color = color
        self._height = 0
        self._size = os.terminal_size((0, 0))
        self._drawn_s = self._judged_s = float("-inf")
        self._words = "…"
        self._hidden = False

    def hide(self) -> None:
        """Take the view away, and give the lines back, until it is shown again."""
        self._hidden = True
        self._clear()

    def show(self) -> None:
        """Draw again."""
        self._hidden = False

    def draw(self) -> int:
        """Draw, unless that was done just now; return the lines that are ours now."""
        now = time.monotonic()
        if self._hidden or now - self._drawn_s < _REDRAW_S:
            return self._height
        self._drawn_s = now
        if not self._terminal():
            self._height = 0  # the lines are the shell's again, and so is their clearing
            return 0
        snapshot = self._snapshot()
        if now - self._judged_s >= _VERDICT_S and snapshot.elapsed_s >= _VERDICT_S / 2:
            self._judged_s, self._words = now, self._verdict()
        lines = self._lines(snapshot)
        if self._reserve(len(lines)):
            top = self._size.lines - self._height + 1
            drawn = "".join(f"\x1b[{top + i};1H\x1b[2K{line}" for i, line in enumerate(lines))
            _write(f"\x1b7{drawn}\x1b8")
        return self._height

    def _clear(self) -> None:
        if self._height:
            top = self._size.lines - self._height + 1
            clear = "".join(f"\x1b[{top + i};1H\x1b[2K" for i in range(self._height))
            _write(f"\x1b7\x1b[r{clear}\x1b8")
        self._height, self._size = 0, os.terminal_size((0, 0))

    def _reserve(self, height: int) -> bool:
        """Keep the last lines of the terminal for us; False where it is too small."""
        try:
            size = os.get_terminal_size(sys.stderr.fileno())
        except OSError:
            return False
        if size.lines < height + _LEAST_ABOVE:
            return False
        if (size, height) != (self._size, self._height):
            more = max(0, height - self._height)
            back = f"\x1b[{more}A" if more else ""
            room = "\n" * more
            # Back up first: some terminals keep a restored cursor inside the region.
            _write(f"{room}{back}\x1b7\x1b[1;{size.lines - height}r\x1b8")
            self._size, self._height = size, height
        return True

    def _lines(self, snapshot: LiveSnapshot) -> list[str]:
        from rich.console import Console  # noqa: PLC0415 - only where a view is drawn
        from rich.progress_bar import ProgressBar  # noqa: PLC0415 - the same
        from rich.table import Table  # noqa: PLC0415 - the same

        text = io.StringIO()
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
        except OSError:
            return []
        system: Literal["standard"] | None = "standard" if self._color else None
        console = Console(
            file=text, force_terminal=True, width=width, color_system=system, highlight=False
        )
        console.rule(f"gpucost profile, {snapshot.elapsed_s:.0f} s", style="dim", align="left")
        grid = Table.grid(padding=(0, 2))
        for name, readings in list(snapshot.gpus.items())[:_MOST_GPUS]:
            busy = readings.get(_BUSY_SLOT)
            bar = ProgressBar(total=1.0, completed=busy or 0.0, width=_BAR_WIDTH)
            grid.add_row(name, bar, *_cells(readings))
        if snapshot.gpus:
            console.print(grid)
        if len(snapshot.gpus) > _MOST_GPUS:
            console.print(f"and {len(snapshot.gpus) - _MOST_GPUS} more GPUs")
        console.print(_summary(snapshot), markup=False, overflow="ellipsis", no_wrap=True)
        console.print(f"so far: {self._words}", markup=False, overflow="ellipsis", no_wrap=True)
        return text.getvalue().splitlines()


def _cells(readings: Mapping[str, float]) -> tuple[str, str, str]:
    busy, memory, power = (readings.get(s) for s in (_BUSY_SLOT, _GIB_SLOT, _POWER_SLOT))
    return (
        "busy ?" if busy is None else f"busy {busy:4.0%}",
        "" if memory is None else f"{memory:5.1f} GiB",
        "" if power is None else f"{power:4.0f} W",
    )


def _summary(snapshot: LiveSnapshot) -> str:
    cpu, ram = snapshot.host.get("cpu_util"), snapshot.host.get("ram_used_gib")
    parts = [] if cpu is None else [f"CPU {cpu:.0%}"]
    parts += [] if ram is None else [f"RAM {ram:.1f} GiB"]
    step_s = snapshot.step.get("step_s")
    if step_s:
        waiting = snapshot.step.get("data_wait_s", 0.0) / step_s
        parts.append(f"step {step_s * 1000:.1f} ms, {waiting:.0%} of it waiting for data")
    else:
        parts.append("no step seen yet")
    return "   ".join(parts)


def _write(text: str) -> None:
    try:
        os.write(sys.stderr.fileno(), text.encode())
    except OSError:
        return  # the terminal has gone; the measurement goes on


def in_foreground(pid: int) -> bool:
    """Return whether a process may draw on our standard error: its terminal, and its turn.

    The terminal's own calls answer only to processes of its session, which we need not be.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        device = os.fstat(sys.stderr.fileno()).st_rdev
    except OSError:
        return False
    group, _, terminal, foreground = stat.rpartition(")")[2].split()[2:6]
    major, minor = os.major(device), os.minor(device)
    number = (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)  # as /proc writes it
    return int(terminal) == number and group == foreground
