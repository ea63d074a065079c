"""Reads `nvidia-smi --query-compute-apps` and `--query-accounted-apps`: one row a process."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.readers.column_names import cells_of
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder, real_uuid
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "nvidia-smi-apps"
# The driver's accounts: means over the life of a process, and its greatest memory.
_NAMES = {
    "used_gpu_memory": Meaning(target="mem.process_gib", unit="MiB"),
    "max_memory_usage": Meaning(target="mem.process_gib", unit="MiB"),
    "gpu_utilization": Meaning(target="util.kernel_time", unit="%"),
    "mem_utilization": Meaning(target="util.mem_controller", unit="%"),
}
_USED, _TIME = "used_gpu_memory", "time"
_Cells = dict[str, str]


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the memory of all listed processes by GPU and instant, or the driver's accounts.

    An account is a job of its own where a GPU has several.

    Raises:
        InputError: no process is listed, or no reading stands beside any.
    """
    builder = RecordingBuilder(payload, FORMAT)
    listed = list(_listed(payload.text, builder))
    if not listed:
        raise InputError(
            f"{payload.name}: a header and no process under it, so nothing was measured. "
            "Query it while the job runs; accounting mode must be on before the job starts."
        )
    accounts = "max_memory_usage" in listed[0] or "gpu_utilization" in listed[0]
    rows = list(_accounts(listed, builder) if accounts else _sums(listed, builder))
    if not rows:
        raise InputError(
            f"{payload.name}: its {len(listed)} processes carry no reading that is complete, so "
            "nothing was measured. Log `nvidia-smi --query-gpu=... --format=csv -l 1` instead."
        )
    return recording(
        builder, rows, _NAMES, hints, **({"timed": True, "whole": True} if accounts else {})
    )


def _listed(text: str, builder: RecordingBuilder) -> Iterator[_Cells]:
    header: list[str] = []
    for line in text.split("\n"):
        cells = [cell.strip() for cell in cells_of(line.strip(), ",")]
        if "pid" in cells:
            header = [re.sub(r"\s*\[[^\]]*\]$", "", cell).strip() for cell in cells]
            header = [_USED if name == "used_memory" else name for name in header]
        elif header and line.strip():
            builder.rows_read += 1
            if len(cells) == len(header):
                yield dict(zip(header, cells, strict=True))
            else:
                builder.dropped["wrong number of fields"] += 1


def _device(cells: Mapping[str, str]) -> str:
    return real_uuid(cells.get("gpu_uuid")) or f"bus {cells.get('gpu_bus_id', '')}"


def _sums(listed: list[_Cells], builder: RecordingBuilder) -> Iterator[SeenDevice]:
    """Yield the sum over the processes of a GPU at an instant; nothing where one is unknown."""
    ticks: dict[tuple[str, str], list[_Cells]] = defaultdict(list)
    for cells in listed:
        ticks[cells.get("timestamp", ""), _device(cells)].append(cells)
    builder.notes.append("device memory of all processes listed, as the job's.")
    for (time, device), processes in ticks.items():
        mib = [_mib(cells.get(_USED, "")) for cells in processes]
        if None in mib:
            builder.dropped["process whose memory the driver does not tell"] += len(processes)
            continue
        total = repr(sum(value or 0.0 for value in mib))
        yield _row(device, processes[0], {_USED: total}, time or None, None)


def _accounts(listed: list[_Cells], builder: RecordingBuilder) -> Iterator[SeenDevice]:
    """Yield each account twice, for the halves of a life; begins are not told, so all are at 0."""
    several = max(Counter(_device(cells) for cells in listed).values()) > 1
    builder.notes.append("means over the life of a process, by the driver's accounts.")
    for cells in listed:
        length_ms = re.match(r"\d{1,15}", cells.get(_TIME, ""))
        if length_ms is None or int(length_ms[0]) == 0:
            builder.dropped["process that still ran"] += 1
            continue
        job = f"pid {cells['pid']}"[:40] if several else None
        length_s = int(length_ms[0]) / 1000
        for t_s in (length_s / 4, length_s * 3 / 4):  # each stands for half of the life
            yield _row(_device(cells), cells, cells, repr(t_s), job)


def _row(
    device: str, about: _Cells, cells: _Cells, time: str | None, job: str | None
) -> SeenDevice:
    model = about.get("gpu_name")
    return SeenDevice(
        device=device,
        cells=cells,
        uuid=about.get("gpu_uuid"),
        model=model if model and not model.startswith("[") else None,
        time=time,
        job=job,
    )


def _mib(cell: str) -> float | None:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)(?:\s*MiB)?", cell)
    return float(found[1]) if found else None
