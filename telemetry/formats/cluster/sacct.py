"""Reads `sacct -P`: jobs of Slurm with the GPUs that they held, and what was seen of them.

A job's row says what was allocated (`AllocTRES`, whose typed and untyped GPUs are the same ones),
the rows of its steps what was used (`TRESUsageIn...`, `gres/gpuutil` in percent, summed over the
processes of a step). Where both are 0 on every step nothing was collected: that is unknown, not
idle. A job that was requeued has a row for each time it ran. `AdminComment` may hold what Jobstats
kept.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.formats.cluster.jobstats import KEPT, Jobstats, decoded, identities, rows_of
from telemetry.formats.cluster.slurm_cells import gpus_held, length_s
from telemetry.profiling.machines import MACHINE
from telemetry.readers import clock
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.recording.recording import GPU, JOB, TIME, GpuIdentity, JobLabels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "slurm-sacct"
_SIZE = re.compile(r"([\d.]+)([KMGT]?)")
_TO_GIB = {"": 2**-30, "K": 2**-20, "M": 2**-10, "G": 1.0, "T": 2.0**10}
_ID, _HELD = "JobID", "AllocTRES"
# Columns that older versions of Slurm, or other questions, give in place of the first.
_OLDER = {_ID: "JobIDRaw", _HELD: "AllocGRES", "Elapsed": "ElapsedRaw"}
_COLUMNS = (
    _ID,
    _HELD,
    "JobName",
    "Account",
    "Start",
    "Elapsed",
    "NodeList",
    "AdminComment",
    "TRESUsageInTot",
    "TRESUsageInAve",
    "TRESUsageInMax",
    *_OLDER.values(),
)
_FOLDED = {name.lower(): name for name in _COLUMNS}  # sacct heads a column as it was asked for
_USED = ("TRESUsageInTot", "TRESUsageInAve", "TRESUsageInMax")
_PERCENT = 0.01
_UTIL, _MEMORY = "gres/gpuutil", "gres/gpumem"
_SUMMED = (
    "utilisation is Slurm's own figure (gres/gpuutil), summed over processes and divided by the "
    "GPUs of the job: which GPU did what is not known."
)


@dataclass(slots=True)
class _Job:
    """One time that a job ran."""

    name: str
    start_s: float
    length_s: float
    gpus: int
    model: str | None
    account: str | None
    host: str
    kept: Jobstats | None
    used: list[Mapping[str, str]] = field(default_factory=list)


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every job that held GPUs and was watched.

    Raises:
        InputError: a column is missing, or no job held a GPU and was watched.
    """
    builder = RecordingBuilder(payload, FORMAT)
    header, *lines = [line for line in payload.text.splitlines() if line.strip()] or [""]
    names = header.split("|")
    blank = dict.fromkeys(names, "")  # a line may be cut
    rows = [_row(blank | dict(zip(names, line.split("|"), strict=False))) for line in lines]
    missing = [name for name in (_ID, _HELD) if rows and name not in rows[0]]
    if missing or not rows:
        raise InputError(f"{payload.name}: {_lacks(missing)} {_ASK}")
    return recording_of(rows, builder, hints)


def _row(cells: dict[str, str]) -> dict[str, str]:
    """Return a row with the older names of its columns beside the newer ones."""
    named = {_FOLDED.get(name.strip().lower(), name.strip()): cell for name, cell in cells.items()}
    for newer, older in _OLDER.items():
        if newer not in named and older in named:
            named[newer] = named[older]
    return named


def recording_of(
    rows: list[dict[str, str]], builder: RecordingBuilder, hints: Hints, *, zoned: bool = False
) -> Recording:
    """Return the readings of jobs and their steps, each a row by the names of sacct's columns.

    Args:
        rows: a job's row before those of its steps.
        builder: where rows are counted.
        hints: the zone of times.
        zoned: whether the times carry a zone.

    Raises:
        InputError: no job held a GPU and was watched.
    """
    builder.rows_read = len(rows)
    frames, gpus, labels = [], [], {}
    unseen: list[_Job] = []
    jobs = list(_jobs(rows, builder, hints))
    for number, job in enumerate(jobs):
        found, devices = _readings(job, number, builder)
        frames += found
        gpus += devices
        unseen += [] if found else [job]
        if found and job.account:
            labels[job.name] = JobLabels(team=job.account)
    if not frames:
        left = ", ".join(f"{why}: {count}" for why, count in sorted(builder.dropped.items()))
        raise InputError(
            f"{builder.name}: no job in it held a GPU and was watched ({left or 'no jobs'})."
            f"{_hours_unseen(unseen, jobs)} {_ASK}"
        )
    if unseen:
        builder.notes.append(_hours_unseen(unseen, jobs).strip())
    return builder.recording(
        pd.DataFrame(frames),
        tuple(gpus),
        labels=labels,
        local_time=not zoned and hints.tz is None,
    )


def _hours_unseen(unseen: Sequence[_Job], jobs: Sequence[_Job]) -> str:
    """Return how long GPUs were held by jobs of which nobody knows what they did; "" for none."""
    if not unseen:
        return ""
    hours, every = (sum(job.gpus * job.length_s for job in some) / 3600 for some in (unseen, jobs))
    return (
        f" {len(unseen):,} of {len(jobs):,} jobs held GPUs for {hours:,.1f} of {every:,.1f} GPU "
        "hours and were not watched: what they cost is in no figure here."
    )


_ASK = (
    "Ask for sacct -P -o JobID,JobName,Account,State,Start,End,Elapsed,AllocTRES,TRESUsageInTot,"
    "AdminComment; Slurm counts GPUs with AccountingStorageTRES=gres/gpuutil,gres/gpumem alone."
)


def _lacks(missing: list[str]) -> str:
    return f"column {', '.join(missing)} is missing." if missing else "no row under the header."


def _jobs(rows: list[dict[str, str]], builder: RecordingBuilder, hints: Hints) -> Iterator[_Job]:
    """Yield each time that a job with GPUs ran, with the usage of its steps."""
    starts = clock.parse(
        pd.Series([str(row.get("Start") or "") for row in rows], dtype=object), hints.zone
    ).t_s
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        if "." not in str(row["JobID"]):
            counts[str(row.get("JobName") or "job")] += 1
    current: dict[str, _Job] = {}
    ran: list[_Job] = []
    for row, start in zip(rows, starts, strict=True):
        number, _, step = str(row["JobID"]).partition(".")
        if step:
            if number in current:
                current[number].used.append(row)
            continue
        current.pop(number, None)
        job = _job(row, number, float(start), counts, builder)
        if job is not None:
            current[number] = job
            ran.append(job)
    yield from ran


def _job(
    row: Mapping[str, str],
    number: str,
    start: float,
    counts: Mapping[str, int],
    builder: RecordingBuilder,
) -> _Job | None:
    gpus, model = gpus_held(row.get("AllocTRES") or "")
    length = length_s(row.get("Elapsed") or "")
    if not gpus:
        builder.dropped["job without GPUs"] += 1
        return None
    if not np.isfinite(start) or not length:
        builder.dropped["job that never ran, or without a start"] += 1
        return None
    name, node = str(row.get("JobName") or "job"), (row.get("NodeList") or "").strip()
    return _Job(
        name=name if counts[name] == 1 else f"{name}-{number}",
        start_s=start,
        length_s=length,
        gpus=gpus,
        model=model,
        account=(row.get("Account") or "").strip() or None,
        host=node
        if node.isascii() and node.replace("-", "").isalnum()
        else f"{MACHINE}of {number}",
        kept=decoded(row.get("AdminComment") or ""),
        used=[row],
    )


def _readings(
    job: _Job, number: int, builder: RecordingBuilder
) -> tuple[list[dict[str, object]], list[GpuIdentity]]:
    if job.kept is not None and job.kept.gpus:
        if KEPT not in builder.notes:
            builder.notes.append(KEPT)
        return list(rows_of(job.kept, job.start_s, job.name)), list(identities(job.kept))
    busy, used_gib = _watched(job)
    if busy is None and used_gib is None:
        builder.dropped["job of which no use of its GPUs was collected"] += 1
        return [], []
    if _SUMMED not in builder.notes:
        builder.notes.append(_SUMMED)
    rows: list[dict[str, object]] = [
        {
            TIME: t_s,
            GPU: f"{job.name} {number} {index}",
            JOB: job.name,
            "util.kernel_time": np.nan if busy is None else min(1.0, busy / job.gpus),
            "mem.used_gib": np.nan if used_gib is None else used_gib / job.gpus,
        }
        for index in range(job.gpus)
        for t_s in (job.start_s, job.start_s + job.length_s / 2)
    ]
    devices = [
        GpuIdentity(key=f"{job.name} {number} {index}", index=index, model=job.model, host=job.host)
        for index in range(job.gpus)
    ]
    return rows, devices


def _watched(job: _Job) -> tuple[float | None, float | None]:
    """Return what the job's steps used, shares and GiB over all GPUs; None where not collected."""
    found = [_usage(row) for row in job.used]
    busy = max((one[_UTIL] for one in found if _UTIL in one), default=0.0)
    memory = max((one[_MEMORY] for one in found if _MEMORY in one), default=0.0)
    if busy <= 0 and memory <= 0:
        return None, None
    return busy * _PERCENT, memory if memory > 0 else None


def _usage(row: Mapping[str, str]) -> dict[str, float]:
    text = next((row[name] for name in _USED if row.get(name)), "")
    pairs = (part.partition("=") for part in text.split(","))
    said = {name: value for name, _, value in pairs}
    usage = {}
    if (match := _SIZE.fullmatch(said.get(_UTIL, ""))) is not None:
        usage[_UTIL] = float(match[1])
    if (match := _SIZE.fullmatch(said.get(_MEMORY, ""))) is not None:
        usage[_MEMORY] = float(match[1]) * _TO_GIB[match[2]]
    return usage
