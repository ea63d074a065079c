"""Reads Zeus: the CSV of its monitor, a row a window, and its tables of runs by power limit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.readers.column_names import cells_of
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "zeus"
_NAMES = {
    "power": Meaning(target="power.board_w", unit="W"),
    "limit": Meaning(target="power.limit_w", unit="W"),
}
_ENERGY = re.compile(r"gpu(\d{1,3})_energy")
_START, _LENGTH = "start_time", "elapsed_time"
_EPOCH, _POWER, _LIMIT = "time_per_epoch", "average_power", "power_limit"
_FIGURES = (_EPOCH, _POWER)


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the mean power of each window; of a table of runs, each row as a job.

    Raises:
        InputError: no row is complete.
    """
    builder = RecordingBuilder(payload, FORMAT)
    lines = [line for line in payload.text.splitlines() if line.strip()]
    header = [cell.strip() for cell in cells_of(lines[0], ",")]
    rows: list[SeenDevice] = []
    for line in lines[1:]:
        builder.rows_read += 1
        cells = cells_of(line, ",")
        found = list(_rows(header, cells)) if len(cells) == len(header) else []
        if not found:
            builder.dropped["row that is not complete"] += 1
        rows += found
    if not rows:
        raise InputError(
            f"{payload.name}: no complete row under its header, so nothing was measured. "
            "Let ZeusMonitor end a window before the file is copied."
        )
    builder.notes.append("power is the mean of each window, from the energy that Zeus counted.")
    return recording(builder, rows, _NAMES, hints, timed=True, whole=True)


def _rows(header: list[str], cells: list[str]) -> Iterator[SeenDevice]:
    named = dict(zip(header, (cell.strip() for cell in cells), strict=True))
    if _START in named:
        yield from _windows(named)
    else:
        yield from _run(named)


def _windows(named: Mapping[str, str]) -> Iterator[SeenDevice]:
    start, length = _number(named.get(_START)), _number(named.get(_LENGTH))
    if start is None or not length:
        return
    for column, cell in named.items():
        gpu, energy = _ENERGY.fullmatch(column), _number(cell)
        if gpu is None or energy is None:
            continue
        for part in (0.25, 0.75):  # each stands for half of the window
            yield SeenDevice(
                device=f"index {int(gpu[1])}",
                cells={"power": repr(energy / length)},
                index=int(gpu[1]),
                time=repr(start + part * length),
            )


def _run(named: Mapping[str, str]) -> Iterator[SeenDevice]:
    length, power = _number(named.get(_EPOCH)), _number(named.get(_POWER))
    if not length or power is None:
        return
    limit = named.get(_LIMIT, "")
    job = " ".join(cell for name, cell in named.items() if name not in _FIGURES)
    for part in (0.25, 0.75):
        yield SeenDevice(
            device="only",
            cells={"power": repr(power), **({"limit": limit} if limit else {})},
            index=0,
            time=repr(part * length),
            job=job[:200],
        )


def _number(text: str | None) -> float | None:
    found = re.fullmatch(r"\d{1,15}(\.\d{1,25})?", text or "")
    return float(found[0]) if found else None
