"""Turns the TRACE of `gpucost capacity` into jobs."""

from collections.abc import Iterable
from dataclasses import replace

from planner.capacity.queueing import TraceReading
from telemetry.job_trace_file import read_trace
from telemetry.readers.payload import Stream


def load_trace(
    path: str, mapped: Iterable[tuple[str, str]], gpus: tuple[int, int] | None
) -> tuple[str, TraceReading]:
    """Return the name of a file of jobs, and those of its jobs that hold so many GPUs.

    Args:
        path: of the file; `-` is standard input, `.gz` is read as is.
        mapped: columns with their slots.
        gpus: fewest and most of a job; None: any.

    Raises:
        InputError: it cannot be read, or holds no such job.
    """
    with Stream(path) as stream:
        payload = stream.load()
    reading = read_trace(payload.name, payload.text, dict(mapped))
    if gpus is not None:
        kept = reading.trace.only(*gpus)
        reading = replace(reading, trace=kept, waits_s=())
    return payload.name, reading
