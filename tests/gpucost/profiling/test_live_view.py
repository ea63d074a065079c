"""The live view on a real terminal: the job's output above, ours below, nothing lost."""

import sys
from collections.abc import Callable
from contextlib import chdir
from itertools import dropwhile
from pathlib import Path

import pytest

from tests.fake_nvml.fixture import showing
from tests.fake_nvml.machines import h100, machine
from tests.fake_nvml.scenario import Scenario
from tests.gpucost.profiling.test_profile import GPUCOST, STEPPING
from tests.gpucost.terminal import ROWS, Terminal

JOB = (
    "import subprocess, sys\n"
    f"p = subprocess.Popen([sys.executable, {STEPPING!r}, '60', '0.05'])\n"
    "import time\n"
    "for i in range(60): print('line', i, flush=True); time.sleep(0.05)\n"
    "p.wait()\n"
    "import os\n"
    "while not os.path.exists('seen'): time.sleep(0.05)\n"
)
VERDICT = "75% of it waiting"


@pytest.fixture(scope="module")
def terminal(nvml_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A stepping job on two GPUs, measured in a terminal."""
    folder: Path = tmp_path_factory.mktemp("view")
    environment = showing(nvml_folder, folder, Scenario(devices=machine(2, h100)))
    environment |= {"TERM": "xterm-256color", "HOME": str(folder)}
    command = [GPUCOST, "profile", "--interval", "0.2s", "--", sys.executable, "-c", JOB]
    with chdir(folder):
        return Terminal(command, environment, VERDICT)


def test_the_view_lies_below_the_jobs_output(terminal: Terminal) -> None:
    """GPUs, step time and verdict stand in the last lines while the job prints above them."""
    assert terminal.code == 0
    last = "\n".join(line for view in terminal.views for line in view[-5:])
    assert "GPU 0" in last
    assert "GPU 1" in last
    assert "62%" in last
    assert "step 50.0 ms, 75% of it waiting for data" in last
    below = (
        [*dropwhile(lambda line: "gpucost profile," not in line, view)] for view in terminal.views
    )
    drawn = [view for view in below if view]
    assert drawn
    assert all("line " not in line for view in drawn[2:] for line in view)


def test_nothing_of_the_jobs_output_is_lost(terminal: Terminal) -> None:
    """Every line of the job is on the screen or above it, once and in order."""
    lines = [line for line in terminal.text if line.startswith("line ")]
    assert lines == [f"line {i}" for i in range(60)]


def test_a_screen_that_is_full_already_loses_nothing(
    fake_nvml: Callable[[Scenario], dict[str, str]],
) -> None:
    """Where the job has printed to the last line before we draw, its lines move up."""
    job = "import os, time\nfor i in range(40): print('line', i, flush=True)\n"
    job += "while not os.path.exists('seen'): time.sleep(0.05)\n"
    job += "for i in range(40, 44): print('line', i, flush=True)\n"
    environment = {**fake_nvml(Scenario(devices=machine(2, h100))), "TERM": "xterm-256color"}
    words = [GPUCOST, "profile", "--interval", "0.2s", "--", sys.executable, "-c", job]
    full = Terminal(words, environment, "gpucost profile,")
    assert any("gpucost profile," in line for view in full.views for line in view)
    lines = [line for line in full.text if line.startswith("line ")]
    assert lines == [f"line {i}" for i in range(44)]


def test_the_terminal_is_left_as_it_was(terminal: Terminal) -> None:
    """After the job the view is gone, and the whole screen scrolls again."""
    assert not any("so far:" in line for line in terminal.screen.display)
    assert terminal.screen.margins is None or terminal.screen.margins.bottom == ROWS - 1
