"""Loops with a known trouble: the first finding, the line it names, and the share of time.

The loops run on the CPU, and none waits by `sleep`. What a GPU would say meanwhile is stated beside
each, and told by the stand-in for the driver's library; steps, waits, stacks and the host are real.
The truth of a share is the program's own clock.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.fake_nvml.machines import a100
from tests.fake_nvml.scenario import Scenario

GPUCOST = ROOT / ".venv" / "bin" / "gpucost"
PROGRAM = Path(__file__).parent / "programs" / "troubled.py"
_QUIET = {"power.board_w": 85.0, "util.mem_controller": 0.02}
_WORKS = {"util.kernel_time": 0.97, "power.board_w": 370.0, "util.mem_controller": 0.55}


@dataclass(frozen=True, slots=True)
class Expected:
    """What is right.

    Attributes:
        code: of the first finding.
        cause: words that its cause must have.
        place: the function that it must name; "" where there is none to name.
        busy: what the GPU says; None: it works.
    """

    code: str
    cause: str = ""
    place: str = ""
    busy: float | None = 0.2


_PYTHON, _LOOP = "own Python", "prepares its input itself"
_FED = "every step waits for its data"
LOOPS = {
    "metric": Expected("host-bound", _PYTHON, "count_confusion"),
    "short-calls": Expected("host-bound", _PYTHON, "jitter"),
    "simulator": Expected("host-bound", _PYTHON, "play"),
    "isolated": Expected("host-bound", _PYTHON, "play"),
    "routing": Expected("host-bound", _PYTHON, "choose_routes"),
    "unpacking": Expected("data-loading", _LOOP, "next_rows"),
    "numpy": Expected("data-loading", _LOOP, "shuffle_numpy"),
    "csv": Expected("data-loading", _LOOP, "read_csv"),
    "shards": Expected("data-loading", _LOOP, "load_shard"),
    "windows": Expected("data-loading", _LOOP, "get_batch"),
    "loader-c": Expected("data-loading", _FED, "Packed.__getitem__"),
    "loader-python": Expected("data-loading", _FED, "python"),
    "loader-worker": Expected("data-loading", _FED, "loading"),
    "collating": Expected("data-loading", _FED, "python"),
    "network-input": Expected("data-loading", _LOOP, "fetch"),
    "network-report": Expected("host-bound", "waits for the network", "report"),
    "logging": Expected("host-bound", "Logging", "log_all"),
    "launching": Expected("host-bound", "launches", "launches"),
    "unfused": Expected("host-bound", "optimiser"),
    "saving": Expected("host-bound", "checkpoints", "save_all"),
    "evaluating": Expected("evaluation", "Evaluation takes", "evaluate", None),
    "evaluating-starved": Expected("data-loading", "Evaluation waits", "python"),
    "lock": Expected("host-bound", "interpreter's lock"),
    "threaded": Expected("data-loading", _LOOP, "python"),
    "inferring": Expected("host-bound", _PYTHON, "decode_beams"),
    "inferring-loader": Expected("data-loading", _FED, "Packed.__getitem__"),
    "crashing": Expected("crashed", "ended in an error", "", None),
    "leaking": Expected("memory-leak", "grows", "", None),
    "caching": Expected("start-up", "first steps", "", None),
    "starting": Expected("start-up", "Start-up takes", "", None),
    "stalling": Expected("host-bound", "steps stop", "python", 0.35),
    "healthy": Expected("well-used", "", "", None),
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_verdict_and_the_line_are_right(
    name: str, fake_nvml: Callable[[Scenario], dict[str, str]], tmp_path: Path
) -> None:
    """The first finding has the right code and cause, and names the function that takes the time.

    Its share lies within 15 points of the program's own clock, where the function is timed.
    """
    pytest.importorskip("torch", reason="PyTorch is not installed: make loops-test")
    if not GPUCOST.exists():
        pytest.skip("gpucost is not installed in .venv: make loops-test")
    expected = LOOPS[name]
    shutil.copy(PROGRAM, tmp_path)
    gpu = _WORKS if expected.busy is None else {"util.kernel_time": expected.busy, **_QUIET}
    words = [str(GPUCOST), "profile", "--interval", "0.5s", "-q", "--"]
    isolated = ["-I"] if name == "isolated" else []
    ran = subprocess.run(
        [*words, sys.executable, *isolated, PROGRAM.name, name],
        env=fake_nvml(Scenario(devices={"0": {**a100(0), **gpu}})),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == (1 if name == "crashing" else 0), ran.stderr
    words = [str(GPUCOST), "diagnose", "profile.json", "-f", "json"]
    told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    first = json.loads(told.stdout)["jobs"][0]["findings"][0]
    profile = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
    truth = json.loads((tmp_path / "truth.json").read_text(encoding="utf-8"))
    _record(name, first, profile, truth)
    assert first["code"] == expected.code, first["cause"]
    assert expected.cause in first["cause"]
    if expected.place:
        assert f"{expected.place} (troubled.py:" in first["cause"]


def _record(
    name: str, first: dict[str, Any], profile: dict[str, Any], truth: dict[str, Any]
) -> None:
    """Append what was seen to the file that LOOPS_TABLE names, for a table of all loops."""
    if table := os.environ.get("LOOPS_TABLE"):
        waits = [(w["place"], w["doing"], w["time_fraction"]) for w in profile.get("waits", [])[:4]]
        row = {"loop": name, "code": first["code"], "cause": first["cause"]}
        with Path(table).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, "truth": truth, "waits": waits}) + "\n")
