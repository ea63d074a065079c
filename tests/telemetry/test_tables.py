"""Tables of readings: counted where they lie, alike on every engine, as the exact reader says."""

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

import duckdb
import pytest
from msgspec.structs import replace

from planner.profile.codec import dump
from planner.profile.model import Profile, Statistics
from pricing.errors import InputError, UnreachableError
from telemetry.lake.place import PASSWORD, USER, is_address, place_of
from telemetry.lake.profiles import profiles_of_place
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry
from tests.telemetry.reading import read_source

pytest.importorskip("ibis", reason="Ibis reads tables: pip install 'gpucost[lake]'")
POSTGRES = os.environ.get("GPUCOST_POSTGRES")
START = 1_793_491_200
COLUMNS = "ts, job, host, gpu_index, uuid, name, gpu_util, memory_used, power"
# Two jobs on three machines: idle at first, a gap, a value out of range, a missing one.
ROWS = [
    (
        START + t,
        f"job-{g // 4}",
        f"node-{g // 2}",
        g % 2,
        f"GPU-a{g}",
        "NVIDIA H100 80GB HBM3",
        0 if t < 100 else 250 if t == 500 else (t * 7 + g * 13) % 101,
        None if t % 50 == 0 else 20000.0 + t * 31 % 5000,
        100.5 + (t * 17 + g) % 500,
    )
    for t in (*range(0, 600, 5), *range(900, 1500, 5))
    for g in range(6)
]
INSERT = "insert into readings values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
STEPS = {"util.kernel_time": 0.001, "mem.used_gib": 0.01, "power.board_w": 1.0}


def _sqlite(folder: Path) -> str:
    file = folder / "fleet.db"
    with sqlite3.connect(file) as base:
        kinds = "ts integer, job, host, gpu_index integer, uuid, name, gpu_util integer, "
        base.execute(f"create table readings ({kinds} memory_used real, power real)")
        base.executemany(INSERT, ROWS)
    base.close()
    return f"sqlite://{file}#readings"


def _duckdb(folder: Path, query: str = "select * from readings") -> duckdb.DuckDBPyConnection:
    base = duckdb.connect(str(folder / "fleet.duckdb"))
    kinds = "ts bigint, job text, host text, gpu_index int, uuid text, name text, gpu_util int, "
    base.execute(f"create table readings ({kinds} memory_used double, power double)")
    base.executemany(INSERT, ROWS)
    base.execute(f"copy ({query}) to '{folder / 'fleet.parquet'}' (format parquet)")
    return base


def _read(source: str, hints: Hints | None = None) -> tuple[Profile, ...]:
    place = place_of(source)
    assert place is not None
    return profiles_of_place(place, {}, hints or Hints())


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same table as Parquet, in duckdb and in SQLite."""
    folder = tmp_path_factory.mktemp("fleet")
    _duckdb(folder).close()
    _sqlite(folder)
    return folder


def test_engines_agree_to_the_byte(fleet: Path) -> None:
    """Parquet, a duckdb file and SQLite give the same profiles, but for the table's name."""
    texts = {
        dump(_read(source)).replace("fleet.parquet", "readings")
        for source in (
            str(fleet / "fleet.parquet"),
            f"duckdb://{fleet}/fleet.duckdb#readings",
            f"duckdb://{fleet}/fleet.duckdb#main.readings",
            f"sqlite://{fleet}/fleet.db#readings",
        )
    }
    assert len(texts) == 1


# Mean power of each GPU lies in the middle of two millionths, so that the last bit of a sum in
# doubles, which depends on the order of adding, would decide where it is rounded to.
DRAWN = """
create table drawn as
with milliwatts as (
  select t, g, 100000 + (hash(t + g * 7) % 500000)::bigint as mw
  from range(4000) a(t), range(6) b(g)
)
select {start} + t as ts, 'job-' || (g % 3) as job, g as gpu_index, 'GPU-a' || g as uuid,
  10 + (hash(t * 31 + g) % 900) / 10.0 as gpu_util,
  (mw + if(t = 0, 2 - (sum(mw) over (partition by g)) % 4, 0))::double / 1000 as power,
  case when t % 500 = 0 then 1e12 else (hash(t * 3 + g) % 1000000) / 7.0 end as rx
from milliwatts
"""
MAPPED = Hints(map=(("rx", "io.pcie_rx_mib_s"),))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows in four orders and three engines."""
    folder = tmp_path_factory.mktemp("drawn")
    base = duckdb.connect(str(folder / "drawn.duckdb"))
    base.execute(DRAWN.format(start=START))
    for name, order in (("a", "ts, uuid"), ("b", "uuid desc, ts desc"), ("c", "hash(ts * 3)")):
        query = f"from drawn order by {order}"
        base.execute(f"copy ({query}) to '{folder / name}.parquet' (format parquet)")
    rows = base.execute("from drawn order by hash(ts)").fetchall()
    base.close()
    with sqlite3.connect(folder / "drawn.db") as other:
        other.execute("create table drawn (ts real, job, gpu_index, uuid, gpu_util, power, rx)")
        other.executemany("insert into drawn values (?, ?, ?, ?, ?, ?, ?)", rows)
    other.close()
    return folder


def test_sums_do_not_depend_on_the_order_of_rows_or_the_engine(drawn: Path) -> None:
    """Whatever is added first, and on whichever engine, the profiles are the same bytes."""
    files = [str(drawn / f"{name}.parquet") for name in "abc"]
    tables = [f"duckdb://{drawn}/drawn.duckdb#drawn", f"sqlite://{drawn}/drawn.db#drawn"]
    texts = {dump(_renamed(_read(source, MAPPED))) for source in (*files, *tables)}
    assert len(texts) == 1


def test_readings_that_no_sum_could_hold_are_left_out(drawn: Path) -> None:
    """A milliard and more is no measurement, and is counted; the others keep their mean."""
    (first, *_) = _read(str(drawn / "a.parquet"), MAPPED)
    (source,) = first.provenance.sources
    assert source.dropped == {
        "value io.pcie_rx_mib_s out of range": 16,
    }
    for gpu in first.gpus:
        assert 60_000 < (gpu.metrics["io.pcie_rx_mib_s"].mean or 0) < 80_000


def _renamed(profiles: tuple[Profile, ...]) -> tuple[Profile, ...]:
    """Return profiles of a table of one name."""
    return tuple(
        replace(
            one,
            provenance=replace(
                one.provenance,
                sources=tuple(replace(s, path="drawn") for s in one.provenance.sources),
                notes=tuple(note.partition(": ")[2] for note in one.provenance.notes),
            ),
        )
        for one in profiles
    )


@pytest.mark.skipif(POSTGRES is None, reason="GPUCOST_POSTGRES names no HOST:PORT/DATABASE")
def test_postgres_gives_the_bytes_of_duckdb(drawn: Path) -> None:
    """The same rows in a real PostgreSQL, which GPUCOST_WAREHOUSE_USER may write to."""
    psycopg = pytest.importorskip("psycopg")
    who = {USER: os.environ.get(USER), PASSWORD: os.environ.get(PASSWORD)}
    user, password = (f":{quote(value)}" if value else "" for value in who.values())
    base = duckdb.connect(str(drawn / "drawn.duckdb"), read_only=True)
    rows = base.execute("from drawn order by hash(ts)").fetchall()
    base.close()
    with psycopg.connect(
        f"postgresql://{user[1:]}{password}@{POSTGRES}", autocommit=True
    ) as server:
        server.execute("drop table if exists gpucost_drawn")
        real = "double precision"
        server.execute(
            f"create table gpucost_drawn (ts {real}, job text, gpu_index int, uuid text, "
            f"gpu_util {real}, power {real}, rx {real})"
        )
        with server.cursor() as cursor, cursor.copy("copy gpucost_drawn from stdin") as lines:
            for row in rows:
                lines.write_row(row)
    place = place_of(f"postgres://{POSTGRES}#gpucost_drawn")
    assert place is not None
    found = profiles_of_place(place, who, MAPPED)
    assert dump(_renamed(found)) == dump(_renamed(_read(str(drawn / "a.parquet"), MAPPED)))


def test_a_table_agrees_with_the_exact_reader(fleet: Path, tmp_path: Path) -> None:
    """Mean, least, greatest and energy are exact, quantiles to their step; window and gap too."""
    file = tmp_path / "job.csv"
    heads = "timestamp,index,uuid,name,gpu_util,memory_used,power\n"
    rows = [row for row in ROWS if row[1] == "job-0"]
    lines = (",".join("" if c is None else str(c) for c in (r[0], *r[3:])) for r in rows)
    file.write_text(heads + "\n".join(lines) + "\n", encoding="utf-8")
    (exact,) = read_source(str(file), Hints())
    found = next(p for p in _read(str(fleet / "fleet.parquet")) if p.job.name == "job-0")
    assert exact.window is not None
    assert found.window is not None
    assert (found.window.start, found.window.duration_s, found.window.interval_s) == (
        exact.window.start,
        exact.window.duration_s,
        exact.window.interval_s,
    )
    assert len(found.gpus) == 4
    assert found.hardware.nodes == 2
    by_uuid = {gpu.uuid: gpu.metrics for gpu in exact.gpus}
    for gpu in found.gpus:
        ours, theirs = gpu.metrics, by_uuid[gpu.uuid]
        assert ours["energy.total_j"] == theirs["energy.total_j"]
        for slot, step in STEPS.items():
            _agree(ours[slot], theirs[slot], step, slot)
    assert found.provenance.sources[0].dropped == {"value util.kernel_time out of range": 4}


def _agree(ours: Statistics, theirs: Statistics, step: float, slot: str) -> None:
    # The exact reader lets the value before one out of range stand for longer; the table does not.
    loose = 0.005 if slot == "util.kernel_time" else 1e-6
    assert ours.mean == pytest.approx(theirs.mean, rel=loose)
    assert (ours.min, ours.max) == (theirs.min, theirs.max)
    for name in ("p05", "p25", "p50", "p75", "p95", "p99"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=step * 1.01 + loose)


def test_a_folder_of_parquet_is_one_table(fleet: Path, tmp_path: Path) -> None:
    """Parts below each other count together; with anything else it is a folder as any other."""
    base = duckdb.connect(str(fleet / "fleet.duckdb"), read_only=True)
    for place in ("a", "b/c"):
        (tmp_path / place).mkdir(parents=True)
    for place, days in (("a/1.parquet", "< 700"), ("b/c/2.parquet", ">= 700")):
        query = f"from readings where ts - {START} {days}"
        base.execute(f"copy ({query}) to '{tmp_path / place}' (format parquet)")
    base.close()
    whole = _read(str(fleet / "fleet.parquet"))
    for read in (read_source, lambda path, hints: read_telemetry([path], hints)):
        parts = read(str(tmp_path), Hints())
        assert [p.gpus for p in parts] == [p.gpus for p in whole]
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    assert place_of(str(tmp_path)) is None


def test_jobs_are_named_by_a_column_or_by_machines(fleet: Path) -> None:
    """`job_label` is the column; one job may be picked."""
    source = str(fleet / "fleet.parquet")
    assert [p.job.name for p in _read(source, Hints(job_label="host"))] == [
        "node-0",
        "node-1",
        "node-2",
    ]
    assert [p.job.name for p in _read(source, Hints(job="job-1"))] == ["job-1"]


def test_instants_are_read_as_numbers_are(fleet: Path, tmp_path: Path) -> None:
    """A timestamp column and milliseconds since 1970 give what seconds give."""
    base = duckdb.connect(str(fleet / "fleet.duckdb"), read_only=True)
    whole = _read(str(fleet / "fleet.parquet"))
    for name, form in (("a", "make_timestamp(ts * 1000000)"), ("b", "ts * 1000")):
        query = f"from readings select {form} as ts, * exclude (ts)"
        base.execute(f"copy ({query}) to '{tmp_path / name}.parquet' (format parquet)")
        found = _read(str(tmp_path / f"{name}.parquet"))
        assert [p.window for p in found] == [p.window for p in whole]
        assert [p.gpus for p in found] == [p.gpus for p in whole]
    base.close()


@pytest.mark.parametrize(
    ("source", "error", "says"),
    [
        ("postgres://me:secret@host/base#t", InputError, "GPUCOST_WAREHOUSE_PASSWORD"),
        ("sqlite:///nowhere.db#t", InputError, "no file"),
        ("duckdb://FLEET/fleet.duckdb", InputError, "names no table"),
        ("duckdb://FLEET/fleet.duckdb#nothing", InputError, "cannot be read"),
        ("sqlite://FLEET/fleet.parquet#readings", (InputError, UnreachableError), "readings"),
    ],
)
def test_wrong_places_are_refused(
    source: str, error: type[Exception], says: str, fleet: Path
) -> None:
    """Each says what is wrong; a password is never repeated."""
    assert is_address(source)
    with pytest.raises(error, match=says) as caught:
        _read(source.replace("FLEET", str(fleet)))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("select 1 as a, 2 as gpu_util", "no column says when"),
        ("select 1 as ts, 2 as a", "no column is a GPU reading"),
        ("select ts, gpu_util from readings where false", "no row"),
    ],
)
def test_a_table_of_something_else_is_refused(
    query: str, says: str, fleet: Path, tmp_path: Path
) -> None:
    """The columns that are there are named."""
    base = duckdb.connect(str(fleet / "fleet.duckdb"), read_only=True)
    base.execute(f"copy ({query}) to '{tmp_path / 'x.parquet'}' (format parquet)")
    base.close()
    with pytest.raises(InputError, match=says):
        read_source(str(tmp_path / "x.parquet"), Hints())
