"""The contract every reader keeps, on one small capture per variant of every format."""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from planner.profile.kinds import SLOTS
from telemetry.readers.hints import Hints
from telemetry.recording.recording import EXTRA, GPU, TIME
from telemetry.sources import read_telemetry
from tests.telemetry.captures import assert_writable, path, recorded
from tests.telemetry.reading import read_source


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What a capture must come out as: slots are means over all samples of all GPUs."""

    file: str
    form: str
    gpus: int
    rows: tuple[int, int]
    means: dict[str, float]


CAPTURES = (
    Capture(
        file="nvidia_smi.csv",
        form="nvidia-smi-csv",
        gpus=2,
        rows=(12, 12),
        means={
            "util.kernel_time": 560 / 1200,
            "mem.used_gib": 10.5 + 1 / 3,
            "power.board_w": 80 + 2 * 560 / 12,
            "power.limit_w": 400.0,
        },
    ),
    Capture(
        file="nvidia_smi_nounits.csv",
        form="nvidia-smi-csv",
        gpus=2,
        rows=(12, 12),
        means={"util.kernel_time": 560 / 1200, "mem.used_gib": 10.5 + 1 / 3},
    ),
    Capture(
        file="nvidia_smi_powershell.csv",
        form="nvidia-smi-csv",
        gpus=2,
        rows=(12, 12),
        means={"util.kernel_time": 560 / 1200, "clock.sm_mhz": (8 * 1410 + 4 * 210) / 12},
    ),
    Capture(
        file="nvidia_smi_cut.csv",
        form="nvidia-smi-csv",
        gpus=2,
        rows=(13, 12),
        means={"util.kernel_time": 560 / 1200},
    ),
    Capture(
        file="nvidia_smi_cron.csv",
        form="nvidia-smi-csv",
        gpus=1,
        rows=(4, 4),
        means={"util.kernel_time": 0.25, "mem.used_gib": 4.0},
    ),
    Capture(
        file="nvidia_smi_no_index.csv",
        form="nvidia-smi-csv",
        gpus=2,
        rows=(12, 12),
        means={"util.kernel_time": 560 / 1200, "power.board_w": 30.5},
    ),
    Capture(
        file="nvidia_smi_mig.csv",
        form="nvidia-smi-csv",
        gpus=1,
        rows=(6, 6),
        means={"throttle.fraction": 0.5, "power.board_w": 430.25},
    ),
    Capture(
        file="wrapper_semicolon.csv",
        form="nvidia-smi-csv",
        gpus=1,
        rows=(5, 5),
        means={
            "util.kernel_time": 0.525,
            "power.board_w": 202.25,
            "mem.used_gib": 8e9 / 2**30,
        },
    ),
    Capture(
        file="wrapper_offset.csv",
        form="nvidia-smi-csv",
        gpus=3,
        rows=(12, 12),
        means={"util.kernel_time": 0.2, "mem.used_gib": 2.0},
    ),
    Capture(
        file="wrapper_epoch.csv",
        form="nvidia-smi-csv",
        gpus=1,
        rows=(5, 5),
        means={"util.kernel_time": 0.5, "mem.used_gib": 2.0},
    ),
    Capture(
        file="dmon.txt",
        form="nvidia-smi-dmon",
        gpus=2,
        rows=(12, 12),
        means={"util.kernel_time": 560 / 1200, "power.board_w": 300.5, "util.mem_controller": 0.1},
    ),
    Capture(
        file="dmon_dated.txt",
        form="nvidia-smi-dmon",
        gpus=1,
        rows=(6, 5),
        means={"util.kernel_time": 0.62, "mem.used_gib": 8.0},
    ),
    Capture(
        file="dcgm.prom",
        form="prometheus-text",
        gpus=2,
        rows=(24, 21),
        means={
            "util.kernel_time": 0.455,
            "util.sm_active": 0.06,
            "util.tensor_active": 0.0029,
            "util.mem_controller": 0.03,
        },
    ),
    Capture(
        file="dcgm_renamed.prom",
        form="prometheus-text",
        gpus=1,
        rows=(6, 6),
        means={"util.kernel_time": 0.91, "util.dram_active": 1.0, "power.board_w": 310.5},
    ),
    Capture(
        file="dcgm_elided.prom",
        form="prometheus-text",
        gpus=1,
        rows=(4, 3),
        means={"util.kernel_time": 0.91, "mem.used_gib": 20.0},
    ),
    Capture(
        file="dcgm_mig.prom",
        form="prometheus-text",
        gpus=3,
        rows=(6, 6),
        means={"power.board_w": 250.0, "util.sm_active": 0.75},
    ),
    Capture(
        file="nvidia_gpu_exporter.prom",
        form="prometheus-text",
        gpus=1,
        rows=(9, 7),
        means={
            "util.kernel_time": 0.09,
            "mem.used_gib": 1294991360 / 2**30,
            "clock.sm_mhz": 2520.0,
        },
    ),
    Capture(
        file="prometheus_matrix.json",
        form="prometheus-json",
        gpus=2,
        rows=(20, 19),
        means={"util.kernel_time": 430 / 900, "mem.used_gib": 14.0},
    ),
    Capture(
        file="prometheus_util.ndjson",
        form="prometheus-json",
        gpus=1,
        rows=(8, 8),
        means={"util.kernel_time": 0.9, "mem.used_gib": 20.0},
    ),
    Capture(
        file="prometheus_vector.json",
        form="prometheus-json",
        gpus=1,
        rows=(1, 1),
        means={"mem.used_gib": 20.0},
    ),
    Capture(
        file="wandb_events.jsonl",
        form="wandb-jsonl",
        gpus=1,
        rows=(13, 12),
        means={"util.kernel_time": 0.925, "util.sm_active": 0.42, "mem.used_gib": 6.0},
    ),
)
every_capture = pytest.mark.parametrize("capture", CAPTURES, ids=lambda c: c.file)


@every_capture
def test_recognised_by_content_with_units_right(capture: Capture, tmp_path: Path) -> None:
    """A capture is recognised under any name, and its values come out in slot units."""
    anonymous = tmp_path / "capture"
    anonymous.write_bytes(Path(path(capture.file)).read_bytes())
    recording = recorded(anonymous)
    assert recording.source.format == capture.form
    assert len(recording.gpus) == capture.gpus
    means = {slot: float(recording.samples[slot].mean()) for slot in capture.means}
    assert means == pytest.approx(capture.means)


@every_capture
def test_every_row_is_used_or_counted_as_dropped(capture: Capture) -> None:
    """Rows read are rows used plus rows dropped, and the drops name their reason."""
    recording = recorded(path(capture.file))
    assert (recording.rows_read, recording.rows_used) == capture.rows
    assert isinstance(recording.source.dropped, dict)
    lost = {r: n for r, n in recording.source.dropped.items() if not r.startswith("value ")}
    assert recording.rows_read == recording.rows_used + sum(lost.values())


@every_capture
def test_samples_have_the_agreed_shape(capture: Capture) -> None:
    """Samples hold only known columns, float values and keys that have an identity."""
    recording = recorded(path(capture.file))
    assert set(recording.slots) <= {*SLOTS, *EXTRA}
    assert set(recording.samples[GPU]) <= {gpu.key for gpu in recording.gpus}
    assert np.isfinite(recording.samples[TIME]).all()
    for slot in set(recording.slots) & set(SLOTS):
        values = recording.samples[slot].dropna()
        low, high = SLOTS[slot].low, SLOTS[slot].high
        assert low is None or (values >= low).all()
        assert high is None or (values <= high).all()


@every_capture
def test_a_profile_leaves_no_nan_and_no_folder(capture: Capture) -> None:
    """A capture's profile can be written, has no NaN and names the file without its folder."""
    profiles = read_source(path(capture.file), Hints())
    assert_writable(profiles)
    for profile in profiles:
        for readings in profile.gpus:
            for found in readings.metrics.values():
                assert found.mean is not None
                assert found.mean == found.mean
        assert [source.path for source in profile.provenance.sources] == [capture.file]
        assert "node-a" not in repr(profile)


@pytest.mark.parametrize(
    "files",
    [
        ("nvidia_smi.csv", "dcgm.prom", "wandb_events.jsonl"),
        ("prometheus_matrix.json", "prometheus_vector.json", "nvidia_smi.csv"),
        ("dmon.txt", "wrapper_offset.csv", "nvidia_smi_mig.csv"),
    ],
)
def test_the_order_of_files_does_not_matter(files: tuple[str, ...]) -> None:
    """Any order of the same files gives equal profiles."""
    forward = read_telemetry([path(file) for file in files], Hints())
    backward = read_telemetry([path(file) for file in reversed(files)], Hints())
    assert forward == backward


@pytest.mark.parametrize("file", ["nvidia_smi.csv", "wrapper_offset.csv", "nvidia_smi_mig.csv"])
def test_the_order_of_dated_rows_does_not_matter(file: str, tmp_path: Path) -> None:
    """Rows with a time and a device may come in any order."""
    header, *rows = Path(path(file)).read_text(encoding="utf-8").splitlines()
    shuffled = tmp_path / file
    random.Random(7).shuffle(rows)  # noqa: S311 - a fixed order, not a secret
    shuffled.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    (one,) = read_source(path(file), Hints())
    (other,) = read_source(str(shuffled), Hints())
    assert other.gpus == one.gpus
    assert other.window == one.window
