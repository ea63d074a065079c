"""The last interval of a measurement and a full disk: measured, left out or named, never zero."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from telemetry.measure.recorder import _full_disk
from telemetry.probe import events_folder
from tests.gpucost.full_disk import full

__all__ = ["full"]  # a fixture
GPUCOST = str(Path(sys.executable).parent / "gpucost")
BURN = """
import os, sys, time
t = time.monotonic()
while time.monotonic() - t < float(sys.argv[1]): pass
started = int(open("/proc/self/stat").read().rsplit(")")[-1].split()[19])
life_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
print(time.process_time() / life_s)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["0.5", "0.8", "2"])
def test_a_short_burner_reads_what_its_own_clock_says(tmp_path: Path, seconds: str) -> None:
    """A program that fills a core reads as that core, however short.

    The machine is shared: what the program got over its life, its start-up included, is the truth,
    not 1.0; where that is less than half a core, a second is too short for any reading. Its end is
    noticed late on busy cores, and the mean is lower by up to a fourth; an interval that counts as
    nothing would make it a hundredth.
    """
    words = (GPUCOST, "profile", "--no-gpu", "--no-metadata", "-q", "--")
    ran = subprocess.run(
        [*words, sys.executable, "-c", BURN, seconds],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    if float(ran.stdout) < 0.5:
        pytest.skip("others have the cores: the program got less than half of one")
    profile = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
    cores = profile["host"]["cpu_util"]["mean"] * profile["hardware"]["cpu_cores"]
    assert 0.75 <= cores / float(ran.stdout) <= 1.12


def test_a_full_disk_is_named_and_avoided(full: Path, tmp_path: Path) -> None:
    """The probe writes where there is room; where its folder fills up, that is what is said."""
    elsewhere = events_folder({"TMPDIR": str(full), "TEMP": str(tmp_path)})
    assert elsewhere.startswith(str(tmp_path / "gpucost-probe-"))
    (sentence,) = _full_disk(full / "events" / "..")
    assert "No space left on device" in sentence
    assert _full_disk(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_caller_closed_changes_no_exit_code(closed: str, tmp_path: Path) -> None:
    """The code of the job is its own where a standard stream is closed."""
    words = f"profile --no-gpu --no-metadata -o {tmp_path}/p.json -- sh -c 'exit 7'"
    ran = subprocess.run(["sh", "-c", f"exec {GPUCOST} {words} {closed}"], check=False)
    assert ran.returncode == 7
