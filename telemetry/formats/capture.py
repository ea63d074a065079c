"""Reads the capture of `gpucost profile`: written line by line, so it is whole up to a kill.

The first line says what was measured, with what interval and on which host. A `columns` line
declares a series (a GPU or the host) and gives it a number; rows are lists `[number, t_s, values]`.
A `facts` line says what became known later, as which GPUs are the job's; a later one replaces it.
A `folded` line is a block of rows of a long capture (`measure.block`). Lines of the probe carry
`event`; what a sampler that was killed had not taken from it lies in `probe_folder`, and is read
from there. A last line that was cut off is left out.
"""

import io
import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.kinds import SLOTS
from planner.profile.model import Machine, OtherGpu, Run
from pricing.errors import InputError
from pricing.message import Message
from telemetry.formats.serving import served
from telemetry.measure.capture_block import PARTS, Block, Point, block_of_json
from telemetry.measure.capture_events import event_lines, event_of, named
from telemetry.profiling.window import durations, statistics
from telemetry.readers.hints import Hints
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import json_of
from telemetry.readers.series import SampledSeries, no_samples
from telemetry.recording.events import together
from telemetry.recording.observed import MACHINE_IDENTITY, Observed
from telemetry.recording.recording import (
    CAPTURE_SCHEMA,
    EXTRA,
    GPU,
    GPU_USERS,
    JOB_GPUS,
    SERVING,
    TIME,
    GpuIdentity,
    Recording,
    Served,
)

_IDENTITY = ("key", "index", "uuid", "model", "memory_gib", "partition")
_HOST = "host"
_Folded = list[tuple[Block, pd.DataFrame]]
"""Blocks with the rows that they stand for."""


@dataclass(slots=True)
class _Lines:
    """The lines of a capture, sorted by what they are."""

    begin: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)
    series: dict[int, dict[str, Any]] = field(default_factory=dict)
    rows: "dict[int, array[float]]" = field(default_factory=lambda: defaultdict(lambda: array("d")))
    blocks: dict[int, _Folded] = field(default_factory=lambda: defaultdict(list))
    events: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    device_notes: list[str] = field(default_factory=list)
    read: int = 0
    damaged: int = 0


def read_capture(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return what a capture holds.

    Raises:
        InputError: it is not a capture, is of another version, or holds no reading.
    """
    builder.is_capture = True
    lines = _sorted_lines(builder.payload.data)
    if lines.begin.get("capture") != CAPTURE_SCHEMA:
        raise InputError(Message("read.not-a-capture", file=builder.name, schema=CAPTURE_SCHEMA))
    builder.rows_read += lines.read
    builder.leave_out("cut line", lines.damaged)
    builder.notes += dict.fromkeys((*lines.device_notes, *lines.notes))
    if not lines.end:
        builder.notes.append(Message("read.cut-off"))
        lines.events += unread_events(lines.begin.get("probe_folder"), lines.events)
    if lines.blocks:
        builder.notes.append(Message("read.folded"))
    facts = {**lines.begin, **lines.facts}
    samples, gpus = _gpus(lines, builder)
    machine = _machine(facts, samples, gpus)
    keys = _job_keys(facts, gpus)
    samples = samples[samples[GPU].isin(keys)].reset_index(drop=True)
    gpus = tuple(gpu for gpu in gpus if gpu.key in keys)
    observed = replace(_observed(lines, facts, gpus), machine=machine)
    return builder.recording(
        samples,
        gpus,
        host=_host(lines),
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
        item = json_of(text)
        if isinstance(item, list):
            lines.damaged += not _keep_row(lines, item)
        elif isinstance(item, dict):
            lines.damaged += not _keep_word(lines, item)
        else:
            lines.damaged += 1
    return lines


def _keep_row(lines: _Lines, item: list[Any]) -> bool:
    declared = lines.series.get(item[0]) if item and isinstance(item[0], int) else None
    numeric = all(v is None or isinstance(v, int | float) for v in item)
    if declared is None or not numeric or len(item) != len(declared["columns"]) + 2:
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
    lines.blocks[item["folded"]].append((block, unfold(block)))
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
        identity = {name: gpu.get(name) for name in _IDENTITY}
        key = str(identity.pop("key"))
        identities[key] = GpuIdentity(key=key, **identity)
        frame = _frame(lines, number, (*SLOTS, *EXTRA))
        if len(frame):
            frames.append(frame.assign(**{GPU: key}))
    if not frames:
        return no_samples(), tuple(identities.values())
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


def _frame(lines: _Lines, number: int, slots: tuple[str, ...] | None) -> pd.DataFrame:
    columns = [TIME, *(str(name) for name in lines.series[number]["columns"])]
    table = np.array(lines.rows.get(number, ()), dtype=float).reshape(-1, len(columns))
    frame = pd.DataFrame(table, columns=columns)
    if blocks := lines.blocks.get(number):
        frame = pd.concat([frame, join_blocks(blocks)])
        frame = frame.sort_values(TIME, kind="stable", ignore_index=True)
    return frame if slots is None else frame[[c for c in frame.columns if c in {TIME, *slots}]]


def _run(lines: _Lines) -> Run | None:
    """Return the run as its launcher named it; how many processes it has, the ranks know best."""
    begin = lines.begin.get("run")
    run = dict(begin) if isinstance(begin, dict) else {}
    for event in lines.events:
        if event.get("event") == "rank":
            run["world"] = event.get("world")
            run.setdefault("id", event.get("run"))
    named = Run(**{name: run.get(name) for name in ("id", "node", "world", "cpus")})
    return None if named == Run() else named


def _observed(lines: _Lines, facts: dict[str, Any], gpus: tuple[GpuIdentity, ...]) -> Observed:
    # The driver was asked what joins all GPUs that were read.
    is_single = facts.get(JOB_GPUS) is not None and sum(g.partition is None for g in gpus) == 1
    return replace(
        together(lines.events),
        name=facts.get("job"),
        cpu_cores=facts.get("cpu_cores"),
        ram_gib=facts.get("ram_gib"),
        identity={name: facts[name] for name in MACHINE_IDENTITY if facts.get(name)},
        interconnect="single" if is_single else facts.get("interconnect"),
        run=_run(lines),
    )


_OF_MACHINE = {
    "machine_gpus": "gpu_count",
    "machine_cores": "cpu_cores",
    "machine_ram_gib": "ram_gib",
}


def _machine(
    facts: dict[str, Any], samples: pd.DataFrame, gpus: Sequence[GpuIdentity]
) -> Machine | None:
    """Return the machine, with its GPUs that are not the job's; None where nothing is known."""
    sizes = {name: facts[fact] for fact, name in _OF_MACHINE.items() if facts.get(fact)}
    job_keys, users = _job_keys(facts, gpus), facts.get(GPU_USERS) or {}
    other_gpus = tuple(
        OtherGpu(
            index=gpu.index,
            uuid=gpu.uuid,
            gpu=gpu.model,
            users=tuple(users.get(gpu.key, ())),
            kernel_time=_mean(samples, gpu.key, "util.kernel_time"),
            used_gib=_mean(samples, gpu.key, "mem.used_gib"),
        )
        for gpu in gpus
        if gpu.key not in job_keys and gpu.partition is None
    )
    return Machine(**sizes, others=other_gpus) if sizes or other_gpus else None


def _job_keys(facts: dict[str, Any], gpus: Sequence[GpuIdentity]) -> set[str]:
    keys = {gpu.key for gpu in gpus}
    named = facts.get(JOB_GPUS)
    return keys if named is None else keys & set(named)


def _mean(samples: pd.DataFrame, key: str, slot: str) -> float | None:
    if slot not in samples:
        return None
    rows = samples.loc[(samples[GPU] == key) & samples[slot].notna(), [TIME, slot]]
    rows = rows.sort_values(TIME)
    figures = statistics(rows[slot].to_numpy(float), durations(rows[TIME].to_numpy(float)))
    return None if figures is None or figures.mean is None else round(figures.mean, 6)


def served_in(facts: Mapping[str, Any]) -> tuple[Served, ...]:
    """Return what the servers of the job told together; nothing of one that did not tell twice.

    A tally that was damaged tells nothing.
    """
    try:
        tallies = [
            series
            for i, tally in enumerate(facts.get(SERVING) or ())
            if tally["pages"] > 1
            for series in _series(tally, f"copy {i}")
        ]
        return served(tallies)[:1]
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def _series(tally: Mapping[str, Any], copy: str) -> Iterator[SampledSeries]:
    """Yield the first and the last point of each series; what grew did so from 0."""
    times = np.array([tally["from_s"], tally["to_s"]], dtype=float)
    for part in ("grown", "means"):
        for name, labels, value in tally[part]:
            first = 0.0 if part == "grown" else value
            yield SampledSeries(
                name=str(name),
                labels={**labels, "copy": copy},
                t_s=times,
                readings=np.array([first, value], dtype=float),
                counter=part == "grown",
            )


_PROBE_FOLDER = "gpucost-probe-"


def unread_events(folder: object, prior: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the events in the probe's folder that are not in the capture.

    Args:
        folder: as the capture names it; nothing is looked for elsewhere.
        prior: the events of the capture; each tells where the next one of its process begins.
    """
    if not isinstance(folder, str) or _PROBE_FOLDER not in folder:
        return []
    reached: dict[str, int] = {}
    for read in prior:
        process, at = str(read.get("process")), read.get("at")
        reached[process] = max(reached.get(process, 0), at if isinstance(at, int) else 0)
    return [
        json.loads(named(event, path.stem, end))
        for path in sorted(Path(folder).glob("*.jsonl"))
        for line, end in event_lines(path, reached.get(path.stem, 0))
        if (event := event_of(line)) is not None
    ]


ROWS_A_PART = 3
_ROWS = PARTS * ROWS_A_PART
# Of parts alike none comes first for being earlier: a noise would look like a slope.
_EVENLY = np.argsort(np.arange(PARTS) * 0.6180339887498949 % 1.0, kind="stable")


def unfold(block: Block) -> pd.DataFrame:
    """Return the rows of a block: `t_s` and the readings, NaN where something was not read."""
    columns: dict[str, NDArray[np.float64]] = {}
    columns[TIME] = np.asarray(block.begin_s + np.arange(_ROWS) * (block.length_s / _ROWS))
    for name, points in block.points.items():
        columns[name] = _in_time(points, block.means[name])
    for name, counts in block.counts.items():
        columns[name] = np.full(_ROWS, np.nan)
        columns[name][::ROWS_A_PART] = [np.nan if v is None else v for v in counts]
    return pd.DataFrame(columns)


def join_blocks(blocks: _Folded) -> pd.DataFrame:
    """Return the rows of the blocks of one series, with the extremes of all.

    Args:
        blocks: at least one, each with its rows.
    """
    table = pd.concat([rows for _, rows in blocks], ignore_index=True)
    names = sorted(map(str, table))
    for name in names:
        points = [block.points[name] for block, _ in blocks if block.points.get(name)]
        if points and table[name].notna().any():
            table.loc[table[name].idxmin(), name] = min(part[0][0] for part in points)
            table.loc[table[name].idxmax(), name] = max(part[-1][0] for part in points)
    return table[names]


def _in_time(points: Sequence[Point], means: Sequence[float | None]) -> NDArray[np.float64]:
    """Return values with the distribution of the points, in the order of the parts' means."""
    rows = np.full((PARTS, ROWS_A_PART), np.nan)
    mean = np.array([np.nan if value is None else value for value in means])
    ordered = _EVENLY[np.argsort(mean[_EVENLY], kind="stable")]
    measured = ordered[np.isfinite(mean[ordered])]
    if len(measured) and points:
        rows[measured] = _ranked(points, len(measured) * ROWS_A_PART).reshape(-1, ROWS_A_PART)
    return rows.reshape(-1)


def _ranked(points: Sequence[Point], count: int) -> NDArray[np.float64]:
    """Return `count` quantiles of the points; the end of the longer tail makes the means equal."""
    values, weights = np.array(points, dtype=float).T
    reached = np.cumsum(weights) / weights.sum()
    ranks = (np.arange(count) + 0.5) / count
    quantiles = values[np.minimum(np.searchsorted(reached, ranks), len(values) - 1)]
    missing = float(np.average(values, weights=weights)) * count - float(quantiles.sum())
    end = -1 if missing > 0 else 0
    quantiles[end] = min(max(quantiles[end] + missing, values[0]), values[-1])
    return np.asarray(quantiles, dtype=float)
