"""Tables with a reading a row, and Comet: each reading lands in its slot, of its GPU, in time."""

from pathlib import Path

import duckdb
import pandas as pd
import pytest

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.formats.sniff import UnknownFormatError
from telemetry.readers import clock
from telemetry.readers.hints import Hints
from tests.telemetry.captures import assert_writable, path
from tests.telemetry.reading import read_source


def _read(source: str | Path) -> Profile:
    (profile,) = read_source(str(source), Hints())
    assert_writable((profile,))
    return profile


def _means(profile: Profile, slot: str) -> list[float | None]:
    return [gpu.metrics[slot].mean for gpu in profile.gpus if slot in gpu.metrics]


CAPTURES = [
    ("dcgm_long.csv", "util.kernel_time", [0.85, 0.25]),
    ("dcgm_long.csv", "mem.used_gib", [2.0, 1.0]),
    ("dcgm_long.csv", "power.board_w", [300.0]),  # field 155 by its number
    ("dcgm_long.csv", "util.sm_active", [0.5]),
    ("influx.csv", "util.kernel_time", [0.6]),
    ("influx.csv", "mem.used_gib", [4.0]),
    ("mlflow_history.csv", "util.kernel_time", [0.5]),
    ("mlflow_history.csv", "power.board_w", [105.0]),
    ("readings.csv", "util.kernel_time", [0.45]),  # names of nvidia-smi, semicolons, units
    ("readings.csv", "power.board_w", [100.0]),
    ("comet.jsonl", "util.kernel_time", [0.98]),
    ("comet.jsonl", "mem.used_gib", [4.0]),  # bytes
    ("comet.jsonl", "power.board_w", [250.0]),  # milliwatts
]


@pytest.mark.parametrize(("name", "slot", "means"), CAPTURES)
def test_a_reading_a_row_is_read(name: str, slot: str, means: list[float]) -> None:
    """Names of DCGM, InfluxDB, MLflow, nvidia-smi and Comet fill their slots in their units."""
    assert _means(_read(path(f"trackers/{name}")), slot) == pytest.approx(means)


def test_what_a_row_says_beside_its_reading_is_kept(tmp_path: Path) -> None:
    """Machine, model and job come from the columns; a cut line is counted, other names are, too."""
    file = tmp_path / "given.csv"
    file.write_text(
        "time,host,gpu,model,job,metric,value\n"
        + "".join(
            f"2026-07-01T12:00:{s:02}Z,n{n},0,Tesla T4,bert,DCGM_FI_DEV_GPU_UTIL,{40 + n}\n"
            for s in (0, 30)
            for n in (1, 2)
        )
        + "2026-07-01T12:00:30Z,n1,0,Tesla T4,bert,loss,3\n2026-07-01T12:01:00Z,n1\n"
    )
    profile = _read(file)
    assert (profile.job.name, profile.hardware.gpu, profile.hardware.nodes) == (
        "bert",
        "Tesla T4",
        2,
    )
    assert _means(profile, "util.kernel_time") == pytest.approx([0.41, 0.42])
    (source,) = profile.provenance.sources
    assert source.dropped == {
        "point of a metric that is not used": 1,
        "row that is not complete": 1,
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("timestamp,gpu,metric,value\n", "without a row"),
        ("timestamp,gpu,metric,value\n2026-07-01 00:00:00,0,loss,1\n", "no GPU metric"),
        ('{"metricName": "sys.gpu.0.power_usage", "timestamp": "x"}', "no sys.gpu metric"),
        ('{"metricName": "loss", "metricValue": "1", "timestamp": 1}', "no sys.gpu metric"),
    ],
)
def test_tables_that_measure_no_gpu_are_refused(tmp_path: Path, text: str, says: str) -> None:
    """A table or an experiment without a GPU's reading says what it lacks."""
    file = tmp_path / "given"
    file.write_text(text)
    with pytest.raises(InputError, match=says):
        _read(file)


def _neptune(file: Path) -> None:
    """Write a run with two GPUs by the columns of neptune-exporter (its model.SCHEMA)."""
    rows = [
        f"('team/p', 'RUN-1', 'monitoring/1a2b/{name}_{gpu}', 'float_series', {step}, "
        f"TIMESTAMPTZ '2026-07-01 12:00:{10 * step:02}+00', {value}::DOUBLE, NULL)"
        for name, value in (("gpu", 40), ("gpu_memory", 2), ("gpu_power", 100))
        for gpu in (0, 1)
        for step in (0, 1)
    ]
    rows += [
        "('team/p', 'RUN-1', 'sys/name', 'string', NULL, NULL, NULL, 'tune, again')",
        "('team/p', 'RUN-1', 'monitoring/1a2b/hostname', 'string', NULL, NULL, NULL, 'n1')",
    ]
    columns = (
        "project_id, run_id, attribute_path, attribute_type, step, timestamp, float_value, "
        "string_value"
    )
    duckdb.sql(
        f"COPY (SELECT * FROM (VALUES {', '.join(rows)}) AS t({columns})) TO '{file}' "  # noqa: S608
        "(FORMAT parquet)"
    )


def test_a_run_of_neptune_is_read_from_its_export(tmp_path: Path) -> None:
    """A Parquet file of neptune-exporter is a run, alone and in a folder, and no table."""
    _neptune(tmp_path / "run_part_0.parquet")
    for source in (tmp_path / "run_part_0.parquet", tmp_path):
        profile = _read(source)
        assert (profile.job.name, profile.gpu_count) == ("tune again", 2)
        assert _means(profile, "util.kernel_time") == pytest.approx([0.4, 0.4])
        assert _means(profile, "mem.used_gib") == pytest.approx([2.0, 2.0])
        assert _means(profile, "power.board_w") == pytest.approx([100.0, 100.0])
        assert profile.window is not None
        assert str(profile.window.start) == "2026-07-01 12:00:00+00:00"


def test_a_damaged_run_of_neptune_is_refused(tmp_path: Path) -> None:
    """A Parquet file that was cut in its middle is told as damaged."""
    whole, cut = tmp_path / "whole.parquet", tmp_path / "cut.parquet"
    _neptune(whole)
    data = whole.read_bytes()
    cut.write_bytes(data[:40] + data[80:])
    with pytest.raises(InputError, match="damaged Parquet"):
        _read(cut)


def test_a_dashboard_is_no_measurement(tmp_path: Path) -> None:
    """The JSON of a Grafana dashboard names metrics, and is told from an answer of Prometheus."""
    file = tmp_path / "board.json"
    file.write_text('{"panels": [{"targets": [{"expr": "DCGM_FI_DEV_GPU_UTIL"}]}]}')
    with pytest.raises(UnknownFormatError, match="a Grafana dashboard"):
        _read(file)


@pytest.mark.parametrize(
    ("texts", "first", "length_s"),
    [
        (("03-11-2026 15:13:16", "03-11-2026 15:14:16"), "2026-03-11 15:13:16", 60),
        (("31.12.2025 23:59:59.5", "01.01.2026 00:00:01"), "2025-12-31 23:59:59.5", 1.5),
        (("3/11/2026 11:59:59 PM", "3/12/2026 12:00:09 AM"), "2026-03-11 23:59:59", 10),
        (("30/06/2026 23:59", "01/07/2026 00:01"), "2026-06-30 23:59:00", 120),
        (("05/07/2026 23:59:00", "06/07/2026 00:01:00"), "2026-07-05 23:59:00", 120),
    ],
    ids=["tegrastats", "dots", "AM and PM", "over 12 is a day", "closer together"],
)
def test_dates_in_numbers_are_read(texts: tuple[str, str], first: str, length_s: float) -> None:
    """Day and month are told apart by what they can be, and else by what lies closer together."""
    found = clock.parse(pd.Series(texts, dtype=object), None)
    assert found.t_s[0] == pd.Timestamp(first, tz="UTC").timestamp()
    assert found.t_s[1] - found.t_s[0] == length_s
    assert found.local
