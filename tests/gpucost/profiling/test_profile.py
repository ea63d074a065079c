"""`gpucost profile` around a command: what passes through, and what survives a kill."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from planner.profile.model import Profile
from telemetry.readers.hints import Hints
from tests.gpucost.conftest import Call
from tests.telemetry.reading import read_source

GPUCOST = str(Path(sys.executable).parent / "gpucost")
STEPPING = str(Path(__file__).parent / "stepping.py")
FAST = ("--no-gpu", "--interval", "0.1s")
PATIENCE_S = 120.0
TOKEN = "hunter2secret"  # noqa: S105 - of nobody
UNTIL_FULL = """\
import os, time
path = "profile.capture.jsonl"
while not os.path.exists(path) or os.path.getsize(path) < %d:
    time.sleep(0.1)
time.sleep(0.5)
"""
UNTIL_READ = (
    "i=0; until grep -q cpu_util profile.capture.jsonl || [ $i -ge 1200 ]; "
    "do sleep 0.1; i=$((i + 1)); done 2>/dev/null"
)
"""For a shell: waits until the host was read once, however busy this machine is."""

no_device = pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")


def _profile(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [GPUCOST, "profile", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start `gpucost profile` in a session of its own; nothing of it outlives the test."""
    running: list[subprocess.Popen[bytes]] = []

    def started(*words: str, **more: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [GPUCOST, "profile", *words],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **more,
        )
        running.append(process)
        return process

    yield started
    for process in running:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        finally:
            process.wait()


def _wait_for(found: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def _steps_in(path: Path) -> int:
    return path.read_text(encoding="utf-8").count('"event":"step"') if path.exists() else 0


def _loaded(path: str) -> Profile:
    (profile,) = read_source(path, Hints())
    return profile


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -TERM $$"), -15),
        (("no-such-program-here",), 127),
        (("/",), 126),
    ],
)
def test_the_exit_code_is_the_commands_own(words: tuple[str, ...], code: int) -> None:
    """What the command exits with is what we exit with, or the same signal: 128 + N in a shell."""
    assert _profile(*FAST, "--", *words).returncode == code


Quiet = tuple[subprocess.CompletedProcess[str], Path]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    """A command with words of its own that was measured with -q in a folder, and the folder."""
    folder = tmp_path_factory.mktemp("quiet")
    (folder / "tmp").mkdir()
    command = (
        "sh",
        "-c",
        'echo "$@"; echo err >&2',
        "sh",
        "--interval",
        "-o",
        "x",
        "--token",
        TOKEN,
    )
    environ = {**os.environ, "TMPDIR": str(folder / "tmp")}
    return _profile(*FAST, "-q", *command, cwd=folder, env=environ), folder


def test_the_commands_output_is_left_alone(quiet: Quiet) -> None:
    """Standard output and, with -q, standard error are the command's, byte for byte.

    After the command begins no option is ours, with or without --.
    """
    ran, folder = quiet
    assert (ran.stdout, ran.stderr) == (f"--interval -o x --token {TOKEN}\n", "err\n")
    assert (folder / "profile.json").exists()


def test_arguments_of_the_command_are_not_kept(quiet: Quiet) -> None:
    """A token on the command line is in no file of ours."""
    files = [path for path in quiet[1].rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert TOKEN.encode() not in path.read_bytes()


def test_no_folder_is_left_in_tmp(quiet: Quiet) -> None:
    """The folder of the probe's events is gone after the measurement."""
    assert list((quiet[1] / "tmp").iterdir()) == []


def test_a_measured_job_is_ready_to_diagnose(empty_folder: Path) -> None:
    """Steps, waits and work are in the profile, its series beside it, the capture gone."""
    ran = _profile(*FAST, "-o", "p.json", "--", sys.executable, STEPPING, "40", "0.05")
    assert ran.returncode == 0, ran.stderr
    assert "\ndata-loading: " in ran.stderr
    assert {path.name for path in empty_folder.iterdir()} == {
        "p.json",
        "p.samples.parquet",
        "p.steps.jsonl",
    }
    profile = _loaded("p.json")
    assert profile.job.name == "stepping"
    assert profile.step is not None
    assert profile.step.count == 40
    assert profile.step.data_wait_s == pytest.approx(0.0375)
    assert profile.work is not None
    assert profile.work.rate_per_s == pytest.approx(16 / 0.05, rel=0.2)
    lines = (empty_folder / "p.steps.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 41))
    verdict = subprocess.run(
        [GPUCOST, "diagnose", "p.json", "-f", "json"], capture_output=True, text=True, check=True
    )
    assert json.loads(verdict.stdout)["jobs"][0]["findings"][0]["code"] == "data-loading"


def test_the_series_are_parquet(empty_folder: Path) -> None:
    """Readings can be opened with any Parquet tool, on one clock with the steps."""
    _profile(*FAST, "--", "sh", "-c", f"{sys.executable} {STEPPING} 10 0.05; {UNTIL_READ}")
    frame = duckdb.read_parquet(str(empty_folder / "profile.samples.parquet")).df()
    assert {"t_s", "gpu", "host.cpu_util", "host.ram_used_gib"} <= set(frame.columns)
    assert abs(frame["t_s"].max() - time.time()) < 60


@no_device
def test_without_a_gpu_the_command_is_not_started(empty_folder: Path) -> None:
    """It refuses before the command begins, and says how to go on without one."""
    ran = _profile("--", "touch", "started")
    assert ran.returncode == 125
    assert not (empty_folder / "started").exists()
    assert "--no-gpu" in ran.stderr
    assert "Traceback" not in ran.stderr


@no_device
def test_without_a_gpu_and_a_command_it_is_bad_usage() -> None:
    """Nothing of the user's was to run: an ordinary error."""
    assert _profile("--duration", "1s").returncode == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--interval", "0.01s"), "must be between 0.1s and 60s"),
        (("-o", "-"), "name a file"),
        (("-o", "nowhere/p.json"), "there is no folder nowhere"),
        (("--pid", "1", "--", "true"), "one of the two"),
        (("--pid", "4194304", "--no-gpu"), "no such process"),
        (("--gpus", "first", "--", "true"), "driver's indices"),
    ],
)
def test_bad_usage_says_what_to_type(words: tuple[str, ...], sentence: str, call: Call) -> None:
    """Every wrong option is refused with a sentence."""
    ran = call("profile", *words)
    assert ran.code == 2
    assert sentence in ran.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(
    start: Callable[..., subprocess.Popen[bytes]], empty_folder: Path, number: signal.Signals
) -> None:
    """A signal sent to us is the command's; it ends as it likes, and the profile is there."""
    script = empty_folder / "trap.py"
    script.write_text(
        "import signal, sys, time, pathlib\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(41))\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(60)\n",
        encoding="utf-8",
    )
    process = start(*FAST, "--", sys.executable, str(script))
    _wait_for((empty_folder / "ready").exists)
    process.send_signal(number)
    process.wait(timeout=PATIENCE_S)
    assert process.returncode == 41
    assert _loaded("profile.json").job.name == "trap"


def test_a_killed_command_leaves_its_profile(
    start: Callable[..., subprocess.Popen[bytes]], empty_folder: Path
) -> None:
    """Kill -9 of the job: we end the same way, and every step it told is in the profile."""
    process = start(*FAST, "--", sys.executable, STEPPING, "10000", "0.02")
    capture = empty_folder / "profile.capture.jsonl"
    _wait_for(lambda: _steps_in(capture) >= 20)
    told = re.search(r'"event":"hello".*?"pid":(\d+)', capture.read_text(encoding="utf-8"))
    assert told is not None
    os.kill(int(told[1]), signal.SIGKILL)
    process.wait(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL
    step = _loaded("profile.json").step
    assert step is not None
    assert (step.count or 0) >= 20


def _kill_ours(process: subprocess.Popen[bytes]) -> None:
    process.kill()


def _kill_both(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("kill", [_kill_ours, _kill_both])
def test_a_killed_measurement_leaves_its_capture(
    start: Callable[..., subprocess.Popen[bytes]],
    empty_folder: Path,
    kill: Callable[[subprocess.Popen[bytes]], None],
) -> None:
    """Kill -9 of us, or of us and the job: the capture loads, and the job is not disturbed."""
    process = start(*FAST, "--", sys.executable, STEPPING, "100000", "0.02")
    capture = empty_folder / "profile.capture.jsonl"
    _wait_for(lambda: _steps_in(capture) >= 20)
    kill(process)
    process.wait(timeout=PATIENCE_S)
    told = _steps_in(capture)
    profile = _loaded(str(capture))
    assert profile.step is not None
    _wait_for(lambda: '{"end":' in capture.read_text(encoding="utf-8"))
    assert told <= (profile.step.count or 0) <= _steps_in(capture)  # what it had not written comes
    assert profile.host is not None
    imported = subprocess.run([GPUCOST, "import", str(capture)], capture_output=True, check=False)
    assert imported.returncode == 0


@pytest.mark.parametrize(("most_bytes", "left"), [(8192, "profile.json"), (1024, None)])
def test_a_full_disk_costs_later_readings_only(
    empty_folder: Path, most_bytes: int, left: str | None
) -> None:
    """Files may not grow on: the job ends as it would, and what fitted loads."""

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    ran = _profile(
        *FAST,
        "--",
        sys.executable,
        "-c",
        UNTIL_FULL % most_bytes,
        preexec_fn=small_files,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # Python would cut its own caches off
    )
    assert "Traceback" not in ran.stderr
    assert "could not be written" in ran.stderr
    assert ran.returncode == 0, "the job's own, also where nothing could be kept of it"
    assert (empty_folder / "profile.json").exists() == (left is not None)
    assert _loaded(left or "profile.capture.jsonl").host is not None


def test_duration_ends_the_measurement_not_the_command(empty_folder: Path) -> None:
    """The command outlives the time asked for, and its exit code is passed on still."""
    ran = _profile(*FAST, "--duration", "1s", "--", "sh", "-c", "sleep 5; touch finished; exit 5")
    assert ran.returncode == 5
    assert (empty_folder / "finished").exists()
    window = _loaded("profile.json").window
    assert window is not None
    assert 0.7 < window.duration_s < 4.0


def test_a_running_process_can_be_watched(
    start: Callable[..., subprocess.Popen[bytes]], empty_folder: Path
) -> None:
    """--pid measures until the process ends."""
    capture = empty_folder / "profile.capture.jsonl"
    with subprocess.Popen(["sleep", "600"]) as process:
        measuring = start(*FAST, "--pid", str(process.pid), "--kind", "training")
        _wait_for(lambda: capture.exists() and capture.read_text("utf-8").count("\n") > 5)
        process.kill()
    assert measuring.wait(PATIENCE_S) == 0
    assert _loaded("profile.json").job.kind == "training"


def test_a_python_that_the_probe_cannot_reach_is_named() -> None:
    """Python -I ignores our path: the profile says that its steps are missing, not zero."""
    ran = _profile(*FAST, "--", sys.executable, "-I", "-c", "import time; time.sleep(5)")
    assert "-I" in ran.stderr
    assert "the probe is not in it" in ran.stderr
    assert _loaded("profile.json").step is None
