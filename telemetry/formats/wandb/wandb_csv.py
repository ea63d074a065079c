"""Reads the CSV that W&B's web page exports of a chart: one column a run and metric."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.formats.wandb.wandb_jsonl import NAMES
from telemetry.readers.column_names import cells_of
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "wandb-csv"
# RUN - system/gpu.0.powerWatts; beside it stand RUN - ...__MIN and __MAX of the same points.
_COLUMN = re.compile(r"(?:(.{1,200}) - )?system[./]gpu\.(?:process\.)?(\d{1,3})\.([A-Za-z0-9]+)")
_TIMES = ("_timestamp", "wall time", "relative time (wall)", "relative time (process)", "_runtime")


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of each run; several runs are several jobs.

    Raises:
        InputError: no column is a system metric, or no row stands under the header.
    """
    builder = RecordingBuilder(payload, FORMAT)
    lines = [line for line in payload.text.splitlines() if line.strip()]
    header = [cell.strip() for cell in cells_of(lines[0], ",")]
    wanted = {
        i: found
        for i, cell in enumerate(header)
        if (found := _COLUMN.fullmatch(cell)) is not None and found[3] in NAMES
    }
    lowered = [cell.lower() for cell in header]
    at = next((lowered.index(name) for name in _TIMES if name in lowered), None)
    runs = {found[1] for found in wanted.values()}
    rows: list[SeenDevice] = []
    for line in lines[1:]:
        builder.rows_read += 1
        cells = cells_of(line, ",")
        if len(cells) != len(header):
            builder.dropped["wrong number of fields"] += 1
            continue
        rows += _devices(cells, wanted, None if at is None else cells[at], several=len(runs) > 1)
    if not rows:
        raise InputError(
            f"{payload.name}: no row with a GPU's system metric, so nothing was measured. Export "
            "the chart of system/gpu.0.gpu, or give the run's own file (run-ID.wandb)."
        )
    return recording(builder, rows, NAMES, hints)


def _devices(
    cells: list[str], wanted: dict[int, re.Match[str]], time: str | None, *, several: bool
) -> Iterator[SeenDevice]:
    found: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for i, column in wanted.items():
        if cells[i].strip():
            found[column[1] or "", int(column[2])].setdefault(column[3], cells[i].strip())
    for (run, index), known in sorted(found.items()):
        yield SeenDevice(
            device=f"{run} index {index}" if several else f"index {index}",
            cells=known,
            index=index,
            time=time,
            host=run if several else None,
            job=run or None,
        )
