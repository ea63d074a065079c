"""Real PyTorch, measured from outside: each trouble gets its name, and waits are the truth.

The loops run on the CPU. What a GPU would say meanwhile is stated beside each, and told by the
stand-in for the driver's library; the steps, the waits and the host are real.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.fake_nvml.machines import a100
from tests.fake_nvml.scenario import Scenario

GPUCOST = ROOT / ".venv" / "bin" / "gpucost"
PROGRAMS = Path(__file__).parent / "programs"
_IDLE = {"power.board_w": 85.0, "util.mem_controller": 0.02}

# trouble: steps, what the GPU says, the first finding, its first actions
CASES: dict[str, tuple[int, dict[str, float], str, set[str]]] = {
    "starved": (
        150,
        {"util.kernel_time": 0.3, **_IDLE},
        "data-loading",
        {"dataloader-workers", "dataloader-prefetch"},
    ),
    "healthy": (
        300,
        {"util.kernel_time": 0.97, "power.board_w": 370.0, "util.mem_controller": 0.55},
        "well-used",
        set(),
    ),
    "saving": (
        150,
        {"util.kernel_time": 0.45, **_IDLE},
        "host-bound",
        {"checkpoint-interval"},
    ),
    "launching": (
        300,
        {"util.kernel_time": 0.35, **_IDLE},
        "host-bound",
        {"cuda-graphs", "compile"},
    ),
}


@pytest.fixture
def measured(
    fake_nvml: Callable[[Scenario], dict[str, str]], tmp_path: Path
) -> Callable[[str], tuple[Mapping[str, Any], Mapping[str, Any], list[dict[str, Any]]]]:
    """Measure a trouble; return what the program timed, the profile, and the findings."""
    pytest.importorskip("torch", reason="PyTorch is not installed: make torch-test")
    if not GPUCOST.exists():
        pytest.skip("gpucost is not installed in .venv: make torch-test")
    for name in ("verdicts.py", "parts.py"):
        shutil.copy(PROGRAMS / name, tmp_path)

    def measure(
        trouble: str,
    ) -> tuple[Mapping[str, Any], Mapping[str, Any], list[dict[str, Any]]]:
        steps, readings, _, _ = CASES[trouble]
        device = {**a100(), **readings}
        words = ["--interval", "0.2s", "-q"]
        ran = subprocess.run(
            [
                GPUCOST,
                "profile",
                *words,
                "--",
                sys.executable,
                "verdicts.py",
                trouble,
                str(steps),
            ],
            env=fake_nvml(Scenario(devices={"0": device})),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        diagnosed = subprocess.run(
            [GPUCOST, "diagnose", "profile.json", "-f", "json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        profile = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
        return json.loads(ran.stdout), profile, json.loads(diagnosed.stdout)["jobs"][0]["findings"]

    return measure


@pytest.mark.parametrize("trouble", CASES)
def test_each_trouble_gets_its_name(
    measured: Callable[[str], tuple[Any, Any, list[dict[str, Any]]]], trouble: str
) -> None:
    """The first finding is the right one, and names what helps."""
    _, _, code, actions = CASES[trouble]
    first = measured(trouble)[2][0]
    assert first["code"] == code, first
    assert actions <= set(first["actions"])


@pytest.mark.parametrize("trouble", ["starved", "saving"])
def test_waits_are_what_the_program_timed(
    measured: Callable[[str], tuple[Any, Any, Any]], trouble: str
) -> None:
    """Data wait a step, and the time in saves, are within 5 % of the program's own clock."""
    truth, profile, _ = measured(trouble)
    steps = CASES[trouble][0]
    assert profile["step"]["count"] == steps
    if trouble == "starved":
        assert profile["step"]["data_wait_s"] == pytest.approx(truth["wait_s"] / steps, rel=0.05)
    else:
        saved = next(p for p in profile["phases"] if p["kind"] == "checkpoint")
        assert saved["total_s"] == pytest.approx(truth["save_s"], rel=0.05)
