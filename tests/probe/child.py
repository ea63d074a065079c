"""Starts programs with the probe in front of them, and reads what it wrote."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from telemetry.probe import APPLY, child_environment

STAND_IN = Path(__file__).parent / "stand_in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended, and its events.

    Attributes:
        code: exit code, negative for a signal.
        out: standard output.
        err: standard error.
        reached: process ids of the interpreters in which the probe started.
        events: of each process that wrote any, in order of the file names.
    """

    code: int
    out: str
    err: str
    reached: tuple[int, ...]
    events: tuple[tuple[dict[str, Any], ...], ...]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of one kind, of all processes."""
        return [event for file in self.events for event in file if event["event"] == kind]

    def total(self, field: str) -> float:
        """Return the sum of a field over the step lines in which it is known."""
        return sum(line[field] for line in self.of("step") if line[field] is not None)


def read_events(folder: Path) -> tuple[tuple[dict[str, Any], ...], ...]:
    """Return the events of each process; a partial last line is dropped."""
    files = []
    for path in sorted(folder.glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        files.append(tuple(json.loads(line) for line in lines))
    return tuple(files)


def read_reached(folder: Path) -> tuple[int, ...]:
    """Return the process ids in the file `reached`."""
    path = folder / "reached"
    return tuple(map(int, path.read_text(encoding="utf-8").split())) if path.exists() else ()


def run(
    folder: Path,
    *arguments: str,
    probe: bool = True,
    python: str = sys.executable,
    apply: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
    **environ: str,
) -> Ended:
    """Run a Python program with or without the probe, with the stand-in for PyTorch on its path.

    Args:
        folder: where the program runs; events go to a subfolder, emptied before.
        arguments: of Python.
        probe: whether the probe is put in front.
        python: the interpreter.
        apply: settings by action code, to be applied in the program.
        more: what the probe is told beside that: `experiment`, `trace`.
        environ: more of the environment.
    """
    events = folder / "events"
    shutil.rmtree(events, ignore_errors=True)
    events.mkdir()
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    env = {**clean, "PYTHONPATH": str(STAND_IN), "PYTHONDONTWRITEBYTECODE": "1", **environ}
    if apply is not None:
        told = {"actions": apply, **(more or {})}
        (events / APPLY).write_text(json.dumps(told), encoding="utf-8")
    if probe:
        env |= child_environment(env, events)
    done = subprocess.run(
        [python, *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ended(
        code=done.returncode,
        out=done.stdout,
        err=done.stderr,
        reached=read_reached(events),
        events=read_events(events),
    )
