"""A CSV log as a table of texts that DuckDB reads, with the lines that are not rows of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from telemetry.readers import csv_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import duckdb


DELIMITER = ","
_WRONG_WIDTH = {"MISSING COLUMNS", "TOO MANY COLUMNS"}
_VECTORS = 32  # of 2,048 rows each, so that a column of them stays in a processor's cache
_HEAD_ROWS = 4096
_TAIL_BYTES = 1 << 16


class NeedsSlowReaderError(Exception):
    """A log is not plain enough for DuckDB; the exact reader takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The end of a log.

    Attributes:
        unended: the last line where no newline ends it, else "".
        cut: the same where it is a row that was cut inside its last cell.
    """

    unended: str
    cut: str | None

    @classmethod
    def of(cls, file: Path, width: int) -> LogTail:
        """Return the end of a log whose rows have so many cells."""
        with file.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _TAIL_BYTES))
            *lines, unended = stream.read().decode("utf-8", "replace").split("\n")
        rows = [line.rstrip("\r") for line in lines[-2:] if line.count(DELIMITER) == width - 1]
        last = unended.rstrip("\r")
        whole = last.count(DELIMITER) == width - 1
        lost = whole and bool(rows) and csv_text.lost_its_unit(rows[-1], last)
        return cls(unended=last.strip() and last, cut=last if lost else None)


class Table:
    """A log as DuckDB reads it: its columns are c0, c1 ..., all of text.

    Args:
        connection: of DuckDB.
        file: where the log lies.
        header: names of its columns.
        skipped: lines that are not rows, though they have as many cells.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        file: str,
        header: Sequence[str],
        skipped: Iterable[str],
    ) -> None:
        self.header = header
        self._connection = connection
        escaped = re.sub(r"([*?\[])", r"[\1]", file)
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(header)))
        self._rows = (
            f"read_csv({quoted(escaped)}, auto_detect = false, header = false, delim = ',', "
            "quote = '', escape = '', compression = 'none', strict_mode = true, "
            f"ignore_errors = true, columns = {{{columns}}}%s)"
        )
        self._where = " AND ".join(
            "("
            + " OR ".join(f"c{i} IS DISTINCT FROM {quoted(c)}" for i, c in enumerate(cells))
            + ")"
            for cells in (line.split(DELIMITER) for line in skipped)
        )

    def chunks(
        self,
        columns: Sequence[str],
        where: str = "",
        *,
        most: int | None = None,
        keep_rejects: bool = False,
    ) -> Iterator[pd.DataFrame]:
        """Yield expressions over the rows, in their order, some rows at a time."""
        rejects = ", store_rejects = true, rejects_limit = 0" if keep_rejects else ""
        selected = ", ".join(f"{column} AS x{i}" for i, column in enumerate(columns))
        chosen = f"{self._where} AND ({where})" if where else self._where
        limit = f" LIMIT {most}" if most is not None else ""
        query = f"SELECT {selected} FROM {self._rows % rejects} WHERE {chosen}{limit}"  # noqa: S608 - quoted
        result = self._connection.execute(query)
        while len(chunk := result.fetch_df_chunk(_VECTORS)):
            yield chunk

    def head(self) -> pd.DataFrame:
        """Return the first rows, a column each."""
        columns = [f"coalesce(c{i}, '')" for i in range(len(self.header))]
        return next(self.chunks(columns, most=_HEAD_ROWS), pd.DataFrame())

    def texts(self, column: str, where: str) -> Iterator[pd.Series]:
        """Yield the cells of a column in some rows, some rows at a time.

        Raises:
            NeedsSlowReaderError: they hold quotes or NUL bytes.
        """
        for chunk in self.chunks([f"coalesce({column}, '')"], where):
            cells = chunk["x0"].astype(object)
            refuse_quoted(cells.unique())
            yield cells

    def labels(
        self, key: str, hashes: Iterable[int], cells: Sequence[int]
    ) -> dict[int, tuple[str, ...]]:
        """Return some cells of the first row of each hash."""
        labels: dict[int, tuple[str, ...]] = {}
        listed = ", ".join(map(str, hashes))
        columns = [key, *(f"coalesce(c{i}, '')" for i in cells)]
        for chunk in self.chunks(columns, f"{key} IN ({listed})") if listed else ():
            for value, *texts in chunk.drop_duplicates("x0").itertuples(index=False):
                labels.setdefault(int(value), tuple(map(str, texts)))
        return labels

    def rejects(self) -> list[str]:
        """Return the lines that are not rows.

        Raises:
            NeedsSlowReaderError: one is none for another reason than its number of cells.
        """
        errors = self._connection.execute(
            "SELECT DISTINCT line_byte_position, error_type, csv_line FROM reject_errors ORDER BY 1"
        ).fetchall()
        if any(reason not in _WRONG_WIDTH for _, reason, _ in errors):
            raise NeedsSlowReaderError
        lines = {place: text for place, _, text in errors}.values()
        return [line for text in lines for line in text.splitlines() if line.strip()]


def quoted(value: str) -> str:
    """Return a text as SQL has it."""
    return "'" + value.replace("'", "''") + "'"


def line_of(width: int) -> str:
    """Return the SQL of a row's whole line."""
    cells = ", ".join(f"coalesce(c{i}, '')" for i in range(width))
    return f"concat_ws({quoted(DELIMITER)}, {cells})"


def refuse_quoted(texts: Iterable[object]) -> None:
    """Leave texts with quotes or NUL bytes to the exact reader.

    Raises:
        NeedsSlowReaderError: one has such.
    """
    if any('"' in str(text) or "\0" in str(text) for text in texts):
        raise NeedsSlowReaderError
