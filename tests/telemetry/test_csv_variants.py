"""The mess of real CSV logs: clocks, units, placeholders, missing columns and broken rows."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.profile.model import Profile, Statistics
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.telemetry.captures import recorded
from tests.telemetry.reading import read_source


def imported(tmp_path: Path, text: str, hints: Hints | None = None) -> Profile:
    """Return the profile of a CSV text."""
    file = tmp_path / "log.csv"
    file.write_text(text, encoding="utf-8")
    (profile,) = read_source(str(file), hints or Hints())
    return profile


def metric(profile: Profile, slot: str, gpu: int = 0) -> Statistics:
    """Return one GPU's statistics of a slot."""
    return profile.gpus[gpu].metrics[slot]


def noted(profile: Profile, words: str) -> bool:
    """Whether a note of the profile says these words."""
    return any(words in note for note in profile.provenance.notes)


@pytest.mark.parametrize(
    ("stamp", "tz", "utc"),
    [
        ("2026/07/01 12:00:0{}.500", None, "2026-07-01T12:00:00.5"),
        ("2026/07/01 12:00:0{}.500", "Europe/Berlin", "2026-07-01T10:00:00.5"),
        ("2026/07/01 12:00:0{}.500", "+08:00", "2026-07-01T04:00:00.5"),
        ("2026-07-01T12:00:0{}Z", "Europe/Berlin", "2026-07-01T12:00:00"),
        ("2026-07-01T12:00:0{}-0730", None, "2026-07-01T19:30:00"),
        ("2026-07-01 12:00:0{}", None, "2026-07-01T12:00:00"),
        ("2026-07-01 12:00:0{} UTC", "+02:00", "2026-07-01T12:00:00"),
        ("178290720{}", None, "2026-07-01T12:00:00"),
        ("178290720{}000", None, "2026-07-01T12:00:00"),
        ("178290720{}000000", None, "2026-07-01T12:00:00"),
        ("178290720{}.0", None, "2026-07-01T12:00:00"),
        ("2026/07/01 12:00:0{}", "Europe/Berlin", "2026-07-01T10:00:00"),
        ("20260701_12000{}", None, "2026-07-01T12:00:00"),
        ("Wed Jul  1 12:00:0{} UTC 2026", None, "2026-07-01T12:00:00"),
    ],
)
def test_every_spelling_of_a_time_becomes_utc(
    stamp: str, tz: str | None, utc: str, tmp_path: Path
) -> None:
    """Local times follow `tz`, times with a zone do not, epochs are told by their size."""
    rows = "".join(f"{stamp.format(s)},50\n" for s in range(5))
    profile = imported(tmp_path, "timestamp,utilization.gpu\n" + rows, Hints(tz=tz))
    assert profile.window is not None
    assert profile.window.start == datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert profile.window.duration_s == pytest.approx(5.0)


def test_times_of_day_count_over_midnight(tmp_path: Path) -> None:
    """A log of HH:MM:SS has a duration but no date."""
    rows = "".join(f"{stamp},50\n" for stamp in ("23:59:40", "23:59:50", "00:00:00", "00:00:10"))
    profile = imported(tmp_path, "time,utilization.gpu\n" + rows)
    assert profile.window is not None
    assert (profile.window.start, profile.window.duration_s) == (None, 40.0)


def test_times_without_a_zone_are_said_to_be_taken_as_utc(tmp_path: Path) -> None:
    """The assumption is a note, and goes away with `tz`."""
    text = "timestamp,utilization.gpu\n2026-07-01 12:00:00,5\n2026-07-01 12:00:01,5\n"
    assert noted(imported(tmp_path, text), "taken as UTC")
    assert not noted(imported(tmp_path, text, Hints(tz="Asia/Tokyo")), "taken as UTC")


def test_the_hour_that_happens_twice_is_kept_apart(tmp_path: Path) -> None:
    """When summer time ends, the rows after the step follow those before it."""
    stamps = ["02:40", "02:50", "02:00", "02:10"]  # the clock goes from 03:00 back to 02:00
    rows = "".join(f"2026/10/25 {stamp}:00.000, 0, 50 %\n" for stamp in stamps)
    profile = imported(
        tmp_path, "timestamp, index, utilization.gpu [%]\n" + rows, Hints(tz="Europe/Berlin")
    )
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(4 * 600)
    assert noted(profile, "set back")


def test_units_in_cells_overrule_those_of_the_header(tmp_path: Path) -> None:
    """A cell that names its unit is converted from it."""
    text = "memory.used [MiB], power.draw [W]\n8 GiB, 250000 mW\n8192 MiB, 250 W\n"
    profile = imported(tmp_path, text)
    assert metric(profile, "mem.used_gib").mean == 8.0
    assert metric(profile, "power.board_w").mean == 250.0


@pytest.mark.parametrize(
    "cell", ["[N/A]", "N/A", "-", "", "ERR!", "[Unknown Error]", "[Not Supported]"]
)
def test_placeholders_are_missing_not_zero(cell: str, tmp_path: Path) -> None:
    """A placeholder lowers no mean and is counted by what it says."""
    text = f"index, utilization.gpu [%]\n0, 80 %\n0, {cell}\n0, 80 %\n"
    profile = imported(tmp_path, text)
    assert metric(profile, "util.kernel_time").mean == 0.8
    assert profile.provenance.sources[0].dropped == {f"value {cell or 'empty'}": 1}


def test_milliwatts_under_a_watt_header_are_rescaled_with_a_note(tmp_path: Path) -> None:
    """Power a thousand times above any board is read as milliwatts."""
    profile = imported(tmp_path, "util,gpu_power_w\n50,6629\n50,6700\n")
    assert metric(profile, "power.board_w").max == pytest.approx(6.7)
    assert noted(profile, "milliwatts")


def test_single_spikes_above_the_limit_are_left_out(tmp_path: Path) -> None:
    """Power above 1.3 times the limit and percent above 100 are dropped and counted."""
    rows = "0, 50 %, 300 W, 400 W\n" * 5 + "0, 250 %, 900 W, 400 W\n"
    header = "index, utilization.gpu [%], power.draw [W], power.limit [W]\n"
    profile = imported(tmp_path, header + rows)
    assert metric(profile, "power.board_w").max == 300.0
    assert metric(profile, "util.kernel_time").max == 0.5
    assert noted(profile, "1 values left out: above 1.3 x the power limit")
    assert noted(profile, "1 values left out: above 100 %")
    assert profile.provenance.sources[0].columns[-1].max == 250.0


def test_a_throttle_column_becomes_a_share_of_time(tmp_path: Path) -> None:
    """Power caps and thermal slowdowns count; idle and application clocks do not."""
    rows = "".join(f"0, {mask}, 50 %\n" for mask in ("0x1", "0x2", "0x4", "0x40"))
    profile = imported(
        tmp_path, "index, clocks_throttle_reasons.active, utilization.gpu [%]\n" + rows
    )
    assert metric(profile, "throttle.fraction").mean == 0.5


def test_an_ambiguous_memory_column_is_not_guessed(tmp_path: Path) -> None:
    """`memory_util` is used only when the user says what it is."""
    text = "gpu_util,memory_util\n50,30\n50,30\n"
    profile = imported(tmp_path, text)
    assert "util.mem_controller" not in profile.gpus[0].metrics
    assert noted(profile, "--map")
    said = imported(tmp_path, text, Hints(map=(("memory_util", "util.mem_controller"),)))
    assert metric(said, "util.mem_controller").mean == 0.3


def test_a_file_without_a_header_is_read_by_numbered_columns(tmp_path: Path) -> None:
    """`--map` names columns by their place; without it the message shows how."""
    text = (
        "2026/07/01 12:00:00.000, 3, 40 %, 1024 MiB\n2026/07/01 12:00:01.000, 3, 60 %, 1024 MiB\n"
    )
    columns = (("1", "timestamp"), ("2", "index"), ("3", "util.kernel_time"), ("4", "mem.used_gib"))
    profile = imported(tmp_path, text, Hints(map=columns))
    assert profile.gpus[0].index == 3
    assert metric(profile, "util.kernel_time").mean == 0.5
    assert metric(profile, "mem.used_gib").mean == 1.0
    with pytest.raises(InputError, match="--map 1=timestamp"):
        imported(tmp_path, text)


def test_a_mapped_column_may_name_its_unit(tmp_path: Path) -> None:
    """`--map x=slot:UNIT` converts from that unit."""
    text = "load,ram\n0.5,4000000000\n0.7,4000000000\n"
    hints = Hints(map=(("load", "util.kernel_time:ratio"), ("ram", "mem.used_gib:bytes")))
    profile = imported(tmp_path, text, hints)
    assert metric(profile, "util.kernel_time").mean == pytest.approx(0.6)
    assert metric(profile, "mem.used_gib").mean == pytest.approx(4e9 / 2**30, abs=1e-6)


def test_a_changed_header_starts_a_new_table(tmp_path: Path) -> None:
    """A log whose query changed is read in two parts, each by its own header."""
    text = (
        "timestamp, index, utilization.gpu [%]\n2026/07/01 12:00:00.000, 0, 40 %\n"
        "timestamp, index, memory.used [MiB], utilization.gpu [%]\n"
        "2026/07/01 12:00:01.000, 0, 2048 MiB, 60 %\n"
    )
    profile = imported(tmp_path, text)
    assert metric(profile, "util.kernel_time").mean == 0.5
    assert metric(profile, "mem.used_gib").max == 2.0


def test_tables_before_the_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    """A log that begins as human tables and goes on as CSV is read from there."""
    table = "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02 |\n|  0  Tesla V100 |\n" * 4000
    profile = imported(tmp_path, table + "timestamp,utilization.gpu\n1782907200,5\n1782907201,7\n")
    assert metric(profile, "util.kernel_time").max == 0.07
    assert profile.provenance.sources[0].dropped == {"line before the header": 8000}


@pytest.mark.parametrize(
    ("day", "time"), [("Mon 11/30/2026 ", "%I:%M %p"), ("30.11.2026 ", "%H:%M")], ids=["us", "de"]
)
def test_a_batch_file_says_day_and_time_in_two_lines(day: str, time: str, tmp_path: Path) -> None:
    """What `date /T` and `time /T` print before each query is when its rows were read."""
    begin = datetime(2026, 11, 30, 11, 55, tzinfo=UTC)
    header = "index, name, utilization.gpu [%]\n"
    ticks = (
        f"{day}\n{begin + timedelta(minutes=i):{time}}\n{header}0, A40, {40 + i} %\n1, A40, 9 %\n"
        for i in range(10)
    )
    profile = imported(tmp_path, "".join(ticks))
    window = profile.window
    assert window is not None
    assert (window.start, window.duration_s, window.interval_s) == (begin, 600.0, 60.0)
    assert metric(profile, "util.kernel_time").mean == pytest.approx(0.445)
    assert noted(profile, "20 of 20 rows used, GPUs: 2")


@pytest.mark.parametrize("of_day", [[8, 8, 8], [8, 8, 7]], ids=["whole", "last-cut"])
def test_rows_below_the_header_of_a_query_are_gpus(of_day: list[int], tmp_path: Path) -> None:
    """Without `-l` a query answers once, GPU by GPU; its minute is not of readings in turn."""
    prompt = "C:\\logs>"
    queries = (
        f"{prompt}date /T \nTue 08/18/2020 \n\n{prompt}time /T \n03:{10 * i:02} PM\n\n"
        f"{prompt}nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv \n"
        "utilization.gpu [%], memory.used [MiB]\n"
        + "".join(f"{10 * gpu} %, {200 + gpu} MiB\n" for gpu in range(gpus))
        for i, gpus in enumerate(of_day)
    )
    profile = imported(tmp_path, "\n".join(queries))
    assert profile.gpu_count == 8
    assert [metric(profile, "util.kernel_time", gpu).mean for gpu in (0, 7)] == [0.0, 0.7]
    assert profile.window is not None
    assert profile.window.interval_s == 600.0
    assert noted(profile, "prompt of a console: ")
    assert noted(profile, "8 rows at a time, taken as 8 GPUs")
    assert not noted(profile, "times have no seconds")


def test_date_lines_between_blocks_tell_ticks_and_gpus(tmp_path: Path) -> None:
    """Blocks under lines of `date` are ticks; their rows are the GPUs in order."""
    blocks = "".join(
        f"Wed Jul  1 12:00:{s:02d} UTC 2026\nutilization.gpu [%]\n{10 + s} %\n{60 + s} %\n"
        for s in range(0, 50, 10)
    )
    profile = imported(tmp_path, blocks)
    assert [metric(profile, "util.kernel_time", gpu).min for gpu in (0, 1)] == [0.1, 0.6]
    assert profile.window is not None
    assert profile.window.interval_s == 10.0


@pytest.mark.parametrize("steps", [(1.0, 1.0, 1.0), (0.3, 0.35, 0.3), (60.0, 61.0, 59.0)])
def test_one_gpu_without_an_index_stays_one(steps: tuple[float, ...], tmp_path: Path) -> None:
    """Rows about an interval apart are one GPU's, however the clock jitters."""
    at, rows = 1782907200.0, []
    for i in range(30):
        at += steps[i % 3]
        rows.append(f"{at:.3f},50\n")
    recording = recorded(_file(tmp_path, "timestamp,utilization.gpu\n" + "".join(rows)))
    assert len(recording.gpus) == 1


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_rows_of_one_tick_are_several_gpus(gpus: int, tmp_path: Path) -> None:
    """Rows milliseconds apart in equal numbers are GPUs in order, as the note says."""
    rows = "".join(
        f"{1782907200 + tick + gpu / 1000:.3f},{10 * gpu}\n"
        for tick in range(20)
        for gpu in range(gpus)
    )
    recording = recorded(_file(tmp_path, "timestamp,utilization.gpu\n" + rows))
    assert [gpu.index for gpu in recording.gpus] == list(range(gpus))
    assert any(f"taken as {gpus} GPUs" in note for note in recording.notes)


def test_blanked_uuids_do_not_merge_devices(tmp_path: Path) -> None:
    """A uuid of zeros is not an identity; the index is used."""
    zero = "GPU-00000000-0000-0000-0000-000000000000"
    rows = "".join(f"{zero}, {gpu}, 50 %\n" for gpu in (0, 1) * 3)
    profile = imported(tmp_path, "uuid, index, utilization.gpu [%]\n" + rows)
    assert [(gpu.uuid, gpu.index) for gpu in profile.gpus] == [(None, 0), (None, 1)]


def test_the_last_row_cut_inside_a_cell_is_dropped(tmp_path: Path) -> None:
    """A last cell that lost its unit is not a value."""
    text = "index, memory.used [MiB], power.draw [W]\n" + "0, 100 MiB, 250.00 W\n" * 3
    profile = imported(tmp_path, text + "0, 100 MiB, 25")
    assert metric(profile, "power.board_w").min == 250.0
    assert profile.provenance.sources[0].dropped == {"cut line": 1}


def test_quoted_cells_and_other_delimiters_are_read(tmp_path: Path) -> None:
    """Quoted names with commas, tabs and pipes come out the same."""
    for text in (
        'name,"utilization.gpu [%]"\n"A, B",40\n"A, B",60\n',
        "name\tutilization.gpu [%]\nA, B\t40\nA, B\t60\n",
        "name|utilization.gpu [%]\nA, B|40\nA, B|60\n",
    ):
        profile = imported(tmp_path, text)
        assert metric(profile, "util.kernel_time").mean == 0.5
        assert profile.hardware.gpu == "A, B"


def _file(folder: Path, text: str) -> Path:
    file = folder / "log.csv"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("gpu", ["", "index,"])
def test_rows_of_one_minute_are_one_gpu_after_each_other(gpu: str, tmp_path: Path) -> None:
    """Seconds that a spreadsheet dropped: 12 rows a minute are 5 s apart, not 12 GPUs."""
    cell = "0," if gpu else ""
    rows = [f"05.11.2026 08:{i // 12:02},{cell}{40 + i % 7} %\n" for i in range(7, 127)]
    profile = imported(tmp_path, f"timestamp,{gpu}utilization.gpu [%]\n" + "".join(rows))
    assert profile.gpu_count == 1
    assert profile.window is not None
    assert profile.window.interval_s == pytest.approx(5.0)
    assert profile.window.duration_s == pytest.approx(600.0)
    assert noted(profile, "times have no seconds") != bool(gpu)


@pytest.mark.parametrize("resumed_min", [0, 20])
@pytest.mark.parametrize(("last_mib", "said"), [(22000, "out of memory"), (15100, "crashed")])
def test_a_job_that_left_its_gpu_is_said_whether_or_not_it_came_back(
    resumed_min: int, last_mib: int, said: str, tmp_path: Path
) -> None:
    """Memory that rose, then nothing for 40 minutes: it ran out; else the job ended."""
    at_work = [f"90,{15000 + (last_mib - 15000) * max(0, m - 55) // 4}" for m in range(60)]
    minutes = [*at_work, *["0,0"] * 40, *["90,15000"] * resumed_min]
    rows = "".join(f"{1782907200 + 60 * m},{row}\n" for m, row in enumerate(minutes))
    profile = imported(tmp_path, "timestamp,utilization.gpu,memory.used [MiB]\n" + rows)
    assert noted(profile, "nothing ran for 40 min")
    assert noted(profile, said)


@pytest.mark.parametrize("unknown", [1, 3, 8])
@pytest.mark.parametrize("late", [False, True])
def test_what_is_not_known_at_an_end_is_not_idle(
    tmp_path: Path, unknown: int, *, late: bool
) -> None:
    """6 s at 80 %, beside them seconds without a use at 70 W: all of the time, none of it idle."""
    cells = [*["[N/A]"] * unknown, *["80 %"] * 6]
    if late:
        cells.reverse()
    rows = "".join(f"178290720{s},{cell},70 W\n" for s, cell in enumerate(cells[:10]))
    rows += "".join(f"17829072{s},{cell},70 W\n" for s, cell in enumerate(cells[10:], 10))
    profile = imported(tmp_path, "timestamp,utilization.gpu,power.draw\n" + rows)
    assert profile.window is not None
    assert profile.window.duration_s == unknown + 6
    assert not noted(profile, "idle")
    assert metric(profile, "util.kernel_time").mean == pytest.approx(0.8)
    assert metric(profile, "energy.total_j").mean == pytest.approx(70.0 * (unknown + 6))


def test_a_clock_that_was_not_set_yet_makes_no_window(tmp_path: Path) -> None:
    """Three rows of 1970, then six of 2026, 10 s apart: a minute, and a note of the three."""
    early = "".join(f"1970/01/01 00:00:{s}0.000, 60 %\n" for s in range(3))
    late = "".join(f"2026/03/06 10:00:{s}0.000, 60 %\n" for s in range(6))
    profile = imported(tmp_path, "timestamp, utilization.gpu [%]\n" + early + late)
    assert profile.window is not None
    assert profile.window.duration_s == 60.0
    assert noted(profile, "not set yet (before 2000) are left out: 3.")


@pytest.mark.parametrize("error", ["GPU is lost.  Reboot", "Unknown Error"])
def test_a_gpu_that_the_driver_lost_is_told(error: str, tmp_path: Path) -> None:
    """What nvidia-smi says between the rows of the others is a fault, not a damaged row."""
    row = "2026/03/06 10:00:0{}.000, {}, 50 %\n"
    said = f"Unable to determine the device handle for GPU 0000:41:00.0: {error}\n"
    rows = "".join(row.format(s, gpu) for s in range(4) for gpu in (0, 1))
    profile = imported(tmp_path, "timestamp, index, utilization.gpu [%]\n" + rows + said + rows)
    assert [(fault.gpu, fault.code) for fault in profile.health] == [("GPU 0000:41:00.0", "lost")]


def test_a_board_that_changes_its_number_stays_one(tmp_path: Path) -> None:
    """After a reboot the numbers are the other way round: 90 % and 10 %, not 50 % twice."""
    rows = "".join(
        f"2026/03/06 {hour}:00:{s:02}.000, {index}, GPU-{board}, {busy} %\n"
        for hour, boards in ((10, "ab"), (12, "ba"))
        for s in range(0, 60, 10)
        for index, board in enumerate(boards)
        for busy in ((90 if board == "a" else 10),)
    )
    header = "timestamp, index, uuid, utilization.gpu [%]\n"
    profile = imported(tmp_path, header + rows)
    means = {gpu.uuid: gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus}
    assert means == {"GPU-a": 0.9, "GPU-b": 0.1}


def test_hl_smi_is_refused_by_name(tmp_path: Path) -> None:
    """The columns look like nvidia-smi's, but the use of a Gaudi has a name of its own."""
    text = "timestamp, index, memory.used [MiB], utilization.aip [%]\n10:00:00, 0, 1 MiB, 70 %\n"
    with pytest.raises(InputError, match="hl-smi"):
        imported(tmp_path, text)


@pytest.mark.parametrize("apart_min", [1, 5, 30, 240])
@pytest.mark.parametrize("left", [0, 3, 5])
def test_readings_far_apart_are_a_profile(apart_min: int, left: int, tmp_path: Path) -> None:
    """Blocks under date lines, however far apart, whoever leaves the GPU: eight rows, a profile."""
    start = datetime(2026, 6, 9, 9, tzinfo=UTC)
    blocks = []
    for number in range(30):
        when = start + timedelta(minutes=apart_min * number)
        busy = [0 if number % 10 >= 10 - left else 40 + gpu for gpu in range(8)]
        rows = (f"{one} %, 11019 MiB, {10000 if one else 0} MiB\n" for one in busy)
        header = "utilization.gpu [%], memory.total [MiB], memory.used [MiB]\n"
        blocks.append(f"{when:%a %b %e %H:%M:%S} UTC {when:%Y}\n{header}{''.join(rows)}")
    profile = imported(tmp_path, "".join(blocks))
    assert len(profile.gpus) == 8
    assert profile.window is not None
    assert profile.window.interval_s == apart_min * 60.0


@pytest.mark.parametrize("timed", [True, False])
def test_hosts_that_pdsh_puts_before_lines_are_told_apart(*, timed: bool, tmp_path: Path) -> None:
    """Two hosts of two GPUs are four: GPU 0 of each is busy, GPU 1 idle."""
    names = "timestamp, index, utilization.gpu [%], memory.used [MiB]"
    if not timed:
        names = names.removeprefix("timestamp, ")
    lines = []
    for host in ("gpu-a01", "gpu-a02"):
        lines.append(f"{host}: {names}")
        for second in range(30):
            when = f"2026/11/23 12:00:{second:02}.000, " if timed else ""
            lines += [f"{host}: {when}0, 90 %, 9000 MiB", f"{host}: {when}1, 0 %, 15 MiB"]
    profile = imported(tmp_path, "\n".join(lines) + "\n")
    assert (profile.gpu_count, profile.hardware.nodes) == (4, 2)
    means = sorted(gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus)
    assert means == pytest.approx([0.0, 0.0, 0.9, 0.9])


@pytest.mark.parametrize("dates", [1, 3])
def test_rows_under_one_date_are_readings_one_after_the_other(dates: int, tmp_path: Path) -> None:
    """The date says when a script began: equal rows below it count, and how far apart is a guess.

    Eight rows at 0 % between two at 100 % under each date are 20 % busy.
    """
    header = "index, utilization.gpu [%], memory.used [MiB]\n"
    busy = "0, 100 %, 20000 MiB\n"
    rows = busy + "0, 0 %, 10 MiB\n" * 8 + busy
    blocks = (f"Wed Jul  1 12:0{n}:00 UTC 2026\n{header}{rows}" for n in range(dates))
    profile = imported(tmp_path, "".join(blocks))
    assert metric(profile, "util.kernel_time").mean == pytest.approx(0.2)
    assert profile.window is not None
    assert (profile.window.start, profile.window.duration_s) == (None, 10.0 * dates)
    assert noted(profile, "one date stands above about 10 rows")
    assert noted(profile, "rows are taken to lie apart by 1 s, which is a guess")


def test_equal_rows_of_one_second_are_readings(tmp_path: Path) -> None:
    """A logger that writes whole seconds and reads four times in each says 25 % four times."""
    seconds = [f"2026-07-01 12:00:{s:02d},0,{busy}\n" for s in range(30) for busy in (100, 0, 0, 0)]
    profile = imported(tmp_path, "timestamp,index,utilization.gpu\n" + "".join(seconds))
    assert metric(profile, "util.kernel_time").mean == pytest.approx(0.25)
    assert noted(profile, "30 of 30 instants have two different readings")


def test_what_holds_of_many_gpus_is_said_once(tmp_path: Path) -> None:
    """Sixteen GPUs whose collector stands still are one sentence, not sixteen."""
    header = "timestamp,index,utilization.gpu [%],power.draw [W]\n"
    rows = [
        f"2026/03/01 10:{s // 60:02}:{s % 60:02}.000, {gpu}, 90 %, 300 W\n"
        for s in range(0, 600, 5)
        for gpu in range(16)
    ]
    profile = imported(tmp_path, header + "".join(rows))
    still = [note for note in profile.provenance.notes if "stands still" in note]
    assert len(still) == 1
    assert "GPU 4, and 11 more" in still[0]


@pytest.mark.parametrize("encodings", [("utf-16", "utf-8"), ("utf-8", "utf-16-le")])
@pytest.mark.parametrize("again", [False, True])
def test_a_log_that_goes_on_in_another_encoding_is_read_to_its_end(
    *, encodings: tuple[str, str], again: bool, tmp_path: Path
) -> None:
    """PowerShell's `>` writes UTF-16 and cmd's `>>` plain bytes: the idle half is no cut line."""
    rows = [
        "".join(f"2026/11/20 10:0{minute}:{s:02}.000, 0, {busy} %\r\n" for s in range(0, 60, 5))
        for minute, busy in ((0, 95), (1, 5), (2, 95), (3, 5))
    ]
    first, then = encodings
    data = ("timestamp, index, utilization.gpu [%]\r\n" + rows[0]).encode(first)
    data += rows[1].encode(then)
    if again:
        data += rows[2].encode(first.replace("utf-16", "utf-16-le")) + rows[3].encode(then)
    file = tmp_path / "log.csv"
    file.write_bytes(data)
    (profile,) = read_source(str(file), Hints())
    assert metric(profile, "util.kernel_time").mean == pytest.approx(0.50)
    assert noted(profile, f"{48 if again else 24} of {48 if again else 24} rows used")


@pytest.mark.parametrize(
    ("cells", "delimiter", "gib"),
    [
        (("61.440,00", "61.440,00"), ";", 60.0),  # 61,440 MiB
        (
            ("61.440,00", "61.440"),
            ";",
            60.0,
        ),
        (("61.440,00 MiB", "61.440,00 MiB"), ";", 60.0),
        (('"61,440.00"', '"61,440.00"'), ",", 60.0),
        (("61440,00", "61440,00"), ";", 60.0),
    ],
)
def test_signs_of_thousands_are_read_where_the_column_shows_them(
    cells: tuple[str, str], delimiter: str, gib: float, tmp_path: Path
) -> None:
    """A number with both signs tells which one parts its thousands, for all of its column."""
    rows = [
        delimiter.join((f"2026-11-20 10:00:{s:02}", "80", cells[s % 2])) + "\n" for s in range(30)
    ]
    header = delimiter.join(("timestamp", "utilization.gpu [%]", "memory.used [MiB]")) + "\n"
    profile = imported(tmp_path, header + "".join(rows))
    assert metric(profile, "mem.used_gib").mean == pytest.approx(gib)
    assert not noted(profile, "not numbers")


def test_cells_that_are_no_numbers_are_counted_in_a_note(tmp_path: Path) -> None:
    """What is left out of a column is said; placeholders are known to be missing."""
    cells = ["310.25", "[N/A]", "20.480,00"]  # a point that parts no thousands here
    rows = [f"2026-11-20 10:00:{s:02};80;{cells[s % 3]}\n" for s in range(30)]
    profile = imported(tmp_path, "timestamp;utilization.gpu;memory.used [MiB]\n" + "".join(rows))
    assert noted(profile, "'memory.used [MiB]': 10 cells are not numbers")
    assert metric(profile, "mem.used_gib").mean == pytest.approx(20.0)
