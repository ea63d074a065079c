"""Reads what monitors of GPUs print: gpustat, nvtop, nvitop and `dcgmi dmon`."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from telemetry.formats.sniff import GPUSTAT_LINE
from telemetry.readers import clock
from telemetry.readers.column_names import names_of
from telemetry.readers.devices import DeviceRow, device_recording
from telemetry.readers.records import objects, text_of, texts_of, values, whole_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.recording_builder import RecordingBuilder
    from telemetry.recording.recording import Recording

_GPUSTAT_HEAD = re.compile(
    r"(?P<host>\S{1,80})\s+(?P<time>\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})(?:\s.*)?"
)
# The parts of a line that is printed, by the names of `--json`.
_PRINTED = {
    "temperature": "temperature.gpu",
    "utilization": "utilization.gpu",
    "power": "power.draw",
    "limit": "enforced.power.limit",
    "used": "memory.used",
    "total": "memory.total",
}
# TAG/cuda:0 (gpu:3)/memory_used (MiB)/mean. What stands below pid:1234 is of one process.
_NVITOP_KEY = re.compile(r"(?:[^/]+/)?(?:cuda:\d+ \()?gpu:(\d{1,4})\)?/([^/]+)/mean")
_NVITOP_TIME = re.compile(r"(?:[^/]+/)?timestamp")
_DCGMI_ROW = re.compile(r"(GPU|GPU-I|GPU-CI)\s+(\d{1,4})\s+(\S.*)")


def read_gpustat(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every query of `gpustat --json`, or of what gpustat prints.

    Raises:
        InputError: no GPU is in any of them.
    """
    text, damaged = builder.text, 0
    if GPUSTAT_LINE.search(text):
        rows = list(_gpustat_lines(text))
    else:
        queries, damaged = objects(text)
        rows = [row for query in queries for row in _gpustat_query(query)]
    builder.rows_read += len(rows)
    builder.leave_out("cut query", damaged)
    return device_recording(builder, rows, hints)


def _gpustat_query(query: dict[str, object]) -> Iterator[DeviceRow]:
    gpus = query.get("gpus")
    host, time = text_of(query.get("hostname")), text_of(query.get("query_time"))
    for place, gpu in enumerate(gpus if isinstance(gpus, list) else []):
        if not isinstance(gpu, dict):
            continue
        number = whole_of(gpu.get("index"))
        index = place if number is None else number
        yield DeviceRow(
            cells=texts_of(gpu, names_of("gpustat")),
            index=index,
            uuid=text_of(gpu.get("uuid")),
            model=text_of(gpu.get("name")),
            time=time,
            host=host,
        )


def _gpustat_lines(text: str) -> Iterator[DeviceRow]:
    """Yield the GPUs of every query, by gpustat's names of their readings; "?" is missing."""
    host = time = None
    for line in text.splitlines():
        head = _GPUSTAT_HEAD.fullmatch(line.strip(" \t>"))
        if head is not None and clock.is_date_line(head["time"]):
            host, time = head["host"], head["time"]
        elif gpu := GPUSTAT_LINE.match(line):
            index = int(gpu["index"])
            yield DeviceRow(
                cells={
                    name: gpu[part]
                    for part, name in _PRINTED.items()
                    if (gpu[part] or "").isdigit()
                },
                index=index,
                model=gpu["model"].strip(),
                time=time,
                host=host,
            )


def read_nvtop(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every snapshot of `nvtop -s`; they carry no time.

    GPUs are of NVIDIA, AMD and Intel; readings are strings with units.

    Raises:
        InputError: no GPU is in any of them.
    """
    snapshots, damaged = values(builder.text)
    rows = [
        DeviceRow(
            cells=texts_of(gpu, names_of("nvtop")),
            index=place,
            model=text_of(gpu.get("device_name")),
        )
        for snapshot in snapshots
        for place, gpu in enumerate(snapshot if isinstance(snapshot, list) else [snapshot])
        if isinstance(gpu, dict)
    ]
    builder.rows_read += len(rows)
    builder.leave_out("cut snapshot", damaged)
    return device_recording(builder, rows, hints)


def read_nvitop(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the means of every collection of nvitop's `ResourceMetricCollector`.

    It is written as JSON lines or as CSV; min and max within a collection are not read.

    Raises:
        InputError: no row names a reading of a GPU.
    """
    text = builder.text
    is_json = text.lstrip()[:1] in ("{", "[")
    collections, damaged = objects(text) if is_json else _nvitop_csv(text)
    rows = [row for collection in collections for row in _nvitop_rows(collection)]
    builder.rows_read += len(rows)
    builder.leave_out("cut line", damaged)
    return device_recording(builder, rows, hints)


def _nvitop_csv(text: str) -> tuple[list[dict[str, object]], int]:
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [dict(row) for row in csv.DictReader(lines)] if lines else []
    whole = [row for row in rows if None not in (*row, *row.values())]
    return whole, len(rows) - len(whole)


def _nvitop_rows(collection: Mapping[str, object]) -> Iterator[DeviceRow]:
    cells: dict[int, dict[str, str]] = defaultdict(dict)
    time: str | None = None
    for key, value in collection.items():
        text = text_of(value)
        if text is None or "pid:" in key:
            continue
        if (reading := _NVITOP_KEY.fullmatch(key)) is not None:
            cells[int(reading[1])][reading[2]] = text
        elif _NVITOP_TIME.fullmatch(key):
            time = text
    for index, readings in sorted(cells.items()):
        yield DeviceRow(cells=readings, index=index, time=time)


def read_dcgmi(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of `dcgmi dmon`: fields by short names, under headers that come again.

    Rows carry no time, so they are `hints.interval_s` apart.

    Raises:
        InputError: there is no header, or no row under it.
    """
    rows = list(_dcgmi_rows(builder))
    boards = {row.index for row in rows if row.partition is None}
    if len(boards) == 1:  # of several it is not told which one an instance is part of
        (board,) = boards
        rows = [
            row
            if row.partition is None
            else replace(row, index=board, device=f"GPU {board}/{row.device}")
            for row in rows
        ]
    return device_recording(builder, rows, hints, mig=any(row.partition for row in rows))


def _dcgmi_rows(builder: RecordingBuilder) -> Iterator[DeviceRow]:
    header: list[str] = []
    for line in builder.text.split("\n"):
        text = line.strip()
        if text.startswith("#"):
            names = text.lstrip("# ").lower().split()
            header = names[1:] if names[:1] == ["entity"] else header
            continue
        row = _DCGMI_ROW.match(text)
        if row is None:
            continue  # the line of units, and words at the end
        cells = row[3].split()
        if len(cells) != len(header):
            builder.leave_out("cut line" if len(cells) < len(header) else "not a row")
            continue
        builder.rows_read += 1
        whole = row[1] == "GPU"
        yield DeviceRow(
            device=f"{row[1]} {row[2]}",
            cells=dict(zip(header, cells, strict=True)),
            index=int(row[2]) if whole else None,
            partition=None if whole else f"instance {row[2]}",
        )


_TEGRA = re.compile(
    r"(?P<name>RAM|GR3D|EMC|VDD_IN|POM_5V_IN|GPU@)(?:_FREQ)?\s*"
    r"(?P<value>[\d.]+)(?:%|C|mW)?(?:/(?P<most>\d+))?(?=\D|$)",
    re.IGNORECASE,
)
_TEGRA_TIME = re.compile(r"\d\d-\d\d-\d{4} \d\d:\d\d:\d\d")


def read_tegrastats(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of `tegrastats`: one GPU, which shares its memory with the CPU.

    Raises:
        InputError: no line is complete.
    """
    rows = []
    for line in builder.text.splitlines():
        cells: dict[str, str] = {}
        for figure in _TEGRA.finditer(line):
            name = figure["name"].lower().replace("gpu@", "gpu_temperature")
            cells.setdefault(name, figure["value"])
            if name == "ram" and figure["most"]:
                cells["ram_total"] = figure["most"]
        if "ram" not in cells:
            builder.leave_out("not a row", int(bool(line.strip())))
            continue
        builder.rows_read += 1
        time = _TEGRA_TIME.search(line)
        rows.append(DeviceRow(cells=cells, index=0, time=time[0] if time else None))
    builder.notes.append("CPU and GPU share the memory: what is used is of both.")
    return device_recording(builder, rows, hints)
