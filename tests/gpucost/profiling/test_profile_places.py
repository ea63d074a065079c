"""`gpucost profile` where little can be written: the job runs as ever, and its profile is said."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from telemetry.readers.hints import Hints
from tests.gpucost.profiling.test_profile import FAST, GPUCOST, UNTIL_READ
from tests.telemetry.reading import read_source
from tests.waiting import CEILING_S

# Nothing can be made there, not even by root.
READ_ONLY = "/proc"


def _profile(
    *words: str, cwd: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [GPUCOST, "profile", *words],
        cwd=cwd,
        env=None if environ is None else dict(environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=CEILING_S,
    )


def test_a_read_only_folder_sends_the_profile_elsewhere(tmp_path: Path) -> None:
    """The job runs and its code is passed on; where the profile lies is said twice."""
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = _profile(*FAST, "--", "sh", "-c", "sleep 4; exit 3", cwd=READ_ONLY, environ=environ)
    assert ran.returncode == 3, ran.stderr
    assert "cannot be written to" in ran.stderr
    written = re.search(r"wrote (\S+profile\.json)", ran.stderr)
    assert written is not None, ran.stderr
    (profile,) = read_source(written[1], Hints())
    assert profile.host is not None


def test_a_folder_that_cannot_be_written_to_is_refused_by_name() -> None:
    """A target that was asked for: said before the job starts."""
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    ran = _profile(*FAST, "-o", "/profile.json", "--", "touch", "started")
    assert ran.returncode == 2
    assert not Path("started").exists()


@pytest.mark.parametrize("folder", ["TMPDIR", "both"])
def test_no_room_for_steps_costs_the_steps_alone(folder: str, tmp_path: Path) -> None:
    """No folder for temporary files: the job runs, and its host is measured."""
    missing = str(tmp_path / "missing")
    environ = {**os.environ, "TMPDIR": missing}
    if folder == "both":
        environ |= {"TEMP": missing, "TMP": missing}
    ran = _profile(*FAST, "--", "sh", "-c", f"{UNTIL_READ}; exit 4", environ=environ)
    assert ran.returncode == 4, ran.stderr
    (profile,) = read_source("profile.json", Hints())
    assert profile.host is not None


@pytest.mark.parametrize("most", [8, 10, 40])
def test_few_descriptors_cost_the_profile_at_most(most: int) -> None:
    """A job may be allowed few open files: it runs, and its exit code is passed on."""
    command = f"ulimit -n {most}; exec {GPUCOST} profile --no-gpu -- sh -c 'echo ran; exit 3'"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (3, "ran\n"), ran.stderr
    written = Path("profile.json").exists()
    assert written or "gpucost: " in ran.stderr
    assert written or most < 40


def test_cron_is_enough(empty_folder: Path) -> None:
    """No HOME, a minimal PATH, no terminal, no input: measured all the same."""
    environ = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
    command = f"{GPUCOST} profile --no-gpu -- {sys.executable} -c 'print(7)' </dev/null"
    ran = subprocess.run(
        ["/bin/sh", "-c", command], env=environ, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "7\n"), ran.stderr
    assert (empty_folder / "profile.json").exists()


def test_without_a_gpu_there_is_no_verdict_on_one(empty_folder: Path) -> None:
    """A plain script of which no GPU was measured wastes none; where its time goes is said."""
    (empty_folder / "spin.py").write_text(
        "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end:\n    1 + 1\n"
    )
    command = f"{GPUCOST} profile --no-gpu -- {sys.executable} spin.py"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert "no GPU was measured, so there is no verdict on one" in ran.stderr
    assert "spin.py" in ran.stderr
    assert "wastes" not in ran.stderr
