"""What the tools and the exporter of AMD give, release by release."""

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
