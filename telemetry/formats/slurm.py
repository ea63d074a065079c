"""Reads Slurm's accounting: `sacct -P`, `sacct --json`, and what Jobstats stores of a job.

A job's row says what was allocated (`AllocTRES`, whose typed and untyped GPUs are the same ones),
the rows of its steps what was used (`TRESUsageIn...`, `gres/gpuutil` in percent, summed over the
processes of a step). Where both are 0 on every step nothing was collected: that is unknown, not
idle. A job that was requeued has a row for each time it ran. `AdminComment` may hold the data of
Jobstats: of each GPU the mean utilization over the job and the most memory that was in use.
"""

import base64
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import pandas as pd

from pricing.errors import InputError
from pricing.message import Message, join
from telemetry.profiling.machines import MACHINE
from telemetry.readers import clock
from telemetry.readers.column_names import cells_of
from telemetry.readers.devices import DeviceRow, device_recording
from telemetry.readers.hints import Hints
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import (
    documents,
    mapping_of,
    mappings_in,
    number_of,
    slurm_gpus,
    slurm_length_s,
)
from telemetry.readers.units import GIB
from telemetry.recording.recording import JobLabels, Recording

_Row = Mapping[str, str]

_SIZE = re.compile(r"([\d.]+)([KMGT]?)")
_TO_GIB = {"": 2**-30, "K": 2**-20, "M": 2**-10, "G": 1.0, "T": 2.0**10}
_NO_VALUE = 2.0**62  # Slurm's INFINITE64 and NO_VAL64, and what --units makes of them, are greater
_NO_VALUE_32 = (2**32 - 2, 2**32 - 1)  # NO_VAL and INFINITE of slurm.h
# Columns by their names in small letters: sacct heads a column as it was asked for.
_ID, _ALLOCATED = "jobid", "alloctres"
# Columns that older versions of Slurm, or other questions, give in place of the first.
_OLDER = {_ID: "jobidraw", _ALLOCATED: "allocgres", "elapsed": "elapsedraw"}
_USED = ("tresusageintot", "tresusageinave", "tresusageinmax")
# Of runs whose hours are over before they were done; None: neither memory nor an error ended them.
_EARLY: Mapping[str, str | None] = {
    "OUT_OF_MEMORY": "host-out-of-memory",
    "FAILED": "failed",
    **dict.fromkeys(("TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "PREEMPTED", "CANCELLED")),
}
# Jobstats' names of its figures by GPU; what Slurm counts is brought under them.
_BUSY, _USED_BYTES, _TOTAL_BYTES = "gpu_utilization", "gpu_used_memory", "gpu_total_memory"
_CPU = "cpu_utilization"  # of the cores that the job had there, which Jobstats gives as seconds
_UTILIZATION, _MEMORY = "gres/gpuutil", "gres/gpumem"


@dataclass(slots=True)
class _Job:
    """One time that a job ran."""

    name: str
    start_s: float
    length_s: float
    gpus: int
    model: str | None
    labels: JobLabels
    state: str
    host: str
    jobstats: "_Jobstats | None"
    steps: list[_Row] = field(default_factory=list)


def read_sacct(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every job of `sacct -P` that held GPUs and was watched.

    Raises:
        InputError: a column is missing, or no job held a GPU and was watched.
    """
    header, *lines = [line for line in builder.text.splitlines() if line.strip()] or [""]
    delimiter = next((sign for sign in "|;\t^~" if sign in header), ",")
    names = cells_of(header, delimiter)
    blank = dict.fromkeys(names, "")  # a line may be cut
    cells = (cells_of(line, delimiter) for line in lines)
    rows = [_named(blank | dict(zip(names, row, strict=False))) for row in cells]
    if not rows:
        raise _refused(Message("read.slurm-no-rows", file=builder.name))
    missing = [name for name in ("JobID", "AllocTRES") if name.lower() not in rows[0]]
    if missing:
        raise _refused(Message("read.slurm-column", file=builder.name, columns=missing))
    return _recording(rows, builder, hints, local_time=hints.tz is None)


def _named(cells: dict[str, str]) -> dict[str, str]:
    """Return a row with the older names of its columns beside the newer ones."""
    named = {name.strip().lower(): cell for name, cell in cells.items()}
    return {newer: named[older] for newer, older in _OLDER.items() if older in named} | named


def _recording(
    rows: Sequence[_Row], builder: RecordingBuilder, hints: Hints, *, local_time: bool
) -> Recording:
    """Return the readings of jobs and their steps.

    Args:
        rows: by the names of sacct's columns, a job's before those of its steps.
        builder: where rows are counted.
        hints: the zone of times.
        local_time: whether the times carry no zone and none is known.

    Raises:
        InputError: no job held a GPU and was watched.
    """
    builder.rows_read += len(rows)
    rows_of_gpus: list[DeviceRow] = []
    labels: dict[str, JobLabels] = {}
    unwatched: list[_Job] = []
    jobs = _jobs(rows, builder, hints)
    for number, job in enumerate(jobs):
        readings = _readings(job, number, builder)
        rows_of_gpus += readings
        unwatched += [] if readings else [job]
        labels[job.name] = job.labels
    if states := _early_ends(jobs):
        builder.notes.append(Message("read.early-ends", states=states))
    builder.notes[:] = dict.fromkeys(builder.notes)
    if not rows_of_gpus:
        reasons = ", ".join(f"{why}: {count}" for why, count in sorted(builder.dropped.items()))
        why = Message(
            "read.slurm-nothing", file=builder.name, reasons=reasons or Message("read.no-jobs")
        )
        raise _refused(why, *_unwatched_hours(unwatched, jobs))
    builder.notes += _unwatched_hours(unwatched, jobs)
    return device_recording(
        builder, rows_of_gpus, hints, counted=True, labels=labels, local_time=local_time
    )


def _early_ends(jobs: Sequence[_Job]) -> str:
    """Return how many jobs ended before they were done, and their GPU hours; "" for none."""
    hours = defaultdict[str, list[float]](list)
    for job in jobs:
        if job.state in _EARLY:
            hours[job.state].append(job.gpus * job.length_s / 3600)
    ends = sorted(hours.items(), key=lambda end: -sum(end[1]))
    return ", ".join(f"{len(h):,} {state} ({sum(h):,.0f} GPU h)" for state, h in ends)


def _refused(*why: str) -> InputError:
    """Return the error of an answer of sacct that cannot be used, with what to ask for."""
    return InputError(join([*why, Message("read.slurm-ask")], "sentences"))


def _unwatched_hours(unwatched: Sequence[_Job], jobs: Sequence[_Job]) -> Iterator[str]:
    """Yield how long jobs held GPUs of which nobody knows what they did."""
    hours, total = (
        sum(job.gpus * job.length_s for job in some) / 3600 for some in (unwatched, jobs)
    )
    if unwatched:
        gpus = sum(job.gpus for job in unwatched)
        counts = {"n": len(unwatched), "jobs": len(jobs), "gpus": gpus}
        yield Message("read.unwatched", **counts, hours=hours, total=total)


def _jobs(rows: Sequence[_Row], builder: RecordingBuilder, hints: Hints) -> list[_Job]:
    """Return each time that a job with GPUs ran, with the rows of its steps."""
    starts = clock.parse(
        pd.Series([row.get("start") or "" for row in rows], dtype=object), hints.zone
    ).t_s
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        if "." not in row[_ID]:
            counts[row.get("jobname") or "job"] += 1
    current: dict[str, _Job] = {}
    jobs: list[_Job] = []
    for row, start in zip(rows, starts, strict=True):
        number, _, step = row[_ID].partition(".")
        if step:
            if number in current:
                current[number].steps.append(row)
            continue
        current.pop(number, None)
        job = _job(row, number, float(start), counts, builder)
        if job is not None:
            current[number] = job
            jobs.append(job)
    return jobs


def _job(
    row: _Row, number: str, start: float, counts: Mapping[str, int], builder: RecordingBuilder
) -> _Job | None:
    gpus, model = slurm_gpus(row.get(_ALLOCATED) or "")
    length = slurm_length_s(row.get("elapsed") or "")
    if not gpus:
        builder.dropped["job without GPUs"] += 1
        return None
    if not np.isfinite(start) or not length:
        unknown = "Elapsed" if length is None else "Start"
        ran = "that never ran" if length == 0 else f"with GPUs, of which no {unknown} was given"
        builder.dropped[f"job {ran}"] += 1
        return None
    state = (row.get("state") or "").partition(" by ")[0].strip()
    name, node = row.get("jobname") or "job", (row.get("nodelist") or "").strip()
    is_one_node = node.isascii() and node.replace("-", "").isalnum()
    return _Job(
        name=name if counts[name] == 1 else f"{name}-{number}",
        start_s=start,
        length_s=length,
        gpus=gpus,
        model=model,
        labels=JobLabels(
            team=(row.get("account") or "").strip() or None,
            ended=_EARLY.get(state),
            is_complete=state == "COMPLETED" or state in _EARLY,
        ),
        state=state,
        host=node if is_one_node else f"{MACHINE}of {number}",
        jobstats=_decoded(row.get("admincomment") or ""),
        steps=[row],
    )


def _readings(job: _Job, number: int, builder: RecordingBuilder) -> list[DeviceRow]:
    if job.jobstats is not None and job.jobstats.gpus:
        builder.notes.append(Message("read.jobstats-means"))
        gpus = [replace(gpu, model=job.model) for gpu in job.jobstats.gpus]
        return _halves(gpus, job.start_s, job.jobstats.length_s, job.name)
    busy, used_gib = _usage_of_steps(job)
    if busy is None and used_gib is None:
        builder.dropped["job of which no use of its GPUs was collected"] += 1
        return []
    builder.notes.append(Message("read.slurm-sums"))
    cells = {} if busy is None else {_BUSY: repr(min(100.0, busy / job.gpus))}
    if used_gib is not None:
        cells[_USED_BYTES] = repr(used_gib * GIB / job.gpus)
    cores = int(_counts(job.steps[0].get(_ALLOCATED) or "").get("cpu", "0"))
    if cores and (cpu_s := _cpu_s(job.steps[1:])) is not None:
        cells[_CPU] = repr(100 * cpu_s / (cores * job.length_s))
    gpu = DeviceRow(cells=cells, model=job.model, host=job.host)
    gpus = [replace(gpu, device=f"{job.name} {number} {i}", index=i) for i in range(job.gpus)]
    return _halves(gpus, job.start_s, job.length_s, job.name)


def _usage_of_steps(job: _Job) -> tuple[float | None, float | None]:
    """Return what the job's steps used, % and GiB over all GPUs; None where not collected."""
    usages = [_usage(row) for row in job.steps]
    busy = max((usage[_UTILIZATION] for usage in usages if _UTILIZATION in usage), default=0.0)
    memory = max((usage[_MEMORY] for usage in usages if _MEMORY in usage), default=0.0)
    if busy <= 0 and memory <= 0:
        return None, None
    return busy, memory if memory > 0 else None


def _cpu_s(steps: Sequence[_Row]) -> float | None:
    """Return the CPU seconds of a job's steps; None where those of a step are not known.

    A total is of all tasks of a step, a mean of each: a batch step has one, others state `NTasks`.
    """
    seconds = 0.0
    for row in steps:
        total, mean = (_counts(row.get(name) or "").get("cpu") for name in _USED[:2])
        is_single = row[_ID].endswith((".batch", ".extern", ".interactive"))
        tasks = "1" if total or is_single else row.get("ntasks") or ""
        used_s = slurm_length_s(total or mean or "")
        if used_s is None or not tasks.isdecimal():
            return None
        seconds += used_s * int(tasks)
    return seconds if steps else None


def _counts(tres: str) -> dict[str, str]:
    """Return what Slurm's text counts, by name: `cpu=4,mem=9G`."""
    return dict(part.split("=", 1) for part in tres.split(",") if "=" in part)


def _usage(row: _Row) -> dict[str, float]:
    cells = _counts(next((row[name] for name in _USED if row.get(name)), ""))
    usage = {}
    for name, scale in ((_UTILIZATION, 1.0), (_MEMORY, GIB)):
        match = _SIZE.fullmatch(cells.get(name, ""))
        amount = float(match[1]) * (_TO_GIB[match[2]] if scale == GIB else 1.0) if match else None
        if amount is not None and amount * scale < _NO_VALUE:
            usage[name] = amount
    return usage


_MOST_SECONDS = 10**11
_SUMS = dict(zip(("total", "average", "max"), _USED, strict=True))


def read_sacct_json(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of every job of `sacct --json` that held GPUs and was watched.

    What a step used stands under `tres.requested` (Slurm's TRESUsageIn), what it wrote under
    `consumed`. Times are seconds since 1970. Numbers may be wrapped: `{"set": true, "number": 6}`.

    Raises:
        InputError: no job in it, or none that held a GPU and was watched.
    """
    answers = documents(builder)
    rows = [
        row for answer in answers for job in mappings_in(answer.get("jobs")) for row in _rows(job)
    ]
    if not rows:
        raise builder.empty_error()
    return _recording(rows, builder, hints, local_time=False)


def _rows(job: dict[str, object]) -> Iterator[dict[str, str]]:
    times, number = mapping_of(job.get("time")), _text(job.get("job_id")) or "0"
    state = mapping_of(job.get("state")).get("current")
    yield {
        _ID: number,
        "jobname": _text(job.get("name")),
        "account": _text(job.get("account")),
        "state": " ".join(map(str, state)) if isinstance(state, list) else _text(job.get("state")),
        "start": _instant(_text(times.get("start"))),
        "elapsed": _text(times.get("elapsed")),
        _ALLOCATED: _tres(mapping_of(job.get("tres")).get("allocated")),
        "nodelist": _text(job.get("nodes")),
        "admincomment": _text(mapping_of(job.get("comment")).get("administrator")),
    }
    steps = job.get("steps")
    for index, step in enumerate(steps if isinstance(steps, list) else []):
        used = mapping_of(mapping_of(mapping_of(step).get("tres")).get("requested"))
        yield {
            _ID: f"{number}.{index}",
            **{column: _tres(used.get(name)) for name, column in _SUMS.items()},
        }


def _tres(listed: object) -> str:
    """Return what is counted as Slurm's text of it: `cpu=4,gres/gpu:a100=2`."""
    parts = []
    for item in map(mapping_of, listed if isinstance(listed, list) else []):
        name = "/".join(filter(None, (_text(item.get("type")), _text(item.get("name")))))
        parts.append(f"{name}={_text(item.get('count'))}")
    return ",".join(parts)


def _instant(seconds: str) -> str:
    """Return seconds since 1970 as a time; "" where a job never began."""
    if not seconds.isascii() or not seconds.isdecimal() or not 0 < int(seconds) < _MOST_SECONDS:
        return ""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(seconds))).isoformat()


def _text(value: object) -> str:
    if isinstance(value, dict):  # a number that may be missing or without end
        is_given = value.get("set", True) and not value.get("infinite")
        value = value.get("number") if is_given else None
    if isinstance(value, int) and (value in _NO_VALUE_32 or value >= _NO_VALUE):
        return ""
    return str(value) if isinstance(value, str | int | float) else ""


_PACKED = re.compile(r"JS1:([A-Za-z0-9+/=]+)")
_MOST_BYTES = 16 << 20


class _Jobstats(NamedTuple):
    """What is stored of one job: seconds that it ran, and its GPUs."""

    length_s: float
    gpus: list[DeviceRow]


def read_jobstats(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the recording of one job of Jobstats: `JS1:` and base64 of gzipped JSON, or the JSON.

    `Short` and `None` in place of the data say that nothing was stored.

    Raises:
        InputError: nothing was stored of it, or no GPU is in it.
    """
    job = _decoded(builder.text)
    if job is None or not job.gpus:
        raise builder.empty_error()
    builder.notes.append(Message("read.jobstats-means"))
    return device_recording(builder, _halves(job.gpus, 0.0, job.length_s), hints, absolute=False)


def _decoded(text: str) -> _Jobstats | None:
    """Return what a comment of Slurm or its JSON says; None where nothing was stored."""
    packed = _PACKED.search(text)
    try:
        document = json.loads(_unpacked(packed[1]) if packed else text)
    except (ValueError, zlib.error, RecursionError):
        return None
    nodes = mapping_of(document).get("nodes")
    length = number_of(mapping_of(document).get("total_time"))
    if not isinstance(nodes, dict) or not length or length <= 0:
        return None
    gpus = (gpu for host, node in sorted(nodes.items()) for gpu in _gpus(str(host), node, length))
    return _Jobstats(length, list(gpus))


def _halves(
    gpus: Sequence[DeviceRow], start_s: float, length_s: float, job: str | None = None
) -> list[DeviceRow]:
    """Return rows that stand for the whole of a job: one at its start, one half way."""
    return [r for gpu in gpus for r in replace(gpu, job=job).at(start_s, start_s + length_s / 2)]


def _gpus(host: str, node: object, length_s: float) -> Iterator[DeviceRow]:
    cells = defaultdict[int, dict[str, str]](dict)
    for name in (_BUSY, _USED_BYTES, _TOTAL_BYTES):
        for index, value in mapping_of(mapping_of(node).get(name)).items():
            if str(index).isdecimal() and (figure := number_of(value)) is not None:
                cells[int(index)][name] = repr(figure)
    cores, used_s = (number_of(mapping_of(node).get(name)) for name in ("cpus", "total_time"))
    cpu = {_CPU: repr(100 * used_s / (cores * length_s))} if cores and used_s is not None else {}
    for number, of_gpu in sorted(cells.items()):
        if of_gpu.keys() != {_TOTAL_BYTES}:
            yield DeviceRow(cells=of_gpu | cpu, index=number, host=host)


def _unpacked(text: str) -> bytes:
    """Return the JSON of a packed comment.

    Raises:
        ValueError: it is not base64, or larger than any job's.
    """
    packed = base64.b64decode(text, validate=True)
    unpacked = zlib.decompressobj(wbits=31).decompress(packed, _MOST_BYTES)
    if len(unpacked) >= _MOST_BYTES:
        raise ValueError("too large")
    return unpacked
