"""Reads W&B system metrics: one JSON object a line, GPU and CPU readings in rows of their own."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.profiling.merge import per_second
from telemetry.readers import clock
from telemetry.readers.csv_text import MOST
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents
from telemetry.readers.units import MIB, Meaning
from telemetry.recording.recording import GPU, TIME, GpuIdentity, Recording

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload

FORMAT = "wandb-jsonl"
_GPU_KEY = re.compile(r"(?:system[./])?gpu\.(process\.)?(\d{1,4})\.(\w+)(?:/l:.*)?")
# W&B multiplies DCGM's ratios by 100; `memory` is the controller's time.
NAMES = {
    "gpu": Meaning(target="util.kernel_time", unit="%"),
    "memory": Meaning(target="util.mem_controller", unit="%"),
    "memoryAllocatedBytes": Meaning(target="mem.used_gib", unit="B"),
    "memoryAllocated": Meaning(target="fraction.memory", unit="%"),
    "powerWatts": Meaning(target="power.board_w", unit="W"),
    "enforcedPowerLimitWatts": Meaning(target="power.limit_w", unit="W"),
    "temp": Meaning(target="temp.core_c", unit="C"),
    "smClock": Meaning(target="clock.sm_mhz", unit="MHz"),
    "smActive": Meaning(target="util.sm_active", unit="%"),
    "smOccupancy": Meaning(target="util.sm_occupancy", unit="%"),
    "pipeTensorActive": Meaning(target="util.tensor_active", unit="%"),
    "pipeFp32Active": Meaning(target="util.fp32_active", unit="%"),
    "pipeFp64Active": Meaning(target="util.fp64_active", unit="%"),
    "dramActive": Meaning(target="util.dram_active", unit="%"),
    "encoderUtilization": Meaning(target="util.encoder", unit="%"),
}
_HOST = re.compile(
    r"(?:system[./])?(cpu|memory|memory_percent|proc\.memory\.availableMB|network\."
    r"(?:recv|sent)|disk\.[^/]+\.(?:in|out)|disk\.(?:in|out))(?:/l:.*)?"
)
_ALMOST_ALL = 0.999
_MEGABYTE_COUNTERS = {"in": "disk_read_mib_s", "out": "disk_write_mib_s"}
_BYTE_COUNTERS = {"recv": "net_rx_mib_s", "sent": "net_tx_mib_s"}


def read(payload: Payload, hints: Hints) -> Recording:  # noqa: ARG001 - one signature for readers
    """Return the readings of an event stream.

    Raises:
        InputError: no row is JSON, or none holds a reading.
    """
    builder = RecordingBuilder(payload, FORMAT)
    rows, damaged = documents(payload.text, payload.name)
    builder.rows_read = len(rows) + damaged
    if damaged:
        builder.dropped["cut line"] += damaged
    return of_rows(builder, rows)


def of_rows(builder: RecordingBuilder, rows: list[dict[str, object]]) -> Recording:
    """Return the recording of events, the figures of each by W&B's names of them.

    Args:
        builder: where they are counted, apart from `rows_read`.
        rows: at least one.

    Raises:
        InputError: none holds a reading.
    """
    key = "_timestamp" if any("_timestamp" in row for row in rows) else "_runtime"
    wide = _numbers(rows)
    t_s = clock.placed(wide.get(key, np.arange(len(rows), dtype=float)))
    samples, gpus = _gpus(wide, t_s, builder)
    host = _host(wide, t_s)
    if not gpus and host is None:
        raise InputError(
            f"{builder.name}: no W&B system metric in it (keys like system.gpu.0.gpu). Export "
            "run.history(stream='events'), not the run's own metrics."
        )
    _count_unused(wide, t_s, builder)
    steps = wide.get("_step", np.empty(0))
    done = float(np.nanmax(steps) - np.nanmin(steps)) if np.isfinite(steps).any() else 0.0
    return builder.recording(
        samples,
        gpus,
        host=host,
        work=("step", done) if done > 0 else None,
        host_ram_gib=_ram_gib(wide),
        absolute=key == "_timestamp",
        timed=key in wide,
    )


def _numbers(rows: list[dict[str, object]]) -> dict[str, NDArray[np.float64]]:
    """Return each key as a column over all rows, NaN where a row has no number under it."""
    columns: dict[str, NDArray[np.float64]] = {}
    for i, row in enumerate(rows):
        for key, value in row.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                column = columns.get(key)
                if column is None:
                    column = columns[key] = np.full(len(rows), np.nan)
                column[i] = value if abs(value) < MOST else np.nan
    return columns


def _gpus(
    wide: dict[str, NDArray[np.float64]], t_s: NDArray[np.float64], builder: RecordingBuilder
) -> tuple[pd.DataFrame, tuple[GpuIdentity, ...]]:
    columns: dict[int, dict[str, NDArray[np.float64]]] = defaultdict(dict)
    owned: set[int] = set()
    for key in sorted(wide):
        match = _GPU_KEY.fullmatch(key)
        known = NAMES.get(match[3]) if match else None
        if match is None or known is None or known.scale is None:
            continue
        index = int(match[2])
        if match[1]:
            owned.add(index)  # the same device values, there only where the run uses the device
        builder.column(key, known.target, known.scale, wide[key])
        before = columns[index].get(known.target)
        scaled = wide[key] * known.scale
        columns[index][known.target] = (
            scaled if before is None else np.where(np.isfinite(before), before, scaled)
        )
    if owned and owned < set(columns):
        others = ", ".join(str(i) for i in sorted(set(columns) - owned))
        builder.notes.append(f"left out, as the machine's and not the run's: GPU {others}.")
        columns = defaultdict(dict, {i: columns[i] for i in sorted(owned)})
    frames = [
        pd.DataFrame({TIME: t_s, GPU: f"index {i}", **columns[i]}).dropna(
            subset=list(columns[i]), how="all"
        )
        for i in sorted(columns)
    ]
    gpus = tuple(
        GpuIdentity(key=f"index {i}", index=i, memory_gib=_total_gib(columns[i]))
        for i in sorted(columns)
    )
    if not frames:
        return pd.DataFrame({TIME: np.empty(0), GPU: pd.Series(dtype=object)}), gpus
    samples = pd.concat(frames, ignore_index=True)
    return samples[np.isfinite(samples[TIME])], gpus


def _total_gib(columns: dict[str, NDArray[np.float64]]) -> float | None:
    """Return the device's memory: bytes in use over the share in use."""
    used, share = columns.get("mem.used_gib"), columns.get("fraction.memory")
    if used is None or share is None:
        return None
    with np.errstate(over="ignore"):  # of a damaged figure
        total = used[share > 0] / share[share > 0]
    known = total[np.isfinite(total)]
    return round(float(np.median(known)), 6) if len(known) else None


def _host(wide: dict[str, NDArray[np.float64]], t_s: NDArray[np.float64]) -> pd.DataFrame | None:
    columns: dict[str, NDArray[np.float64]] = {}
    disks: dict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for key in sorted(wide):
        match = _HOST.fullmatch(key)
        if match is None:
            continue
        name = match[1]
        last = name.rsplit(".", 1)[-1]
        if name == "cpu":
            columns["cpu_util"] = np.minimum(wide[key] * 0.01, 1.0)
        elif name in {"memory", "memory_percent"} or last == "availableMB":
            continue
        elif name.startswith("network"):
            columns[_BYTE_COUNTERS[last]] = per_second(wide[key] / MIB, t_s)
        else:
            disks[_MEGABYTE_COUNTERS[last]].append(per_second(wide[key], t_s))
    for name, parts in disks.items():
        columns[name] = np.sum(parts, axis=0)
    if (ram := _ram(wide)) is not None:
        columns["ram_used_gib"] = ram[0]
    if not columns:
        return None
    known = {name: np.where(column >= 0, column, np.nan) for name, column in columns.items()}
    frame = pd.DataFrame({TIME: t_s, **known}).dropna(subset=list(columns), how="all")
    frame = frame[np.isfinite(frame[TIME])]
    return frame if len(frame) else None


def _ram(
    wide: dict[str, NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return host memory in use and in all, GiB: from what is available and the share in use."""
    share = _ending(wide, "memory_percent", "system.memory")
    available = _ending(wide, "proc.memory.availableMB")
    if share is None or available is None:
        return None
    total = available / 1024 / (1 - np.minimum(share * 0.01, _ALMOST_ALL))
    return total - available / 1024, total


def _ending(wide: dict[str, NDArray[np.float64]], *ends: str) -> NDArray[np.float64] | None:
    return next((column for key, column in sorted(wide.items()) if key.endswith(ends)), None)


def _ram_gib(wide: dict[str, NDArray[np.float64]]) -> float | None:
    ram = _ram(wide)
    known = ram[1][np.isfinite(ram[1])] if ram is not None else np.empty(0)
    return round(float(np.median(known)), 3) if len(known) else None


def _count_unused(
    wide: dict[str, NDArray[np.float64]], t_s: NDArray[np.float64], builder: RecordingBuilder
) -> None:
    used = [v for k, v in wide.items() if _HOST.fullmatch(k) or _is_used(k)]
    some = np.any([np.isfinite(v) for v in used], axis=0) & np.isfinite(t_s)
    if unused := int((~some).sum()):
        builder.dropped["row without a reading"] += unused


def _is_used(key: str) -> bool:
    match = _GPU_KEY.fullmatch(key)
    return match is not None and match[3] in NAMES
