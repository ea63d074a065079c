"""`gpucost profile` on a machine where others work too: what is the job's, and what is theirs."""

import subprocess
import sys
from pathlib import Path

import pytest

from planner.diagnose import diagnose
from planner.telemetry.hints import Hints
from planner.telemetry.sources import read_source

GPUCOST = str(Path(sys.executable).parent / "gpucost")


def test_a_sleep_is_not_blamed_on_its_neighbours() -> None:
    """Beside two busy loops of others, `sleep` is no job whose data loading fills the cores."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        subprocess.run(
            [GPUCOST, "profile", "--no-gpu", "--interval", "0.2s", "--", "sleep", "3"], check=True
        )
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    (profile,) = read_source("profile.json", Hints())
    assert profile.host is not None
    assert profile.host.cpu_util is not None
    assert profile.machine is not None
    assert profile.machine.cpu_util is not None
    assert profile.host.cpu_util.mean == pytest.approx(0.0, abs=0.05)
    assert (profile.machine.cpu_util.mean or 0.0) > (profile.host.cpu_util.mean or 0.0)
    assert diagnose(profile)[0].code == "unmeasured"
