"""A table: the columns of it that are used, and where it lies: a Parquet file or folder, or ENGINE://PLACE#[SCHEMA.]TABLE."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pricing.errors import InputError, UnreachableError
from pricing.message import Message
from telemetry.formats.stored_runs import is_run_table, is_series_table
from telemetry.readers.payload import MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

USER, PASSWORD = "GPUCOST_WAREHOUSE_USER", "GPUCOST_WAREHOUSE_PASSWORD"
FILES, SERVERS = ("duckdb", "sqlite"), ("postgres", "mysql", "clickhouse", "trino")

ENGINES = (*FILES, *SERVERS)
_BATCH_ROWS = 200_000
_COPIED_BYTES = 8 << 20
# What does not fit goes to the disk; rows need not come in the order in which they lie.
_DUCKDB = {"memory_limit": "512MB", "preserve_insertion_order": False}
_INSTALL = "Install the extra: pip install 'gpucost[lake]'."


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotColumn:
    """A column of readings.

    Attributes:
        slot: what it fills.
        column: its name.
        scale: factor to the slot's unit.
        step: what its values are rounded to, in the slot's unit.
    """

    slot: str
    column: str
    scale: float
    step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """The columns that are used.

    Attributes:
        named: by what they say: `timestamp`, `host`, `uuid`, `index`, `name` (of the product) and
            `job`; those that the table has.
        memory: the device's memory, and the factor to GiB.
        slots: readings.
    """

    named: Mapping[str, str]
    memory: tuple[str, float] | None
    slots: tuple[SlotColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """A table.

    Attributes:
        name: for messages and provenance.
        engine: who counts.
        where: what it connects to: a file, or host, port and database.
        schema: the table's schema.
        table: its name; None for Parquet.
        files: Parquet files.
    """

    name: str
    engine: str = "duckdb"
    where: str = ""
    schema: str | None = None
    table: str | None = None
    files: tuple[str, ...] = ()


def is_address(source: str) -> bool:
    """Return whether a SOURCE names a table of an engine."""
    return source.partition("://")[0] in ENGINES and "://" in source


def place_of(source: str) -> TablePlace | None:
    """Return the table that a SOURCE names; None where it is of another kind.

    Raises:
        InputError: an address names no table, or has a user or a password in it.
    """
    if is_address(source):
        return _address(source)
    path = Path(source)
    try:
        if path.is_dir():
            files = _all_parquet(path)
            if not files or _is_a_job(files[0]):
                return None
            return TablePlace(name=path.name or source, files=tuple(map(str, files)))
        if not path.is_file() or _is_a_job(path):
            return None
        with path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                return None
    except (OSError, ValueError):
        return None
    return TablePlace(name=path.name, files=(source,))


def _is_a_job(file: Path) -> bool:
    return is_run_table(file) or is_series_table(file)


def _all_parquet(folder: Path) -> list[Path]:
    """Return the files of a folder and below it, sorted; none where one is not Parquet."""
    files: list[Path] = []
    for path in folder.rglob("*"):
        is_hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        if path.is_file() and not is_hidden:
            if path.suffix != ".parquet":
                return []
            files.append(path)
    return sorted(files)


def _address(source: str) -> TablePlace:
    engine, _, location = source.partition("://")
    where, _, table = location.partition("#")
    if "@" in where.partition("/")[0]:
        names = {"user": USER, "password": PASSWORD}
        raise InputError(Message("read.address-secret", engine=engine, **names))
    schema, _, name = table.rpartition(".")
    if not where or not name:
        raise InputError(f"{source}: names no table. Give {engine}://PLACE#[SCHEMA.]TABLE.")
    if engine in FILES and not Path(where).is_file():
        raise InputError(f"{source}: no file {where}. Check the name.")
    return TablePlace(name=name, engine=engine, where=where, schema=schema or None, table=name)


@contextmanager
def opened(source: TablePlace, who: Mapping[str, str | None]) -> Iterator[Any]:
    """Give the table, and end the connection behind it.

    Args:
        source: where it lies.
        who: values of `USER` and `PASSWORD`.

    Raises:
        InputError: what reads it is not installed, or there is no such table.
        UnreachableError: the engine does not answer.
    """
    # What libraries say of each other is not for users.
    with warnings.catch_warnings(), TemporaryDirectory(prefix="gpucost-") as spill:
        warnings.simplefilter("ignore")
        with _connected(source, who, spill) as table:
            yield table


@contextmanager
def _connected(source: TablePlace, who: Mapping[str, str | None], spill: str) -> Iterator[Any]:
    """Give the table, and end the connection behind it."""
    try:
        import ibis  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError(f"{source.name}: a table, which Ibis reads. {_INSTALL}") from None
    try:
        backend = getattr(ibis, source.engine)
        connection = backend.connect(**_arguments(source, who, spill))
    except (ImportError, AttributeError):
        names = {"table": source.name, "engine": source.engine}
        raise InputError(Message("read.no-engine", **names)) from None
    except Exception as error:
        raise UnreachableError(
            f"{source.name}: {source.engine} does not answer: {_first_line(error)}"
        ) from error
    try:
        try:
            if source.files:
                table = connection.read_parquet(list(source.files), union_by_name=True)
            else:
                database = {"database": source.schema} if source.schema else {}
                table = connection.table(source.table, **database)
        except Exception as error:
            raise InputError(f"{source.name}: cannot be read: {_first_line(error)}") from error
        try:
            yield table
        except InputError:
            raise
        except Exception as error:
            raise UnreachableError(
                f"{source.name}: {source.engine} failed: {_first_line(error)}"
            ) from error
    finally:
        connection.disconnect()


def in_batches(
    answer: Any,  # noqa: ANN401 - an Ibis table
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a question to an engine, so many at a time."""
    import ibis  # noqa: PLC0415 - an extra

    engine = answer.get_backend()
    if engine.name == "duckdb":  # Ibis 12 asks it for a method that duckdb 2 no longer has
        relation = engine.con.sql(ibis.to_sql(answer, dialect="duckdb"))
        yield from relation.to_arrow_reader(_BATCH_ROWS)
    elif engine.name == "postgres":
        yield from _copied(engine.con, answer)
    else:
        yield from answer.to_pyarrow_batches(chunk_size=_BATCH_ROWS)


def _copied(
    connection: Any,  # noqa: ANN401 - of psycopg
    answer: Any,  # noqa: ANN401 - an Ibis table
) -> Iterator[pa.RecordBatch]:
    """Yield what PostgreSQL copies out: as CSV, so that no row becomes objects of Python."""
    import ibis  # noqa: PLC0415 - an extra
    from pyarrow import csv  # noqa: PLC0415 - the same

    schema = answer.schema().to_pyarrow()
    manner = csv.ConvertOptions(column_types=schema, strings_can_be_null=False)
    named = csv.ReadOptions(column_names=schema.names)
    question = f"COPY ({ibis.to_sql(answer, dialect='postgres')}) TO STDOUT (FORMAT csv)"
    lines, size = list[bytes](), 0
    with connection.cursor() as cursor, cursor.copy(question) as rows:
        for row in rows:
            lines.append(bytes(row))
            size += len(row)
            if size >= _COPIED_BYTES:
                yield from _parsed(lines, named, manner)
                lines, size = [], 0
    yield from _parsed(lines, named, manner)


def _parsed(lines: list[bytes], named: Any, manner: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - pyarrow's
    from pyarrow import csv  # noqa: PLC0415 - an extra

    if lines:
        text = BytesIO(b"".join(lines))
        yield from csv.read_csv(text, read_options=named, convert_options=manner).to_batches()


def _arguments(source: TablePlace, who: Mapping[str, str | None], spill: str) -> dict[str, Any]:
    if source.files:
        return {"temp_directory": spill, **_DUCKDB}
    if source.engine == "duckdb":
        return {"database": source.where, "read_only": True, "temp_directory": spill, **_DUCKDB}
    if source.engine == "sqlite":
        return {"database": source.where}
    host, _, database = source.where.strip("/").partition("/")
    named, _, port = host.partition(":")
    arguments = {
        "host": named,
        "port": int(port) if port.isdecimal() else None,
        "user": who.get(USER),
        "password": who.get(PASSWORD),
        "database": database or None,
    }
    return {key: value for key, value in arguments.items() if value is not None}


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{lines[0][:200] if lines else type(error).__name__}."
