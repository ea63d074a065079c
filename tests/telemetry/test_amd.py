"""What the tools and the exporter of AMD give, release by release."""

import json
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


# As `amd-smi monitor` 26 prints an MI300X in CPX/NPS4 (the documentation of amdsmi, 2026-11-30).
MONITOR = """\
GPU  XCP  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%   ENC%   DEC%      VRAM_USAGE
  0    0  183 W   49 °C   48 °C  1427 MHz   60 %    0 %    N/A    0 %    0.3/192.0 GB
  1    1    N/A     N/A     N/A       N/A    N/A    N/A    N/A    N/A    0.5/ 48.0 GB
  2    2    N/A     N/A     N/A       N/A    N/A    N/A    N/A    N/A    0.7/ 48.0 GB
  3    0  182 W   50 °C   46 °C  1423 MHz   20 %    0 %    N/A    0 %    0.4/192.0 GB
"""
# As rocm-smi prints one in CPX beside one in SPX (ROCm/ROCm#4750 and #4759, 2026-11-30).
CONCISE = """\
Device  Node  IDs              Temp        Power     Partitions          SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%
              (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)
0       34    0x74a1,   42546  48.0°C      142.0W    NPS4, CPX, 0        122Mhz  900Mhz  0%   auto  750.0W  1%     60%
1       35    0x74a1,   23091  48.0°C      142.0W    NPS4, CPX, 1        131Mhz  900Mhz  0%   auto  750.0W  2%     0%
2       36    N/A,      62138  N/A         N/A       N/A, N/A, 2         N/A     N/A     0%   n/a   N/A     3%     N/A
3       37    0x74a1,   57906  48.0°C      141.0W    NPS1, SPX, 0        149Mhz  900Mhz  0%   auto  750.0W  4%     20%
"""  # noqa: E501 - as it is printed


def _metric(gpu: int, busy: int | None, watts: int | None, gib: int, parts: int = 0) -> str:
    """Return one GPU of `amd-smi metric --json`; the first of a board in partitions counts them."""
    by_part = {f"xcp_{part}": ["N/A"] for part in range(parts)}
    usage = {"gfx_activity": {"value": busy, "unit": "%"}, "gfx_busy_inst": by_part}
    memory = {"used_vram": {"value": 1024 * gib, "unit": "MB"}}
    power = {"socket_power": {"value": watts, "unit": "W"}}
    known = {"usage": usage, "power": power} if parts else {"usage": "N/A", "power": "N/A"}
    return json.dumps({"gpu": gpu, **known, "mem_usage": memory})


# As the driver of ROCm 7.0.2 counts two partitions (ROCm/amdsmi#134, 2025-10-28).
METRIC = f'{{"gpu_data": [{_metric(0, 60, 183, 2, 2)}, {_metric(1, None, None, 4)}, {_metric(2, 20, 182, 8, 1)}]}}'  # noqa: E501


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (MONITOR, [None, 0.3, 0.5, 0.7, 0.4]),
        (CONCISE, [None, None, None, None, None]),
        (METRIC, [None, 2.0, 4.0, 8.0]),
    ],
)
def test_partitions_are_parts_of_a_board(
    text: str, held: list[float | None], tmp_path: Path
) -> None:
    """Two boards, busy 0.6 and 0.2 as their first partitions say, and the memory of each part."""
    (tmp_path / "amd.txt").write_text(text, encoding="utf-8")
    (profile,) = read_source(str(tmp_path / "amd.txt"), Hints(gpu="MI300X"))
    assert (profile.hardware.gpu_count, profile.busy_fraction) == (2, pytest.approx(0.4))
    power = [
        gpu.metrics["power.board_w"].mean for gpu in profile.gpus if "power.board_w" in gpu.metrics
    ]
    assert len(power) == 2
    memory = [gpu.metrics.get("mem.used_gib") for gpu in profile.gpus]
    assert [figures and figures.mean for figures in memory] == held
    assert any("AMD boards in partitions: 1" in note for note in profile.provenance.notes)


@pytest.mark.parametrize(
    ("text", "busy"),
    [
        (
            "timestamp,gpu,gfx_activity,umc_activity,edge,hotspot,mem\n{t},0,95,N/A,N/A,78,95\n",
            None,
        ),
        ("timestamp,gpu,gfx_activity,edge,hotspot,mem\n{t},0,95,70,78,95\n", None),
        ("timestamp,gpu,power_usage,hotspot_temperature,gfx,mem\n{t},0,500,78,95,40\n", 0.4),
        (
            '[{"gpu":0,"usage":{"gfx_activity":95},"temperature":{"edge":70,"hotspot":78,"mem":95}}]',
            None,
        ),
    ],
)
def test_mem_beside_other_temperatures_is_one(
    text: str, busy: float | None, tmp_path: Path
) -> None:
    """95 degrees of `metric` never become 95 %; the controller's time of `monitor` is read."""
    file = tmp_path / "amd.csv"
    file.write_text(text.format(t=1_795_168_800) if "{t}" in text else text, encoding="utf-8")
    samples = recorded(str(file)).samples
    assert samples["util.kernel_time"].tolist() == pytest.approx([0.95])
    controller = samples.get("util.mem_controller", [NONE])
    np.testing.assert_allclose(list(controller), [NONE if busy is None else busy])
