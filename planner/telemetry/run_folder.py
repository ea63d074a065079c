"""Folders that are one source: a run of MLflow, with a file for each of its metrics."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from planner.telemetry.parsing.payload import MOST_BYTES, Payload, base_name
from pricing.errors import InputError

_META, _METRICS = "meta.yaml", "metrics"
_MOST_FILES = 1_000
_POINT_PARTS = 2  # time and value; MLflow writes the step behind them


def is_run_folder(path: str | Path) -> bool:
    """Return whether a folder is a run of MLflow: `meta.yaml` beside `metrics/`."""
    folder = Path(path)
    try:
        return (folder / _META).is_file() and (folder / _METRICS).is_dir()
    except (OSError, ValueError):
        return False


def run_payload(path: str | Path) -> Payload:
    """Return a run as the JSON that MLflow's metrics/get-history answers.

    The hash is of the files of its metrics, in the order of their names.

    Raises:
        InputError: its files cannot be read, or there are too many, or they are too large.
    """
    folder = Path(path)
    hashed = hashlib.sha256()
    points: list[dict[str, object]] = []
    size = 0
    files = sorted(one for one in (folder / _METRICS).rglob("*") if one.is_file())
    if len(files) > _MOST_FILES:
        raise InputError(
            f"{path}: over {_MOST_FILES:,} metrics are in this run; no run has as many."
        )
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            reason = (error.strerror or "unreadable").lower()
            raise InputError(f"{file}: cannot be read ({reason}).") from None
        size += len(data)
        if size > MOST_BYTES:
            raise InputError(f"{path}: over {MOST_BYTES >> 20} MiB of metrics are in this run.")
        hashed.update(data)
        key = file.relative_to(folder / _METRICS).as_posix()
        points += _points(key, data.decode("utf-8", "replace"))
    document = json.dumps({"metrics": points or [{"key": "none"}]})
    return Payload(
        name=_name(folder) or base_name(str(path)),
        path=str(path),
        data=document.encode(),
        sha256=hashed.hexdigest(),
    )


def _points(key: str, text: str) -> list[dict[str, object]]:
    lines = (line.split() for line in text.splitlines() if line.strip())
    return [
        {"key": key, "timestamp": parts[0], "value": parts[1]}
        if len(parts) >= _POINT_PARTS
        else {"key": key}
        for parts in lines
    ]


def _name(folder: Path) -> str | None:
    """Return the run's name: `run_name: ...` in its description."""
    try:
        text = (folder / _META).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    line = next((one for one in text.splitlines() if one.startswith("run_name:")), "")
    return line.partition(":")[2].strip().strip("'\"") or None
