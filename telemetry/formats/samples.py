"""Reads samples and steps: those beside a profile, and the steps that a training log tells."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from planner.profile.kinds import GPU_OUT_OF_MEMORY, HOST_OUT_OF_MEMORY
from pricing.errors import InputError
from pricing.message import Message
from telemetry.formats.stored_runs import HOST, OURS
from telemetry.readers import records
from telemetry.readers.hints import Hints
from telemetry.readers.payload import Payload
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.series import no_samples
from telemetry.recording.observed import PAUSES, STEP_COLUMNS, Observed, Pause, add_up, of_line
from telemetry.recording.recording import GPU, TIME, GpuIdentity, Recording

# `3`, `3/1g.10gb`; with the number of its machine, where a run has several: `1/3`, `1/3/1g.10gb`.
_DEVICE = re.compile(r"(?:(\d+)/)?(\d+)(?:/(\D*\d+[a-z].*))?")
_ANSWER = "SELECT * FROM read_parquet(?) ORDER BY t_s, gpu"


def read_samples(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return the samples beside a profile, `NAME.samples.parquet`: of every device and the host.

    Raises:
        InputError: the file is damaged, or has other columns.
    """
    frame = _frame(builder.payload)
    strange = sorted(set(frame.columns) - OURS)
    if strange or not {TIME, GPU} <= set(frame.columns):
        shown = ", ".join(strange or frame.columns)
        raise InputError(Message("read.other-parquet", file=builder.name, columns=shown[:200]))
    builder.rows_read = len(frame)
    timed = frame[frame[TIME].notna()]
    if len(timed) < len(frame):
        builder.dropped["no time"] += len(frame) - len(timed)
    columns = [str(c) for c in timed.columns if not str(c).startswith(HOST)]
    samples = timed[timed[GPU].notna()][columns]
    for slot in (c for c in columns if c not in {TIME, GPU}):
        builder.column(slot, slot, 1.0, samples[slot].to_numpy(dtype=float))
    gpus = tuple(_identity(key) for key in sorted(samples[GPU].unique()))
    return builder.recording(
        samples,
        gpus,
        host=_host(timed, builder, {gpu.host for gpu in gpus}),
        mig=any(gpu.partition for gpu in gpus),
    )


def _frame(payload: Payload) -> pd.DataFrame:
    """Return the table; the library reads files, and the bytes may be of a packed one."""
    import duckdb  # noqa: PLC0415 - only where there is such a file

    with TemporaryDirectory(prefix="gpucost-") as folder:
        file = Path(folder, "samples.parquet")
        file.write_bytes(payload.data)
        try:
            with duckdb.connect() as engine:
                frame: pd.DataFrame = engine.execute(_ANSWER, [str(file)]).df()
                return _numbers(frame)
        except (duckdb.Error, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0][:200].replace(str(file), payload.name)
            raise InputError(
                f"{payload.name}: damaged samples ({reason}). Copy the file again."
            ) from None


def _numbers(frame: pd.DataFrame) -> pd.DataFrame:
    floats = {c: float for c in frame if c != GPU and c in OURS}
    typed = frame.astype(floats)
    if GPU in typed:
        typed[GPU] = typed[GPU].astype(object).where(typed[GPU].notna(), None)
        typed[GPU] = typed[GPU].map(lambda cell: cell if cell is None else str(cell))
    return typed


def _identity(key: str) -> GpuIdentity:
    match = _DEVICE.fullmatch(key)
    if match is None:
        return GpuIdentity(key=key)
    machine, index, partition = match.groups()
    return GpuIdentity(key=key, index=int(index), partition=partition, host=machine)


def _host(
    timed: pd.DataFrame, builder: RecordingBuilder, machines: Iterable[str | None]
) -> pd.DataFrame | None:
    """Return the host's readings, which stand beside each device's; None without any.

    Of several machines they cannot be told apart from one another's.
    """
    columns = [str(c) for c in timed.columns if str(c).startswith(HOST)]
    if not columns:
        return None
    if len(set(machines)) > 1:
        builder.notes.append("readings of several hosts are in it; none of them is used.")
        return None
    rows = timed[[TIME, *columns]].dropna(how="all", subset=columns)
    once = rows.drop_duplicates(TIME, ignore_index=True)
    return once.rename(columns=lambda c: c.removeprefix(HOST)) if len(once) else None


_AS_IT_IS = ("t_s", "step", "n", "loss")  # the others are means over the row's steps
_MOST = 1e15


def read_steps(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return the steps beside a profile, `NAME.steps.jsonl`; no reading of a device is among them.

    Raises:
        InputError: no step is in it.
    """
    lines = [line for line in builder.text.splitlines() if line.strip()]
    rows = [row for line in lines if (row := step_row(line)) is not None]
    builder.rows_read += len(rows)
    builder.leave_out("no step", len(lines) - len(rows))
    if not rows:
        raise builder.empty_error()
    return builder.recording(no_samples(), (), observed=observed_steps(rows))


def observed_steps(rows: Sequence[Mapping[str, float]]) -> Observed:
    """Return what rows of a steps file tell; the lengths of the first, of start-up, do not count.

    What a row's steps spent on an evaluation lies before them, on a checkpoint at their begin.
    """
    ordered = sorted(rows, key=lambda row: row["t_s"])
    pauses = []
    for row in ordered:
        begin_s = row["t_s"] - row.get("step_s", 0.0)
        for kind in PAUSES:
            length_s = row.get(f"{kind}_s", 0.0)
            start_s = begin_s - length_s if kind == "evaluation" else begin_s
            pauses += [Pause(kind=kind, start_s=start_s, length_s=length_s)] if length_s > 0 else []
    return replace(_observed(ordered, ordered[1:]), pauses=tuple(pauses))


def step_row(line: str) -> dict[str, float] | None:
    """Return the sums over a row's steps; None where that cannot be read."""
    item = records.mapping_of(records.json_of(line))
    numbers = {name: records.number_of(item.get(name)) for name in STEP_COLUMNS}
    row = {name: n for name, n in numbers.items() if n is not None and abs(n) < _MOST}
    n = row.setdefault("n", 1.0)
    if n < 0 or "t_s" not in row:
        return None
    return {name: v if name in _AS_IT_IS else v * n for name, v in row.items()}


def _observed(
    rows: Sequence[Mapping[str, float]], timed: Sequence[Mapping[str, float]]
) -> Observed:
    """Return the steps, and the lengths of those whose length counts."""
    frame = pd.DataFrame(rows, columns=list(STEP_COLUMNS)).astype(float)
    return Observed(
        steps=frame,
        step_count=int(sum(row["n"] for row in rows)),
        step_times=add_up(map(of_line, timed)),
    )


# `Epoch: [3][10/5004]  Time 1.02 (1.05)  Data 0.81 (0.84)` (PyTorch's examples, timm): of the last
# step and, in brackets, the mean of the epoch. `Epoch: [0] [20/1251] time: 0.4 data: 0.01` (DETR,
# MAE), `Epoch(train) [1][50/1000] time: 0.6 data_time: 0.03` (MMEngine) and `iter: 19 time: 0.6
# data_time: 0.03` (Detectron2), `iter: 10/90, iter_time: 0.6s, data_time: 0.03s` (YOLOX): the mean
# since the last line.
_LOGGED = re.compile(
    r"(?:\[ *(?P<step>\d+)/\d+ *[\](]|\biter: +(?P<iteration>\d+))[^\n]*?"
    r"\b(?:iter_)?time:?\s+(?P<time>\d+\.\d+)s?(?:, *[\d.]+/s)? *"
    r"(?:\( *(?P<mean_time>\d+\.\d+))?[^\n]*?"
    r"\bdata(?:_time)?:?\s+(?P<data>\d+\.\d+) *(?:\( *(?P<mean_data>\d+\.\d+))?",
    re.IGNORECASE,
)


_RAN_OUT = {
    GPU_OUT_OF_MEMORY: re.compile(
        r"\b(?:CUDA|HIP) out of memory|RESOURCE_EXHAUSTED: Out of memory"
    ),
    # The kernel kills what takes most memory; nothing else sends a loader's worker that signal.
    HOST_OUT_OF_MEMORY: re.compile(r"DataLoader worker \(pid[^\n]*killed by signal: Killed"),
}
# Before 2.1: `(GPU 0; 79.15 GiB total capacity; 76.80 GiB already allocated; 1.11 GiB free;`
_CAPACITY = re.compile(
    r"(?:capacity of )?(?P<total>[\d.]+) (?P<unit>[MG])iB(?: total capacity)?"
    r"(?: of which|;[^\n]{0,60}?allocated;) (?P<free>[\d.]+) (?P<free_unit>[KMG])iB (?:is )?free"
)
_GIB = {"K": 1 / 1024**2, "M": 1 / 1024, "G": 1.0}
_BATCH = re.compile(r"\b(?:per_device_train_batch_size|train_micro_batch_size_per_gpu)\W+(\d+)")


def read_training_log(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return the steps of each epoch that a training script logs, and how memory ended the run.

    What is before the first line of an epoch, start-up of its loader with it, is left out.

    Raises:
        InputError: no epoch has two lines, and memory did not run out.
    """
    # A program that tries a smaller batch after it goes on: then lines of steps follow.
    after = max((line.end() for line in _LOGGED.finditer(builder.text)), default=0)
    ended = next((end for end, says in _RAN_OUT.items() if says.search(builder.text, after)), None)
    batch = _BATCH.search(builder.text)
    rows, time_s, steps = list[dict[str, float]](), 0.0, 0.0
    for epoch in _logged_epochs(builder):
        of_all = [end - start for start, end in zip(epoch[0], epoch[-1], strict=True)]
        for n in (after[0] - before[0] for before, after in pairwise(epoch)):
            step_s, wait_s = (max(0.0, total_s) * n / of_all[0] for total_s in of_all[1:])
            time_s, steps = time_s + step_s, steps + n
            row = {"t_s": time_s, "step": steps, "n": n, "step_s": step_s, "data_wait_s": wait_s}
            rows.append(row)
    if not rows and ended is None:
        raise builder.empty_error()
    begin = {"t_s": 0.0, "n": 0.0}
    observed = _observed([begin, *rows], rows) if rows else Observed()
    of_gpu = int(batch[1]) if batch else None
    observed = replace(observed, ended=ended, batch_per_gpu=of_gpu, kind="training")
    if (full := _CAPACITY.search(builder.text, after)) is not None:
        total_gib, free_gib = (
            float(full[size]) * _GIB[full[unit]]
            for size, unit in (("total", "unit"), ("free", "free_unit"))
        )
        observed = replace(observed, memory_at_end_gib=(total_gib - free_gib, total_gib))
    return builder.recording(no_samples(), (), observed=observed, absolute=False)


def _logged_epochs(builder: RecordingBuilder) -> list[list[tuple[float, float, float]]]:
    """Return the lines by epoch: the step, and seconds of steps and of waits up to it."""
    epochs: list[list[tuple[float, float, float]]] = []
    for logged in _LOGGED.finditer(builder.text):
        builder.rows_read += 1
        step = float(logged["step"] or logged["iteration"])
        if not epochs or step <= epochs[-1][-1][0]:
            epochs.append([])
        before, *before_s = epochs[-1][-1] if epochs[-1] else (step, 0.0, 0.0)
        time_s, data_s = (
            float(logged[f"mean_{name}"]) * (step + 1.0)
            if logged[f"mean_{name}"]
            else spent_s + float(logged[name]) * (step - before)
            for name, spent_s in zip(("time", "data"), before_s, strict=True)
        )
        epochs[-1].append((step, time_s, data_s))
    return epochs


def read_trainer_state(builder: RecordingBuilder, _: Hints) -> Recording:
    """Return the steps and samples of a run of Hugging Face's Trainer: trainer_state.json.

    The entry at its end says how long it ran, evaluations between steps included; that of a
    checkpoint has none, and its entries tell no times.

    Raises:
        InputError: it does not say how long the run took.
    """
    state = records.documents(builder)[0]
    entries = records.mappings_in(state.get("log_history"))
    builder.rows_read += len(entries)
    for entry in reversed(entries):
        run_s, steps, samples_per_s = (
            records.number_of(entry.get(name)) or 0.0
            for name in ("train_runtime", "step", "train_samples_per_second")
        )
        if 0 < run_s < _MOST and 1 <= steps < _MOST and 0 <= samples_per_s * run_s < _MOST:
            samples = samples_per_s * run_s or None
            row = {"t_s": run_s, "step": steps, "n": steps, "step_s": run_s, "items": samples}
            rows = pd.DataFrame([{"t_s": 0.0, "n": 0.0}, row], columns=list(STEP_COLUMNS))
            observed = Observed(
                framework="transformers",
                kind="training",
                batch_per_gpu=records.whole_of(state.get("train_batch_size")) or None,
                steps=rows.astype(float),
                step_count=int(steps),
            )
            return builder.recording(no_samples(), (), observed=observed, absolute=False)
    raise builder.empty_error()
