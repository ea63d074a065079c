"""Reads traces of the PyTorch profiler (Kineto): how busy GPUs were, and where steps spent time.

A GPU is busy while a kernel, copy or fill runs on it. Steps are the `ProfilerStep#N` of the host;
without any, the window goes from the first event to the last. The profiler itself costs time, most
of all where stacks and shapes are recorded.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ijson
import numpy as np
import pandas as pd

from pricing.errors import InputError
from telemetry.formats.profilers.device_time import DeviceTime, plausible, samples_of
from telemetry.formats.profilers.intervals import union
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import text_of, whole_of
from telemetry.recording.observed import STEP_COLUMNS, Observed, RankSeen, add_up, of_line
from telemetry.recording.recording import GpuIdentity, Recording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload

FORMAT = "kineto"
_ON_DEVICE = {"kernel": True, "gpu_memcpy": False, "gpu_memset": False, "memcpy": False}
_STEP, _LOADER, _OPTIMIZER = "ProfilerStep#", "enumerate(DataLoader)#", "Optimizer.step#"
_HOST = frozenset(("user_annotation", "cpu_op", "operator", "python_function"))
_MICRO = 1e-6
_EPOCH_S = 1e9  # since 2001: older profilers write the time of day, newer ones that of a clock
_GIB = 1 << 30
_MOST_HEADER = 200_000


@dataclass(slots=True)
class _Trace:
    """What was found; times in seconds, lists of begin and length."""

    device: DeviceTime = field(default_factory=DeviceTime)
    steps: dict[str, tuple[float, float]] = field(default_factory=dict)
    loader: list[tuple[float, float]] = field(default_factory=list)
    optimizer: list[tuple[float, float]] = field(default_factory=list)
    first_s: float = np.inf
    last_s: float = -np.inf


def read(payload: Payload, hints: Hints) -> Recording:  # noqa: ARG001 - one signature for readers
    """Return busy shares over time, and the steps; the events are streamed.

    Raises:
        InputError: it holds neither work of a GPU nor a step.
    """
    builder = RecordingBuilder(payload, FORMAT)
    trace = _Trace()
    for event in _events(payload, builder):
        builder.rows_read += 1
        _take(event, trace)
    if not trace.device.begins and not trace.steps:
        raise InputError(
            f"{payload.name}: a trace with neither work of a GPU nor a step, so nothing was "
            "measured. Profile with ProfilerActivity.CUDA, and call prof.step() in the loop."
        )
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
        _gpus(payload.data, trace),
        observed=_observed(payload.data, steps),
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
        builder.rows_read += 1
        builder.dropped["cut or damaged, and all behind it"] += 1


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
        said = arguments.get("device") if isinstance(arguments, dict) else None
        device = whole_of(said if said is not None else event.get("pid"))
        trace.device.add(device or 0, begin_s, length_s, name if _ON_DEVICE[kind] else None)
    elif kind in _HOST:
        if name.startswith(_STEP):
            trace.steps.setdefault(name, (begin_s, length_s))
        elif name.startswith(_LOADER):
            trace.loader.append((begin_s, length_s))
        elif name.startswith(_OPTIMIZER):
            trace.optimizer.append((begin_s, length_s))


def _steps(trace: _Trace) -> pd.DataFrame | None:
    """Return the steps as rows, behind a row of none that says when the first one began."""
    known = sorted(step for step in trace.steps.values() if step[1] > 0)
    if not known:
        return None
    begins = np.array([begin for begin, _ in known])
    lengths = np.array([length for _, length in known])
    exchange, compute = trace.device.exchange(), trace.device.compute()
    exposed = None
    if trace.device.exchange_begins:
        both = union(
            [*trace.device.exchange_begins, *trace.device.compute_begins],
            [*trace.device.exchange_lengths, *trace.device.compute_lengths],
        )
        ends = begins + lengths
        exposed = both.within(begins, ends) - compute.within(begins, ends)
        exposed = np.minimum(np.maximum(exposed, 0.0), exchange.within(begins, ends))
    rows = pd.DataFrame(
        {
            **dict.fromkeys(STEP_COLUMNS, np.nan),
            "t_s": begins + lengths,
            "step": np.arange(1, len(known) + 1),
            "n": 1,
            "step_s": lengths,
            "data_wait_s": _inside(trace.loader, begins, lengths),
            "optimizer_s": _inside(trace.optimizer, begins, lengths),
            "comm_s": np.nan if exposed is None else exposed,
        }
    )
    begin = pd.DataFrame({**dict.fromkeys(rows.columns, np.nan), "t_s": begins[:1], "n": 0})
    begin["step"] = 0
    return pd.concat([begin, rows], ignore_index=True)


def _inside(
    spans: list[tuple[float, float]], begins: NDArray[np.float64], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the time of each step in which spans ran; NaN where there are none at all."""
    if not spans:
        return np.full(len(begins), np.nan)
    covered = union([begin for begin, _ in spans], [length for _, length in spans])
    return covered.within(begins, begins + lengths)


def _observed(data: bytes, steps: pd.DataFrame | None) -> Observed | None:
    if steps is None:
        return None
    made = steps[steps["n"] > 0]
    waits = made["data_wait_s"]
    about = _header(data, b'"distributedInfo"')
    rank = whole_of(about.get("rank")) if isinstance(about, dict) else None
    world = whole_of(about.get("world_size")) if isinstance(about, dict) else None
    seen = RankSeen(
        rank=rank,
        steps=len(made),
        mean_s=float(made["step_s"].mean()),
        data_wait_s=float(waits.mean()) if waits.notna().any() else None,
    )
    return Observed(
        framework="pytorch",
        counted_by="program",
        steps=steps,
        step_count=len(made),
        step_times=add_up(of_line({"n": 1, "step_s": float(s)}) for s in made["step_s"]),
        ranks=(seen,) if rank is not None and world is not None and world > 1 else (),
    )


def _gpus(data: bytes, trace: _Trace) -> tuple[GpuIdentity, ...]:
    said = _header(data, b'"deviceProperties"')
    about = {
        index: item
        for item in (said if isinstance(said, list) else [])
        if isinstance(item, dict) and (index := whole_of(item.get("id"))) is not None
    }
    return tuple(
        GpuIdentity(
            key=f"index {device}",
            index=device,
            model=text_of(about.get(device, {}).get("name")),
            memory_gib=_gib(about.get(device, {}).get("totalGlobalMem")),
        )
        for device in sorted(trace.device.begins)
    )


def _gib(total: object) -> float | None:
    known = isinstance(total, int) and not isinstance(total, bool) and 0 < total < 1 << 50
    return total / _GIB if known and isinstance(total, int) else None


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
