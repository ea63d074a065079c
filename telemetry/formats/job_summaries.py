"""Reads what a job came to: DCGM's own account of it, and meters of energy (Zeus, CodeCarbon)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from planner.profile.kinds import SLOTS
from planner.profile.model import Statistics
from pricing.message import Message
from telemetry.readers import clock
from telemetry.readers.column_names import names_of
from telemetry.readers.csv_text import number_in
from telemetry.readers.devices import DeviceRow, device_recording
from telemetry.readers.hints import Hints
from telemetry.readers.ledger import MEMORY, XID, findings
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import csv_rows, whole_of
from telemetry.recording.recording import Recording

_FORM = "dcgm-job"
_PARTS = {"avg": "mean", "max": "max", "min": "min"}
_ENERGY, _ENERGY_METER = "energy.total_j", "counter.energy_j"
_ERRORS = ("doublebiteccerrors", "xid")


@dataclass(slots=True)
class _Summary:
    """One GPU of one job: figures by folded name and part (`mean`, `min`, `max`)."""

    job: str | None = None
    host: str | None = None
    index: int | None = None
    start: str | None = None
    length_s: float | None = None
    figures: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def device(self) -> str:
        return f"{self.host or ''} index {self.index}"

    def statistics(self) -> dict[str, Statistics]:
        """Return what is known of each slot."""
        parts: dict[str, dict[str, float]] = defaultdict(dict)
        for (name, part), value in sorted(self.figures.items()):
            holds = names_of(_FORM).get(name)
            if holds is not None and holds.scale is not None:
                slot = _ENERGY if holds.target == _ENERGY_METER else holds.target
                high = SLOTS[slot].high
                figure = value * holds.scale
                if value >= 0 and (high is None or figure <= high):
                    parts[slot].setdefault(part, figure)
        energy = parts.get(_ENERGY, {}).get("max")
        if energy is not None:
            parts[_ENERGY]["mean"] = energy
            if self.length_s:
                parts["power.board_w"].setdefault("mean", energy / self.length_s)
        return {slot: Statistics(**_consistent(figures)) for slot, figures in parts.items()}


def _consistent(figures: dict[str, float]) -> dict[str, float]:
    """Return figures without a least value above the mean, or a greatest one below it."""
    mean = figures.get("mean")
    if mean is None:
        return figures
    return {
        part: value
        for part, value in figures.items()
        if (part != "min" or value <= mean) and (part != "max" or value >= mean)
    }


def read_statistics(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the figures of each GPU in the answer of `dcgmi stats`.

    Raises:
        InputError: no GPU is in it.
    """
    summaries: list[_Summary] = []
    job: str | None = None
    for line in builder.text.splitlines():
        if named := re.search(r"statistics for job:?\s*(\S+?)\.?\s*$", line):
            job = named[1]
        if gpu := re.match(r"\|\s*GPU ID:\s*(\d{1,4})\b", line):
            summaries.append(_Summary(job=job, index=int(gpu[1])))
        cells = [cell.strip() for cell in line.strip(" |").split("|")]
        if summaries and len(cells) == 2:  # noqa: PLR2004 - a name and its value
            _take(summaries[-1], _folded(cells[0]), cells[1], builder)
    return _recording(builder, summaries, hints)


def _take(summary: _Summary, name: str, cell: str, builder: RecordingBuilder) -> None:
    if name == "starttime":
        summary.start = cell
    elif name.startswith("totalexecutiontime"):
        summary.length_s = number_in(cell)
    elif name in _ERRORS and (number_in(cell) or 0) > 0:
        kind = MEMORY if name == _ERRORS[0] else XID
        builder.health += findings([(f"GPU {summary.index}", kind, number_in(cell) or 0)])
    else:
        parts = re.findall(r"(Avg|Max|Min): *([\d.]+)", cell) or [("max", cell)]
        for part, text in parts:
            if (value := number_in(text)) is not None:
                summary.figures[name, _PARTS[part.lower()]] = value


def read_table(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the figures of each row: a GPU of a job, as clusters keep `dcgmi stats`.

    Raises:
        InputError: no row is complete.
    """
    summaries = []
    for cells in csv_rows(builder, "wrong number of fields"):
        row = {name.lower(): cell for name, cell in cells.items()}
        summary = _Summary(
            job=_first(row, ("id_job", "job_id", "jobid", "job")),
            host=_first(row, ("node", "hostname", "host")),
            index=whole_of((_first(row, ("gpu_id", "gpu", "index")) or "").removesuffix(".0")),
            start=_first(row, ("starttime", "start_time", "time_start")),
            length_s=number_in(row.get("totalexecutiontime_sec", "")),
        )
        for name, cell in row.items():
            match = re.fullmatch(r"(.*)_(avg|max|min)", name)
            value = number_in(cell)
            if value is not None:
                key = _folded(match[1] if match else name)
                summary.figures[key, _PARTS[match[2]] if match else "max"] = value
        summaries.append(summary)
    return _recording(builder, summaries, hints)


def _first(row: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((row[name].removesuffix(".0") for name in names if row.get(name)), None)


def _folded(name: str) -> str:
    text = re.sub(r"\(.*\)|_(pct|watts|bytes|joules|sec)$", "", name.lower())
    return re.sub(r"[^a-z]", "", text)


def _recording(builder: RecordingBuilder, summaries: list[_Summary], hints: Hints) -> Recording:
    complete = [summary for summary in summaries if summary.length_s and summary.statistics()]
    builder.rows_read += len(complete)
    builder.leave_out("job without a length or a figure", len(summaries) - len(complete))
    builder.notes.append("means over the life of a job, by DCGM's account: no quantile is known.")
    several = len({summary.job for summary in complete}) > 1
    return device_recording(
        builder,
        [row for summary in complete for row in _halves(summary, several=several)],
        hints,
        counted=True,
        active=True,
        timed=True,
        absolute=any(summary.start for summary in complete),
        summaries={
            (summary.job or "" if several else "", summary.device): summary.statistics()
            for summary in complete
        },
    )


def _halves(summary: _Summary, *, several: bool) -> list[DeviceRow]:
    """Return a row at the start and one half way, each of which stands for half of the life."""
    start, length_s = 0.0, summary.length_s or 0.0
    if summary.start:
        start = float(clock.parse(pd.Series([summary.start], dtype=object), None).t_s[0])
    means = {slot: s.mean for slot, s in summary.statistics().items() if slot != _ENERGY}
    row = DeviceRow(
        device=summary.device,
        cells={slot: repr(mean) for slot, mean in means.items() if mean is not None},
        index=summary.index,
        host=summary.host,
        job=summary.job if several else None,
    )
    return row.at(start, start + length_s / 2)


_INCOMPLETE = "row that is not complete"
_ENERGY_COLUMN = re.compile(r"gpu(\d{1,3})_energy")
_START, _LENGTH = "start_time", "elapsed_time"
_EPOCH, _POWER, _LIMIT = "time_per_epoch", "average_power", "power_limit"


def read_zeus(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the mean power of each window of Zeus; of a table of runs, each row as a job.

    Raises:
        InputError: no row is complete.
    """
    rows: list[DeviceRow] = []
    for cells in csv_rows(builder, _INCOMPLETE):
        builder.rows_read += 1
        devices = list(_windows(cells) if _START in cells else _zeus_run(cells))
        if not devices:
            builder.dropped[_INCOMPLETE] += 1
        rows += devices
    builder.notes.append("power is the mean of each window, from the energy that Zeus counted.")
    return device_recording(builder, rows, hints, counted=True, timed=True, active=True)


def _windows(cells: Mapping[str, str]) -> Iterator[DeviceRow]:
    start, length = number_in(cells.get(_START, "")), number_in(cells.get(_LENGTH, ""))
    if start is None or not length:
        return
    for column, cell in cells.items():
        gpu, energy = _ENERGY_COLUMN.fullmatch(column), number_in(cell)
        if gpu is None or energy is None:
            continue
        row = DeviceRow(cells={"power": repr(energy / length)}, index=int(gpu[1]))
        yield from row.at(start + 0.25 * length, start + 0.75 * length)


def _zeus_run(cells: Mapping[str, str]) -> list[DeviceRow]:
    length, power = number_in(cells.get(_EPOCH, "")), number_in(cells.get(_POWER, ""))
    if not length or power is None:
        return []
    job = " ".join(cell for name, cell in cells.items() if name not in (_EPOCH, _POWER))
    readings = {"power": repr(power), "limit": cells.get(_LIMIT, "")}
    return DeviceRow(cells=readings, index=0, job=job[:200]).at(0.25 * length, 0.75 * length)


_JOULES_A_KWH = 3.6e6
_MOST_GPUS = 1024
_PARTS_S, _MOST_PARTS = (3600.0, 60.0, 1.0), 20_000  # few lengths: copies have the same parts
_ROUNDED_S = 1.0  # the time of a row has no fraction of a second
# What CodeCarbon writes of the machine: runs that differ in one of these were not on the same.
_MACHINE = ("cpu_model", "cpu_count", "ram_total_size", "gpu_model", "gpu_count", "os", "region")
_MODELS = re.compile(r"(\d{1,4}) x ([^,]+)")


def read_codecarbon(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the mean power of each run of CodeCarbon's emissions.csv.

    Runs on one machine that are never at once are one job, in turn: there are as many jobs as runs
    at once. A run's time is that of its last writing, its length is in seconds, energy in kWh over
    all its GPUs. A run that was written several times (`flush`) has a row for each, which count on:
    the longest is taken. Energy 0 of a GPU says that it was not measured.

    Raises:
        InputError: no run measured a GPU.
    """
    rows = _codecarbon_rows(_longest_runs(builder), builder, hints)
    reasons = ", ".join(f"{why}: {count}" for why, count in sorted(builder.dropped.items()))
    builder.notes.append(
        "power is the mean of each run, from the energy that CodeCarbon counted over its GPUs."
    )
    return device_recording(
        builder,
        rows,
        hints,
        counted=True,
        empty=Message("read.codecarbon", reasons=reasons or Message("read.no-rows")),
        active=True,
        local_time=hints.tz is None,
    )


def _longest_runs(builder: RecordingBuilder) -> list[dict[str, str]]:
    runs: dict[str, dict[str, str]] = {}
    for number, run in enumerate(csv_rows(builder, _INCOMPLETE)):
        builder.rows_read += 1
        length = number_in(run.get("duration", ""))
        if not length:
            builder.dropped[_INCOMPLETE] += 1
            continue
        key = run["run_id"] = run.get("run_id") or str(number)
        earlier = runs.get(key)
        if earlier is not None:
            builder.dropped["row of a run that is written again"] += 1
        if earlier is None or length >= (number_in(earlier["duration"]) or 0.0):
            runs[key] = run
    return list(runs.values())


def _codecarbon_rows(
    runs: Sequence[Mapping[str, str]], builder: RecordingBuilder, hints: Hints
) -> list[DeviceRow]:
    texts = pd.Series([run.get("timestamp", "") for run in runs], dtype=object)
    ends = clock.parse(texts, hints.zone).t_s if len(runs) else np.empty(0)
    dated = [(float(end), run) for run, end in zip(runs, ends, strict=True) if np.isfinite(end)]
    measured = [(end, run) for end, run in dated if any(_run_devices(run, end, "", _PARTS_S[0]))]
    builder.leave_out("timestamp not readable", len(runs) - len(dated))
    builder.leave_out("run whose GPUs were not measured", len(dated) - len(measured))
    lanes = _in_turn(measured)
    names = [_projects(lane) for lane in lanes]
    least_s = sum(_length_s(run) for _, run in measured) / _MOST_PARTS
    part_s = min((part for part in _PARTS_S if part >= least_s), default=_PARTS_S[0])
    rows: list[DeviceRow] = []
    for lane, job in zip(lanes, names, strict=True):
        if names.count(job) > 1:
            job = f"{job}-{lane[0][1]['run_id'][:8]}"  # noqa: PLW2901 - told apart by its first run
        if len(lane) > 1:
            builder.notes.append(Message("read.runs-in-turn", n=len(lane), job=job))
        rows += [row for end, run in lane for row in _run_devices(run, end, job, part_s)]
    return rows


_Run = tuple[float, Mapping[str, str]]
"""When a run ended, and what CodeCarbon says of it."""


def _projects(runs: Iterable[_Run]) -> str:
    return "+".join(dict.fromkeys(run.get("project_name") or "run" for _, run in runs))


def _length_s(run: Mapping[str, str]) -> float:
    return number_in(run.get("duration", "")) or 0.0


def _in_turn(runs: Iterable[_Run]) -> list[list[_Run]]:
    """Return the runs by the GPUs that they can be of: one after the other on one machine."""
    lanes: list[list[_Run]] = []
    for end, run in sorted(runs, key=lambda item: item[0] - _length_s(item[1])):
        machine = [run.get(name) for name in _MACHINE]
        free = (
            lane
            for lane in lanes
            if lane[-1][0] <= end - _length_s(run) + _ROUNDED_S
            and [lane[-1][1].get(name) for name in _MACHINE] == machine
        )
        lane = next(free, [])
        lanes += [] if lane else [lane]
        lane.append((end, run))
    return lanes


def _run_devices(
    run: Mapping[str, str], end: float, job: str, part_s: float
) -> Iterator[DeviceRow]:
    """Yield two or more rows a GPU of a run, each for a part of it of about `part_s` seconds."""
    length, energy = number_in(run.get("duration", "")), number_in(run.get("gpu_energy", ""))
    models = [
        name.strip()
        for n, name in _MODELS.findall(run.get("gpu_model", ""))
        for _ in range(min(int(n), _MOST_GPUS))
    ]
    count = int(number_in(run.get("gpu_count", "")) or len(models))
    if not energy or not length or not 0 < count <= _MOST_GPUS:
        return
    cells = {"power": repr(energy * _JOULES_A_KWH / length / count)}
    if busy := number_in(run.get("gpu_utilization_percent", "")):
        cells["busy"] = repr(busy)
    for index in range(count):
        model = models[index] if len(models) == count else None
        row = DeviceRow(
            device=f"{model or ''} index {index}",
            cells=cells,
            index=index,
            model=model,
            job=job[:200],
        )
        parts = max(2, round(length / part_s))
        yield from row.at(*(end - length * (k + 0.5) / parts for k in reversed(range(parts))))
