"""What tests of measuring may use."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fake_nvml.scenario import Scenario


@pytest.fixture
def read_nvml(
    fake_nvml: Callable[..., dict[str, str]], tmp_path: Path
) -> Callable[..., dict[str, Any]]:
    """Return what `read_nvml.py` says of a scenario, read at trace times in seconds."""

    def read(
        scenario: Scenario, *times_s: float, env: dict[str, str] | None = None, **asked: Any
    ) -> dict[str, Any]:
        each = {key: asked.pop(key) for key in ("pids", "wait_s", "everything") if key in asked}
        steps = [{"t": t_s, **each} for t_s in times_s]
        done = subprocess.run(
            [sys.executable, "-m", "tests.measure.read_nvml"],
            input=json.dumps({"steps": steps, **asked}),
            env={**fake_nvml(scenario, clock=tmp_path / "clock"), **(env or {})},
            cwd=ROOT,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return dict(json.loads(done.stdout))

    return read
