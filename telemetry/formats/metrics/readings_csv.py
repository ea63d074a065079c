"""Reads tables with one reading a row: when, of what, how much, and which GPU.

DCGM's recorders, Telegraf and InfluxDB, exports of MLflow, Comet and Neptune write such tables. A
name may carry the GPU's number (`system/gpu_0_power_usage_watts`), or a column does.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.profile.metrics import SLOTS
from pricing.errors import InputError
from telemetry.formats.metrics.readings_columns import columns_of, delimiter_of, is_filled
from telemetry.readers import clock, series
from telemetry.readers.column_names import METRICS, key_of, meaning
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "readings-csv"
_MEASUREMENT = "_measurement"
# Columns by which readings of one name are told apart.
_LABELS = {
    "gpuid": "gpu",
    "gpu_id": "gpu",
    "gpu": "gpu",
    "index": "gpu",
    "device": "gpu",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "hostname": "hostname",
    "host": "hostname",
    "node": "hostname",
    "pod": "pod",
    "job": "job",
    "run_id": "job",
    "run id": "job",
    "model": "modelname",
    "modelname": "modelname",
}
# Numbers that DCGM has for its fields, of those that fill a slot.
_DCGM_FIELDS = {
    "100": "DCGM_FI_DEV_SM_CLOCK",
    "150": "DCGM_FI_DEV_GPU_TEMP",
    "155": "DCGM_FI_DEV_POWER_USAGE",
    "156": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "203": "DCGM_FI_DEV_GPU_UTIL",
    "204": "DCGM_FI_DEV_MEM_COPY_UTIL",
    "250": "DCGM_FI_DEV_FB_TOTAL",
    "251": "DCGM_FI_DEV_FB_FREE",
    "252": "DCGM_FI_DEV_FB_USED",
    "1002": "DCGM_FI_PROF_SM_ACTIVE",
    "1003": "DCGM_FI_PROF_SM_OCCUPANCY",
    "1004": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "1005": "DCGM_FI_PROF_DRAM_ACTIVE",
    "1006": "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
    "1007": "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "1009": "DCGM_FI_PROF_PCIE_TX_BYTES",
    "1010": "DCGM_FI_PROF_PCIE_RX_BYTES",
}
_NUMBERED = re.compile(r"(gpu[._])(\d{1,4})(?=[._])", re.IGNORECASE)


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of a table.

    Raises:
        InputError: it has no row, or no GPU is among what it names.
    """
    builder = RecordingBuilder(payload, FORMAT)
    lines = [line for line in payload.text.splitlines() if is_filled(line)]
    names = columns_of(lines[0]) if lines else None
    if names is None or len(lines) == 1:
        raise InputError(
            f"{payload.name}: a table without a row under columns of a time, a name and a value, "
            "so nothing was measured. Export it again."
        )
    table = _table(lines)
    builder.rows_read = len(lines) - 1 - len(table)
    if builder.rows_read:
        builder.dropped["row that is not complete"] += builder.rows_read
    table = table[table[names[2]] != names[2]]  # InfluxDB writes its header again
    found = _series(table, names, hints)
    return series.recording(builder, found, _with_columns(found, hints))


def _table(lines: list[str]) -> pd.DataFrame:
    delimiter = delimiter_of(lines[0])
    header = [cell.strip().strip('"').lower() for cell in lines[0].split(delimiter)]
    whole = [line for line in lines[1:] if line.count(delimiter) >= len(header) - 1]
    table = (
        pd.read_csv(
            io.StringIO("\n".join(whole)),
            sep=delimiter,
            names=list(range(len(header))),
            usecols=list(range(len(header))),
            index_col=False,
            dtype=str,
            keep_default_na=False,
            quoting=csv.QUOTE_NONE,
            engine="c",
            on_bad_lines="skip",
        )
        if whole
        else pd.DataFrame({place: [] for place in range(len(header))}, dtype=str)
    )
    kept = {name: table[place].str.strip().str.strip('"') for place, name in enumerate(header)}
    return pd.DataFrame(kept)


def _series(
    table: pd.DataFrame, names: tuple[str, str, str], hints: Hints
) -> list[series.SampledSeries]:
    time, name, value = names
    t_s = clock.parse(table[time].astype(object), hints.zone).t_s
    numbers = pd.to_numeric(table[value].str.rstrip(" %WCMiBHz"), errors="coerce")
    by = [name, *(c for c in (_MEASUREMENT, *_LABELS) if c in table and c not in names)]
    readings = numbers.to_numpy(dtype=float, na_value=np.nan)
    found = []
    for key, places in sorted(table.groupby(by, sort=False).indices.items()):
        texts = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        order = places[np.argsort(t_s[places], kind="stable")]
        called, labels = _named(texts, name)
        found.append(
            series.SampledSeries(
                name=called, labels=labels, t_s=t_s[order], readings=readings[order]
            )
        )
    return found


def _named(texts: Mapping[str, object], name: str) -> tuple[str, dict[str, str]]:
    """Return the metric of a row by the table of names, and its labels."""
    called = str(texts[name])
    labels = {
        _LABELS[column]: str(text) for column, text in texts.items() if column in _LABELS and text
    }
    called = _DCGM_FIELDS.get(called, called)
    if (number := _NUMBERED.search(called)) is not None:
        labels.setdefault("gpu", number[2])
        called = _NUMBERED.sub(r"\1n", called)
    whole = f"{texts.get(_MEASUREMENT, '')}_{called}"
    return (whole if key_of(whole, {}) in METRICS else called), labels


def _with_columns(found: list[series.SampledSeries], hints: Hints) -> Hints:
    """Return hints that also know names which are known as columns of a CSV."""
    more = []
    for name in sorted({one.name for one in found}):
        known = meaning(name, hints) if key_of(name, {}) not in METRICS else None
        if known is not None and known.scale is not None and known.target in (*SLOTS, *ROLES):
            more.append((key_of(name, {}), f"{known.target}:{known.unit}"))
    return replace(hints, map=(*hints.map, *more))
