"""Counters on their way from a device to the capture."""

import json
from pathlib import Path

import pytest

from telemetry.measure.capture_file import CaptureFile
from telemetry.recording.recording import GpuIdentity


def test_a_counter_keeps_its_last_digits(tmp_path: Path) -> None:
    """After ten hours of counting a tenth of a second still counts to the microsecond."""
    capture = CaptureFile(tmp_path / "long.capture.jsonl")
    capture.begin(0.0, {})
    for count_s in (36_000.0, 36_000.012345):
        capture.row(0.0, GpuIdentity(key="0"), {"counter.gpm_sm_active_s": count_s})
    capture.end(0.1)
    lines = [json.loads(line) for line in capture.path.read_text().splitlines()]
    (first, second) = [line[2] for line in lines if isinstance(line, list)]
    assert second - first == pytest.approx(0.012345, abs=1e-9)
