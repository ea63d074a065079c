"""What the tools and the exporter of AMD give, release by release."""

from pathlib import Path

import numpy as np
import pytest

from telemetry.readers.hints import Hints
from telemetry.recording.recording import GPU
from tests.telemetry.captures import assert_writable, path, recorded
from tests.telemetry.reading import read_source

NONE = float("nan")


@pytest.mark.parametrize(
    ("file", "form", "slot", "readings"),
    [
        ("rocm_smi.json", "rocm-smi", "util.kernel_time", [1.0]),
        ("rocm_smi.json", "rocm-smi", "mem.used_gib", [32.0]),
        ("rocm_smi.json", "rocm-smi", "power.board_w", [144.0]),
        ("rocm_smi.json", "rocm-smi", "power.limit_w", [560.0]),
        ("rocm_smi.json", "rocm-smi", "clock.sm_mhz", [1700.0]),
        ("rocm_smi.csv", "rocm-smi", "util.kernel_time", [0.4, 0.6]),
        ("rocm_smi.csv", "rocm-smi", "power.board_w", [144.0, NONE]),
        ("amd_smi.json", "amd-smi", "util.kernel_time", [0.8, NONE]),
        ("amd_smi.json", "amd-smi", "power.board_w", [600.0, 700.0]),
        ("amd_smi.json", "amd-smi", "mem.used_gib", [2.0, 4.0]),
        ("amd_smi.json", "amd-smi", "temp.core_c", [60.0, NONE]),
        ("amd_smi.csv", "amd-smi", "util.mem_controller", [0.3, 0.2]),
        ("amd_smi.csv", "amd-smi", "power.board_w", [600.0, 500.0]),
        ("exporter.prom", "prometheus-text", "util.kernel_time", [0.75]),
        ("exporter.prom", "prometheus-text", "power.board_w", [600.0]),
        ("exporter.prom", "prometheus-text", "mem.used_gib", [2.0]),
    ],
)
def test_a_reading_lands_in_its_slot(
    file: str, form: str, slot: str, readings: list[float]
) -> None:
    """Each release is recognised, and the first GPU's readings are those of the file."""
    recording = recorded(path(f"amd/{file}"))
    assert recording.source.format == form
    samples = recording.samples
    first = samples[samples[GPU] == min(samples[GPU].unique())]
    np.testing.assert_allclose(first[slot].to_numpy(dtype=float), readings)
    assert_writable(read_source(path(f"amd/{file}"), Hints()))


def test_a_later_partition_is_not_idle() -> None:
    """Zeros that the exporter writes for later partitions are dropped, and counted."""
    recording = recorded(path("amd/exporter.prom"))
    assert len(recording.gpus) == 1
    assert recording.source.dropped == {"point of a later partition (AMD)": 1}


def test_capacity_is_not_taken_for_the_controller() -> None:
    """Old "GPU memory use (%)", of two meanings, fills no slot; a missing figure stays missing."""
    recording = recorded(path("amd/rocm_smi.json"))
    assert "util.mem_controller" not in recording.samples
    assert recording.samples["mem.used_gib"].isna().sum() == 1
    assert [gpu.uuid for gpu in recording.gpus] == ["0x2f048617326b1ea", None]


def test_power_that_no_unit_explains_is_unknown(tmp_path: Path) -> None:
    """A broken sensor tells 511 C and 1,072 W of a card of 220 W (ROCm issue 1081): neither counts.

    Read as milliwatts it would be 1 W, less than any card draws that is on.
    """
    rule = f"{'=' * 80}\n"
    text = (
        f"{rule}GPU  Temp    AvgPwr        SCLK  MCLK  Fan     Perf  PwrCap  VRAM%  GPU%\n"
        f"0    511.0c  1072.741824W  N/A   N/A   100.0%  auto  220.0W    2%   100%\n{rule}"
    )
    file = tmp_path / "rocm.txt"
    file.write_text(text, encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    assert profile.gpus[0].metrics.keys() == {"util.kernel_time", "power.limit_w"}
    dropped = profile.provenance.sources[0].dropped
    assert isinstance(dropped, dict)
    assert dropped["value power.board_w above 1.3 x the power limit"] == 1
    assert dropped["value temp.core_c above 150"] == 1
