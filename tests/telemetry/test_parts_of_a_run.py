"""Parts of one run that fit at a second look: no header, no zone, a chart, decimal commas."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.folder import FolderReadOptions
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry

BEGIN = datetime(2026, 11, 20, 9, tzinfo=UTC)
HEADER = "timestamp, utilization.gpu [%], memory.used [MiB], power.draw [W]"
KOLKATA = timedelta(hours=5, minutes=30)


def _read(*paths: Path) -> tuple[tuple[Profile, ...], str]:
    joined: list[str] = []
    options = FolderReadOptions(jobs_by="file", on_join=joined.append)
    names = [str(path) for path in paths]
    return read_telemetry(names, Hints(), options=options), "\n".join(joined)


def _loads(seed: int = 1) -> list[int]:
    """Return an hour's load at a reading every 10 s; it stays for minutes, as loads do."""
    draw = random.Random(seed)  # noqa: S311 - a load
    return [load for _ in range(20) for load in [draw.randrange(20, 100)] * 18]


def _row(place: int, load: int, ahead: timedelta = timedelta()) -> str:
    when = BEGIN + ahead + timedelta(seconds=10 * place)
    return f"{when:%Y/%m/%d %H:%M:%S.000}, {load} %, {8000 + 50 * load} MiB, {80 + 2 * load} W"


def _write(file: Path, *lines: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _rotated(folder: Path, header: str, cells: tuple[int, ...] = (0, 1, 2, 3)) -> Path:
    """Write a log in two parts, the older with a header, the newer with cells in some order."""
    rows = [_row(place, load) for place, load in enumerate(_loads())]
    _write(folder / "gpu.log.1", header, *rows[:180])
    later = (row.split(", ") for row in rows[180:])
    _write(folder / "gpu.log", *(", ".join(row[c] for c in cells) for row in later))
    return folder


def test_a_part_without_a_header_takes_that_of_its_log(tmp_path: Path) -> None:
    """A rotated log whose oldest part alone has the header is read as one with a header each."""
    (profile,), joined = _read(_rotated(tmp_path, HEADER))
    assert profile.window is not None
    assert profile.window.duration_s == 3600
    assert "gpu.log: no header, so that of" in joined
    load = profile.gpus[0].metrics["util.kernel_time"].mean
    assert load == pytest.approx(sum(_loads()) / 36000, abs=1e-6)


def test_a_header_of_other_columns_is_not_taken(tmp_path: Path) -> None:
    """Rows in another order than their neighbour's header are refused, with what to type."""
    with pytest.raises(InputError) as refused:
        read_telemetry(
            [str(f) for f in _rotated(tmp_path, HEADER, (0, 3, 1, 2)).iterdir()], Hints()
        )
    assert "--map 1=timestamp --map 2=power.board_w --map 3=util.kernel_time" in str(refused.value)


def _chart(file: Path, column: str, values: list[int], *, relative: bool = False) -> Path:
    head = "Relative Time (Process)" if relative else "_timestamp"
    name = f"run-7 - {column}"
    begin = 0 if relative else int(BEGIN.timestamp())
    return _write(
        file,
        f'"{head}","{name}","{name}__MIN","{name}__MAX"',
        *(f'"{begin + 10 * i}","{v}","{v}","{v}"' for i, v in enumerate(values)),
    )


def test_a_log_and_a_tracker_in_two_zones_are_one_job(tmp_path: Path) -> None:
    """Readings that agree at one shift of quarter hours alone tell the log's zone; it is said."""
    rows = [_row(place, load, KOLKATA) for place, load in enumerate(_loads())]
    log = _write(tmp_path / "gpu.log", HEADER, *rows)
    chart = _chart(tmp_path / "chart.csv", "system/gpu.0.gpu", _loads())
    (profile,), joined = _read(log, chart)
    assert profile.window is not None
    assert profile.window.start == BEGIN
    assert "UTC+05:30" in joined


def test_readings_of_another_gpu_tell_no_zone(tmp_path: Path) -> None:
    """Where no shift makes the readings agree, two files stay two jobs at their own times."""
    rows = [_row(place, load, KOLKATA) for place, load in enumerate(_loads())]
    log = _write(tmp_path / "gpu.log", HEADER, *rows)
    chart = _chart(tmp_path / "chart.csv", "system/gpu.0.gpu", _loads(seed=2))
    profiles, joined = _read(log, chart)
    assert len(profiles) == 2
    assert "UTC" not in joined


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("column", ["system/cpu", "system.cpu"])
def test_a_chart_of_the_cpu_complements_a_log(
    tmp_path: Path, column: str, *, relative: bool
) -> None:
    """W&B's chart of the CPU is the host's load of the job whose log lies beside it."""
    rows = [_row(place, load) for place, load in enumerate(_loads())]
    log = _write(tmp_path / "gpu.log", HEADER, *rows)
    (profile,), _ = _read(log, _chart(tmp_path / "cpu.csv", column, [95] * 360, relative=relative))
    assert profile.host is not None
    assert profile.host.cpu_util is not None
    assert profile.host.cpu_util.mean == pytest.approx(0.95)


def test_the_fullest_core_of_a_run_is_read(tmp_path: Path) -> None:
    """W&B counts each core: one at 99.5 % among sixteen is the main process."""
    cores = {"system.cpu": 9.0, "system.cpu.0.cpu_percent": 99.5, "system.cpu.1.cpu_percent": 3.0}
    lines = [
        json.dumps({"_timestamp": 1_700_000_000 + 15 * n, "system.gpu.0.gpu": 30} | cores)
        for n in range(40)
    ]
    (profile,), _ = _read(_write(tmp_path / "wandb-events.jsonl", *lines))
    assert profile.host is not None
    assert profile.host.cpu_busiest_core is not None
    assert profile.host.cpu_busiest_core.mean == pytest.approx(0.995)


def test_german_headers_are_read(tmp_path: Path) -> None:
    """Semicolons, decimal commas, dates with dots and German names are a log like any other."""
    header = "Zeitstempel;Name;GPU-Auslastung [%];Speicher belegt [MiB];Leistungsaufnahme [W]"
    rows = [
        f"05.11.2026 08:00:{s:02d};NVIDIA L40S;{40 + s % 2},5 %;1024 MiB;145,93 W"
        for s in range(60)
    ]
    (profile,), _ = _read(_write(tmp_path / "log.csv", header, *rows))
    metrics = profile.gpus[0].metrics
    assert metrics["util.kernel_time"].mean == pytest.approx(0.41, abs=1e-6)
    assert metrics["power.board_w"].max == 145.93
    assert profile.window is not None
    assert profile.window.start == datetime(2026, 11, 5, 8, tzinfo=UTC)


@pytest.mark.parametrize(("delimiter", "month"), [(",", 5), (";", 11)])
def test_an_order_of_dates_that_is_assumed_is_said(
    tmp_path: Path, delimiter: str, month: int
) -> None:
    """Of 05/11/2026 alone the month comes first, between semicolons the day; a note says which."""
    rows = [f"05/11/2026 08:00:{s:02d}{delimiter}{40 + s % 9} %" for s in range(60)]
    file = _write(tmp_path / "log.csv", f"timestamp{delimiter}utilization.gpu [%]", *rows)
    (profile,), _ = _read(file)
    assert profile.window is not None
    assert profile.window.start is not None
    assert profile.window.start.month == month
    order = "month/day" if month == 5 else "day/month"
    assert any(f"taken as {order}" in note for note in profile.provenance.notes)
