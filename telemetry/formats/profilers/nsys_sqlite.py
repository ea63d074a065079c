"""Reads what `nsys export --type sqlite` writes: kernels, copies and fills of each GPU."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.formats.profilers.device_time import DeviceTime, plausible, samples_of
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.recording.recording import GpuIdentity, Recording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload

FORMAT = "nsys-sqlite"
_NANO = 1e-9
_GIB = 1 << 30
_WORK = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_KERNEL = _WORK[0]
_AT_ONCE = 10_000
# Of SQLite's own instructions: far above what reading the largest export takes.
_INSTRUCTIONS, _MOST_CALLS = 1_000_000, 5_000


def read(payload: Payload, hints: Hints) -> Recording:  # noqa: ARG001 - one signature for readers
    """Return the busy share of each GPU over the report.

    Raises:
        InputError: it is damaged, or holds no work of a GPU.
    """
    builder = RecordingBuilder(payload, FORMAT)
    found = DeviceTime()
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(payload.data)
            database.set_progress_handler(_Patience(), _INSTRUCTIONS)
            tables = _tables(database)
            for device, begin_s, length_s, kernel in _work(database, tables):
                builder.rows_read += 1
                if plausible(begin_s, length_s):
                    found.add(device, begin_s, length_s, kernel)
                else:
                    builder.dropped["time not readable"] += 1
            gpus = _gpus(database, tables, found)
    except (sqlite3.Error, OverflowError, ValueError, MemoryError) as error:
        raise InputError(
            f"{payload.name}: the SQLite database is damaged or cut off ({error}), so nothing in "
            "it can be trusted. Run `nsys export --type sqlite` again."
        ) from None
    if not found.begins:
        raise InputError(
            f"{payload.name}: a report without work of a GPU, so nothing was measured. Profile "
            "with `nsys profile --trace=cuda`."
        )
    begin_s = min(min(begins) for begins in found.begins.values())
    end_s = max(
        begin + length
        for device in found.begins
        for begin, length in zip(found.begins[device], found.lengths[device], strict=True)
    )
    builder.notes.append(
        "busy shares are from the first to the last work of a GPU; a profiler costs time itself."
    )
    samples = samples_of(found.busy(), begin_s, max(end_s, begin_s + _NANO), builder)
    return builder.recording(samples, gpus, absolute=False)


class _Patience:
    """Ends a query that goes on without end, as a table that is a view in truth may make it."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self) -> int:
        self._calls += 1
        return int(self._calls > _MOST_CALLS)


def _tables(database: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the columns of each table; views are none."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    known = (*_WORK, "StringIds", "TARGET_INFO_GPU")
    return {
        name: {row[1] for row in database.execute(f"PRAGMA table_info({name})")}
        for (name,) in names
        if name in known
    }


def _work(
    database: sqlite3.Connection, tables: dict[str, set[str]]
) -> Iterator[tuple[int, float, float, str | None]]:
    """Yield device, begin and length in seconds, and the name of a kernel."""
    for table in _WORK:
        if not {"start", "end", "deviceId"} <= tables.get(table, set()):
            continue
        query = f'SELECT start, "end", deviceId, NULL FROM {table}'  # noqa: S608 - our own names
        if table == _KERNEL:
            named = "shortName" in tables[table] and {"id", "value"} <= tables.get(
                "StringIds", set()
            )
            query = (
                f'SELECT k.start, k."end", k.deviceId, s.value FROM {table} k '  # noqa: S608
                "LEFT JOIN StringIds s ON s.id = k.shortName"
                if named
                else f"SELECT start, \"end\", deviceId, '' FROM {table}"  # noqa: S608
            )
        cursor = database.execute(query)
        while rows := cursor.fetchmany(_AT_ONCE):
            for start, end, device, name in rows:
                if isinstance(start, int) and isinstance(end, int) and isinstance(device, int):
                    kernel = str(name or "") if table == _KERNEL else None
                    yield device, start * _NANO, (end - start) * _NANO, kernel


def _gpus(
    database: sqlite3.Connection, tables: dict[str, set[str]], found: DeviceTime
) -> tuple[GpuIdentity, ...]:
    about: dict[int, tuple[object, object]] = {}
    if {"id", "name", "totalMemory"} <= tables.get("TARGET_INFO_GPU", set()):
        rows = database.execute("SELECT id, name, totalMemory FROM TARGET_INFO_GPU")
        about = {row[0]: (row[1], row[2]) for row in rows.fetchmany(_AT_ONCE)}
    return tuple(
        GpuIdentity(
            key=f"index {device}",
            index=device if device >= 0 else None,
            model=name if isinstance(name, str) and name else None,
            memory_gib=total / _GIB if isinstance(total, int) and total > 0 else None,
        )
        for device in sorted(found.begins)
        for name, total in [about.get(device, (None, None))]
    )
