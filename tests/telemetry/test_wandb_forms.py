"""W&B's system metrics in the forms in which people have them: old lines, charts, the log."""

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from pricing.errors import InputError
from telemetry.readers.hints import Hints
from telemetry.recording.recording import GPU
from tests.telemetry.captures import assert_writable, path, recorded
from tests.telemetry.reading import read_source

BLOCK = 32_768


def varint(value: int) -> bytes:
    """Return a protobuf varint."""
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def field(number: int, value: bytes | int) -> bytes:
    """Return a field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def statistics(t_s: int, figures: dict[str, float], padding: int = 0) -> bytes:
    """Return a record of statistics, made larger by a field that readers do not know."""
    items = b"".join(
        field(3, field(1, key.encode()) + field(16, json.dumps(value).encode()))
        for key, value in figures.items()
    )
    body = field(1, 0) + field(2, field(1, t_s) + field(2, 500_000_000)) + items
    return field(1, 7) + field(7, body + field(99, b"x" * padding))


def history(step: int) -> bytes:
    """Return a record of the run's own history."""
    return field(2, field(1, field(2, b"_step") + field(16, str(step).encode())))


def log(records: list[bytes]) -> bytes:
    """Return a log: blocks of 32 KiB, records cut into fragments at their ends."""
    out = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for record in records:
        rest, first = record, True
        while first or rest:
            left = BLOCK - len(out) % BLOCK
            if left < 7:
                out += b"\0" * left
                left = BLOCK
            part, rest = rest[: left - 7], rest[left - 7 :]
            kind = (1 if not rest else 2) if first else (4 if not rest else 3)
            checksum = zlib.crc32(bytes([kind]) + part)
            out += struct.pack("<IHB", checksum, len(part), kind) + part
            first = False
    return out


def run() -> bytes:
    """Return the log of a small run."""
    return log(
        [
            field(17, field(1, b"abc")),
            statistics(1_700_000_000, {"gpu.0.gpu": 50, "gpu.0.memoryAllocatedBytes": 2**31}),
            statistics(1_700_000_000, {"cpu": 25.0}),
            history(0),
            statistics(1_700_000_015, {"gpu.0.gpu": 70, "gpu.0.powerWatts": 210.5}, 40_000),
            history(100),
            statistics(1_700_000_030, {"gpu.0.gpu": 90}),
        ]
    )


def readings(file: str | Path, slot: str) -> list[float]:
    """Return a slot of the first GPU."""
    samples = recorded(file).samples
    return [float(v) for v in samples[samples[GPU] == samples[GPU].min()][slot]]


def configured(number: int, *inner: int, **settings: object) -> bytes:
    """Return a record whose configuration stands under the given fields."""
    body = b"".join(
        field(1, field(1, name.encode()) + field(16, json.dumps(value).encode()))
        for name, value in settings.items()
    )
    for part in reversed(inner):
        body = field(part, body)
    return field(number, body)


def test_the_configuration_in_a_log_tells_workers_batch_and_precision(tmp_path: Path) -> None:
    """What the run was started with reaches the job; a later record of it replaces the first."""
    file = tmp_path / "run.wandb"
    records = [
        configured(17, 4, num_workers=4, optim={"lr": 0.1}),
        configured(5, num_workers=0, per_device_train_batch_size=8, fp16=True, bf16=False),
        *(statistics(1_700_000_000 + 15 * i, {"gpu.0.gpu": 30 + i}) for i in range(8)),
    ]
    file.write_bytes(log(records))
    (profile,) = read_source(str(file), Hints())
    assert profile.step is not None
    assert profile.step.loader_workers == 0
    assert (profile.job.batch_per_gpu, profile.job.precision) == (8, "amp-fp16")
    assert_writable((profile,))


@pytest.mark.parametrize(
    ("name", "text", "workers", "precision"),
    [
        ("files/config.yaml", "num_workers:\n  value: 0\nbf16:\n  value: true\n", 0, "amp-bf16"),
        ("config.yaml", "data:\n  value:\n    num_workers: 6\n", 6, None),
        ("config.yaml", "a:\n  num_workers: 6\nb:\n  num_workers: 2\n", None, None),
        ("config.yaml", "num_workers: [\n", None, None),
        ("files/wandb-metadata.json", '{"args": ["--num-workers", "3", "--lr=1"]}', 3, None),
        ("config.yaml", "fp16:\n  value: false\nbf16:\n  value: false\n", None, "fp32"),
        ("config.yaml", "fp16:\n  value: false\n", None, None),
        ("hparams.yaml", "num_workers: 0\nprecision: 16-mixed\n", 0, "amp-fp16"),
    ],
)
def test_the_configuration_beside_a_run_is_read(
    name: str, text: str, workers: int | None, precision: str | None, tmp_path: Path
) -> None:
    """Files that W&B and Lightning write beside readings; one that says two things says nothing."""
    (tmp_path / "files").mkdir()
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "events.jsonl").write_bytes(Path(path("wandb/events_2020.jsonl")).read_bytes())
    (profile,) = read_source(str(tmp_path / "events.jsonl"), Hints())
    assert (profile.step and profile.step.loader_workers) == workers
    assert profile.job.precision == precision


def test_lines_of_2020_are_read() -> None:
    """A line that ends in `"_wandb": true` is an event, no summary; the run's GPU alone counts."""
    (profile,) = read_source(path("wandb/events_2020.jsonl"), Hints())
    assert_writable((profile,))
    assert len(profile.gpus) == 1
    assert profile.gpus[0].metrics["util.kernel_time"].mean == pytest.approx(0.5)
    assert profile.host is not None


def test_a_chart_is_read_with_its_times() -> None:
    """A column of a run and metric fills its slot; least and greatest of a point are left."""
    assert readings(path("wandb/chart.csv"), "util.kernel_time") == [0.4, 0.6, 0.8]
    np.testing.assert_allclose(
        readings(path("wandb/chart.csv"), "power.board_w"), [200.0, np.nan, 300.0]
    )
    (profile,) = read_source(path("wandb/chart.csv"), Hints())
    assert profile.window is not None
    assert (profile.window.interval_s, profile.job.name) == (15.0, "calm-sea-1")
    assert profile.provenance.sources[0].dropped == {"wrong number of fields": 1}


def test_two_runs_of_a_chart_are_two_jobs(tmp_path: Path) -> None:
    """Columns of two runs never fill one device."""
    file = tmp_path / "chart.csv"
    file.write_text(
        '"Step","one - system/gpu.0.gpu","two - system/gpu.0.gpu"\n"1","10","90"\n"2","20","80"\n',
        encoding="utf-8",
    )
    found = {p.job.name: p.mean("util.kernel_time") for p in read_source(str(file), Hints())}
    assert found == {"one": pytest.approx(0.15), "two": pytest.approx(0.85)}


def test_the_log_of_a_run_is_read() -> None:
    """Statistics of every record come out, one that spans two blocks too, and steps as work."""
    file = path("wandb/run.wandb")
    assert Path(file).read_bytes() == run()
    assert readings(file, "util.kernel_time") == pytest.approx([0.5, 0.7, 0.9])
    recording = recorded(file)
    assert recording.work == ("step", 100.0)
    assert recording.samples["t_s"].tolist() == [1_700_000_000.5 + t for t in (0, 15, 30)]
    assert recording.samples["mem.used_gib"][0] == 2.0
    assert_writable(read_source(file, Hints()))


@pytest.mark.parametrize("end", [8, 200, BLOCK + 3000, -4])
def test_a_log_that_was_cut_is_read_as_far_as_it_goes(end: int, tmp_path: Path) -> None:
    """What stands before the cut is read; a log of nothing is refused with a sentence."""
    file = tmp_path / "run.wandb"
    file.write_bytes(run()[:end])
    if end == 8:
        with pytest.raises(InputError, match="without a statistic"):
            read_source(str(file), Hints())
        return
    found = readings(file, "util.kernel_time")
    assert found == pytest.approx([0.5, 0.7, 0.9][: len(found)])
    assert found


def test_a_damaged_block_costs_itself_alone(tmp_path: Path) -> None:
    """Noise in the first block leaves what follows in the next ones."""
    records = [statistics(1_700_000_000 + n, {"gpu.0.gpu": n}, 9000) for n in range(12)]
    data = bytearray(log(records))
    data[100:120] = b"\xff" * 20  # inside the first record
    at = 7 + 7 + len(records[0])
    data[at : at + 7] = b"\xff" * 7  # and the frame of the second
    file = tmp_path / "run.wandb"
    file.write_bytes(data)
    found = readings(file, "util.kernel_time")
    assert found[-1] == pytest.approx(0.11)
    assert 6 <= len(found) < 12
    assert recorded(file).source.dropped
