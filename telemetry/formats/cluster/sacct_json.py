"""Reads `sacct --json`: jobs and their steps, as Slurm's data parser writes them.

What a step used stands under `tres.requested` (Slurm's TRESUsageIn), what it wrote under
`consumed`. Times are seconds since 1970. Numbers may be wrapped: `{"set": true, "number": 6}`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from pricing.errors import InputError
from telemetry.formats.cluster.sacct import recording_of
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "slurm-sacct-json"
_MOST_SECONDS = 10**11
_SUMS = (("total", "TRESUsageInTot"), ("average", "TRESUsageInAve"), ("max", "TRESUsageInMax"))


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the readings of every job that held GPUs and was watched.

    Raises:
        InputError: no job in it, or none that held a GPU and was watched.
    """
    builder = RecordingBuilder(payload, FORMAT)
    answers, _ = documents(payload.text, payload.name)
    rows = [
        row
        for answer in answers
        for job in _listed(answer.get("jobs"))
        if isinstance(job, dict)
        for row in _rows(job)
    ]
    if not rows:
        raise InputError(
            f"{payload.name}: no job in it, so nothing was measured. Ask for "
            "`sacct --json --starttime 2026-07-01 --allusers`."
        )
    return recording_of(rows, builder, hints, zoned=True)


def _rows(job: dict[str, object]) -> Iterator[dict[str, str]]:
    times, number = _mapping(job.get("time")), _text(job.get("job_id"))
    yield {
        "JobID": number or "0",
        "JobName": _text(job.get("name")),
        "Account": _text(job.get("account")),
        "Start": _instant(_text(times.get("start"))),
        "Elapsed": _text(times.get("elapsed")),
        "AllocTRES": _tres(_mapping(job.get("tres")).get("allocated")),
        "NodeList": _text(job.get("nodes")),
        "AdminComment": _text(_mapping(job.get("comment")).get("administrator")),
    }
    for place, step in enumerate(_listed(job.get("steps"))):
        used = _mapping(_mapping(_mapping(step).get("tres")).get("requested"))
        yield {
            "JobID": f"{number or '0'}.{place}",
            **{column: _tres(used.get(name)) for name, column in _SUMS},
        }


def _tres(listed: object) -> str:
    """Return what is counted as Slurm's text of it: `cpu=4,gres/gpu:a100=2`."""
    parts = []
    for one in map(_mapping, _listed(listed)):
        name = "/".join(filter(None, (_text(one.get("type")), _text(one.get("name")))))
        parts.append(f"{name}={_text(one.get('count'))}")
    return ",".join(parts)


def _instant(seconds: str) -> str:
    """Return seconds since 1970 as a time; "" where a job never began."""
    if not seconds.isascii() or not seconds.isdecimal() or not 0 < int(seconds) < _MOST_SECONDS:
        return ""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(seconds))).isoformat()


def _text(value: object) -> str:
    if isinstance(value, dict):  # a number that may be missing or without end
        value = value.get("number") if value.get("set", True) else None
    return str(value) if isinstance(value, str | int | float) else ""


def _mapping(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
