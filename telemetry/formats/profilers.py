"""Reads traces of profilers: PyTorch's (Kineto), and Nsight Systems exported as SQLite."""

import io
import json
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import ijson
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.model import Run
from pricing.errors import InputError
from pricing.message import Message
from telemetry.profiling.window import Covered
from telemetry.readers.hints import Hints
from telemetry.readers.payload import Payload
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import mapping_of, mappings_in, number_of, text_of, whole_of
from telemetry.readers.series import no_samples
from telemetry.readers.units import GIB
from telemetry.recording.observed import STEP_COLUMNS, Observed, add_up, of_line, rank_of
from telemetry.recording.recording import GPU, TIME, GpuIdentity, Recording

PARTS = 100
_MOST_S = 1e8  # three years: nobody profiles longer


@dataclass(slots=True)
class _Spans:
    """Stretches of time by begin and length, seconds, in any order."""

    begins: "array[float]" = field(default_factory=lambda: array("d"))
    lengths: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, begin_s: float, length_s: float) -> None:
        """Add a stretch."""
        self.begins.append(begin_s)
        self.lengths.append(length_s)

    def covered(self) -> Covered:
        """Return the union of all."""
        begins = np.array(self.begins, dtype=float)
        return Covered(begins, begins + np.array(self.lengths, dtype=float).clip(0.0))


@dataclass(slots=True)
class _DeviceTime:
    """What ran on the devices.

    Attributes:
        devices: by device, everything that ran on it.
        exchange: what exchanged data between GPUs, of all devices.
        kernels: all kernels, those of exchanges too.
        compute: the other kernels.
    """

    devices: dict[int, _Spans] = field(default_factory=lambda: defaultdict(_Spans))
    exchange: _Spans = field(default_factory=_Spans)
    kernels: _Spans = field(default_factory=_Spans)
    compute: _Spans = field(default_factory=_Spans)

    def add(self, device: int, begin_s: float, length_s: float, kernel: str | None) -> None:
        """Add what ran; `kernel` is its name, None for copies and fills."""
        self.devices[device].add(begin_s, length_s)
        if kernel is None:
            return
        is_exchange = any(word in kernel.lower() for word in ("nccl", "rccl"))
        self.kernels.add(begin_s, length_s)
        (self.exchange if is_exchange else self.compute).add(begin_s, length_s)

    def busy(self) -> dict[int, Covered]:
        """Return when each device was busy."""
        return {device: spans.covered() for device, spans in sorted(self.devices.items())}


def samples_of(
    busy: dict[int, Covered], begin_s: float, end_s: float, builder: RecordingBuilder
) -> pd.DataFrame:
    """Return the busy share of each device in equal parts of a window, at their begins."""
    edges = np.linspace(begin_s, end_s, PARTS + 1)
    frames = []
    for device, covered in busy.items():
        share = covered.within(edges[:-1], edges[1:]) / ((end_s - begin_s) / PARTS)
        share = np.minimum(share, 1.0)  # sums of binary fractions
        builder.column(f"GPU {device}: busy share", "util.kernel_time", 1.0, share)
        builder.column(f"GPU {device}: busy [s]", None, None, np.array([covered.total]))
        frames.append(
            pd.DataFrame({TIME: edges[:-1], GPU: f"index {device}", "util.kernel_time": share})
        )
    return pd.concat(frames, ignore_index=True) if frames else no_samples()


def plausible(begin_s: float, length_s: float) -> bool:
    """Return whether a time and a length are some that a profiler measures."""
    return 0.0 <= length_s < _MOST_S and 0.0 <= begin_s < 1e11  # noqa: PLR2004 - the year 5138


_ON_DEVICE = {"kernel": True, "gpu_memcpy": False, "gpu_memset": False, "memcpy": False}
_STEP, _LOADER, _OPTIMIZER = "ProfilerStep#", "enumerate(DataLoader)#", "Optimizer.step#"
_HOST = frozenset(("user_annotation", "cpu_op", "operator", "python_function"))
_MICRO = 1e-6
_EPOCH_S = 1e9  # since 2001: older profilers write the time of day, newer ones that of a clock
_MOST_HEADER = 200_000
_MOST_BYTES = 1 << 50  # of a device's memory

_About = Mapping[int, tuple[object, object]]  # of each device its name, and its memory in bytes


@dataclass(slots=True)
class _Trace:
    """What was found; times in seconds, lists of begin and length."""

    device: _DeviceTime = field(default_factory=_DeviceTime)
    steps: dict[str, tuple[float, float]] = field(default_factory=dict)
    loader: _Spans = field(default_factory=_Spans)
    optimizer: _Spans = field(default_factory=_Spans)
    # Seconds by class.
    optimizers: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    first_s: float = np.inf
    last_s: float = -np.inf


def read_kineto(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return busy shares over time, and the steps, of a trace; the events are streamed.

    A GPU is busy while a kernel, copy or fill runs on it. Steps are the `ProfilerStep#N` of the
    host; without any, the window goes from the first event to the last. The profiler itself costs
    time, most of all where stacks and shapes are recorded.

    Raises:
        InputError: it holds neither work of a GPU nor a step.
    """
    payload, trace = builder.payload, _Trace()
    for event in _events(payload, builder):
        builder.rows_read += 1
        _take(event, trace)
    if not trace.device.devices and not trace.steps:
        raise builder.empty_error()
    steps = _steps(trace)
    begin_s, end_s = (
        (float(steps["t_s"].iloc[0]), float(steps["t_s"].iloc[-1]))
        if steps is not None
        else (trace.first_s, trace.last_s)
    )
    builder.notes.append("a profiler costs time itself: steps are shorter without it.")
    if steps is None:
        builder.notes.append("no ProfilerStep in it: busy shares are of the whole trace.")
    samples = samples_of(trace.device.busy(), begin_s, max(end_s, begin_s + _MICRO), builder)
    return builder.recording(
        samples,
        _identities(trace.device, _about(payload.data)),
        observed=_observed(payload.data, steps, trace.optimizers),
        absolute=begin_s > _EPOCH_S,
    )


def _events(payload: Payload, builder: RecordingBuilder) -> Iterator[dict[str, Any]]:
    """Yield the events, one at a time; a trace that was cut ends where it was cut."""
    bare = payload.data.lstrip()[:1] == b"["
    prefix = "item" if bare else "traceEvents.item"
    try:
        for event in ijson.items(io.BytesIO(payload.data), prefix, use_float=True):
            if isinstance(event, dict):
                yield event
    except (ijson.JSONError, UnicodeDecodeError, ValueError, OverflowError, RecursionError):
        builder.leave_out("cut or damaged, and all behind it")


def _take(event: dict[str, Any], trace: _Trace) -> None:
    name, category = event.get("name"), event.get("cat")
    ts, dur = event.get("ts"), event.get("dur")
    if event.get("ph") != "X" or not isinstance(name, str) or not isinstance(category, str):
        return
    if not isinstance(ts, int | float) or not isinstance(dur, int | float):
        return
    begin_s, length_s = ts * _MICRO, dur * _MICRO
    if not plausible(begin_s, length_s):
        return
    kind = category.lower()
    if kind == "trace":  # the profiler's own span, begun before the first event
        return
    trace.first_s = min(trace.first_s, begin_s)
    trace.last_s = max(trace.last_s, begin_s + length_s)
    if kind in _ON_DEVICE:
        arguments = event.get("args")
        named = arguments.get("device") if isinstance(arguments, dict) else None
        device = whole_of(named if named is not None else event.get("pid"))
        trace.device.add(device or 0, begin_s, length_s, name if _ON_DEVICE[kind] else None)
    elif kind in _HOST:
        if name.startswith(_STEP):
            trace.steps.setdefault(name, (begin_s, length_s))
        elif name.startswith(_LOADER):
            trace.loader.add(begin_s, length_s)
        elif name.startswith(_OPTIMIZER):
            trace.optimizer.add(begin_s, length_s)
            trace.optimizers[name.removeprefix(_OPTIMIZER).removesuffix(".step")] += length_s


def _steps(trace: _Trace) -> pd.DataFrame | None:
    """Return the steps as rows, behind a row of none that says when the first one began."""
    spans = sorted(step for step in trace.steps.values() if step[1] > 0)
    if not spans:
        return None
    begins = np.array([begin for begin, _ in spans])
    lengths = np.array([length for _, length in spans])
    kernels, exchange, compute = (
        spans.covered().within(begins, begins + lengths)
        for spans in (trace.device.kernels, trace.device.exchange, trace.device.compute)
    )
    exposed = np.minimum(np.maximum(kernels - compute, 0.0), exchange)
    rows = pd.DataFrame(
        {
            **dict.fromkeys(STEP_COLUMNS, np.nan),
            "t_s": begins + lengths,
            "step": np.arange(1, len(spans) + 1),
            "n": 1,
            "step_s": lengths,
            "data_wait_s": _inside(trace.loader, begins, lengths),
            "optimizer_s": _inside(trace.optimizer, begins, lengths),
            "comm_s": exposed if trace.device.exchange.begins else np.nan,
        }
    )
    begin = pd.DataFrame({**dict.fromkeys(rows.columns, np.nan), "t_s": begins[:1], "n": 0})
    begin["step"] = 0
    return pd.concat([begin, rows], ignore_index=True)


def _inside(
    spans: _Spans, begins: NDArray[np.float64], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the time of each step in which spans ran; NaN where there are none at all."""
    inside = spans.covered().within(begins, begins + lengths)
    return inside if spans.begins else np.full(len(begins), np.nan)


def _observed(
    data: bytes, steps: pd.DataFrame | None, optimizers: Mapping[str, float]
) -> Observed | None:
    if steps is None:
        return None
    timed = steps[steps["n"] > 0]
    waits = timed["data_wait_s"]
    about = mapping_of(_header(data, b'"distributedInfo"'))
    rank, world = whole_of(about.get("rank")), whole_of(about.get("world_size"))
    wait_s = float(waits.mean()) if waits.notna().any() else None
    is_run = world is not None and world > 1
    means = float(timed["step_s"].mean()), wait_s
    ranks = (rank_of(rank, len(timed), *means),) if rank is not None and is_run else ()
    return Observed(
        framework="pytorch",
        counted_by="program",
        steps=steps,
        step_count=len(timed),
        step_times=add_up(of_line({"n": 1, "step_s": float(s)}) for s in timed["step_s"]),
        ranks=ranks,
        optimizer=min(optimizers, key=lambda name: optimizers[name], default=None),  # the innermost
        run=Run(id=f"trace of {world} ranks", world=world) if ranks else None,
    )


def _about(data: bytes) -> _About:
    """Return what the head of a trace says of its devices."""
    return {
        index: (item.get("name"), item.get("totalGlobalMem"))
        for item in mappings_in(_header(data, b'"deviceProperties"'))
        if (index := whole_of(item.get("id"))) is not None
    }


def _identities(device_time: _DeviceTime, about: _About) -> tuple[GpuIdentity, ...]:
    """Return who the devices are on which something ran."""
    return tuple(
        GpuIdentity(
            key=f"index {device}",
            index=device if device >= 0 else None,
            model=text_of(name),
            memory_gib=None if size is None or size >= _MOST_BYTES else size / GIB,
        )
        for device in sorted(device_time.devices)
        for name, total in [about.get(device, (None, None))]
        for size in [number_of(total)]
    )


def _header(data: bytes, key: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return the value of a key of the trace itself; it stands before or behind the events."""
    at = data.find(key)
    if at < 0:
        return None
    text = data[at + len(key) : at + len(key) + _MOST_HEADER].decode("utf-8", "replace")
    try:
        return json.JSONDecoder().raw_decode(text.lstrip(" \t\r\n:"))[0]
    except (ValueError, RecursionError):
        return None


_NANO = 1e-9
_WORK = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_KERNEL = _WORK[0]
_AT_ONCE = 10_000
# Of SQLite's own instructions: far above what reading the largest export takes.
_INSTRUCTIONS, _MOST_CALLS = 1_000_000, 5_000


def read_nsys(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return the busy share of each GPU over a report: `nsys export --type sqlite`.

    Raises:
        InputError: it is damaged, or holds no work of a GPU.
    """
    device_time = _DeviceTime()
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(builder.payload.data)
            # A table that is a view in truth may make a query go on without end.
            calls = count()
            database.set_progress_handler(lambda: next(calls) >= _MOST_CALLS, _INSTRUCTIONS)
            tables = _tables(database)
            for device, begin_s, length_s, kernel in _work(database, tables):
                if plausible(begin_s, length_s):
                    builder.rows_read += 1
                    device_time.add(device, begin_s, length_s, kernel)
                else:
                    builder.leave_out("time not readable")
            gpus = _identities(device_time, _nsys_gpus(database, tables))
    except (sqlite3.Error, OverflowError, ValueError, MemoryError) as error:
        reason = {"file": builder.name, "reason": str(error)}
        raise InputError(Message("read.nsys-damaged", **reason)) from None
    if not device_time.devices:
        raise builder.empty_error()
    busy = device_time.busy()
    begin_s = min(float(covered.edges[0]) for covered in busy.values())
    end_s = max(float(covered.edges[-1]) for covered in busy.values())
    builder.notes.append(
        "busy shares are from the first to the last work of a GPU; a profiler costs time itself."
    )
    samples = samples_of(busy, begin_s, max(end_s, begin_s + _NANO), builder)
    return builder.recording(samples, gpus, absolute=False)


def _tables(database: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the columns of each table; views are none."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    read = (*_WORK, "StringIds", "TARGET_INFO_GPU")
    return {
        name: {row[1] for row in database.execute(f"PRAGMA table_info({name})")}
        for (name,) in names
        if name in read
    }


def _work(
    database: sqlite3.Connection, tables: dict[str, set[str]]
) -> Iterator[tuple[int, float, float, str | None]]:
    """Yield device, begin and length in seconds, and the name of a kernel."""
    for table in _WORK:
        if not {"start", "end", "deviceId"} <= tables.get(table, set()):
            continue
        name, joined = "NULL", ""
        if "shortName" in tables[table] and {"id", "value"} <= tables.get("StringIds", set()):
            name, joined = "s.value", "LEFT JOIN StringIds s ON s.id = w.shortName"
        query = f'SELECT w.start, w."end", w.deviceId, {name} FROM {table} w {joined}'  # noqa: S608 - our own names
        cursor = database.execute(query)
        while rows := cursor.fetchmany(_AT_ONCE):
            for start, end, device, kernel_name in rows:
                if isinstance(start, int) and isinstance(end, int) and isinstance(device, int):
                    kernel = str(kernel_name or "") if table == _KERNEL else None
                    yield device, start * _NANO, (end - start) * _NANO, kernel


def _nsys_gpus(database: sqlite3.Connection, tables: dict[str, set[str]]) -> _About:
    """Return what a report says of its devices."""
    if not {"id", "name", "totalMemory"} <= tables.get("TARGET_INFO_GPU", set()):
        return {}
    rows = database.execute("SELECT id, name, totalMemory FROM TARGET_INFO_GPU")
    return {row[0]: (row[1], row[2]) for row in rows.fetchmany(_AT_ONCE)}
