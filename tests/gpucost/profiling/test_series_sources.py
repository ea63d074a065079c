"""The series that `gpucost profile` writes beside a profile, as SOURCE themselves."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import duckdb
import pandas as pd
import pytest
from msgspec.structs import replace

from gpucost.files.writing import write_file
from gpucost.profiling.run_files import write_series
from planner.profile.codec import dump
from pricing.errors import InputError
from telemetry.formats.capture import read_capture
from telemetry.formats.stored_runs import is_series_table
from telemetry.measure.capture_file import CaptureFile
from telemetry.readers.hints import Hints
from telemetry.readers.payload import Payload
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.recording.recording import GpuIdentity
from telemetry.sources import read_telemetry
from tests.telemetry.reading import read_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from planner.profile.model import Profile
    from telemetry.folder import Skipped

START = datetime(2026, 3, 2, 8, tzinfo=UTC).timestamp()
SECONDS = 40
HOST = {"cpu_util": 0.25, "ram_used_gib": 12.0}


def _capture(folder: Path, name: str, gpus: int, busy: float) -> Path:
    file = CaptureFile(folder / f"{name}.capture.jsonl")
    file.begin(START, {"job": name, "interval_s": 1.0, "cpu_cores": 8, "ram_gib": 64.0})
    devices = [
        GpuIdentity(key=f"GPU-a{i}", index=i, uuid=f"GPU-a{i}", model="NVIDIA L4", memory_gib=22.5)
        for i in range(gpus)
    ]
    for second in range(SECONDS):
        for i, device in enumerate(devices):
            values = {"util.kernel_time": busy + 0.1 * i, "mem.used_gib": 3.0}
            energy = {"counter.energy_j": 60.0 * second}
            file.row(START + second, device, values | energy)
        file.row(START + second, None, HOST)
    for i in range(1, SECONDS):
        event = {"event": "step", "pid": 7, "t_s": START + i, "step": i, "n": 1, "step_s": 1.0}
        file.lines([json.dumps({**event, "data_wait_s": 0.6, "items": 16})])
    file.end(START + SECONDS)
    return file.path


def _measured(folder: Path, name: str = "train", gpus: int = 2, busy: float = 0.4) -> Profile:
    """Write a profile with its series, as `gpucost profile` does, and return it."""
    captured = _capture(folder, name, gpus, busy)
    payload = Payload(name=captured.name, data=captured.read_bytes(), sha256=None)
    (profile,) = read_source(str(captured), Hints())
    target = folder / f"{name}.json"
    profile = write_series(
        profile, read_capture(RecordingBuilder(payload, "gpucost-capture"), Hints()), target
    )
    write_file(str(target), dump((profile,)))
    captured.unlink()
    return profile


@pytest.mark.parametrize("read", [read_source, lambda path, hints: read_telemetry([path], hints)])
def test_series_beside_their_profile_are_no_second_job(
    tmp_path: Path, read: Callable[[str, Hints], tuple[Profile, ...]]
) -> None:
    """The profile wins, in every manner of reading a folder."""
    profile = _measured(tmp_path)
    assert [one.job.name for one in read(str(tmp_path), Hints())] == ["train"]
    assert read(str(tmp_path), Hints())[0].gpus == profile.gpus


@pytest.mark.parametrize("read", [read_source, lambda path, hints: read_telemetry([path], hints)])
def test_series_alone_are_the_job(
    tmp_path: Path, read: Callable[[str, Hints], tuple[Profile, ...]]
) -> None:
    """Without their profile they say the same of GPUs, host, steps and work."""
    profile = _measured(tmp_path)
    (tmp_path / "train.json").unlink()
    (alone,) = read(str(tmp_path), Hints(gpu="L4"))
    assert alone.job.name == "train"
    assert [gpu.metrics for gpu in alone.gpus] == [gpu.metrics for gpu in profile.gpus]
    assert alone.host == profile.host
    assert alone.step is not None
    assert profile.step is not None
    assert alone.step == replace(profile.step, counted_by=alone.step.counted_by)
    assert alone.work == profile.work
    assert alone.window == profile.window


def test_samples_given_by_name_are_one_job(tmp_path: Path) -> None:
    """The file itself is a SOURCE, with its slots and without steps."""
    profile = _measured(tmp_path)
    (alone,) = read_source(str(tmp_path / "train.samples.parquet"), Hints())
    assert [gpu.index for gpu in alone.gpus] == [0, 1]
    assert alone.gpus[0].metrics.keys() == profile.gpus[0].metrics.keys()
    assert alone.step is None


def test_steps_given_by_name_tell_step_time(tmp_path: Path) -> None:
    """The steps alone are a job whose GPU nobody read."""
    _measured(tmp_path)
    (alone,) = read_source(str(tmp_path / "train.steps.jsonl"), Hints())
    assert alone.step is not None
    assert alone.step.mean_s == 1.0
    assert alone.step.data_wait_s == 0.6
    assert alone.step.count == SECONDS - 1
    assert alone.gpus == ()


@pytest.mark.parametrize("read", [read_source, lambda path, hints: read_telemetry([path], hints)])
def test_series_of_two_names_are_two_jobs(
    tmp_path: Path, read: Callable[[str, Hints], tuple[Profile, ...]]
) -> None:
    """Samples find their own steps by their name."""
    for name, busy in (("one", 0.2), ("two", 0.6)):
        _measured(tmp_path, name, 1, busy)
        (tmp_path / f"{name}.json").unlink()
    found = {one.job.name: one for one in read(str(tmp_path), Hints())}
    assert set(found) == {"one", "two"}
    for name, busy in (("one", 0.2), ("two", 0.6)):
        mean = found[name].gpus[0].metrics["util.kernel_time"].mean
        assert mean == pytest.approx(busy)
        assert found[name].step is not None


def test_series_beside_their_capture_are_no_second_job(tmp_path: Path) -> None:
    """A kill between the series and the profile leaves the capture, which tells more."""
    _measured(tmp_path)
    (tmp_path / "train.json").unlink()
    _capture(tmp_path, "train", 2, 0.4)
    left_out: list[Skipped] = []
    (one,) = read_source(str(tmp_path), Hints(), skipped=left_out)
    assert one.provenance.sources[0].format == "gpucost-capture"
    assert {skipped.why for skipped in left_out} == {"a series of train.capture.jsonl"}


def test_gpus_of_two_machines_and_partitions_stay_apart(tmp_path: Path) -> None:
    """The name of a GPU holds its machine's number and its instance, where there are several."""
    file = tmp_path / "x.samples.parquet"
    busy = {"0/0": 0.1, "1/0": 0.2, "1/1/1g.10gb": 0.3}
    rows = [(START + i, gpu, share) for i in range(9) for gpu, share in busy.items()]
    frame = pd.DataFrame(rows, columns=["t_s", "gpu", "util.kernel_time"])
    duckdb.from_df(frame).write_parquet(str(file))
    (profile,) = read_source(str(file), Hints())
    means = [gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus]
    assert means == [pytest.approx(share) for share in (0.1, 0.2, 0.3)]
    assert [gpu.index for gpu in profile.gpus] == [0, 0, 1]


def test_a_table_with_jobs_in_it_is_a_fleet(tmp_path: Path) -> None:
    """A column that samples do not have makes it a table, which is counted where it lies."""
    file = tmp_path / "fleet.parquet"
    duckdb.sql("SELECT 1.0 AS t_s, '0' AS gpu, 0.5 AS \"util.kernel_time\"").write_parquet(
        str(file)
    )
    assert is_series_table(file)
    query = "SELECT 1.0 AS t_s, '0' AS gpu, 'a' AS job, 0.5 AS \"util.kernel_time\""
    duckdb.sql(query).write_parquet(str(file))
    assert not is_series_table(file)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cut.samples.parquet", lambda whole: whole[: len(whole) // 2], "cut.samples.parquet"),
        ("x.steps.jsonl", lambda _: b'{"t_s":1.0,"step":1,"n":-1}\n', "no step in it"),
    ],
)
def test_damaged_series_are_refused(
    tmp_path: Path, name: str, content: Callable[[bytes], bytes], said: str
) -> None:
    """A sentence says which file, and what is wrong with it."""
    _measured(tmp_path)
    whole = (tmp_path / "train.samples.parquet").read_bytes()
    file = tmp_path / name
    file.write_bytes(content(whole))
    with pytest.raises(InputError, match=said):
        read_source(str(file), Hints())


def test_a_cut_line_of_steps_is_counted(tmp_path: Path) -> None:
    """A file that a full disk cut is read up to the cut."""
    file = tmp_path / "x.steps.jsonl"
    lines = [f'{{"t_s":{START + i},"step":{i},"n":1,"step_s":0.5}}' for i in range(1, 6)]
    file.write_text("\n".join(lines)[:-10])
    (profile,) = read_source(str(file), Hints())
    assert profile.step is not None
    assert profile.step.count == 4
    assert profile.provenance.sources[0].dropped == {"no step": 1}
