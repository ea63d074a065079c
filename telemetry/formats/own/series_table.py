"""Reads the samples that stand beside a profile, `NAME.samples.parquet`, as a source themselves."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.formats.stored_runs import HOST, OURS
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.recording.recording import GPU, TIME, GpuIdentity, Recording

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload

FORMAT = "gpucost-samples"
# `3`, `3/1g.10gb`; with the number of its machine, where a run has several: `1/3`, `1/3/1g.10gb`.
_DEVICE = re.compile(r"(?:(\d+)/)?(\d+)(?:/(\D*\d+[a-z].*))?")
_ANSWER = "SELECT * FROM read_parquet(?) ORDER BY t_s, gpu"


def read(payload: Payload, hints: Hints) -> Recording:  # noqa: ARG001 - one signature for readers
    """Return the readings of every device and of the host.

    Raises:
        InputError: the file is damaged, or has other columns.
    """
    frame = _frame(payload)
    strange = sorted(set(frame.columns) - OURS)
    if strange or not {TIME, GPU} <= set(frame.columns):
        shown = ", ".join(strange or frame.columns)
        raise InputError(
            f"{payload.name}: a Parquet table of other columns ({shown[:200]}), not samples of "
            "`gpucost profile`. Give it alone, as a file: gpucost import FILE.parquet."
        )
    builder = RecordingBuilder(payload, FORMAT)
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
    known = frame.astype(floats)
    if GPU in known:
        known[GPU] = known[GPU].astype(object).where(known[GPU].notna(), None)
        known[GPU] = known[GPU].map(lambda cell: cell if cell is None else str(cell))
    return known


def _identity(key: str) -> GpuIdentity:
    found = _DEVICE.fullmatch(key)
    if found is None:
        return GpuIdentity(key=key)
    machine, index, partition = found.groups()
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
