"""Reads the table that `nvidia-smi` prints for people, in a log of one or of many."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.formats import csv_log
from telemetry.readers import clock, csv_text
from telemetry.readers.devices import SeenDevice, recording
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "nvidia-smi-table"
_NAMES = {
    "power": Meaning(target="power.board_w", unit="W"),
    "limit": Meaning(target="power.limit_w", unit="W"),
    "used": Meaning(target="mem.used_gib", unit="MiB"),
    "total": Meaning(target="memory.total", unit="MiB"),
    "utilization": Meaning(target="util.kernel_time", unit="%"),
    "temperature": Meaning(target="temp.core_c", unit="C"),
}
# Who it is stands in one line, what it does in the next. Drivers 390 to 610 differ in the widths.
_WHO = re.compile(
    r"\|\s{1,8}(\d{1,3})\s{1,8}(\S.{0,40}?)\s+(?:On|Off|N/A|WDDM|TCC|MCDM)\s*\|"
    r"\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s"
)
_WHAT = re.compile(
    r"\|\s*(?:\d{1,3}%|N/A|ERR!)\s+(?P<temperature>\d{1,3}|N/A|ERR!)C?\s+(?:P\d{1,2}|N/A|ERR!)\s+"
    r"(?P<power>\d{1,5}W|N/A|ERR!)\s*/\s*(?P<limit>\d{1,5}W|N/A|ERR!)\s*\|"
    r"\s*(?P<used>\d{1,8}MiB|N/A)\s*/\s*(?P<total>\d{1,8}MiB|N/A)\s*\|"
    r"\s*(?P<utilization>\d{1,3}%|N/A|ERR!)\s"
)
_MIG = "MIG devices:"
_LONGEST = 300  # characters of a line; a real one has 91


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every table; of the CSV rows, where a log of tables goes on as CSV.

    Raises:
        InputError: neither a GPU of a table nor a row of CSV is complete.
    """
    text = payload.text
    rows = csv_text.split(text, hints)
    if rows is not None and any(table.lines for table in rows.tables):
        return csv_log.read(payload, hints)
    builder = RecordingBuilder(payload, FORMAT)
    devices = list(_rows(text, builder))
    builder.rows_read += len(devices)
    if not devices:
        raise InputError(
            f"{payload.name}: this is the nvidia-smi table, but no GPU in it is complete, so "
            "nothing was measured. Log `nvidia-smi --query-gpu=... --format=csv -l 1` instead."
        )
    _refuse_several_machines(payload.name, devices)
    return recording(builder, devices, _NAMES, hints, mig=_MIG in text)


def _refuse_several_machines(name: str, devices: list[SeenDevice]) -> None:
    """Refuse a page on which tables of different machines are kept: not a log of one job."""
    models: dict[int | None, set[str | None]] = defaultdict(set)
    for one in devices:
        models[one.index].add(one.model)
    for index, found in sorted(models.items(), key=str):
        if len(found) > 1:
            shown = ", ".join(sorted(map(str, found)))
            raise InputError(
                f"{name}: GPU {index} is of several models in its tables ({shown}), so they are of "
                "different machines and not of one job. Keep the tables of one machine in a file."
            )


def _rows(text: str, builder: RecordingBuilder) -> Iterator[SeenDevice]:
    time: str | None = None
    who: re.Match[str] | None = None
    for line in (line.lstrip(" \t>") for line in text.split("\n")):  # as quoted in a page of text
        if len(line) > _LONGEST:
            who = None
        elif found := _WHO.match(line):
            if who is not None:
                _lost(builder)
            who = found
        elif who is not None:
            what = _WHAT.match(line)
            if what is None:
                _lost(builder)
            else:
                yield _row(who, what, time)
            who = None
        elif line[:1].isalpha() and clock.is_date_line(line):
            time = line.strip()
    if who is not None:
        _lost(builder)


def _lost(builder: RecordingBuilder) -> None:
    builder.rows_read += 1
    builder.dropped["cut device"] += 1


def _row(who: re.Match[str], what: re.Match[str], time: str | None) -> SeenDevice:
    # A name that is too long for its column ends in dots.
    model = who[2].rstrip(". ")
    return SeenDevice(
        device=f"bus {who[3]}",
        cells=what.groupdict(),
        index=int(who[1]),
        model=model,
        time=time,
    )
