"""What became of every name of an input, what cannot be, and what tells of a failing card."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.diagnosis.diagnose import diagnose
from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.formats.sniff import UnknownFormatError
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry
from tests.telemetry.reading import read_source

SMI = "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], power.draw [W]"
ROW = "2026/03/01 10:00:{:02d}.000, 0, GPU-a, NVIDIA A100-SXM4-80GB, {} %, 30000 MiB, 200.0 W"
ROWS = [ROW.format(second, 90) for second in range(0, 60, 10)]


def read(tmp_path: Path, text: str, name: str = "log.csv", hints: Hints = Hints()) -> Profile:  # noqa: B008
    """Return the one profile of a text."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    (profile,) = read_source(str(file), hints)
    return profile


def notes(profile: Profile) -> str:
    """Return all notes as one text."""
    return "\n".join(profile.provenance.notes)


def log(*more: str, rows: list[str] = ROWS) -> str:
    """Return a log with more columns: pairs of a name and a cell."""
    names, cells = more[::2], more[1::2]
    return "\n".join((", ".join((SMI, *names)), *(", ".join((row, *cells)) for row in rows))) + "\n"


def test_a_column_that_is_not_understood_is_named(tmp_path: Path) -> None:
    """The name, how many others are read, and the option that would read it."""
    profile = read(tmp_path, log("frobnication_rate", "7", "fan.speed [%]", "30 %"))
    assert "1 column not understood ('frobnication_rate'), 7 read, 1 not needed" in notes(profile)
    (unread,) = (c for c in profile.provenance.sources[0].columns if c.scale is None)
    assert (unread.source, unread.slot, unread.n) == ("frobnication_rate", None, 6)


@pytest.mark.parametrize(
    ("column", "cell", "field", "value"),
    [
        ("cpu_util [%]", "14", "cpu_util", 0.14),
        ("host_cpu_utilization_ratio", "0.14", "cpu_util", 0.14),
        ("cpu_busiest_core [%]", "98", "cpu_busiest_core", 0.98),
        ("host_ram_used [GiB]", "8", "ram_used_gib", 8.0),
        ("host_ram_used (MiB)", "8192", "ram_used_gib", 8.0),
        ("host_net_rx_mb_s", "104.8576", "net_rx_mib_s", 100.0),
        ("disk_read [MiB/s]", "50", "disk_read_mib_s", 50.0),
    ],
)
def test_columns_of_the_machine_are_read_by_name_and_unit(
    tmp_path: Path, column: str, cell: str, field: str, value: float
) -> None:
    """A person's own columns beside nvidia-smi's; 10^6 bytes are 0.953674 MiB."""
    profile = read(tmp_path, log(column, cell))
    assert getattr(profile.host, field).mean == pytest.approx(value, rel=1e-4)
    assert "not understood" not in notes(profile)


def test_columns_that_may_be_of_the_machine_are_asked_for(tmp_path: Path) -> None:
    """Without a unit 0.9 is 0.9 % or 90 %, and cpu_percent may be of one process."""
    for column in ("cpu_util", "cpu_percent"):
        profile = read(tmp_path, log(column, "0.9"))
        assert profile.host is None
        said = f"may mean several things: '{column}'. If it is of the machine: --map '{column}="
        assert f"{said}host.cpu_util'" in notes(profile)


def test_columns_headed_by_dcgm_s_fields_are_read(tmp_path: Path) -> None:
    """Memory in MiB, power in W, bytes a second as such; more than a slot carries is left out."""
    names = ("DEV_GPU_UTIL", "DEV_FB_USED", "DEV_POWER_USAGE", "PROF_PCIE_RX_BYTES")
    head = ",".join(("timestamp,gpu,Hostname,modelName", *(f"DCGM_FI_{n}" for n in names)))
    for received, mib_s in ((20_971_520_000, 20_000.0), (9e15, None)):
        rows = [
            f"{1e9 + t},0,n7,NVIDIA H100 PCIe,100,61440,178,{received}" for t in range(0, 90, 30)
        ]
        profile = read(tmp_path, "\n".join((head, *rows)))
        assert profile.hardware.gpu == "NVIDIA H100 PCIe"
        assert profile.mean("mem.used_gib") == 60.0
        assert profile.mean("power.board_w") == 178.0
        assert profile.mean("io.pcie_rx_mib_s") == mib_s
        assert "not understood" not in notes(profile)


def test_no_map_is_proposed_by_a_vendor_s_prefix(tmp_path: Path) -> None:
    """What DCGM's names have in common says nothing of what they hold."""
    said = notes(read(tmp_path, log("DCGM_FI_DEV_SOME_NEW_COUNT", "7")))
    assert "--map 'DCGM_FI_DEV_SOME_NEW_COUNT=SLOT'" in said


def test_a_model_that_is_not_known_is_what_gpu_says(tmp_path: Path) -> None:
    """A known model goes before the option, another one does not."""
    laptop = log().replace("NVIDIA A100-SXM4-80GB", "Some GPU of 2031")
    assert read(tmp_path, laptop, hints=Hints(gpu="L4")).hardware.gpu == "L4"
    assert read(tmp_path, laptop).hardware.gpu == "Some GPU of 2031"
    assert read(tmp_path, log(), hints=Hints(gpu="L4")).hardware.gpu == "NVIDIA A100-SXM4-80GB"


def test_nothing_is_said_where_all_is_understood(tmp_path: Path) -> None:
    """What nvidia-smi writes and nobody needs is known."""
    every = ("pstate", "P0", "pcie.link.gen.current", "4", "clocks.mem [MHz]", "1593 MHz")
    assert "not understood" not in notes(read(tmp_path, log(*every)))


def test_the_nearest_name_is_proposed(tmp_path: Path) -> None:
    """A spelling of memory in use gets the option that reads it."""
    profile = read(tmp_path, "time,gpu,gpu_util,gpu_memory_use_mb\n0,0,50,100\n1,0,60,100\n")
    assert "--map 'gpu_memory_use_mb=mem.used_gib'" in notes(profile)


def test_a_map_counts_for_any_of_several_files(tmp_path: Path) -> None:
    """A column of one file may be named though another file lacks it."""
    for name, column in (("a.csv", "load"), ("b.csv", "usage")):
        (tmp_path / name).write_text(f"time,gpu,{column}\n0,0,50\n1,0,60\n", encoding="utf-8")
    paths = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    said = (("load", "util.kernel_time"), ("usage", "util.mem_controller"))
    (profile,) = read_telemetry(paths, Hints(map=said))
    assert profile.busy_fraction == pytest.approx(0.55)
    with pytest.raises(InputError, match=r"no column laod; the columns are gpu, load, time, usage"):
        read_telemetry(paths, Hints(map=(*said, ("laod", "util.kernel_time"))))


def test_a_map_counts_for_any_job_of_a_folder(tmp_path: Path) -> None:
    """A file of another job that lacks the column is read all the same."""
    for job, start, column in (("a", 1790000000, "load"), ("b", 1799000000, "gpu_util")):
        (tmp_path / job).mkdir()
        rows = "".join(f"{start + i},GPU-{job},{50 + 10 * i}\n" for i in (0, 1))
        (tmp_path / job / "log.csv").write_text(f"time,uuid,{column}\n{rows}", encoding="utf-8")
    said = (("load", "util.kernel_time"),)
    profiles = read_source(str(tmp_path), Hints(map=said))
    assert [profile.busy_fraction for profile in profiles] == [pytest.approx(0.55)] * 2
    with pytest.raises(InputError, match="no column laod"):
        read_source(str(tmp_path), Hints(map=(("laod", "util.kernel_time"),)))


def test_an_unknown_column_changes_no_figure(tmp_path: Path) -> None:
    """Figures of a log are the same with more columns, and with columns in another order."""
    plain = read(tmp_path, log())
    more = read(tmp_path, log("frobnication_rate", "7"))
    turned = "\n".join(", ".join(reversed(line.split(", "))) for line in log().strip().splitlines())
    assert plain.gpus == more.gpus == read(tmp_path, turned + "\n").gpus
    assert plain.window == more.window


def test_rows_twice_and_logs_in_two_files_change_no_figure(tmp_path: Path) -> None:
    """Copied rows count once; two halves of a log, in either order, are the log."""
    whole = read(tmp_path, log())
    assert read(tmp_path, log(rows=[*ROWS, *ROWS[2:]])).gpus == whole.gpus
    halves = [tmp_path / "b.csv", tmp_path / "a.csv"]
    for file, rows in zip(halves, (ROWS[:3], ROWS[3:]), strict=True):
        file.write_text(log(rows=rows), encoding="utf-8")
    for order in (halves, halves[::-1]):
        (joined,) = read_telemetry([str(file) for file in order], Hints())
        assert joined.gpus == whole.gpus
        assert joined.window == whole.window


_UNKNOWN = ("frobnication_rate", "my.column [x]", "note")
_FILES = ("a.csv", "node 7.log", "z.txt", "smi-2026.csv")


@settings(max_examples=settings().max_examples // 4)
@given(
    readings=st.lists(
        st.tuples(st.integers(0, 100), st.integers(500, 80_000), st.integers(6_000, 70_000)),
        min_size=8,
        max_size=30,
    ),
    gpus=st.integers(1, 3),
    order=st.permutations(range(8)),
    drawn=st.tuples(
        st.floats(0.2, 0.8),
        st.sets(st.integers(0, 29)),
        st.sampled_from(_UNKNOWN),
        st.permutations(_FILES),
    ),
)
def test_how_a_log_is_written_changes_no_figure(
    readings: list[tuple[int, int, int]],
    gpus: int,
    order: list[int],
    drawn: tuple[float, set[int], str, list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Columns in any order, another name of the file, two files by time, rows copied, a new column.

    None of them changes a figure; another unit in the header does, by its factor.
    """
    split, twice, unknown, names = drawn
    folder = tmp_path_factory.mktemp("log")
    rows = [
        f"2026/03/01 10:00:{i:02d}.000, {gpu}, GPU-{gpu}, NVIDIA H100, {(busy + 7 * gpu) % 101} %, "
        f"{used + gpu}, {power / 100 + gpu:.2f} W, 7".split(", ")
        for i, (busy, used, power) in enumerate(readings)
        for gpu in range(gpus)
    ]
    header = [*SMI.split(", "), unknown]
    at = round(split * len(readings)) * gpus
    copied = [row for i, row in enumerate(rows) for _ in range(1 + (i in twice))]

    def read_as(
        *parts: list[list[str]], columns: Sequence[int] = range(7), unit: str = "MiB"
    ) -> Profile:
        files = [folder / name for name in names[: len(parts)]]
        for file, part in zip(files, parts, strict=True):
            lines = (", ".join(line[i] for i in columns) for line in (header, *part))
            file.write_text("\n".join(lines).replace("MiB", unit) + "\n", encoding="utf-8")
        (profile,) = read_telemetry([str(file) for file in files], Hints())
        for file in files:
            file.unlink()
        return profile

    def figures(profile: Profile) -> tuple[object, ...]:
        return profile.gpus, profile.window, profile.phases, profile.hardware

    plain = read_as(rows)
    names.reverse()
    known = [column for column in order if column != 7]
    for other in (
        read_as(rows),
        read_as(rows, columns=known),
        read_as(rows, columns=range(8)),
        read_as(copied),
        read_as(rows[:at], rows[at:]),
        read_as(copied, columns=order),
    ):
        assert figures(other) == figures(plain)
    peak_gib = plain.peak("mem.used_gib") or 0.0
    assert read_as(rows, unit="KiB").peak("mem.used_gib") == pytest.approx(
        peak_gib / 1024, abs=1e-6
    )


def test_lines_without_a_time_are_left_out(tmp_path: Path) -> None:
    """Line protocol whose times are missing or no numbers is refused with a sentence."""
    with pytest.raises(InputError, match="no GPU metric"):
        read(tmp_path, "nvidia_smi,index=0 utilization_gpu=40i\n", "out.lp")


def test_a_unit_in_the_header_changes_the_figure(tmp_path: Path) -> None:
    """The same cells in GiB are 1,024 times as much."""
    text = "time,gpu,gpu_util,memory_used [{}]\n0,0,50,20\n1,0,60,20\n"
    small, large = (read(tmp_path, text.format(unit)) for unit in ("MiB", "GiB"))
    assert large.peak("mem.used_gib") == 20.0
    assert small.peak("mem.used_gib") == pytest.approx(20 / 1024, abs=1e-6)


def test_two_gpus_never_become_one(tmp_path: Path) -> None:
    """Two rows an instant of one index say different things: refused, both readings named."""
    both = [
        row
        for pair in zip(ROWS, [r.replace("90 %", "10 %") for r in ROWS], strict=True)
        for row in pair
    ]
    with pytest.raises(InputError, match=r"util.kernel_time 0\.1 and 0\.9.*Two GPUs"):
        read(tmp_path, log(rows=both))
    once = read(tmp_path, log(rows=[both[1], *ROWS]))
    assert "1 of 6 instants have two different readings" in notes(once)


def test_a_reading_that_two_tools_round_is_one(tmp_path: Path) -> None:
    """Memory that one tool writes in MiB and another in percent differs by 0.005 %."""
    header = "timestamp,index,utilization.gpu,memory.used [MiB]"
    rows = [f"{60 * i},0,50,{used}" for i in range(6) for used in (9412.0, 9411.5)]
    profile = read(tmp_path, "\n".join([header, *rows]) + "\n")
    assert "different readings" not in notes(profile)
    assert len(profile.gpus) == 1


@pytest.mark.parametrize("name", ["DeviceId", "gpu_num", "minor_number", "Device Index"])
def test_names_of_an_index(tmp_path: Path, name: str) -> None:
    """Whatever the column is called, each of its numbers is a GPU."""
    rows = "".join(f"{t},{gpu},{90 - 80 * gpu}\n" for t in (0, 10, 20) for gpu in (0, 1))
    profile = read(tmp_path, f"timestamp,{name},gpu_util\n{rows}")
    assert [gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus] == [0.9, 0.1]


def test_tiles_are_parts_of_a_board(tmp_path: Path) -> None:
    """xpu-smi lists each tile of a GPU: one GPU, two parts."""
    rows = "".join(
        f"10:00:0{t}.000, 0, {tile}, {80 - 40 * tile}\n" for t in (0, 1) for tile in (0, 1)
    )
    profile = read(tmp_path, f"Timestamp, DeviceId, TileId, GPU Utilization (%)\n{rows}")
    assert profile.hardware.gpu_count == 1
    assert [gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus] == [0.8, 0.4]


def test_instances_alone_are_one_board(tmp_path: Path) -> None:
    """`dcgmi dmon` of instances does not say of which GPU: at least one."""
    rows = "GPU-I 0  0.900\nGPU-I 1  0.100\n" * 2
    profile = read(tmp_path, f"#Entity   GRACT\nID\n{rows}", "dmon.txt")
    assert profile.hardware.gpu_count == 1
    assert [gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus] == [0.9, 0.1]


@pytest.mark.parametrize(
    ("column", "cell", "says"),
    [
        ("ecc.errors.uncorrected.volatile.total", "3", "failing (3 uncorrected memory errors)"),
        ("ecc.errors.uncorrected.volatile.total", "0", ""),
        ("remapped_rows.failure", "Yes", "failing (its memory could not be remapped)"),
        ("remapped_rows.failure", "No", ""),
        (
            "power.default_limit [W], power.limit [W]",
            "400.0 W, 200.0 W",
            "capped at 200 W of 400 W",
        ),
        ("pcie.link.width.current, pcie.link.width.max", "4, 16", "4 of 16 PCIe lanes"),
        ("pcie.link.width.current, pcie.link.width.max", "16, 16", ""),
    ],
)
def test_a_failing_card_is_named(tmp_path: Path, column: str, cell: str, says: str) -> None:
    """Errors, lanes and limits in a log become a sentence on the GPU."""
    text = notes(read(tmp_path, log(column, cell)))
    assert says in text
    assert ("GPU 0:" in text) == bool(says)


def test_a_gpu_that_tells_nothing_is_lost_and_paid_for(tmp_path: Path) -> None:
    """One of two GPUs has no reading; a finding asks for another host, with the evidence."""
    rows = "".join(
        f"2026/11/01 10:00:0{s}.000, {gpu}, {cell}\n"
        for s in range(6)
        for gpu, cell in ((0, "90 %"), (1, "[GPU is lost]"))
    )
    text = f"timestamp, index, utilization.gpu [%]\n{rows}"
    profile = read(tmp_path, text)
    assert [(fault.gpu, fault.code) for fault in profile.health] == [("GPU 1", "lost")]
    (finding,) = (found for found in diagnose(profile) if found.code == "failing-gpu")
    assert "GPU 1: not one reading" in finding.cause


def test_a_card_that_fell_off_the_bus(tmp_path: Path) -> None:
    """Xid 79 is the card's, Xid 31 (a fault of the program) is not."""
    line = 'DCGM_FI_DEV_{}{{gpu="0",UUID="GPU-a"}} {}\n'
    for xid, fails in ((79, True), (31, False)):
        text = line.format("GPU_UTIL", 0) + line.format("XID_ERRORS", xid)
        profile = read(tmp_path, text, "scrape.prom")
        assert ("the card is failing (Xid 79" in notes(profile)) is fails


def test_jetson(tmp_path: Path) -> None:
    """(45 + 55) / 2 %; (5,321 + 5,325) / 2 MiB; 12,517 mW."""
    line = (
        "03-01-2026 10:00:0{} RAM {}/30698MB (lfb 12x4MB) CPU [12%@1190,off] EMC_FREQ 0%@2133 "
        "GR3D_FREQ {}%@[611,611] CPU@45.1C GPU@43.5C VDD_IN 12517mW/10898mW\n"
    )
    profile = read(tmp_path, line.format(0, 5321, 45) + line.format(1, 5325, 55), "t.txt")
    metrics = profile.gpus[0].metrics
    assert metrics["util.kernel_time"].mean == 0.5
    assert metrics["mem.used_gib"].mean == pytest.approx(5323 / 1024)
    assert metrics["power.board_w"].mean == pytest.approx(12.517)


def test_line_protocol(tmp_path: Path) -> None:
    """Telegraf's nvidia_smi input: tags name the GPU, fields its readings."""
    line = (
        r"nvidia_smi,host=n1,index=0,name=NVIDIA\ L4,uuid=GPU-a "
        "utilization_gpu={}i,memory_used=1024i,power_draw=30.5 17900000{}000000000\n"
    )
    profile = read(tmp_path, line.format(40, "00") + line.format(60, "30"), "out.lp")
    assert (profile.hardware.gpu, profile.busy_fraction) == ("NVIDIA L4", 0.5)
    assert profile.window is not None
    assert profile.window.duration_s == 60.0


def test_lines_of_victoria_metrics(tmp_path: Path) -> None:
    """/api/v1/export: a series a line, times in milliseconds."""
    series = {
        "metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "UUID": "GPU-a"},
        "values": [40, 60],
        "timestamps": [1790000000000, 1790000030000],
    }
    profile = read(tmp_path, json.dumps(series) + "\n", "export.jsonl")
    assert profile.busy_fraction == 0.5
    assert profile.window is not None
    assert profile.window.duration_s == 60.0


@pytest.mark.parametrize(
    ("text", "busy", "watts"),
    [
        (
            (
                'nvidia_gpu_duty_cycle{minor_number="0"} 77\n'
                'nvidia_gpu_power_usage_milliwatts{minor_number="0"} 45000\n'
            ),
            0.77,
            45.0,
        ),
        (
            (
                'slurm_job_utilization_gpu{gpu="0",slurmjobid="4711"} 66\n'
                'slurm_job_power_gpu{gpu="0",slurmjobid="4711"} 210000\n'
            ),
            0.66,
            210.0,
        ),
    ],
)
def test_older_exporters(tmp_path: Path, text: str, busy: float, watts: float) -> None:
    """Percent and milliwatts, by their sources."""
    profile = read(tmp_path, "# TYPE x gauge\n" + text, "old.prom")
    assert profile.busy_fraction == busy
    assert profile.gpus[0].metrics["power.board_w"].mean == watts


@pytest.mark.parametrize("delimiter", ["|", ";", "\t", "^"])
def test_accounting_with_any_delimiter(tmp_path: Path, delimiter: str) -> None:
    """120 % of two GPUs are 0.6 each; a memory without end is unknown."""
    used = "gres/gpumem=18446744073709551614,gres/gpuutil=120"
    rows = (
        ("JobID", "JobName", "State", "Start", "Elapsed", "AllocTRES", "TRESUsageInAve"),
        ("7", "train", "COMPLETED", "2026-03-01T10:00:00", "01:00:00", "cpu=8,gres/gpu=2", ""),
        ("7.0", "x", "COMPLETED", "2026-03-01T10:00:00", "01:00:00", "gres/gpu=2", used),
    )
    profile = read(tmp_path, "\n".join(delimiter.join(row) for row in rows), "acct.txt")
    assert (profile.hardware.gpu_count, profile.busy_fraction) == (2, 0.6)
    assert profile.peak("mem.used_gib") is None


@pytest.mark.parametrize(
    "stamp", ["[2026-03-01 10:00:0{}] ", "Mar 01 10:00:0{} ", "2026-03-01T10:00:0{}Z "]
)
def test_a_time_before_each_line(tmp_path: Path, stamp: str) -> None:
    """What `| ts` puts before the lines is their time."""
    lines = ["index, name, utilization.gpu [%]", "0, NVIDIA L4, 40 %", "0, NVIDIA L4, 60 %"]
    text = "".join(f"{stamp.format(i)}{line}\n" for i, line in enumerate(lines))
    profile = read(tmp_path, text, "ts.log")
    assert (profile.hardware.gpu, profile.busy_fraction) == ("NVIDIA L4", 0.5)
    assert profile.window is not None
    assert profile.window.duration_s == 2.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n\x12/host:metadata", "XProf"),
        ("hello, world\n", "not telemetry that gpucost knows"),
        ('{"engines": {"Render/3D": {"busy": 3}}}', "xpu-smi dump"),
    ],
)
def test_refusals_are_short(tmp_path: Path, text: str, says: str) -> None:
    """The tool where it is recognized, and what to give; never the list of all formats."""
    file = tmp_path / "x.bin"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnknownFormatError, match=says) as refusal:
        read_source(str(file), Hints())
    assert len(str(refusal.value)) < 420


@pytest.mark.parametrize("name", ["GPU Memory Utilization (%)", "gpu memory occupancy [%]"])
def test_memory_is_not_proposed_as_something_else(tmp_path: Path, name: str) -> None:
    """A share of memory is no kernel time, and no MiB either."""
    profile = read(tmp_path, f"time,gpu,gpu_util,{name}\n0,0,50,10\n1,0,60,10\n")
    assert "util." not in notes(profile).partition("--map")[2]
