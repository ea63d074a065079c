"""Loops that wait, end early or do not step in PyTorch: the first finding and its line are right.

The thirty that compute are in `test_troubled_loops`.

The loops run on the CPU. What a GPU would say meanwhile is stated beside each, and told by the
stand-in for the driver's library; steps, waits, stacks and the host are real.
"""

import json
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
PROGRAMS = Path(__file__).parent / "programs"
_QUIET = {"power.board_w": 85.0, "util.mem_controller": 0.02}
_WORKS = {"util.kernel_time": 0.97, "power.board_w": 370.0, "util.mem_controller": 0.55}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop.

    Attributes:
        gpu: what the GPU says.
        code: the first finding that is right.
        place: the function that the verdict must name, None where there is none to name.
        said: what the cause or the notes must say besides.
        exit_code: of the program.
    """

    gpu: dict[str, float]
    code: str
    place: str | None = None
    said: str = ""
    exit_code: int = 0


def _waiting(busy: float) -> dict[str, float]:
    return {"util.kernel_time": busy, **_QUIET}


LOOPS = {
    "bursts": Loop(gpu=_waiting(0.2), code="bursty-interactive", place="wait_for_work"),
    "one-step": Loop(gpu=_WORKS, code="well-used", said="one step only"),
    "out-of-memory": Loop(
        gpu={**_WORKS, "mem.used_gib": 79.0}, code="memory-pressure", said="ran out", exit_code=1
    ),
    "jax": Loop(
        gpu=_waiting(0.2), code="host-bound", place="reshuffle", said="jax: its steps are not seen"
    ),
    "slow-rank": Loop(gpu=_waiting(0.6), code="imbalanced-gpus", place="straggle", said="ank 1"),
}


@pytest.fixture
def measured(
    fake_nvml: Callable[[Scenario], dict[str, str]], tmp_path: Path
) -> Callable[[str], tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Measure a loop; return the profile and the findings."""
    pytest.importorskip("torch", reason="PyTorch is not installed: make torch-test")
    if not GPUCOST.exists():
        pytest.skip("gpucost is not installed in .venv: make torch-test")
    for name in ("loops.py", "slow_rank.py"):
        shutil.copy(PROGRAMS / name, tmp_path)

    def measure(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        loop = LOOPS[name]
        if name == "jax":
            pytest.importorskip("jax", reason="JAX is not installed: make torch-test")
        ranks = 2 if name == "slow-rank" else 1
        devices = {str(i): {**a100(i), **loop.gpu} for i in range(ranks)}
        program = ["loops.py", name]
        if name == "slow-rank":
            program = ["slow_rank.py", str(tmp_path / "store")]
        ran = subprocess.run(
            [GPUCOST, "profile", "--interval", "0.2s", "-q", "--", sys.executable, *program],
            env=fake_nvml(Scenario(devices=devices)),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == loop.exit_code, ran.stderr
        diagnosed = subprocess.run(
            [GPUCOST, "diagnose", "profile.json", "-f", "json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        profile = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
        return profile, json.loads(diagnosed.stdout)["jobs"][0]["findings"]

    return measure


@pytest.mark.parametrize("name", LOOPS)
def test_the_verdict_is_right_and_names_the_line(
    measured: Callable[[str], tuple[dict[str, Any], list[dict[str, Any]]]], name: str
) -> None:
    """The first finding has the right code, and its cause names the function and its file."""
    loop = LOOPS[name]
    profile, findings = measured(name)
    first = findings[0]
    assert first["code"] == loop.code, [(f["code"], f["cause"]) for f in findings[:3]]
    if loop.place is not None:
        file = "slow_rank.py" if name == "slow-rank" else "loops.py"
        assert f"{loop.place} ({file}:" in first["cause"]
    assert loop.said in " ".join((first["cause"], *profile["provenance"]["notes"]))
