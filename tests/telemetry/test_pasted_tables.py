"""Tables that people paste and logs that their scripts glue together: each GPU gets its own."""

from pathlib import Path

import pytest

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.telemetry.captures import FOLDER
from tests.telemetry.reading import read_source

MARKDOWN = (
    "# Our node\n\n"
    "| GPU | Name | Utilization | Memory Used | Power |\n"
    "|-----|:----:|------------:|-------------|-------|\n"
    + "".join(
        f"| {i} | NVIDIA A100-SXM4-80GB | {90 + i}% | {70 + i},144 MiB | {400 + i} W |\n"
        for i in range(8)
    )
    + "| **Mean** | | 93.5% | 73,644 MiB | 403.5 W |\n\nThat is all.\n"
)
PRINTED = (
    "| GPU | GPU-Util | Memory-Usage | Pwr:Usage/Cap |\n|---|---|---|---|\n"
    "| 0 | 97% | 71680MiB / 81559MiB | 412W / 700W |\n"
    "| 1 | 5% | 1024MiB / 81559MiB | 80W / 700W |\n"
)
AT_ONCE = (
    "timestamp, name, utilization.gpu [%]\n"
    "2026/05/01 12:00:00.001, NVIDIA L4, 97 %\n2026/05/01 12:00:00.004, NVIDIA L4, 3 %\n"
)
TWICE = AT_ONCE + (
    "2026/05/01 12:00:10.001, NVIDIA L4, 99 %\n2026/05/01 12:00:10.004, NVIDIA L4, 5 %\n"
)
GLUED = (
    "timestamp  device,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B)\n"
    "1782907200 card0,20,206158430208,2147483648\n1782907200 card1,60,206158430208,4294967296\n"
    "1782907210 card0,40,206158430208,2147483648\n1782907210 card1,80,206158430208,4294967296\n"
)
DATED = (
    "2026-07-01 12:00:00 device,GPU use (%),Average Graphics Package Power (W)\n"
    "2026-07-01 12:00:00 card0,20,200.0\n2026-07-01 12:00:00 card1,60,300.0\n"
    "2026-07-01 12:00:10 device,GPU use (%),Average Graphics Package Power (W)\n"
    "2026-07-01 12:00:10 card0,40,220.0\n2026-07-01 12:00:10 card1,80,320.0\n"
)
COLUMN = DATED.replace(" device", ",device").replace(" card", ",card")
OVER = (
    "Wed Jul  1 12:00:00 UTC 2026\ndevice,GPU use (%)\ncard0,20\ncard1,60\n\n"
    "Wed Jul  1 12:00:10 UTC 2026\ndevice,GPU use (%)\ncard0,40\ncard1,80\n"
)
WARNED = (
    "WARNING: AMD GPU device(s) is/are in a low-power state.\n\n"
    "device,GPU use (%),GFX Activity,Power (W),VRAM Total (B),VRAM Used (B)\n"
    "card0,20,203885505,200.0,206158430208,2147483648\n"
    "card1,60,203885505,300.0,206158430208,4294967296\n"
)
BARE = (
    "Device,GPU use (%),GPU memory use (%),Temperature (Sensor edge) (C)\n0,20,50,61\n1,60,50,62\n"
)
ROCM = (FOLDER / "pasted" / "rocm_smi_6.txt").read_text(encoding="utf-8")
OLD_ROCM = (FOLDER / "pasted" / "rocm_smi_5.txt").read_text(encoding="utf-8")
MONITOR = (FOLDER / "pasted" / "amd_smi_monitor.txt").read_text(encoding="utf-8")
USAGE = (FOLDER / "pasted" / "amd_smi_monitor_7.txt").read_text(encoding="utf-8")
GPUSTAT = (
    "node-a       Wed Jul  1 12:00:00 2026  550.54.15\n"
    "[0] NVIDIA A100-SXM4-80GB | 41°C,  20 %,  200 / 400 W |  2048 / 81920 MB |\n"
    "[1] NVIDIA A100-SXM4-80GB | 69'C,  30 %,  60 %,  300 / 400 W |  4096 / 81920 MB | bob(4M)\n"
    "node-a       Wed Jul  1 12:00:10 2026  550.54.15\n"
    "[0] NVIDIA A100-SXM4-80GB | 41°C,  40 %,  220 / 400 W |  2048 / 81920 MB |\n"
    "[1] NVIDIA A100-SXM4-80GB | 69°C,  80 %,  320 / 400 W |  4096 / 81920 MB | bob(4M)\n"
)
OLD_GPUSTAT = (
    "[0] GeForce GTX Titan X | 77'C,  20 % |  2048 / 12287 MB | alice(2048M)\n"
    "[1] GeForce GTX Titan X | 40'C,  60 % |  4096 / 12287 MB |\n"
)
LOAD, MEMORY, WATTS = "util.kernel_time", "mem.used_gib", "power.board_w"


def _read(folder: Path, text: str) -> Profile:
    file = folder / "pasted.txt"
    file.write_text(text, encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    return profile


def _means(profile: Profile, slot: str) -> list[float | None]:
    return [gpu.metrics[slot].mean if slot in gpu.metrics else None for gpu in profile.gpus]


@pytest.mark.parametrize(
    ("text", "slot", "means"),
    [
        (MARKDOWN, LOAD, [round(0.9 + 0.01 * i, 2) for i in range(8)]),
        (MARKDOWN, WATTS, [400.0 + i for i in range(8)]),
        (MARKDOWN, MEMORY, [(70_144 + 1000 * i) / 1024 for i in range(8)]),
        (PRINTED, LOAD, [0.97, 0.05]),
        (PRINTED, MEMORY, [70.0, 1.0]),
        (PRINTED, WATTS, [412.0, 80.0]),
        (AT_ONCE, LOAD, [0.97, 0.03]),
        (TWICE, LOAD, [0.98, 0.04]),
        (GLUED, LOAD, [0.3, 0.7]),
        (GLUED, MEMORY, [2.0, 4.0]),
        (DATED, LOAD, [0.3, 0.7]),
        (DATED, WATTS, [210.0, 310.0]),
        (COLUMN, LOAD, [0.3, 0.7]),
        (COLUMN, WATTS, [210.0, 310.0]),
        (OVER, LOAD, [0.3, 0.7]),
        (WARNED, LOAD, [0.2, 0.6]),
        (WARNED, WATTS, [200.0, 300.0]),
        (WARNED, MEMORY, [2.0, 4.0]),
        (BARE, LOAD, [0.2, 0.6]),
        (BARE, MEMORY, [None, None]),
        (ROCM, LOAD, [0.2, 0.6]),
        (ROCM, WATTS, [200.0, 300.0]),
        (ROCM, MEMORY, [19.2, 96.0]),
        (OLD_ROCM, LOAD, [0.2, 0.6]),
        (OLD_ROCM, WATTS, [200.0, None]),
        (MONITOR, LOAD, [0.2, 0.6]),
        (MONITOR, WATTS, [200.0, 300.0]),
        (MONITOR, MEMORY, [2.0, 4.0]),
        (USAGE, LOAD, [0.2, 0.6]),
        (USAGE, MEMORY, [2.0, 4.0]),
        (GPUSTAT, LOAD, [0.3, 0.7]),
        (GPUSTAT, WATTS, [210.0, 310.0]),
        (GPUSTAT, MEMORY, [2.0, 4.0]),
        (OLD_GPUSTAT, LOAD, [0.2, 0.6]),
        (OLD_GPUSTAT, WATTS, [None, None]),
    ],
)
def test_each_gpu_has_its_own_readings(
    tmp_path: Path, text: str, slot: str, means: list[float | None]
) -> None:
    """As many GPUs as the table has, each with its own figures."""
    found = _means(_read(tmp_path, text), slot)
    assert found == [None if mean is None else pytest.approx(mean, rel=1e-3) for mean in means]


@pytest.mark.parametrize("text", [GLUED, DATED, COLUMN, OVER, GPUSTAT])
def test_a_date_before_the_lines_is_when_they_were_taken(tmp_path: Path, text: str) -> None:
    """Ten seconds lie between the two answers."""
    window = _read(tmp_path, text).window
    assert window is not None
    assert window.interval_s == 10.0
    assert window.start is not None
    assert window.start.isoformat() == "2026-07-01T12:00:00+00:00"


@pytest.mark.parametrize("text", [MARKDOWN, PRINTED, AT_ONCE, WARNED, ROCM, MONITOR, OLD_GPUSTAT])
def test_one_answer_is_a_snapshot(tmp_path: Path, text: str) -> None:
    """No time goes by between the GPUs of one answer."""
    profile = _read(tmp_path, text)
    assert profile.window is not None
    assert profile.window.duration_s is None


def test_the_rule_below_a_heading_is_no_model(tmp_path: Path) -> None:
    """The dashes of a Markdown table are not a reading."""
    profile = _read(tmp_path, MARKDOWN)
    assert profile.hardware.gpu == "NVIDIA A100-SXM4-80GB"
    assert profile.provenance.sources[0].dropped == {
        "line before the header": 1,
        "summary of rows": 1,
        "wrong number of fields": 1,
    }


def test_the_name_below_a_row_is_the_model(tmp_path: Path) -> None:
    """rocm-smi writes it into a line of its own."""
    assert _read(tmp_path, ROCM).hardware.gpu == "AMD Instinct MI300X"


@pytest.mark.parametrize("named", ["0x1002", "0xc1e", "N/A"])
def test_a_series_told_as_a_number_is_no_model(tmp_path: Path, named: str) -> None:
    """Old releases give the vendor's id as the series of a card that they do not know."""
    answer = f'{{"card0": {{"Card series": "{named}", "GPU use (%)": "20"}}}}'
    assert _read(tmp_path, answer).hardware.gpu is None


def test_zeros_of_what_is_not_told_are_missing(tmp_path: Path) -> None:
    """No board draws 0 W, and no kernel runs in 0 MiB: loggers write 0 for what they do not get."""
    header = "timestamp,index,gpu_util,memory_used_mb,power_draw_w,power_limit_w,sm_clock_mhz\n"
    rows = "".join(f"{1782907200 + i},0,80,0,0,0,0\n" for i in range(10))
    other = "".join(f"{1782907200 + i},1,0,0,60,700,345\n" for i in range(10))
    profile = _read(tmp_path, header + rows + other)
    assert set(profile.gpus[0].metrics) == {LOAD}
    assert {LOAD, MEMORY, WATTS, "energy.total_j"} <= set(profile.gpus[1].metrics)
    assert any("power.board_w: 0 in every row" in note for note in profile.provenance.notes)


def test_rows_without_time_and_index_say_what_was_assumed(tmp_path: Path) -> None:
    """Two rows may be two GPUs or two instants: the profile says which was taken."""
    profile = _read(tmp_path, "name, memory.used [MiB]\nNVIDIA L4, 100 MiB\nNVIDIA L4, 200 MiB\n")
    assert len(profile.gpus) == 1
    assert any("2 rows without time or index" in note for note in profile.provenance.notes)


def test_rows_without_a_header_are_told_how_to_be_read(tmp_path: Path) -> None:
    """The refusal names the option that reads them."""
    with pytest.raises(InputError, match=r"--map 1=power\.board_w --map 4=util\.kernel_time"):
        _read(tmp_path, "39.94 W, 32, 29, 0 %, 0 %\n40.94 W, 32, 29, 10 %, 0 %\n")


def test_a_quoted_table_of_nvidia_smi_is_read(tmp_path: Path) -> None:
    """In an issue or a mail, every line stands behind a mark or spaces."""
    table = (FOLDER / "pasted" / "nvidia_smi.txt").read_text(encoding="utf-8")
    for mark in ("> ", "    "):
        quoted = "".join(f"{mark}{line}\n" for line in table.splitlines())
        assert _means(_read(tmp_path, quoted), LOAD) == [0.2]


def test_tables_of_several_machines_are_no_log(tmp_path: Path) -> None:
    """A page of notes that holds tables of years and machines is refused, not averaged."""
    table = (FOLDER / "pasted" / "nvidia_smi.txt").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="NVIDIA L4, NVIDIA T4"):
        _read(tmp_path, table + "\n" + table.replace("NVIDIA L4", "NVIDIA T4"))


@pytest.mark.parametrize(
    ("names", "gpus"),
    [("AB", 2), ("AABAAB", 3), ("ABABA", 2), ("AAAA", 1), ("A A ", 1)],
)
def test_rows_of_different_models_without_a_time_are_of_different_gpus(
    names: str, gpus: int, tmp_path: Path
) -> None:
    """One answer, or several after each other; rows of one model, or without one, say nothing."""
    head = "name, utilization.gpu [%], memory.used [MiB]"
    models = {"A": "NVIDIA A10G", "B": "Tesla T4", " ": ""}
    rows = [f"{models[name]}, {10 + i} %, 900 MiB" for i, name in enumerate(names)]
    file = tmp_path / "query.csv"
    file.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    assert sum(len(profile.gpus) for profile in read_source(str(file), Hints())) == gpus
