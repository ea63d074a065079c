"""Decodes what Jobstats keeps of a Slurm job: `JS1:` and base64 of gzipped JSON, or that JSON.

Of each GPU it has the mean utilisation over the job and the most memory that was in use. `Short`
and `None` in place of the data say that nothing was kept.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.units import GIB
from telemetry.recording.recording import GPU, TIME, GpuIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "jobstats"
PACKED = re.compile(r"JS1:([A-Za-z0-9+/=]+)")
_MOST_BYTES = 16 << 20
_PERCENT = 0.01
KEPT = (
    "Jobstats keeps the mean utilisation and the most memory of each GPU: how either moved over "
    "time is not known."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobstatsGpu:
    """What is kept of one GPU: shares of time, GiB; None where not kept."""

    host: str
    index: int
    busy: float | None
    used_gib: float | None
    total_gib: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobstats:
    """What is kept of one job: seconds that it ran, and its GPUs."""

    length_s: float
    gpus: tuple[JobstatsGpu, ...]


def read(payload: Payload, hints: Hints) -> Recording:
    """Return the recording of one job.

    Raises:
        InputError: nothing was kept of it, or no GPU is in it.
    """
    del hints
    builder = RecordingBuilder(payload, FORMAT)
    kept = decoded(payload.text)
    if kept is None or not kept.gpus:
        raise InputError(
            f"{payload.name}: Jobstats kept nothing of a GPU in it (a short job, or one without "
            "GPUs). Give the AdminComment of another job, or its nvidia-smi log."
        )
    builder.rows_read = len(kept.gpus)
    builder.notes.append(KEPT)
    rows = list(rows_of(kept, 0.0))
    return builder.recording(
        pd.DataFrame(rows).drop(columns="job", errors="ignore"),
        identities(kept),
        absolute=False,
    )


def decoded(text: str) -> Jobstats | None:
    """Return what a comment of Slurm or its JSON says; None where nothing was kept."""
    packed = PACKED.search(text)
    try:
        plain = _unpacked(packed[1]) if packed else text
        document = json.loads(plain)
    except (ValueError, OSError, EOFError, zlib.error, RecursionError):
        return None
    nodes = document.get("nodes") if isinstance(document, dict) else None
    length = _number(document.get("total_time")) if isinstance(document, dict) else None
    if not isinstance(nodes, dict) or not length or length <= 0:
        return None
    gpus = tuple(gpu for host, node in sorted(nodes.items()) for gpu in _gpus(str(host), node))
    return Jobstats(length_s=length, gpus=gpus)


def rows_of(kept: Jobstats, start_s: float, job: str | None = None) -> Iterator[dict[str, object]]:
    """Yield rows of samples that stand for the whole of a job: one at its start, one half way."""
    for gpu in kept.gpus:
        for t_s in (start_s, start_s + kept.length_s / 2):
            yield {
                TIME: t_s,
                GPU: _key(gpu),
                "job": job,
                "util.kernel_time": np.nan if gpu.busy is None else gpu.busy,
                "mem.used_gib": np.nan if gpu.used_gib is None else gpu.used_gib,
            }


def identities(kept: Jobstats) -> tuple[GpuIdentity, ...]:
    """Return one identity a GPU."""
    return tuple(
        GpuIdentity(key=_key(gpu), index=gpu.index, memory_gib=gpu.total_gib, host=gpu.host)
        for gpu in kept.gpus
    )


def _key(gpu: JobstatsGpu) -> str:
    return f"{gpu.host} index {gpu.index}"


def _gpus(host: str, node: object) -> Iterator[JobstatsGpu]:
    if not isinstance(node, dict):
        return
    busy, used, total = (
        _by_index(node.get(name))
        for name in ("gpu_utilization", "gpu_used_memory", "gpu_total_memory")
    )
    for index in sorted(busy.keys() | used.keys()):
        share = busy.get(index)
        yield JobstatsGpu(
            host=host,
            index=index,
            busy=None if share is None else share * _PERCENT,
            used_gib=_gib(used.get(index)),
            total_gib=_gib(total.get(index)),
        )


def _gib(value: float | None) -> float | None:
    return None if value is None else value / GIB


def _by_index(values: object) -> Mapping[int, float]:
    if not isinstance(values, dict):
        return {}
    read = {str(index): _number(value) for index, value in values.items()}
    return {int(i): value for i, value in read.items() if i.isdecimal() and value is not None}


def _number(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and np.isfinite(value) else None  # type: ignore[arg-type,call-overload]


def _unpacked(text: str) -> bytes:
    """Return the JSON of a packed comment.

    Raises:
        ValueError: it is not base64, or larger than any job's.
    """
    packed = base64.b64decode(text, validate=True)
    unpacked = zlib.decompressobj(wbits=31).decompress(packed, _MOST_BYTES)
    if len(unpacked) >= _MOST_BYTES:
        raise ValueError("too large")
    return unpacked or gzip.decompress(packed)
