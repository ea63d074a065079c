"""The share of a Python function of known length, beside what the program's own clock says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

GPUCOST = ROOT / ".venv" / "bin" / "gpucost"
PROGRAM = Path(__file__).parent / "programs" / "bias.py"
POINTS = 0.1  # that a share may lie off, as its task asks; 120 looks have an interval of +-0.07


@pytest.mark.parametrize("call_ms", ["0.1", "0.29", "1.2", "8", "35"])
def test_python_before_a_call_of_pytorch_has_its_share(call_ms: str, tmp_path: Path) -> None:
    """Python that holds the interpreter's lock is seen where it runs, however short a call is."""
    pytest.importorskip("torch", reason="PyTorch is not installed: make torch-test")
    if not GPUCOST.exists():
        pytest.skip("gpucost is not installed in .venv: make torch-test")
    words = [GPUCOST, "profile", "--no-gpu", "--no-metadata", "-q", "-o", tmp_path / "p.json", "--"]
    ran = subprocess.run(
        [*words, sys.executable, PROGRAM, call_ms, "15"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    waits = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))["waits"]
    shares = [w["time_fraction"] for w in waits if str(w["place"]).startswith("metric (bias.py:")]
    assert sum(shares) == pytest.approx(float(ran.stdout), abs=POINTS)
