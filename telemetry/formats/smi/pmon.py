"""Reads `nvidia-smi pmon`: one row a process, added up by GPU and instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.readers.csv_text import MOST
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "nvidia-smi-pmon"
_NAMES = {
    "sm": Meaning(target="util.kernel_time", unit="%"),
    "mem": Meaning(target="util.mem_controller", unit="%"),
    "enc": Meaning(target="util.encoder", unit="%"),
    "dec": Meaning(target="util.decoder", unit="%"),
    "fb": Meaning(target="mem.process_gib", unit="MiB"),
}
_Tick = dict[int, dict[int, dict[str, str]]]


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the sums over the processes of each GPU; without `-o T`, an interval apart.

    Raises:
        InputError: there is no header, or no row under it.
    """
    builder = RecordingBuilder(payload, FORMAT)
    rows = [row for time, tick in _ticks(payload.text, builder) for row in _rows(time, tick)]
    if not rows:
        raise InputError(
            f"{payload.name}: pmon output without a row under its header, so nothing was measured. "
            "Let `nvidia-smi pmon -s um -o DT` run while the job runs."
        )
    builder.notes.append("a GPU's readings are the sums over its processes.")
    return recording(builder, rows, _NAMES, hints)


def _ticks(text: str, builder: RecordingBuilder) -> Iterator[tuple[str | None, _Tick]]:
    """Yield the rows of each instant: it ends where a process of a GPU comes again."""
    header: list[str] = []
    tick: _Tick = {}
    time: str | None = None
    for line in text.split("\n"):
        words = line.replace("#", " # ", 1).split() if line.lstrip()[:1] == "#" else line.split()
        if not words:
            continue
        if words[0] == "#":
            names = [word.lower() for word in words[1:]]
            header = names if {"gpu", "pid"} <= set(names) else header
            continue
        builder.rows_read += 1
        # The name of a program comes last and may hold blanks.
        cells = dict(zip(header, words, strict=False))
        gpu, pid = _place(cells.get("gpu")), _place(cells.get("pid"))
        if len(words) < len(header) or gpu is None:
            builder.dropped["cut line" if len(words) < len(header) else "not a row"] += 1
            continue
        now = _time(cells)
        if now != time or pid in tick.get(gpu, {}):
            if tick:
                yield time, tick
            tick, time = {}, now
        tick.setdefault(gpu, {})[-1 if pid is None else pid] = cells
    if tick:
        yield time, tick


def _place(text: str | None) -> int | None:
    whole = text is not None and text.isascii() and text.isdecimal() and len(text) < 12  # noqa: PLR2004
    return int(text) if whole and text is not None else None


def _time(cells: dict[str, str]) -> str | None:
    if "time" not in cells:
        return None
    day = cells.get("date", "")
    dated = len(day) == 8 and day.isdecimal()  # noqa: PLR2004 - YYYYMMDD
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{cells['time']}" if dated else cells["time"]


def _rows(time: str | None, tick: _Tick) -> Iterator[SeenDevice]:
    for gpu, processes in sorted(tick.items()):
        sums: dict[str, str] = {}
        for name in _NAMES:
            said = [cells[name] for cells in processes.values() if name in cells]
            known = [value for text in said if (value := _number(text)) is not None]
            if known:
                sums[name] = repr(sum(known))
            elif said:
                sums[name] = "-"
        yield SeenDevice(device=f"index {gpu}", cells=sums, index=gpu, time=time)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < MOST else None
