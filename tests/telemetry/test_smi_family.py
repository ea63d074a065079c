"""What nvidia-smi and tools like it print: each form of it comes out as what it says."""

from pathlib import Path

import numpy as np
import pytest

from pricing.errors import InputError
from telemetry.readers.hints import Hints
from telemetry.recording.recording import GPU, Recording
from tests.telemetry.captures import assert_writable, path, recorded
from tests.telemetry.reading import read_source

NONE = float("nan")


def column(recording: Recording, slot: str, gpu: int = 0) -> list[float]:
    """Return the readings of one GPU by its place."""
    key = sorted(recording.samples[GPU].unique())[gpu]
    rows = recording.samples[recording.samples[GPU] == key]
    return [float(value) for value in rows[slot]]


@pytest.mark.parametrize(
    ("file", "form", "slot", "readings"),
    [
        ("q_log.xml", "nvidia-smi-xml", "util.kernel_time", [0.5, 1.0]),
        ("q_log.xml", "nvidia-smi-xml", "util.mem_controller", [0.2, NONE]),
        ("q_log.xml", "nvidia-smi-xml", "mem.used_gib", [10.0, 20.0]),
        ("q_log.xml", "nvidia-smi-xml", "power.board_w", [200.0, NONE]),
        ("q_log.xml", "nvidia-smi-xml", "power.limit_w", [400.0, NONE]),
        ("q_log.xml", "nvidia-smi-xml", "throttle.fraction", [1.0, 0.0]),
        ("q_log.txt", "nvidia-smi-q", "util.kernel_time", [0.75, 0.25]),
        ("q_log.txt", "nvidia-smi-q", "mem.used_gib", [4.0, 8.0]),
        ("q_log.txt", "nvidia-smi-q", "power.board_w", [150.0, NONE]),
        ("q_log.txt", "nvidia-smi-q", "power.limit_w", [300.0, NONE]),
        ("q_log.txt", "nvidia-smi-q", "clock.sm_mhz", [1290.0, NONE]),
        ("q_log.txt", "nvidia-smi-q", "throttle.fraction", [1.0, NONE]),
        ("table_535.log", "nvidia-smi-table", "util.kernel_time", [0.5, 1.0]),
        ("table_535.log", "nvidia-smi-table", "power.board_w", [200.0, NONE]),
        ("table_535.log", "nvidia-smi-table", "mem.used_gib", [10.0, 20.0]),
        ("pmon.txt", "nvidia-smi-pmon", "util.kernel_time", [0.6, 0.8]),
        ("pmon.txt", "nvidia-smi-pmon", "mem.process_gib", [3.0, 1.0]),
        ("compute_apps.csv", "nvidia-smi-apps", "mem.process_gib", [3.0, 5.0]),
        ("accounted_apps.csv", "nvidia-smi-apps", "util.kernel_time", [0.81, 0.81]),
        ("gpustat.json", "gpustat", "util.kernel_time", [0.5, NONE]),
        ("gpustat.json", "gpustat", "mem.used_gib", [1.0, 1.0]),
        ("nvtop.json", "nvtop", "fraction.memory", [0.12]),
        ("nvtop.json", "nvtop", "clock.sm_mhz", [500.0]),
        ("nvitop.jsonl", "nvitop", "util.kernel_time", [0.5, 0.6]),
        ("nvitop.jsonl", "nvitop", "mem.used_gib", [1.0, 2.0]),
        ("dcgmi_dmon.txt", "dcgmi-dmon", "util.sm_active", [0.3, 0.5]),
        ("dcgmi_dmon.txt", "dcgmi-dmon", "power.board_w", [200.5, 300.5]),
    ],
)
def test_a_reading_lands_in_its_slot(
    file: str, form: str, slot: str, readings: list[float]
) -> None:
    """Each form is recognised, and the first GPU's readings are those of the file."""
    recording = recorded(path(f"smi/{file}"))
    assert recording.source.format == form
    np.testing.assert_allclose(column(recording, slot), readings)
    assert_writable(read_source(path(f"smi/{file}"), Hints()))


@pytest.mark.parametrize(
    ("file", "dropped"),
    [
        ("q_log.xml", {"cut device": 1, "value N/A": 1}),
        ("table_535.log", {"cut device": 1, "value ERR!": 1}),
        ("pmon.txt", {"cut line": 1, "value -": 4}),
        (
            "compute_apps.csv",
            {
                "process whose memory the driver does not tell": 1,
                "wrong number of fields": 1,
            },
        ),
        ("gpustat.json", {"cut query": 1}),
        ("dcgmi_dmon.txt", {"value N/A": 1}),
    ],
)
def test_what_is_missing_is_counted(file: str, dropped: dict[str, int]) -> None:
    """Cut rows and placeholders are counted by reason."""
    assert recorded(path(f"smi/{file}")).source.dropped == dropped


@pytest.mark.parametrize(
    ("file", "gpus", "model", "memory_gib"),
    [
        ("q_log.xml", 1, "NVIDIA A100-SXM4-40GB", 40.0),
        ("q_log.txt", 1, "Tesla V100-SXM2-16GB", 16.0),
        ("table_535.log", 2, "NVIDIA A100-SXM4-40GB", 40.0),
        ("compute_apps.csv", 1, "NVIDIA L4", None),
        ("gpustat.json", 1, "NVIDIA A100", 40.0),
        ("dcgmi_dmon.txt", 2, None, None),
    ],
)
def test_devices_are_told(
    file: str, gpus: int, model: str | None, memory_gib: float | None
) -> None:
    """How many devices, which model, how much memory."""
    identities = recorded(path(f"smi/{file}")).gpus
    assert len(identities) == gpus
    assert (identities[0].model, identities[0].memory_gib) == (model, memory_gib)


def test_a_gpu_without_processes_is_idle_and_not_lost(tmp_path: Path) -> None:
    """In pmon it has a row of dashes: its use and memory are 0, those of the other are sums."""
    head = "#Time gpu pid type sm mem fb command\n#HH:MM:SS Idx # C/G % % MB name\n"
    busy = "10:00:0{t} 0 11 C 60 10 20480 a\n10:00:0{t} 0 22 C 30 5 10240 b\n"
    rows = busy + "10:00:0{t} 1 - - - - - -\n"
    file = tmp_path / "pmon.txt"
    file.write_text(head + "".join(rows.format(t=t) for t in range(4)), encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    means = [
        (gpu.metrics["util.kernel_time"].mean, gpu.metrics["mem.process_gib"].mean)
        for gpu in profile.gpus
    ]
    assert means == [(0.9, 30.0), (0.0, 0.0)]
    assert not profile.health


_RED, _BACK, _INVERSE, _PLAIN = "\x1b[31m", "\x1b(B\x1b[m", "\x1b[7m", "\x1b[27m"


def test_what_a_terminal_does_not_show_is_not_read(tmp_path: Path) -> None:
    """`watch -d` inverts what changed within a row and `script` keeps that: the row is a row."""
    line = f"|  0%   29C    P0            {_INVERSE}223W{_PLAIN} /  300W |   30720MiB /  46068MiB |"
    table = (
        "\x1b[H\x1b[2J\x1b[3JEvery 5.0s: nvidia-smi\x1b[1;60Hdgx: Fri Mar  6 10:00:05 2026\n\n"
        "Fri Mar  6 10:00:{s} 2026\n| NVIDIA-SMI 550.127.05  Driver Version: 550.127.05 |\n"
        "|   0  NVIDIA A40             On  |   00000000:4F:00.0 Off |                    0 |\n"
        + line
        + "     {busy}      Default |\n"
    )
    file = tmp_path / "watch.log"
    frames = [table.format(s=s, busy=busy) for s, busy in (("05", "90%"), ("10", "70%"))]
    file.write_text("".join(frames), encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    means = {name: metric.mean for name, metric in profile.gpus[0].metrics.items()}
    assert means["util.kernel_time"] == pytest.approx(0.8)
    assert (means["power.board_w"], means["mem.used_gib"]) == (223.0, 30.0)


def test_gpustat_in_colour_is_gpustat(tmp_path: Path) -> None:
    """A terminal's log of `gpustat --color`: codes stand between all parts of a line."""
    line = (
        f"\x1b[36m[0]{_BACK} \x1b[34mNVIDIA L4{_BACK} |{_RED} 45\N{DEGREE SIGN}C{_BACK}, "
        f"\x1b[32m 50 %{_BACK},   60 /   72 W | \x1b[36m\x1b[1m 1024{_BACK} / 23034{_BACK} MB |\n"
    )
    file = tmp_path / "gpustat.log"
    file.write_text(line * 3, encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    assert profile.hardware.gpu == "NVIDIA L4"
    assert profile.gpus[0].metrics["util.kernel_time"].mean == pytest.approx(0.5)
    assert profile.gpus[0].metrics["mem.used_gib"].mean == pytest.approx(1.0)


def test_an_account_is_as_long_as_the_process_lived() -> None:
    """The driver's account of one process gives its length, and its means."""
    (profile,) = read_source(path("smi/accounted_apps.csv"), Hints())
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(3605.0)
    assert profile.gpus[0].metrics["mem.process_gib"].max == pytest.approx(9321 / 1024, abs=1e-6)


def test_instances_of_dcgmi_are_no_devices(tmp_path: Path) -> None:
    """A row `GPU-I 3` is an instance, told apart from `GPU 3`."""
    file = tmp_path / "dmon.txt"
    file.write_text("#Entity  SMACT\nID\nGPU-I 3  0.250\nGPU 3  0.100\n", encoding="utf-8")
    instance, whole = sorted(recorded(file).gpus, key=lambda gpu: gpu.partition is None)
    assert (instance.partition, instance.index) == ("instance 3", 3)
    assert (whole.partition, whole.index) == (None, 3)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<nvidia_smi_log><gpu id='0'>", "no complete <gpu> element"),
        ("<!DOCTYPE nvidia_smi_log [<!ENTITY a 'x'>]><nvidia_smi_log></nvidia_smi_log>", "<gpu>"),
        ("==============NVSMI LOG==============\n", "no GPU stands"),
        ("| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05 |\n", "no GPU in it is complete"),
        ("# gpu pid type sm mem enc dec command\n# Idx # C/G % % % % name\n", "without a row"),
        ("pid, used_gpu_memory [MiB]\n", "no process under it"),
        ('{"query_time": "2026-03-01T10:00:00", "gpus": []}', "no GPU in this gpustat"),
        ("#Entity GPUTL\n", "without a row"),
    ],
)
def test_a_form_without_readings_is_refused(content: str, says: str, tmp_path: Path) -> None:
    """Each says what is missing from it."""
    file = tmp_path / "given"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        read_source(str(file), Hints())


_STAMPED_LOGS = {
    "dcgmi-dmon": ("#Entity GPUTL", "ID", "GPU 0 {busy}"),
    "nvidia-smi-dmon": ("# gpu sm", "# Idx %", "    0 {busy}"),
    "nvidia-smi-pmon": (
        "# gpu pid type sm fb command",
        "# Idx # C/G % MB name",
        "    0 41 C {busy} 9000 python",
    ),
}


@pytest.mark.parametrize("form", _STAMPED_LOGS)
@pytest.mark.parametrize(
    ("stamps", "year"),
    [
        (("Nov 10 23:59:50 ", "Nov 11 00:00:00 ", "Nov 11 00:00:10 "), None),
        (("[2026-11-10 23:59:50] ", "[2026-11-11 00:00:00] ", "[2026-11-11 00:00:10] "), 2026),
        (("23:59:50.25 ", "00:00:00.25 ", "00:00:10.25 "), None),
    ],
)
def test_a_log_that_ts_stamped_lasts_as_long_as_its_stamps(
    form: str, stamps: tuple[str, ...], year: int | None, tmp_path: Path
) -> None:
    """`COMMAND | ts` puts the time before each line, over midnight, too; headers have one as well.

    Three rows 10 s apart, 80, 40 and 30 % busy: 30 s and 50 % on average.
    """
    *head, row = _STAMPED_LOGS[form]
    lines = [stamps[0] + line for line in head]
    lines += [f"{s}{row.format(busy=busy)}" for s, busy in zip(stamps, (80, 40, 30), strict=True)]
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (profile,) = read_source(str(tmp_path / "job.log"), Hints())
    assert profile.provenance.sources[0].format == form
    assert profile.window is not None
    assert (profile.window.interval_s, profile.window.recorded_s) == (10.0, 30.0)
    assert (profile.window.start and profile.window.start.year) == year
    assert profile.mean("util.kernel_time") == pytest.approx(0.5)


def test_processes_never_hold_more_than_the_gpu_has(tmp_path: Path) -> None:
    """2 x 34 GiB on a card of 40: unknown and counted; on one of 80, and of either, 68 GiB."""
    rows = "".join(f"0 {pid} C {sm} 5 - - 34816 python\n" for sm in (40, 50) for pid in (11, 12))
    file = tmp_path / "pmon.txt"
    file.write_text(f"# gpu pid type sm mem enc dec fb command\n{rows}", encoding="utf-8")
    for gpu, held_gib in (("A100-SXM-40GB", None), ("A100-SXM-80GB", 68.0), ("A100", 68.0)):
        (profile,) = read_source(str(file), Hints(gpu=gpu))
        assert profile.peak("mem.process_gib") == held_gib
        left_out = "mem.process_gib: 2 values left out: above the device's memory."
        assert (left_out in profile.provenance.notes) == (held_gib is None)
