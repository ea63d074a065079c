"""Reads the GPUs that NVML shows, step by step: the process that tests load the fake NVML into.

Standard input: {"gpus": [0], "slow_s": 1.0, "opened": 1, "child": false, "steps": [{"t": 0.0,
"pids": [1], "everything": false, "wait_s": 0}]}. `opened` times the GPUs are opened, the last time
to be read; with `child` a process is started, and its number is added to `pids`. The clock of the
reader and of the trace, the file FAKE_NVML_CLOCK, is the step's `t`.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from telemetry.measure.nvml_reader import GpuUnavailableError, NvmlReader


def main(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what the reader said at every step, and what it knows at the end."""
    now = Path(os.environ["FAKE_NVML_CLOCK"])
    now.write_text("0")
    gpus = None if asked.get("gpus") is None else tuple(asked["gpus"])
    for _ in range(1, asked.get("opened", 1)):
        NvmlReader(gpus).close()
    try:
        reader = NvmlReader(
            gpus, slow_s=asked.get("slow_s", 1.0), clock=lambda: float(now.read_text())
        )
    except GpuUnavailableError as error:
        return {"problems": error.problems}
    child = subprocess.Popen(["sleep", "60"]) if asked.get("child") else None
    children = {child.pid} if child else set()
    with closing(reader):
        told = []
        for step in asked["steps"]:
            now.write_text(str(step["t"]))
            time.sleep(step.get("wait_s", 0))
            pids = {*step.get("pids", ()), *children}
            rows = reader.read(pids, full=step.get("everything", False))
            told.append([{"gpu": row.key, **row.values} for row in rows])
    if child:
        child.kill()
    return {
        "rows": told,
        "notes": reader.notes,
        "lost": sorted(reader.lost),
        "driver": reader.driver,
        "interconnect": reader.interconnect,
        "identities": [asdict(who) for who in reader.identities],
    }


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))  # noqa: T201 - its answer
