"""A CSV log as a table of texts that DuckDB reads, with the lines that are not rows of it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.readers import clock, csv_text
from telemetry.readers.column_names import csv_header, is_rule
from telemetry.readers.csv_text import MOST, missing_kind, numbers
from telemetry.readers.payload import decode
from telemetry.readers.units import Meaning, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import tzinfo
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

    from telemetry.readers.hints import Hints

_DELIMITER = ","
_WRONG_WIDTH = {"MISSING COLUMNS", "TOO MANY COLUMNS"}
_HEAD_ROWS, _LOOKED_AT = 4096, 32
_TAIL_BYTES = 1 << 16
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_FORMS = {
    23: ("%Y/%m/%d %H:%M:%S.%g", clock.SMI_MILLIS),
    19: ("%Y/%m/%d %H:%M:%S", clock.SMI_SECONDS),
}


class NeedsSlowReaderError(Exception):
    """A log is not plain enough for DuckDB; the exact reader takes it."""


def header_of(head: bytes, hints: Hints) -> tuple[tuple[str, ...], str]:
    """Return the columns of a plain log, and its first line, which names them.

    Raises:
        NeedsSlowReaderError: its first line does not.
    """
    end = head.find(b"\n")
    first = head[: max(end, 0)]
    if end < 0 or b"\0" in first or not first.isascii():
        raise NeedsSlowReaderError
    line = decode(first).rstrip("\r")
    header = csv_header([line], hints)
    if header is None or header[0] != _DELIMITER or not csv_text.header_is_line(header[1]):
        raise NeedsSlowReaderError
    return tuple(header[1]), line


class CsvTable:
    """A log as DuckDB reads it: its columns are c0, c1 ..., all of text.

    Args:
        connection: of DuckDB.
        file: where the log lies.
        header: names of its columns.
        line: the line that names them.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, file: Path, header: Sequence[str], line: str
    ) -> None:
        self.header = header
        self._connection = connection
        self._unended, self._cut = _tail(file, len(header))
        escaped = re.sub(r"([*?\[])", r"[\1]", str(file))
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
            for cells in (text.split(_DELIMITER) for text in (line, self._cut) if text is not None)
        )

    def rows(self, key: str, where: str = "", most: str = "") -> pd.DataFrame:
        """Return rows as texts, a column each, with an expression over them as `key`."""
        cells = ", ".join(f"coalesce(c{i}, '') AS x{i}" for i in range(len(self.header)))
        query = f"SELECT {cells}, {key} AS key FROM {self._rows % ''} WHERE {self._where}"  # noqa: S608
        return self._connection.execute(f"{query}{where}{most}").df()

    def head(self, key: str) -> pd.DataFrame:
        """Return the first rows, as `rows` does.

        Raises:
            NeedsSlowReaderError: there is none, or they begin with words.
        """
        head = self.rows(key, most=f" LIMIT {_HEAD_ROWS}")
        if head.empty or (len(head) > 1 and head["x0"].str[:1].str.isalpha().mean() > 1 / 2):
            raise NeedsSlowReaderError
        return head

    def keep(self, table: str, columns: Mapping[str, str]) -> None:
        """Make a table of expressions over the rows, in their order."""
        selected = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        source = self._rows % ", store_rejects = true, rejects_limit = 0"
        for errors in ("reject_errors", "reject_scans"):
            self._connection.execute(f"DROP TABLE IF EXISTS {errors}")
        self._connection.execute(
            f"CREATE TABLE {table} AS SELECT {selected} FROM {source} WHERE {self._where}"  # noqa: S608
        )

    def dropped(self, time: Times, odd: bool, hints: Hints) -> Counter[str]:  # noqa: FBT001
        """Return how many lines are left out, by reason; `odd` says that a time is.

        Raises:
            NeedsSlowReaderError: a line is a header of another table, a date or a summary.
        """
        lines = [line for line in self._rejects() if not is_rule(line)]
        cut = self._cut is not None or self._unended in lines
        wrong = len(lines) - (cut and self._cut is None)
        if time.place or odd:
            letter = " OR c0 >= 'A'" if time.place else ""
            cells = ", ".join(f"coalesce(c{i}, '')" for i in range(len(self.header)))
            query = (
                f"SELECT DISTINCT concat_ws(',', {cells}) FROM {self._rows % ''} "  # noqa: S608
                f"WHERE {self._where} AND ({time.sql} IS NULL{letter})"
            )
            lines += [line for (line,) in self._connection.execute(query).fetchall()]
        for line in lines:
            named = csv_text.names(line, _DELIMITER, hints) is not None
            dated = line[:1].isalpha() and clock.is_date_line(line)
            if named or dated or csv_text.is_summary(line) or '"' in line or "\0" in line:
                raise NeedsSlowReaderError
        return +Counter({"wrong number of fields": wrong, "cut line": int(cut)})

    def _rejects(self) -> Iterator[str]:
        errors = self._connection.execute(
            "SELECT DISTINCT line_byte_position, error_type, csv_line FROM reject_errors ORDER BY 1"
        ).fetchall()
        if any(reason not in _WRONG_WIDTH for _, reason, _ in errors):
            raise NeedsSlowReaderError
        for text in {place: text for place, _, text in errors}.values():
            yield from (line for line in text.splitlines() if line.strip())


def _tail(file: Path, width: int) -> tuple[str, str | None]:
    """Return a last line that no newline ends, and the same where its last cell was cut."""
    with file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - _TAIL_BYTES))
        *lines, unended = stream.read().decode("utf-8", "replace").split("\n")
    rows = [line.rstrip("\r") for line in lines[-2:] if line.count(_DELIMITER) == width - 1]
    last = unended.rstrip("\r")
    whole = last.count(_DELIMITER) == width - 1
    lost = whole and bool(rows) and csv_text.lost_its_unit(rows[-1], last)
    return last.strip() and last, last if lost else None


def quoted(value: str) -> str:
    """Return a text as SQL has it."""
    return "'" + value.replace("'", "''") + "'"


class Numbers:
    """A column of numbers.

    Attributes:
        meaning: what it means.
        sql: its numbers; NULL where a cell is odd.
        odd_sql: its odd cells.
    """

    def __init__(self, place: int, meaning: Meaning, head: pd.DataFrame) -> None:
        self.meaning, column = meaning, f"c{place}"
        cells = head[f"x{place}"]
        unit, usual = _unit(cells, meaning), ""
        if (cells == cells.iloc[0]).all() and (first := _NUMBER.match(cells.iloc[0].strip())):
            usual = f"WHEN {column} = {quoted(cells.iloc[0])} THEN {float(first[0])!r}::DOUBLE"
        text = f"substring({column}, 1, strlen({column}) - {len(unit)})" if unit else column
        plain = [f"ends_with({column}, {quoted(unit)})"] if unit else []
        plain.append(f"NOT contains({column}, '_')")  # which DuckDB takes between digits
        number = f"CASE {usual} WHEN {' AND '.join(plain)} THEN try_cast({text} AS DOUBLE) END"
        self.sql = f"CASE WHEN abs({number}) < {MOST!r} THEN {number} END"
        self.odd_sql = f"CASE WHEN ({self.sql}) IS NULL THEN coalesce({column}, '') END"

    def odd(self, texts: Mapping[str, int]) -> tuple[dict[str, float], Counter[str]]:
        """Return the numbers that the exact reader sees in odd cells, and what the others say.

        Raises:
            NeedsSlowReaderError: a cell is in another unit than its column.
        """
        scale = self.meaning.scale or 1.0
        cells = pd.Series(list(texts), dtype=object)
        read = numbers(cells, scale=scale, to=self.meaning.to, typical=self.meaning.unit)
        if not np.array_equal(read.raw * scale, read.scaled, equal_nan=True):
            raise NeedsSlowReaderError
        missing: Counter[str] = Counter()
        for text, value in zip(texts, read.raw, strict=True):
            if np.isnan(value):
                missing[missing_kind(text.strip())] += texts[text]
        pairs = zip(texts, read.raw.tolist(), strict=True)
        return {text: value for text, value in pairs if np.isfinite(value)}, missing


def _unit(cells: pd.Series, meaning: Meaning) -> str:
    """Return what stands behind the first cell that is a number."""
    for cell in cells.head(_LOOKED_AT):
        number = _NUMBER.match(cell.strip())
        if number is not None:
            unit: str = cell.strip()[number.end() :]
            if unit.strip() and spelled(unit) != meaning.unit:
                raise NeedsSlowReaderError
            return unit
    return ""


class Times:
    """A column of times: as nvidia-smi writes them, or of numbers.

    Attributes:
        place: of the column.
        sql: its times, seconds since 1970 as if they were UTC, or as they are; NULL where odd.
        odd_sql: its odd cells.
    """

    def __init__(self, place: int, head: pd.DataFrame) -> None:
        first, column = str(head[f"x{place}"].iloc[0]).strip(), f"c{place}"
        self.place, self._form = place, ""
        if first.replace(".", "", 1).isdecimal():
            self.sql = Numbers(place, Meaning(target="timestamp", unit="s"), head).sql
        elif len(first) in _FORMS and first[4] == "/":
            form, self._form = _FORMS[len(first)]
            cell = column if place == 0 else f"ltrim({column})"
            parsed = f"epoch_ms(try_strptime({cell}, '{form}')) / 1000.0::DOUBLE"
            self.sql = f"CASE WHEN strlen({cell}) = {len(first)} THEN {parsed} END"
        else:
            raise NeedsSlowReaderError
        self.odd_sql = f"CASE WHEN ({self.sql}) IS NULL THEN coalesce({column}, '') END"

    def odd(self, texts: Iterable[str]) -> dict[str, float]:
        """Return what the exact reader makes of odd cells such as 2026/1/05 10:00:00.000.

        Raises:
            NeedsSlowReaderError: it would rather read all of them as it reads these.
        """
        cells = pd.Series(list(texts), dtype=object)
        if not len(cells):
            return {}
        if not self._form:
            values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
        else:
            stripped = cells.str.strip()
            values = clock.spelled(stripped, clock.SMI_MILLIS)
            if clock.any_zoned(stripped):
                raise NeedsSlowReaderError
            if self._form != clock.SMI_MILLIS:
                if np.isfinite(values).any():
                    raise NeedsSlowReaderError
                values = clock.spelled(stripped, self._form)
        pairs = zip(cells, values.tolist(), strict=True)
        return {text: value for text, value in pairs if np.isfinite(value)}

    def instants(self, t_s: NDArray[np.float64], zone: tzinfo | None) -> clock.SourceClock:
        """Return the instants of all rows, in their order."""
        return clock.local(clock.placed(t_s), zone) if self._form else clock.epoch(t_s)
