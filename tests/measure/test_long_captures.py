"""Long measurements: folded captures stay small, survive a kill, and tell what whole ones tell."""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.profile.model import Profile, Statistics
from telemetry.measure import capture_block, capture_events, capture_file
from telemetry.measure.capture_block import folded, sketched
from telemetry.measure.capture_events import EventFold, EventTail, named
from telemetry.measure.capture_file import CaptureFile
from telemetry.profiling.window import durations
from telemetry.readers.hints import Hints
from telemetry.recording.recording import GpuIdentity
from tests.telemetry.reading import read_source

BEGIN_S = 1_790_000_000.0
WEEK_S = 7 * 86400
QUANTILES = {
    "p05": 0.05,
    "p25": 0.25,
    "p50": 0.5,
    "p75": 0.75,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
}


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold after minutes instead of hours."""
    for name, value in {"HEAD": 60, "RECENT": 240, "AT_ONCE": 120, "MOST_BLOCKS": 20}.items():
        monkeypatch.setattr(capture_block, name, value)
    for name, value in {"HEAD": 20, "RECENT": 60, "AT_ONCE": 20, "MOST": 20}.items():
        monkeypatch.setattr(capture_events, name, value)
    monkeypatch.setattr(capture_file, "REWRITE_BYTES", 1 << 16)


def _gpu(index: int) -> GpuIdentity:
    name = f"GPU-{index}"
    model = "NVIDIA A100-SXM4-80GB"
    return GpuIdentity(key=name, index=index, uuid=name, model=model, memory_gib=80.0)


def _drive(
    path: Path, seconds: int, *, gpus: int = 1, interval_s: float = 1.0, steps: int = 0
) -> Path:
    """A job of so many seconds with noise of all kinds, written as a measurement writes it."""
    rng = random.Random(7)  # noqa: S311 - noise
    capture = CaptureFile(path)
    capture.begin(BEGIN_S, {"job": "train", "interval_s": interval_s, "cpu_cores": 8})
    energy, moved = 0.0, 0.0
    for i in range(int(seconds / interval_s)):
        t_s = BEGIN_S + i * interval_s
        load = 0.0 if i < 30 else round(min(1.0, max(0.05, rng.gauss(0.6, 0.2))), 2)
        watts = 80.0 + 250.0 * load + 4.0 * rng.random()
        energy += watts * interval_s
        moved += interval_s * (rng.random() < load) * 900.0
        for gpu in range(gpus):
            values = {
                "util.kernel_time": load,
                "mem.used_gib": 20.0 + (i * interval_s / seconds) * 10.0,
                "power.board_w": watts,
                "counter.energy_j": energy if i != 700 else 0.0,
                "counter.pcie_rx_mib": moved,
            }
            if i % 5 == 0:
                values["temp.core_c"] = 60.0 + round(8.0 * load)
            capture.row(t_s, _gpu(gpu), values)
        capture.row(t_s, None, {"cpu_util": rng.random(), "disk_read_mib_s": 100.0 * rng.random()})
        if steps and i >= 30:
            capture.lines([_step(f"rank-{r}", t_s + 0.5, i) for r in range(steps)])
    capture.end(BEGIN_S + seconds)
    return capture.path


def _step(process: str, t_s: float, i: int, **more: Any) -> str:
    event = {"event": "step", "t_s": t_s, "step": i, "n": 2, "step_s": 0.8, "data_wait_s": 0.3}
    event |= {"h2d_s": None, "optimizer_s": 0.01, "checkpoint_s": 0.0, "evaluation_s": 0.0}
    event |= {"items": 64, "loader": 1, "longest_s": 0.5, "lengths": {"-16": 1, "-22": 1}}
    return named({**event, **more}, process, i)


def _profile(path: Path) -> Profile:
    (profile,) = read_source(str(path), Hints())
    return profile


def _all(profile: Profile) -> Iterator[tuple[str, Statistics]]:
    for gpu in profile.gpus:
        yield from gpu.metrics.items()
    if profile.host is not None:
        for name in profile.host.__struct_fields__:
            if (found := getattr(profile.host, name)) is not None:
                yield name, found


@pytest.mark.usefixtures("soon")
def test_a_folded_capture_tells_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Means, extremes, energy, steps within 1 %; quantiles that, or half a per cent of rank."""
    short = _profile(_drive(tmp_path / "short.capture.jsonl", 12_000, steps=1))
    monkeypatch.setattr(capture_block, "RECENT", 10**9)
    monkeypatch.setattr(capture_events, "RECENT", 10**9)
    path = _drive(tmp_path / "whole.capture.jsonl", 12_000, steps=1)
    whole = _profile(path)
    assert (tmp_path / "short.capture.jsonl").stat().st_size < path.stat().st_size / 3
    values = _values(path)
    assert [name for name, _ in _all(short)] == [name for name, _ in _all(whole)]
    for (name, one), (_, other) in zip(_all(short), _all(whole), strict=True):
        assert one.mean == pytest.approx(other.mean, rel=0.01), name
        if other.min is not None:
            assert (one.min, one.max) == pytest.approx((other.min, other.max), rel=1e-5), name
        for field, rank in QUANTILES.items():
            mine, theirs = getattr(one, field), getattr(other, field)
            if mine is None and theirs is None:
                continue
            low, high = np.quantile(values[name], [rank - 0.005, rank + 0.005])
            near = mine == pytest.approx(theirs, rel=0.01)
            assert near or low <= mine <= high, (name, field, mine, theirs)
    assert short.step is not None
    assert whole.step is not None
    assert short.step.count == whole.step.count
    assert short.step.mean_s == pytest.approx(whole.step.mean_s, rel=0.01)
    assert short.step.data_wait_s == pytest.approx(whole.step.data_wait_s, rel=0.01)
    assert short.work is not None
    assert whole.work is not None
    assert short.work.rate_per_s == pytest.approx(whole.work.rate_per_s, rel=0.01)
    assert {phase.kind for phase in short.phases} == {phase.kind for phase in whole.phases}


def _values(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """What was read, by name, from a capture that was not folded; rates as their own slots."""
    rows: dict[int, list[list[float]]] = {}
    columns: dict[int, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        if isinstance(item, list):
            rows.setdefault(item[0], []).append([np.nan if v is None else v for v in item[1:]])
        elif "columns" in item:
            columns[item["id"]] = item["columns"]
    found = {}
    for number, table in rows.items():
        array = np.array(table)[60:]
        for i, name in enumerate(columns[number]):
            column = array[:, i + 1]
            found[name] = column[np.isfinite(column)]
    found["io.pcie_rx_mib_s"] = np.diff(found["counter.pcie_rx_mib"])
    found["energy.total_j"] = found["counter.energy_j"]
    return found


@pytest.mark.usefixtures("soon")
def test_twice_the_time_is_no_larger_file(tmp_path: Path) -> None:
    """Once a capture folds, its length does not depend on the time that it covers."""
    sizes = [
        _drive(tmp_path / f"{hours}.capture.jsonl", hours * 3600, steps=2).stat().st_size
        for hours in (2, 4)
    ]
    assert sizes[1] < 1.3 * sizes[0]


def test_a_week_fits_with_the_shipped_limits(tmp_path: Path) -> None:
    """As many rows a series as a week has at 10 s: folded, merged, and under the bound a series.

    The limits count rows, not time, so a week at a second is merged further and not longer:
    `benchmarks/week.py` drives that one, of 8 GPUs and 8 ranks, and prints disk and memory.
    """
    path = _drive(tmp_path / "week.capture.jsonl", WEEK_S, interval_s=10.0)
    series = 2
    assert path.stat().st_size < series * 200e6 / 9
    profile = _profile(path)
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(WEEK_S - 300, rel=0.001)
    assert profile.window.coverage == pytest.approx(1.0, abs=0.01)


@pytest.mark.usefixtures("soon")
def test_a_kill_while_the_file_is_written_anew_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the new file is whole, the old one stays; a disk that refuses it is tried again."""
    refused = 0
    replace = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        nonlocal refused
        refused += 1
        if refused % 2:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    path = _drive(tmp_path / "a.capture.jsonl", 4000)
    monkeypatch.undo()
    assert refused > 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.capture.jsonl"]
    profile = _profile(path)
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(3970.0, abs=1.0)


@pytest.mark.usefixtures("soon")
def test_a_gap_is_no_time(tmp_path: Path) -> None:
    """A machine that slept half of the time is covered half, folded or not."""
    capture = CaptureFile(tmp_path / "gap.capture.jsonl")
    capture.begin(BEGIN_S, {"job": "train", "interval_s": 1.0})
    for i in range(3000):
        capture.row(BEGIN_S + i + 3000 * (i >= 1500), _gpu(0), {"util.kernel_time": 0.5})
    capture.end(BEGIN_S + 6000)
    profile = _profile(capture.path)
    assert profile.window is not None
    assert profile.window.coverage == pytest.approx(0.5, abs=0.01)


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=400), st.integers(8, 200))
def test_a_sketch_keeps_mean_and_extremes(values: list[float], most: int) -> None:
    """Whatever the values: bounded points, the same weight, mean, least and greatest value."""
    points = sketched(((value, 1.0) for value in values), most)
    assert len(points) <= 1.5 * most + 3
    assert sum(weight for _, weight in points) == pytest.approx(len(values))
    mean = sum(value * weight for value, weight in points) / len(values)
    assert mean == pytest.approx(sum(values) / len(values), rel=1e-6, abs=1e-6)
    assert (points[0][0], points[-1][0]) == (min(values), max(values))
    assert [value for value, _ in points] == sorted(value for value, _ in points)


@given(st.lists(st.tuples(st.floats(0.1, 5.0), st.floats(0.0, 1.0)), min_size=4, max_size=60))
def test_two_blocks_are_as_one(rows: list[tuple[float, float]]) -> None:
    """Folding in two parts and joining them keeps time, number and mean of folding at once."""
    times = list(np.cumsum([step for step, _ in rows]))
    readings = [{"util.kernel_time": value} for _, value in rows]
    half, end_s = len(rows) // 2, times[-1] + 1.0
    whole = folded(times, readings, end_s)
    both = folded(times[:half], readings[:half], times[half]).with_following(
        folded(times[half:], readings[half:], end_s)
    )
    assert (both.begin_s, both.end_s, both.n) == (whole.begin_s, whole.end_s, whole.n)
    means = [
        sum(v * w for v, w in block.points["util.kernel_time"]) / block.length_s
        for block in (whole, both)
    ]
    assert means[1] == pytest.approx(means[0], abs=1e-6)


@pytest.mark.usefixtures("soon")
def test_folded_events_tell_the_same_totals() -> None:
    """Steps, times, lengths, pauses and samples add up; the first and last lines stay."""
    fold = EventFold()
    lines = [_step("p", BEGIN_S + i, i) for i in range(2000)]
    for i in range(500):
        t_s = BEGIN_S + 4.0 * i
        lines.append(named({"event": "span", "t_s": t_s, "kind": "evaluation", "s": 0.5}, "p", i))
        seen = [["steady", f"f{i % 90} (a.py:{i % 90})", "host", 3]]
        lines.append(named({"event": "stacks", "t_s": t_s, "seen": seen}, "p", i))
    for line in lines:
        fold.add(line)
    kept = [json.loads(line) for line in fold.lines()]
    assert len(kept) < 400
    steps = [event for event in kept if event["event"] == "step"]
    assert sum(event["n"] for event in steps) == 4000
    assert sum(event["step_s"] for event in steps) == pytest.approx(1600.0)
    assert sum(sum(event["lengths"].values()) for event in steps) == 4000
    assert all(event["h2d_s"] is None for event in steps)
    spans = [event for event in kept if event["event"] == "span"]
    assert sum(event.get("n", 1) for event in spans) == 500
    assert sum(event["s"] for event in spans) == pytest.approx(250.0)
    samples = [row for event in kept if event["event"] == "stacks" for row in event["seen"]]
    assert sum(n for *_, n in samples) == 1500


def test_what_was_taken_from_the_probe_is_freed(tmp_path: Path) -> None:
    """The event files of a long job take no place on the disk, and the job may go on writing."""
    file = tmp_path / "1-1.jsonl"
    tail = EventTail(tmp_path)
    seen = 0
    with file.open("ab", buffering=0) as job:
        for i in range(40):
            job.write(b'{"event":"step","t_s":1.0,"n":1,"pad":"%s"}\n' % (b"x" * 100_000))
            job.write(b'{"event":"half"')
            seen += len(tail.new_lines())
            job.write(b',"t_s":%d}\n' % i)
            tail.free()
    seen += len(tail.new_lines())
    assert seen == 80
    held = file.stat().st_blocks * 512
    if held > 3e6 and not _punches(tmp_path):
        pytest.skip("this file system frees no parts of files")
    assert held < 3e6


def _punches(folder: Path) -> bool:
    file = folder / "probe"
    file.write_bytes(os.urandom(1 << 20))
    before = file.stat().st_blocks
    capture_events.punch(file, 0, 1 << 20)
    return file.stat().st_blocks < before


def test_what_a_killed_sampler_had_not_taken_is_read(tmp_path: Path) -> None:
    """The capture goes on in the probe's folder where the sampler stopped: each step once."""
    folder = tmp_path / "gpucost-probe-x"
    folder.mkdir()
    capture = CaptureFile(tmp_path / "p.capture.jsonl")
    capture.begin(BEGIN_S, {"job": "train", "interval_s": 1.0, "probe_folder": str(folder)})
    tail = EventTail(folder)
    with (folder / "7-1.jsonl").open("ab", buffering=0) as job:
        for i in range(100):
            event = json.loads(_step("", BEGIN_S + i, i))
            job.write(json.dumps({k: v for k, v in event.items() if k != "process"}).encode())
            job.write(b"\n")
            if i < 60:
                capture.row(BEGIN_S + i, _gpu(0), {"util.kernel_time": 0.5})
            if i == 55:
                capture.lines(tail.new_lines())
        job.write(b'{"event":"step","t_s":')
    profile = _profile(capture.path)
    assert profile.step is not None
    assert profile.step.count == 200


def test_a_change_of_pace_is_no_gap() -> None:
    """Rows that lie a minute apart between rows of a second stand for their minute."""
    times = np.concatenate(
        [np.arange(100.0), 100.0 + 60.0 * np.arange(50), 3100.0 + np.arange(100.0)]
    )
    assert durations(times).sum() == pytest.approx(3200.0, abs=1.0)
