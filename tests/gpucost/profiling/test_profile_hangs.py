"""Whatever becomes of the driver or of the sampler, the job, its signals and its end are untouched.

Limits are generous, for the machine may be busy; benchmarks/around.py prints the times themselves.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from telemetry.readers.hints import Hints
from tests.fake_nvml.machines import h100, machine
from tests.fake_nvml.scenario import CRASHES, HANGS, Failure, Scenario
from tests.gpucost.profiling.test_profile import GPUCOST, PATIENCE_S
from tests.telemetry.reading import read_source

UNKNOWN = 999
JOB = """\
import pathlib, signal, sys, time
def caught(*_):
    pathlib.Path("caught").write_text(repr(time.time()))
signal.signal(signal.SIGUSR1, caught)
pathlib.Path("ready").touch()
until = time.monotonic() + 120
while not pathlib.Path("caught").exists() and time.monotonic() < until:
    time.sleep(0.02)
time.sleep(float(sys.argv[1]))
pathlib.Path("ended").write_text(repr(time.time()))
sys.exit(41)
"""
LASTS_S = 3.0  # from the signal on
SOON_S = 60.0  # promised: signals 0.1 s, the end 1 s; what a hang holds up comes never

WORLDS = {
    "it never answers": [Failure(function="nvmlInitWithFlags", code=HANGS)],
    "it hangs in the middle": [Failure(function="*", device="0", code=HANGS, from_s=1.0)],
    "it hangs for a while": [
        Failure(function="*", device="1", code=HANGS, from_s=1.0, until_s=3.0)
    ],
    "it vanishes": [
        Failure(function="*", device=device, code=UNKNOWN, from_s=1.0) for device in ("0", "1")
    ],
    "it ends the process": [Failure(function="*", device="0", code=CRASHES, from_s=1.0)],
}


@pytest.fixture
def start(empty_folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the job, measured; nothing of it outlives the test."""
    (empty_folder / "job.py").write_text(JOB, encoding="utf-8")
    running: list[subprocess.Popen[str]] = []

    def started(environment: Mapping[str, str], *options: str) -> subprocess.Popen[str]:
        job = (sys.executable, "job.py", str(LASTS_S))
        words = [GPUCOST, "profile", "--interval", "0.2s", *options, "--", *job]
        process = subprocess.Popen(
            words,
            env=dict(environment),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        return process

    yield started
    for process in running:
        with process:
            for pid in (*_children(process.pid), process.pid):
                if process.poll() is None:
                    os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(word) for word in listed.split()]


def _sampler(pid: int) -> int:
    """The child that leads a session of its own."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for child in _children(pid):
            if os.getsid(child) == child:
                return child
        time.sleep(0.05)
    pytest.fail("no sampler was started")


def _said(path: str) -> float:
    """The time that a file of the job says."""
    until = time.monotonic() + PATIENCE_S
    while not (Path(path).exists() and Path(path).read_text(encoding="ascii")):
        assert time.monotonic() < until, f"{path} is not there"
        time.sleep(0.02)
    return float(Path(path).read_text(encoding="ascii"))


def _signal_and_end(process: subprocess.Popen[str]) -> str:
    """Signal the job through us and wait for the end; both come soon. Return what we said."""
    while not Path("ready").exists():
        time.sleep(0.05)
    time.sleep(2.0)
    sent_s = time.time()
    process.send_signal(signal.SIGUSR1)
    assert _said("caught") - sent_s < SOON_S
    _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 41
    assert time.time() - _said("ended") < SOON_S
    assert "Traceback" not in told
    return str(told)


@pytest.mark.parametrize("world", WORLDS)
def test_a_driver_in_trouble_disturbs_nothing(
    start: Callable[..., subprocess.Popen[str]],
    fake_nvml: Callable[[Scenario], dict[str, str]],
    world: str,
) -> None:
    """Signals and exit code pass at once, and what was measured is there."""
    scenario = Scenario(devices=machine(2, h100), failures=WORLDS[world])
    told = _signal_and_end(start(fake_nvml(scenario)))
    if world == "it ends the process":
        assert "the sampler ended unexpectedly" in told
        assert "profile.capture.jsonl" in told
    loaded = "profile.json" if Path("profile.json").exists() else "profile.capture.jsonl"
    (profile,) = read_source(loaded, Hints())
    assert profile.host is not None
    if "hangs" in world:
        assert profile.mean("util.kernel_time") == pytest.approx(0.62, abs=0.05)


def test_a_lying_driver_disturbs_nothing(
    start: Callable[..., subprocess.Popen[str]], fake_nvml: Callable[[Scenario], dict[str, str]]
) -> None:
    """Figures that cannot be are told from those that can; the job's end is the same."""
    lies: dict[str, Any] = {**h100(), "util.kernel_time": 4e7, "mem.used_gib": 1e6}
    _signal_and_end(start(fake_nvml(Scenario(devices={"0": lies}))))
    (profile,) = read_source("profile.json", Hints())
    shares = [
        g.metrics["util.kernel_time"].max for g in profile.gpus if "util.kernel_time" in g.metrics
    ]
    assert all(share is None or share <= 1.0 for share in shares)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_sampler_in_trouble_disturbs_nothing(
    start: Callable[..., subprocess.Popen[str]], number: signal.Signals
) -> None:
    """A sampler that is stopped or killed: we say so, keep the capture, and end as the job did."""
    process = start(os.environ, "--no-gpu")
    sampler = _sampler(process.pid)
    while not Path("profile.capture.jsonl").exists():
        time.sleep(0.05)
    time.sleep(1.0)
    os.kill(sampler, number)
    told = _signal_and_end(process)
    assert "the sampler" in told
    assert "gpucost import" in told
    (profile,) = read_source("profile.capture.jsonl", Hints())
    assert profile.host is not None
    begin = Path("profile.capture.jsonl").read_text(encoding="utf-8").partition("\n")[0]
    folder = Path(json.loads(begin)["probe_folder"])
    assert folder.is_dir(), "steps that the sampler had not taken are gone"
    shutil.rmtree(folder.parent)
    until = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{sampler}").exists():
        assert time.monotonic() < until, "the sampler is left behind"
        time.sleep(0.05)
