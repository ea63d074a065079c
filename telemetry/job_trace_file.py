"""Reads a table of jobs as schedulers and public traces write it: CSV or `sacct -P`."""

import csv
import io
import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from planner.capacity.queueing import TracedJob, TraceReading, ordered
from pricing.errors import InputError
from pricing.message import Message
from telemetry.readers.records import slurm_gpus, slurm_length_s

SLOTS = ("submit", "start", "end", "duration", "gpus", "limit", "job")
_FILE = Path(__file__).with_name("job_trace_columns.toml")
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        name: slot
        for slot, names in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
        for name in names
    }
)
_UNIT_S: Mapping[str, float] = MappingProxyType(
    {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
)
_GPUS_OF_GRES = re.compile(r"gpu(?::[^:,]+)?:(\d+)")  # of older versions: gpu:a100:2
_MILLISECONDS_FROM = 1e11  # as seconds that would be the year 5138
_DELIMITERS = "|\t;,"


class _UnusableRowError(ValueError):
    """A row that cannot be replayed; its words are counted."""


def read_trace(name: str, text: str, mapped: Mapping[str, str]) -> TraceReading:
    """Return the jobs of a table.

    Args:
        name: of the file, for messages.
        text: all of it.
        mapped: column -> slot or slot:unit, before the names that are known.

    Raises:
        InputError: a column is missing or named twice, or no row can be replayed; says which.
    """
    csv.field_size_limit(1 << 24)
    header = text.lstrip("\ufeff").split("\n", 1)[0]
    delimiter = max(_DELIMITERS, key=header.count)
    table = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter)
    columns = _columns(name, [cell.strip() for cell in next(table, [])], mapped)
    jobs: list[TracedJob] = []
    waited: list[float] = []
    dropped: Counter[str] = Counter()
    rows = 0
    for row in table:
        if not any(cell.strip() for cell in row):
            continue
        rows += 1
        try:
            job, wait_s = _job(columns, row)
        except _UnusableRowError as reason:
            dropped[str(reason)] += 1
            continue
        jobs.append(job)
        waited += [] if wait_s is None else [wait_s]
    if not jobs:
        why = "; ".join(f"{count} {reason}" for reason, count in dropped.most_common())
        raise InputError(
            f"{name}: none of {rows} rows is a job that ran on a GPU ({why or 'empty'})."
        )
    return TraceReading(
        trace=ordered(jobs), rows=rows, dropped=dict(dropped), waits_s=tuple(waited)
    )


@dataclass(frozen=True, slots=True)
class _Column:
    index: int
    unit_s: float | None


def _columns(name: str, header: Sequence[str], mapped: Mapping[str, str]) -> Mapping[str, _Column]:
    """Return where each slot stands.

    Raises:
        InputError: names everything that is wrong with the columns at once.
    """
    problems, columns = [], dict[str, _Column]()
    for column, target in mapped.items():
        slot, _, unit = target.partition(":")
        if column not in header:
            problems.append(f"{name}: no column {column!r}; there are {', '.join(header)}.")
        elif slot not in SLOTS or (unit and unit not in _UNIT_S):
            choices = {"slots": SLOTS, "units": tuple(_UNIT_S)}
            problems.append(Message("read.trace-map", column=column, target=target, **choices))
        else:
            columns[slot] = _Column(header.index(column), _UNIT_S.get(unit))
    for index, column in enumerate(header):
        slot = _NAMES.get(column.lower().replace(" ", "_").replace("-", "_"), "")
        if slot and slot not in columns and column not in mapped:
            columns[slot] = _Column(index, None)
    missing = [
        slot
        for slot, enough in (
            ("submit", "submit" in columns or "start" in columns),
            ("duration", "duration" in columns or {"start", "end"} <= set(columns)),
            ("gpus", "gpus" in columns),
        )
        if not enough
    ]
    if missing and not problems:
        shown = {"slots": missing, "columns": list(header) or [Message("read.no-columns")]}
        problems.append(Message("read.trace-columns", file=name, slot=missing[0], **shown))
    if problems:
        raise InputError(problems)
    return columns


def _job(columns: Mapping[str, _Column], row: Sequence[str]) -> tuple[TracedJob, float | None]:
    """Return one row as a job, and how long it really waited where the row says so."""

    def cell(slot: str) -> str:
        column = columns.get(slot)
        text = row[column.index].strip() if column and column.index < len(row) else ""
        return "" if text.lower() in ("none", "null", "unknown", "nan", "n/a") else text

    if "." in cell("job") and ":" not in cell("job") and "alloc" not in cell("job"):
        step = cell("job").rpartition(".")[2]
        if step in ("batch", "extern") or step.isdigit():
            raise _UnusableRowError("are steps of a job, not jobs")
    gpus = _gpus(cell("gpus"))
    start, end = _moment(cell("start")), _moment(cell("end"))
    submit = _moment(cell("submit"))
    duration = _seconds(cell("duration"), columns.get("duration"))
    if duration is None and start is not None and end is not None:
        duration = end - start
    requested = submit if submit is not None else start
    if requested is None:
        raise _UnusableRowError("have no time of submission or start")
    if duration is None and cell("duration"):
        raise _UnusableRowError("have a duration that is neither seconds nor a time")
    if duration is None or not duration > 0:
        raise _UnusableRowError("did not run")
    waited = None if submit is None or start is None or start < submit else start - submit
    limit = _seconds(cell("limit"), columns.get("limit"))
    job = TracedJob(submit_s=requested, duration_s=duration, gpus=gpus, limit_s=limit or None)
    return job, waited


def _gpus(text: str) -> int:
    """Return whole GPUs of `8`, `8.0` or `cpu=4,gres/gpu:a100=8`.

    Raises:
        _UnusableRowError: there is none, or a share of one.
    """
    if not text:
        raise _UnusableRowError("held no GPU")
    allocated = slurm_gpus(text)[0] or sum(map(int, _GPUS_OF_GRES.findall(text)))
    if allocated:
        return allocated
    try:
        count = float(text)
    except ValueError:
        raise _UnusableRowError("held no GPU") from None
    if not count > 0 or math.isinf(count):
        raise _UnusableRowError("held no GPU")
    if count != int(count):
        raise _UnusableRowError("held a share of a GPU")
    return int(count)


def _moment(text: str) -> float | None:
    """Return a time as seconds: ISO 8601, or seconds or milliseconds since any moment."""
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        try:
            when = datetime.fromisoformat(text.removesuffix(" UTC"))
        except ValueError:
            return None
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(number):
        return None
    return number / 1000 if number > _MILLISECONDS_FROM else number


def _seconds(text: str, column: _Column | None) -> float | None:
    """Return `3600`, `01:00:00` or `1-00:00:00` as seconds; a unit of --map is of plain numbers."""
    unit_s = 1.0 if column is None or column.unit_s is None else column.unit_s
    try:
        seconds = float(text) * unit_s
    except ValueError:
        return slurm_length_s(text)
    return seconds if math.isfinite(seconds) else None
