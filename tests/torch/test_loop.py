"""Real PyTorch in a loop: a loader that waits is made faster and proved; a busy one is left."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

GPUCOST = ROOT / ".venv" / "bin" / "gpucost"
_LOSS = re.compile(r"^step \d+: loss .*$", re.MULTILINE)


def _loop(folder: Path, *options: str) -> tuple[dict[str, Any], list[str]]:
    """Loop over the example, and return the record and the losses that it printed."""
    pytest.importorskip("torch", reason="PyTorch is not installed: make torch-test")
    if not GPUCOST.exists():
        pytest.skip("gpucost is not installed in .venv: make torch-test")
    shutil.copy(ROOT / "examples" / "loop" / "train.py", folder)
    own = ("--yes", "--no-gpu", "--no-metadata", "--current", "aws/g4dn.xlarge/us-east-1")
    ran = subprocess.run(
        [GPUCOST, "loop", *own, "--", sys.executable, "train.py", *options],
        cwd=folder,
        env={**os.environ, "GPUCOST_STATE_DIR": str(folder / "state"), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    record = json.loads((folder / "gpucost-loop" / "loop.json").read_text(encoding="utf-8"))
    return record, _LOSS.findall(ran.stdout)


def test_a_starved_loader_is_proved_faster_with_the_same_losses(tmp_path: Path) -> None:
    """At least twice as fast by safe settings, every printed digit of the losses the same."""
    record, losses = _loop(tmp_path, "--steps", "240")
    only = record["rounds"][0]
    assert only["where"] == "here"
    assert only["speedup"]["mid"] >= 2.0
    assert only["speedup"]["low"] > 1.0
    half = len(losses) // 2
    assert half >= 5
    assert losses[:half] == losses[half:]
    proof = json.loads((tmp_path / "gpucost-loop" / "proof.json").read_text(encoding="utf-8"))
    if "others worked on the machine" in proof["why"]:
        pytest.skip("others' work fills this machine, so nothing is proved on it")
    assert only["verdict"] == "proved"


def test_a_job_that_computes_all_the_time_is_left(tmp_path: Path) -> None:
    """Nothing is proved of it; where something was tried, it is not kept."""
    record, _ = _loop(tmp_path, "--steps", "240", "--wait-ms", "0", "--width", "1024")
    assert "proved" not in [one["verdict"] for one in record["rounds"]]
    assert record["ended"]
