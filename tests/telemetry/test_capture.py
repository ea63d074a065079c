"""A capture is read as a profile, whole or cut off."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.measure.capture_file import CaptureFile
from telemetry.readers.hints import Hints
from telemetry.recording.recording import GpuIdentity
from tests.telemetry.reading import read_source

GPU = GpuIdentity(
    key="GPU-a", index=0, uuid="GPU-a", model="NVIDIA A100-SXM4-80GB", memory_gib=80.0
)
BEGIN_S = 1_790_000_000.0


def _step(t_s: float, **more: Any) -> str:
    line = {"event": "step", "process": "p", "t_s": t_s, "step": 1, "n": 1, "step_s": 0.5}
    parts = {"data_wait_s": 0.3, "h2d_s": 0.05, "optimizer_s": 0.01, "checkpoint_s": 0.0}
    return json.dumps({**line, **parts, "evaluation_s": 0.0, "items": 32, "loader": 1, **more})


def _written(folder: Path, seconds: int = 60, *, end: bool = True) -> Path:
    """A capture of one GPU: 10 s of start-up, then steps of half a second at 40 % load."""
    capture = CaptureFile(folder / "profile.capture.jsonl")
    capture.begin(BEGIN_S, {"job": "train", "interval_s": 1.0, "cpu_cores": 16, "ram_gib": 64.0})
    for i in range(seconds):
        t_s = BEGIN_S + i
        busy = 0.4 if i >= 10 else 0.0
        power = 60.0 + 200.0 * busy
        values = {"util.kernel_time": busy, "mem.used_gib": 11.0, "power.board_w": power}
        capture.row(t_s, GPU, values)
        capture.row(t_s, None, {"cpu_util": 0.9, "ram_used_gib": 8.0})
        if i >= 10:
            capture.lines([_step(t_s), _step(t_s + 0.5)])
    if end:
        capture.end(BEGIN_S + seconds)
    return capture.path


def _profile(path: Path) -> Profile:
    (profile,) = read_source(str(path), Hints())
    return profile


def test_a_capture_is_recognised_and_gives_the_whole_profile(tmp_path: Path) -> None:
    """Job, hardware, step, work, load and host come out of one file."""
    profile = _profile(_written(tmp_path))
    assert (profile.job.name, profile.job.kind) == ("train", "training")
    assert profile.hardware.gpu == "NVIDIA A100-SXM4-80GB"
    assert (profile.hardware.cpu_cores, profile.hardware.ram_gib) == (16, 64.0)
    assert profile.step is not None
    assert (profile.step.count, profile.step.mean_s, profile.step.data_wait_s) == (100, 0.5, 0.3)
    assert profile.step.compute_s == pytest.approx(0.15)
    assert profile.work is not None
    assert profile.work.unit == "sample"
    assert profile.work.rate_per_s == pytest.approx(64.0)
    assert profile.mean("util.kernel_time") == pytest.approx(0.4)
    assert profile.host is not None
    assert profile.host.cpu_util is not None
    assert profile.host.cpu_util.mean == pytest.approx(0.9)


def _of_readings(folder: Path, readings: dict[str, float]) -> Profile:
    """A job whose GPU reads the same every second."""
    capture = CaptureFile(folder / "profile.capture.jsonl")
    capture.begin(BEGIN_S, {"job": "train", "interval_s": 1.0})
    for i in range(60):
        capture.row(BEGIN_S + i, GPU, {**readings, "util.kernel_time": 1.0})
    capture.end(BEGIN_S + 60)
    return _profile(capture.path)


def test_a_constant_hundred_per_cent_is_doubted(tmp_path: Path) -> None:
    """A device that claims 100 % at every reading while it draws power is said aloud."""
    notes = _of_readings(tmp_path, {"power.board_w": 30.0}).provenance.notes
    assert any("exactly 100%" in note for note in notes)


def test_a_hundred_per_cent_that_sm_activity_confirms_is_believed(tmp_path: Path) -> None:
    """A GPU that is busy all the time, by two counters, is not called a collector's default."""
    notes = _of_readings(
        tmp_path, {"power.board_w": 340.0, "util.sm_active": 0.97}
    ).provenance.notes
    assert not any("exactly 100%" in note for note in notes)


def test_the_window_runs_over_the_steps(tmp_path: Path) -> None:
    """Statistics leave out what came before the first step ended."""
    profile = _profile(_written(tmp_path))
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(49.5)
    assert any("end of the first step" in note for note in profile.provenance.notes)


def test_a_capture_that_was_cut_off_loads_and_says_so(tmp_path: Path) -> None:
    """A kill in the middle of a line costs that line and nothing else."""
    path = _written(tmp_path, end=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    profile = _profile(path)
    assert profile.step is not None
    assert profile.step.count == 99
    assert any("was cut off" in note for note in profile.provenance.notes)


@pytest.mark.parametrize("cut", range(400, 4000, 177))
def test_a_cut_at_any_byte_still_loads(tmp_path: Path, cut: int) -> None:
    """Wherever the writer was killed, what lies before is read."""
    path = _written(tmp_path, end=False)
    path.write_bytes(path.read_bytes()[:cut])
    assert _profile(path).gpus


def test_a_file_that_only_looks_like_a_capture_is_refused(tmp_path: Path) -> None:
    """Another version is named, not guessed at."""
    path = tmp_path / "odd.jsonl"
    path.write_text('{"capture": "gpucost.capture/v9"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="not that of a capture"):
        read_source(str(path), Hints())


def test_damaged_lines_are_counted_not_trusted(tmp_path: Path) -> None:
    """Rows of the wrong length, of an unknown series or of text are left out by count."""
    path = _written(tmp_path)
    with path.open("a", encoding="utf-8") as stream:
        stream.write('[0,1.0]\n[99,1.0,2.0]\n[0,"x","y","z","w"]\n"text"\nnot json\n')
    profile = _profile(path)
    assert profile.provenance.sources[0].dropped == {"cut line": 5}
    assert profile.mean("util.kernel_time") == pytest.approx(0.4)


def test_a_slot_that_appears_later_is_kept(tmp_path: Path) -> None:
    """A device that begins to answer a question midway keeps both parts."""
    capture = CaptureFile(tmp_path / "c.capture.jsonl")
    capture.begin(BEGIN_S, {"job": "train", "interval_s": 1.0})
    for i in range(20):
        more = {"temp.core_c": 50.0} if i >= 10 else {}
        capture.row(BEGIN_S + i, GPU, {"util.kernel_time": 0.5, **more})
    capture.end(BEGIN_S + 20)
    profile = _profile(capture.path)
    assert profile.mean("util.kernel_time") == pytest.approx(0.5)
    assert profile.mean("temp.core_c") == pytest.approx(50.0)


def test_an_older_capture_is_never_overwritten(tmp_path: Path) -> None:
    """What a killed measurement left behind stays; the next one takes another name."""
    first = CaptureFile(tmp_path / "p.capture.jsonl")
    second = CaptureFile(tmp_path / "p.capture.jsonl")
    assert first.path != second.path
    assert second.path.name == "p.capture-2.jsonl"


def test_the_phases_tell_start_up_from_steps(tmp_path: Path) -> None:
    """Ten quiet seconds before the steps are start-up, the rest is steady."""
    phases = {phase.kind: phase for phase in _profile(_written(tmp_path)).phases}
    assert set(phases) == {"start-up", "steady"}
    assert phases["steady"].total_s == pytest.approx(50.0, abs=1.0)
    assert phases["start-up"].time_fraction == pytest.approx(1 / 6, abs=0.02)
