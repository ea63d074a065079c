"""Processes that hold a job each, and a daemon of MPS of our own."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

RUN = Path(__file__).resolve().parent / "run.py"
READY_WITHIN_S = 75.0
_CONTROL = "nvidia-cuda-mps-control"


class Running:
    """A job's process that waits for what to run."""

    def __init__(self, name: str, environ: Mapping[str, str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, str(RUN), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
        )
        self._begun = b""

    def ask(self, at_s: float, ramp_s: float, seconds: float, seed: int) -> None:
        """Tell it to run."""
        line = json.dumps({"at_s": at_s, "ramp_s": ramp_s, "seconds": seconds, "seed": seed})
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def answer(self, within_s: float) -> dict[str, float | None] | None:
        """Return what it says next; None where it says nothing in time."""
        until_s = time.monotonic() + within_s
        while b"\n" not in self._begun:
            left_s = max(0.0, until_s - time.monotonic())
            if not select.select([self._process.stdout], [], [], left_s)[0]:
                return None
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self._begun += data
        line, self._begun = self._begun.split(b"\n", 1)
        return json.loads(line)

    def end(self) -> None:
        """End it."""
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(3.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def loaded(names: Sequence[str], mps: Path | None) -> Iterator[dict[str, Running]]:
    """Load all jobs; those that get ready in time."""
    with ExitStack() as ends:
        jobs = [Running(name, environment(mps)) for name in names]
        for one in jobs:
            ends.callback(one.end)
        until_s = time.monotonic() + READY_WITHIN_S
        told = {one.name: one.answer(max(0.1, until_s - time.monotonic())) for one in jobs}
        yield {one.name: one for one in jobs if told[one.name] is not None}


def environment(mps: Path | None) -> dict[str, str]:
    """Return the environment of jobs that share so."""
    if mps is None:
        return dict(os.environ)
    pipe, log = str(mps / "pipe"), str(mps / "log")
    return {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": log}


@contextmanager
def daemon(folder: Path) -> Iterator[Path | None]:
    """Start a daemon of MPS; None where it cannot be."""
    for name in ("pipe", "log"):
        (folder / name).mkdir(parents=True)
    environ = environment(folder)
    try:
        begun = subprocess.run(
            [_CONTROL, "-d"],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        yield None
        return
    try:
        yield folder if begun.returncode == 0 else None
    finally:
        subprocess.run(
            [_CONTROL], input="quit -t 5\n", env=environ, text=True, timeout=20, check=False
        )
