"""Writes the raw series beside a profile: readings as Parquet, steps as JSON lines."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pandas as pd

from gpucost.files.writing import write_file
from planner.plan_document.encode import IF_KNOWN, encode
from planner.profile.model import SAMPLES, STEPS, Profile, Series, Source
from pricing.errors import InputError
from telemetry.recording.recording import GPU, TIME

if TYPE_CHECKING:
    from pathlib import Path

    from telemetry.recording.recording import Recording

_SUMS = ("step_s", "data_wait_s", "h2d_s", "optimizer_s", "checkpoint_s", "evaluation_s", "items")
_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """A line of `profile.steps.jsonl`: steps in a row, their figures as means over them.

    Attributes:
        t_s: when the last of them ended, since 1970 UTC.
        step: number of the last of them.
        n: how many.
        step_s: length; left out where it was not measured, as what follows.
        data_wait_s: waiting for data.
        h2d_s: copying to the GPU.
        optimizer_s: in the optimizer's step.
        checkpoint_s: writing checkpoints.
        evaluation_s: evaluating.
        items: of the data, a step.
        loss: of the last of them.
    """

    t_s: float
    step: int
    n: int
    step_s: float | None = field(default=None, metadata=IF_KNOWN)
    data_wait_s: float | None = field(default=None, metadata=IF_KNOWN)
    h2d_s: float | None = field(default=None, metadata=IF_KNOWN)
    optimizer_s: float | None = field(default=None, metadata=IF_KNOWN)
    checkpoint_s: float | None = field(default=None, metadata=IF_KNOWN)
    evaluation_s: float | None = field(default=None, metadata=IF_KNOWN)
    items: float | None = field(default=None, metadata=IF_KNOWN)
    loss: float | None = field(default=None, metadata=IF_KNOWN)


def write_series(profile: Profile, recording: Recording, target: Path) -> Profile:
    """Write the series of a recording beside a profile and return the profile that names them.

    Args:
        profile: made from the recording.
        recording: what was measured; times are seconds since 1970 UTC.
        target: where the profile goes: `profile.json` gives `profile.samples.parquet` and
            `profile.steps.jsonl`.

    Raises:
        InputError: a file cannot be written.
    """
    samples = target.with_name(f"{target.stem}{SAMPLES}")
    _write_parquet(_wide(recording), samples)
    steps = recording.observed.steps if recording.observed is not None else None
    beside = target.with_name(f"{target.stem}{STEPS}")
    if steps is not None:
        write_file(str(beside), _step_lines(steps))
    sha256 = hashlib.sha256(samples.read_bytes()).hexdigest()
    source: Source = replace(recording.source, path=samples.name, sha256=sha256)
    return replace(
        profile,
        series=Series(samples=samples.name, steps=None if steps is None else beside.name),
        provenance=replace(profile.provenance, sources=(source,)),
    )


def _wide(recording: Recording) -> pd.DataFrame:
    """Return one row a device and instant; the host's readings stand beside them as `host.*`."""
    names = {
        gpu.key: f"{gpu.index if gpu.index is not None else gpu.key}"
        + (f"/{gpu.partition}" if gpu.partition else "")
        for gpu in recording.gpus
    }
    samples = recording.samples.assign(**{GPU: recording.samples[GPU].map(names).astype(object)})
    if recording.host is None:
        return samples
    host = recording.host.rename(columns=lambda c: c if c == TIME else f"host.{c}")
    if samples.empty:
        samples = pd.DataFrame(
            {TIME: host[TIME], GPU: pd.Series([None] * len(host), dtype="string")}
        )
    return samples.merge(host, on=TIME, how="left")


def _write_parquet(frame: pd.DataFrame, target: Path) -> None:
    import duckdb  # noqa: PLC0415 - only where a measurement ends

    draft = target.with_name(f".{target.name}.draft")
    try:
        with duckdb.connect() as database:
            database.from_df(frame).order("t_s, gpu").write_parquet(str(draft))
        draft.replace(target)
    except (duckdb.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        first = str(error).splitlines()[0]
        raise InputError(f"{target}: cannot be written: {first}.") from error


def _step_lines(steps: pd.DataFrame) -> str:
    """Return a line a row, means over its `n` steps; a figure that was not measured is left out."""
    lines = []
    for row in steps.to_dict("records"):
        n = row["n"]
        known = {name: round(row[name] / n, _DIGITS) for name in _SUMS if row[name] == row[name]}
        if row["loss"] == row["loss"]:
            known["loss"] = row["loss"]
        line = StepLine(t_s=round(row["t_s"], 6), step=int(row["step"]), n=int(n), **known)
        lines.append(json.dumps(encode(line), separators=(",", ":")))
    return "\n".join(lines) + "\n"
