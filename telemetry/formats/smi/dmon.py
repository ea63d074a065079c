"""Reads `nvidia-smi dmon`, whatever columns were asked for; strictly by its own header lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.readers import clock
from telemetry.readers.csv_text import numbers
from telemetry.readers.devices import placed_in_time, timing
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import whole_of
from telemetry.readers.units import Meaning
from telemetry.recording.recording import GPU, GpuIdentity, Recording

if TYPE_CHECKING:
    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload

FORMAT = "nvidia-smi-dmon"
# `sm` is GPU-Util, not SM activity; the driver's "MB" of memory is MiB.
_NAMES = {
    "pwr": Meaning(target="power.board_w", unit="W"),
    "gtemp": Meaning(target="temp.core_c", unit="C"),
    "sm": Meaning(target="util.kernel_time", unit="%"),
    "mem": Meaning(target="util.mem_controller", unit="%"),
    "enc": Meaning(target="util.encoder", unit="%"),
    "dec": Meaning(target="util.decoder", unit="%"),
    "fb": Meaning(target="mem.used_gib", unit="MiB"),
    "pclk": Meaning(target="clock.sm_mhz", unit="MHz"),
    "rxpci": Meaning(target="io.pcie_rx_mib_s", unit="MB/s"),
    "txpci": Meaning(target="io.pcie_tx_mib_s", unit="MB/s"),
    # Share of time below the requested clocks for power; and a yes or no for heat.
    "pviol": Meaning(target="throttle.fraction", unit="%"),
    "tviol": Meaning(target="throttle.fraction", unit="ratio"),
}


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of a dmon log; without `-o T` rows are `hints.interval_s` apart.

    Raises:
        InputError: there is no header, or no row under it.
    """
    builder = RecordingBuilder(payload, FORMAT)
    cells = _cells(payload, builder)
    samples = _values(cells, builder)
    index = pd.to_numeric(cells["gpu"]).astype(int)
    samples[GPU] = "index " + index.astype(str)
    times = _times(cells, hints)
    return builder.recording(
        placed_in_time(samples, times, builder, hints.interval_s),
        tuple(GpuIdentity(key=f"index {i}", index=int(i)) for i in sorted(index.unique())),
        **timing(times),
    )


def _cells(payload: Payload, builder: RecordingBuilder) -> pd.DataFrame:
    """Return the rows as text under the names of the header above them."""
    header: list[str] = []
    rows: list[dict[str, str]] = []
    for line in payload.text.split("\n"):
        words = line.replace(",", " ").replace("#", " # ").split()
        if not words:
            continue
        if words[0] == "#":
            names = [word.lower() for word in words[1:]]
            header = names if "gpu" in names else header
            continue
        builder.rows_read += 1
        if len(words) != len(header) or not _is_row(words, header):
            builder.dropped["cut line" if len(words) < len(header) else "not a row"] += 1
            continue
        rows.append(dict(zip(header, words, strict=True)))
    if not rows:
        raise InputError(
            f"{builder.name}: dmon output without a row under its header, so nothing was measured. "
            "Let `nvidia-smi dmon -s pucm -o DT` run while the job runs."
        )
    return pd.DataFrame(rows).fillna("-")


def _is_row(words: list[str], header: list[str]) -> bool:
    return whole_of(words[header.index("gpu")]) is not None


def _values(cells: pd.DataFrame, builder: RecordingBuilder) -> pd.DataFrame:
    columns: dict[str, np.ndarray] = {}
    for name in cells.columns:
        known = _NAMES.get(str(name))
        if known is None or known.scale is None:
            continue
        got = numbers(cells[name], scale=known.scale, to=known.to)
        builder.column(str(name), known.target, known.scale, got.raw)
        builder.missing += got.missing
        before = columns.get(known.target)
        columns[known.target] = got.scaled if before is None else np.fmax(before, got.scaled)
    return pd.DataFrame(columns, index=cells.index)


def _times(cells: pd.DataFrame, hints: Hints) -> clock.SourceClock | None:
    if "time" not in cells:
        return None
    if "date" in cells:
        dates = cells["date"].str.replace(r"^(\d{4})(\d\d)(\d\d)$", r"\1-\2-\3", regex=True)
        return clock.parse(dates + "T" + cells["time"], hints.zone)
    return clock.of_day(cells["time"])
