"""Reads the capture of `gpucost profile`: written line by line, so it is whole up to a kill.

The first line says what was measured, with what interval and on which host. A `columns` line
declares a series (a GPU or the host) and gives it a number; rows are lists `[number, t_s, values]`.
A `facts` line says what became known later, as which GPUs are the job's; a later one replaces it.
A `folded` line is a block of rows of a long capture (`measure.block`). Lines of the probe carry
`event`; what a sampler that was killed had not taken from it lies in `probe_folder`, and is read
from there. A last line that was cut off is left out.
"""

from __future__ import annotations

import io
import json
from array import array
from collections import defaultdict
from dataclasses import dataclass, field, replace
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from planner.profile.metrics import SLOTS
from planner.profile.model import Run
from pricing.errors import InputError
from telemetry.formats.own import capture_machine
from telemetry.formats.own.capture_serving import served_in
from telemetry.formats.own.folded import Unfolded, unfolded
from telemetry.formats.own.folded import together as joined
from telemetry.formats.own.left_events import left_events
from telemetry.measure.capture_block import block_of_json
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.recording.events import together
from telemetry.recording.observed import Observed
from telemetry.recording.recording import (
    CAPTURE_SCHEMA,
    EXTRA,
    GPU,
    TIME,
    GpuIdentity,
    Recording,
)

if TYPE_CHECKING:
    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload

FORMAT = "gpucost-capture"
_IDENTITY = ("key", "index", "uuid", "model", "memory_gib", "partition")
_HOST = "host"
_FOLDED = (
    "a long measurement: its first and its last readings are kept one by one, those between as "
    "distributions over stretches of time."
)
_FACTS = ("cpu_cores", "ram_gib")


@dataclass(slots=True)
class _Lines:
    """The lines of a capture, sorted by what they are."""

    begin: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)
    series: dict[int, dict[str, Any]] = field(default_factory=dict)
    rows: dict[int, array[float]] = field(default_factory=lambda: defaultdict(_floats))
    blocks: dict[int, list[Unfolded]] = field(default_factory=lambda: defaultdict(list))
    events: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    device_notes: list[str] = field(default_factory=list)
    read: int = 0
    damaged: int = 0


def read(payload: Payload, hints: Hints) -> Recording:  # noqa: ARG001 - one signature for readers
    """Return what a capture holds.

    Raises:
        InputError: it is not a capture, is of another version, or holds no reading.
    """
    lines = _sorted_lines(payload.data)
    if lines.begin.get("capture") != CAPTURE_SCHEMA:
        raise InputError(
            f"{payload.name}: its first line is not that of a capture ({CAPTURE_SCHEMA}), so it "
            "cannot be trusted. Measure again: gpucost profile -- COMMAND."
        )
    builder = RecordingBuilder(payload, FORMAT, ours=True)
    builder.rows_read = lines.read + lines.damaged
    if lines.damaged:
        builder.dropped["cut line"] += lines.damaged
    builder.notes += dict.fromkeys((*lines.device_notes, *lines.notes))
    if not lines.end:
        builder.notes.append(
            "the measurement was cut off; what it had measured until then is here."
        )
        lines.events += left_events(lines.begin.get("probe_folder"), lines.events)
    if lines.blocks:
        builder.notes.append(_FOLDED)
    facts = {**lines.begin, **lines.facts}
    samples, gpus = _gpus(lines, builder)
    machine = capture_machine.machine(facts, samples, gpus)
    samples, gpus = capture_machine.of_job(facts, samples, gpus)
    host = _host(lines)
    observed = replace(_observed(lines, facts, gpus), machine=machine)
    return builder.recording(
        samples,
        gpus,
        host=host,
        observed=observed,
        served=served_in(facts),
        mig=any(g.partition for g in gpus),
    )


def _sorted_lines(data: bytes) -> _Lines:
    lines = _Lines()
    for line in io.BytesIO(data):
        # A capture on a disk that was full may hold zeros.
        text = line.decode("utf-8", "replace").replace("\0", "").strip()
        if not text:
            continue
        try:
            item = json.loads(text)
        except (ValueError, RecursionError):
            lines.damaged += 1
            continue
        if isinstance(item, list):
            lines.damaged += not _keep_row(lines, item)
        elif isinstance(item, dict):
            lines.damaged += not _keep_word(lines, item)
        else:
            lines.damaged += 1
    return lines


def _keep_row(lines: _Lines, item: list[Any]) -> bool:
    declared = lines.series.get(item[0]) if item and isinstance(item[0], int) else None
    known = all(v is None or isinstance(v, int | float) for v in item)
    if declared is None or not known or len(item) != len(declared["columns"]) + 2:
        return False
    lines.rows[item[0]].extend(nan if v is None else v for v in item[1:])
    lines.read += 1
    return True


def _keep_block(lines: _Lines, item: dict[str, Any]) -> bool:
    if item["folded"] not in lines.series:
        return False
    try:
        block = block_of_json(item)
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    lines.blocks[item["folded"]].append(unfolded(block))
    lines.read += block.n
    return True


def _keep_word(lines: _Lines, item: dict[str, Any]) -> bool:
    if "capture" in item:
        lines.begin = lines.begin or item
    elif isinstance(item.get("columns"), list) and isinstance(item.get("id"), int):
        lines.series[item["id"]] = item
    elif isinstance(item.get("facts"), dict):
        lines.facts |= item["facts"]
    elif "folded" in item:
        return _keep_block(lines, item)
    elif "event" in item:
        lines.events.append(item)
    elif "note" in item:
        lines.notes.append(str(item["note"]))
    elif isinstance(item.get("device_notes"), list):
        lines.device_notes = [str(note) for note in item["device_notes"]]
    elif "end" in item:
        lines.end = item
    return True


def _gpus(lines: _Lines, builder: RecordingBuilder) -> tuple[pd.DataFrame, tuple[GpuIdentity, ...]]:
    frames, identities = [], {}
    for number, declared in sorted(lines.series.items()):
        gpu = declared.get("gpu")
        if not isinstance(gpu, dict):
            continue
        known = {name: gpu.get(name) for name in _IDENTITY}
        key = str(known.pop("key"))
        identities[key] = GpuIdentity(key=key, **known)
        frame = _frame(lines, number, (*SLOTS, *EXTRA))
        if len(frame):
            frames.append(frame.assign(**{GPU: key}))
    if not frames:
        empty = pd.DataFrame({TIME: np.empty(0), GPU: pd.Series(dtype=object)})
        return empty, tuple(identities.values())
    samples = pd.concat(frames, ignore_index=True)
    for slot in sorted(c for c in samples.columns if c not in (TIME, GPU)):
        builder.column(str(slot), str(slot), 1.0, samples[slot].to_numpy(dtype=float))
    return samples, tuple(identities.values())


def _host(lines: _Lines) -> pd.DataFrame | None:
    frames = [
        frame
        for number, declared in sorted(lines.series.items())
        if declared.get(_HOST) and len(frame := _frame(lines, number, None))
    ]
    return pd.concat(frames, ignore_index=True).sort_values(TIME) if frames else None


def _frame(lines: _Lines, number: int, wanted: tuple[str, ...] | None) -> pd.DataFrame:
    columns = [TIME, *(str(name) for name in lines.series[number]["columns"])]
    table = np.array(lines.rows.get(number, ()), dtype=float).reshape(-1, len(columns))
    frame = pd.DataFrame(table, columns=columns)
    if blocks := lines.blocks.get(number):
        frame = pd.concat([frame, joined(blocks)])
        frame = frame.sort_values(TIME, kind="stable", ignore_index=True)
    return frame if wanted is None else frame[[c for c in frame.columns if c in {TIME, *wanted}]]


def _run(lines: _Lines) -> Run | None:
    """Return the run as its launcher named it; how many processes it has, the ranks know best."""
    said = lines.begin.get("run")
    known = dict(said) if isinstance(said, dict) else {}
    for event in lines.events:
        if event.get("event") == "rank":
            known["world"] = event.get("world")
            known.setdefault("id", event.get("run"))
    run = Run(**{name: known.get(name) for name in ("id", "node", "world", "cpus")})
    return None if run == Run() else run


def _floats() -> array[float]:
    return array("d")


def _observed(lines: _Lines, facts: dict[str, Any], gpus: tuple[GpuIdentity, ...]) -> Observed:
    steps = together(lines.events)
    machine: dict[str, Any] = {name: facts.get(name) for name in _FACTS}
    return Observed(
        name=facts.get("job"),
        steps=steps.frame,
        step_count=steps.count,
        items=steps.items,
        pauses=steps.pauses,
        notes=steps.notes,
        identity=capture_machine.identity(facts),
        interconnect=capture_machine.interconnect(facts, gpus),
        run=_run(lines),
        **machine,
        **steps.facts,
    )
