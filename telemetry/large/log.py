"""A CSV log of GPU readings of any size: DuckDB reads it once, then gives a few GPUs at a time.

What it makes of a log is what the exact reader (`formats.csv_log`) makes of it. Cells that DuckDB
does not read as plain numbers or times are read by that one's functions. A log that is not plain
(several tables, quotes, no device column ...) is left to the exact reader.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd

from planner.profile.kinds import SLOTS
from planner.profile.model import Column
from telemetry.formats import csv_log
from telemetry.large.table import (
    CsvTable,
    NeedsSlowReaderError,
    Numbers,
    Times,
    header_of,
    quoted,
)
from telemetry.profiling.build import build
from telemetry.profiling.machines import device_names, identities, logged, machines_of, placed
from telemetry.profiling.merge import Merged, in_order
from telemetry.readers import health
from telemetry.readers.column_names import BITMASK, FLAG, meanings
from telemetry.readers.csv_text import throttled
from telemetry.readers.payload import Payload, Stream
from telemetry.readers.recording_builder import (
    BUSY,
    FEWEST_BLANKS,
    MOST_WATTS,
    NEVER_ZERO,
    NOT_WHILE_BUSY,
    RecordingBuilder,
    plausible_identity,
    real_uuid,
)
from telemetry.readers.units import HOST_UNITS, Meaning
from telemetry.recording.recording import EXTRA, GPU, TIME, GpuIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from planner.profile.model import Health, Profile, Source
    from telemetry.profiling.machines import LoggedRows
    from telemetry.readers.hints import Hints

FORM = "nvidia-smi-csv"
_IDENTITY = ("uuid", "index", "bus", "host", "name", "mig")
_TOLD_BY = ("uuid", "index", "bus", "host", "mig")
_MEMORY, _LIMIT, _THROTTLE = "memory.total", "power.limit_w", "throttle.fraction"
_INDEX = re.compile(r"\s*(?:[A-Za-z_: ]*?)(\d{1,4})\s*")
_LEAST_USED = 0.1
_MOST_TEXTS = 100_000  # different ones in a column that tells devices apart, or is odd
_BATCH_ROWS = 1 << 20
_DUCKDB: dict[str, Any] = {
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


class _Store:
    """Tables of logs on the disk, for as long as the object lives."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="gpucost-")
        self.folder = Path(self._folder.name)
        config = {**_DUCKDB, "temp_directory": str(self.folder)}
        self.connection = duckdb.connect(str(self.folder / "logs.db"), config=config)
        self.connection.execute("SET enable_progress_bar = false")
        self.count = 0

    def __del__(self) -> None:
        self.connection.close()
        self._folder.cleanup()

    def frame(self, query: str) -> pd.DataFrame:
        """Return the answer to a question."""
        return self.connection.execute(query).df()


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeLog:
    """A log that was read.

    Attributes:
        store: where its rows lie.
        table: their table, with the place of a device in `gpus`, its time and a column a slot.
        rows: of each device.
        gpus: the devices.
        slots: what was read of them.
        source: its name, figures and what was left out.
        notes: what a reader of the profile should know.
        health: what is wrong with its devices.
        absolute: whether times count from 1970 UTC.
        local_time: whether they carry no zone.
        mig: whether a device was split.
    """

    store: _Store
    table: str
    rows: Mapping[int, int]
    gpus: tuple[GpuIdentity, ...]
    slots: tuple[str, ...]
    source: Source
    notes: tuple[str, ...]
    health: tuple[Health, ...]
    absolute: bool
    local_time: bool
    mig: bool

    def by_time(self, places: Mapping[int, int]) -> pd.DataFrame:
        """Return the samples of some devices, by these numbers for them and by time."""
        own = ", ".join(map(str, places))
        frame = self.store.frame(f"SELECT * FROM {self.table} WHERE gpu IN ({own})")  # noqa: S608
        codes = np.zeros(len(self.gpus), dtype=np.int32)
        codes[list(places)] = list(places.values())
        frame[GPU] = codes[frame[GPU]]
        order = np.lexsort((frame[TIME], frame[GPU]))
        return frame if (np.diff(order) == 1).all() else frame.take(order).reset_index(drop=True)

    def samples(self) -> pd.DataFrame:
        """Return all samples, as those of a recording."""
        frame = self.store.frame(f"SELECT * FROM {self.table}")  # noqa: S608
        keys = pd.Index([gpu.key for gpu in self.gpus])
        return frame.assign(**{GPU: pd.Categorical.from_codes(frame[GPU], keys)})

    def logged(self) -> LoggedRows:
        """Return what tells its machine."""
        bounds = self.store.frame(f"SELECT min(t_s), max(t_s) FROM {self.table}").iloc[0]  # noqa: S608
        span_s = (float(bounds.iloc[0]), float(bounds.iloc[1])) if sum(self.rows.values()) else None
        return logged(self.source, self.gpus, self.slots, span_s, self.samples)


def large_rows(path: str, hints: Hints) -> LoggedRows | None:
    """Return the rows of a large log; None where it is not plain."""
    try:
        return read_log(path, hints, _Store()).logged()
    except NeedsSlowReaderError:
        return None


def profile_of_logs(paths: Sequence[str], hints: Hints) -> Profile | None:
    """Return the profile of large logs of one job, without phases; None where one is not plain.

    Args:
        paths: the logs, in the order of their names.
        hints: what they do not say.

    Raises:
        InputError: one cannot be read, may be of either of two machines, or no reading is left.
    """
    store = _Store()
    try:
        logs = [read_log(path, hints, store) for path in paths]
    except NeedsSlowReaderError:
        return None
    if len({log.absolute for log in logs}) > 1:
        return None
    return build(_merged(logs), None, hints)


def _merged(logs: Sequence[LargeLog]) -> Merged:
    """Return logs as one job, as `profiling.merge` does; their rows stay where they are."""
    notes = [note for log in logs for note in log.notes]
    places = machines_of([log.logged() for log in logs], notes)
    devices = placed([log.gpus for log in logs], places)
    names = device_names(devices, places)

    def batches() -> Iterator[pd.DataFrame]:
        rows: Counter[str] = Counter()
        for log, named in zip(logs, names, strict=True):
            for place, count in log.rows.items():
                rows[named[log.gpus[place].key]] += count
        for keys in _batches_of(rows):
            places = [_places(log, named, keys) for log, named in zip(logs, names, strict=True)]
            parts = [log.by_time(own) for log, own in zip(logs, places, strict=True) if own]
            whole = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
            yield in_order(
                whole.assign(
                    **{GPU: pd.Categorical.from_codes(whole[GPU].to_numpy(), pd.Index(keys))}
                )
            )

    return Merged(
        gpus=identities(devices, names),
        sources=tuple(log.source for log in logs),
        absolute=logs[0].absolute,
        local_time=any(log.local_time for log in logs),
        mig=any(log.mig for log in logs),
        notes=tuple(notes),
        health=tuple(fault for log in logs for fault in log.health),
        batches=batches,
    )


def _places(log: LargeLog, named: Mapping[str, str], keys: list[str]) -> dict[int, int]:
    """Return the places among keys of those devices of a log that have such."""
    keyed = enumerate(named[gpu.key] for gpu in log.gpus)
    return {i: keys.index(key) for i, key in keyed if key in keys}


def _batches_of(rows: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield keys in their order, as many as hold a batch of rows."""
    batch: list[str] = []
    for key in sorted(rows):
        if batch and sum(rows[k] for k in batch) + rows[key] > _BATCH_ROWS:
            yield batch
            batch = []
        batch.append(key)
    if batch:
        yield batch


def read_log(path: str, hints: Hints, store: _Store) -> LargeLog:
    """Return a log.

    Raises:
        NeedsSlowReaderError: it is not a plain log; the exact reader takes it.
        InputError: it cannot be read.
    """
    with Stream(path) as stream:
        header, line = header_of(stream.head, hints)
        payload = Payload(name=stream.name, data=b"", sha256=None, path=path)
        with TemporaryDirectory(prefix="gpucost-") as folder:
            file = _on_disk(stream, Path(folder))
            try:
                table = CsvTable(store.connection, file, header, line)
                reading = _Reading(table, store, RecordingBuilder(payload, FORM), hints)
                return reading.log()
            except (duckdb.Error, UnicodeDecodeError):
                raise NeedsSlowReaderError from None


def _on_disk(stream: Stream, folder: Path) -> Path:
    """Return a file that begins with the log: its own, or an unpacked copy."""
    with Path(stream.path).open("rb") as own:
        if own.read(len(stream.head)) == stream.head:
            return Path(stream.path)
    file = folder / "log.csv"
    with file.open("wb") as copy:
        for chunk in stream.chunks():
            copy.write(chunk)
    return file


class _Reading:
    """One log on its way from texts to a table of readings."""

    def __init__(
        self, table: CsvTable, store: _Store, builder: RecordingBuilder, hints: Hints
    ) -> None:
        self._table, self._store, self._builder, self._hints = table, store, builder, hints
        named = meanings(table.header, hints)
        used = {i: holds for i, holds in named.items() if holds is not None}
        self._named = named
        self._places = _once(used)
        cells = enumerate(table.header)
        self._of_health = {i: kind for i, cell in cells if (kind := health.kind_of(cell))}
        self._flags = [i for i, c in used.items() if c.target in {BITMASK, FLAG}]
        roles = {*self._places, BITMASK, FLAG}
        self._meanings: dict[int, Meaning] = {
            i: c for i, c in sorted(used.items()) if c.target not in roles and c.scale is not None
        }
        store.count += 1
        self._raw, self._log = f"raw{store.count}", f"log{store.count}"

    def log(self) -> LargeLog:
        """Read all of it."""
        told_by = ", ".join(f"c{self._places[name]}" for name in _TOLD_BY if name in self._places)
        key = f"hash({told_by})"
        head = self._table.head(key)
        time = Times(self._places["timestamp"], head)
        columns = {i: Numbers(i, holds, head) for i, holds in self._meanings.items()}
        parts = {f"n{i}": column.sql for i, column in columns.items()}
        parts |= {f"x{i}": column.odd_sql for i, column in columns.items()}
        parts |= {f"x{i}": f"coalesce(c{i}, '')" for i in self._flags}
        number = "try_cast(regexp_extract(replace(c{}, 'Yes', '1'), '[\\d.]+') AS DOUBLE)"
        parts |= {f"h{i}": number.format(i) for i in self._of_health}
        keyed = {"key": key, "t": time.sql, "x": time.odd_sql}
        self._table.keep(self._raw, {**parts, **keyed})
        odd = self._texts("x")
        dropped = self._table.dropped(time, bool(odd), self._hints)
        self._fill_in("t", "x", time.odd(odd))
        t_s = self._store.frame(f"SELECT t FROM {self._raw}")["t"].to_numpy(dtype=float)  # noqa: S608
        instants = time.instants(t_s, self._hints.zone)
        self._count(instants.t_s, dropped)
        slots = self._slots(columns, len(t_s))
        devices, gpus = self._devices(key, head, slots.pop(_MEMORY, None))
        if not np.array_equal(t_s, instants.t_s, equal_nan=True):
            self._replace(self._raw, "t", instants.t_s)
        self._view(slots, devices)
        counts = self._store.frame(f"SELECT gpu, count(*) n FROM {self._log} GROUP BY 1")  # noqa: S608
        if len(counts) < len(gpus):
            raise NeedsSlowReaderError  # a device without a single time
        self._builder.health += health.findings(self._worst(gpus))
        self._leave_out_blanks(slots)
        self._leave_out_impossible(slots, gpus)
        if instants.stepped_back:
            self._builder.notes.append(
                "the clock was set back within the file (end of summer time?)."
            )
        source, notes = self._builder.source_and_notes(gpus)
        return LargeLog(
            store=self._store,
            table=self._log,
            health=tuple(self._builder.health),
            rows=dict(zip(counts["gpu"].tolist(), counts["n"].tolist(), strict=True)),
            gpus=gpus,
            slots=tuple(slot for slot in slots if slot in SLOTS),
            source=source,
            notes=notes,
            absolute=instants.absolute,
            local_time=instants.local,
            mig="mig" in devices and bool((devices["mig"] == "Enabled").any()),
        )

    def _count(self, t_s: NDArray[np.float64], dropped: Counter[str]) -> None:
        """Count rows and columns; too few rows with a time are not a log."""
        rows = len(t_s)
        self._builder.dropped += dropped
        self._builder.rows_read = rows + sum(dropped.values())
        for i, holds in self._named.items():
            self._builder.ledger.enter(self._table.header[i], rows, read=holds is not None)
        timed = np.isfinite(t_s)
        if timed.sum() < _LEAST_USED * rows:
            raise NeedsSlowReaderError
        if not timed.all():
            self._builder.dropped["timestamp not readable"] += int((~timed).sum())

    def _texts(self, column: str) -> dict[str, int]:
        """Return the different texts of a column, and how often each comes."""
        query = f"SELECT {column}, count(*) FROM {self._raw} WHERE {column} NOT NULL GROUP BY 1"  # noqa: S608
        answer = self._store.connection.execute(f"{query} ORDER BY 1").fetchmany(_MOST_TEXTS + 1)
        if len(answer) > _MOST_TEXTS or any('"' in text or "\0" in text for text, _ in answer):
            raise NeedsSlowReaderError
        return dict(answer)

    def _fill_in(self, column: str, texts: str, values: Mapping[str, float]) -> None:
        """Put numbers in a column in the place of odd texts."""
        if not values:
            return
        frame = pd.DataFrame({"cell": list(values), "value": list(values.values())})
        self._store.connection.register("odd", frame)
        self._store.connection.execute(
            f"UPDATE {self._raw} SET {column} = value FROM odd WHERE {texts} = cell"  # noqa: S608
        )

    def _slots(self, columns: Mapping[int, Numbers], rows: int) -> dict[str, str]:
        """Return each target with the SQL of its readings; figures of its columns are counted."""
        ranked: dict[str, list[tuple[bool, int, int, Counter[str]]]] = defaultdict(list)
        for i, column in columns.items():
            values, missing = column.odd(self._texts(f"x{i}"))
            self._fill_in(f"n{i}", f"x{i}", values)
            empty = sum(missing.values()) >= rows
            ranked[column.meaning.target].append((empty, column.meaning.rank, i, missing))
        slots = {_THROTTLE: self._throttle()} if self._flags else {}
        for target, parts in ranked.items():
            for n, (_, _, i, missing) in enumerate(sorted(parts, key=lambda part: part[:3])):
                scale = columns[i].meaning.scale
                self._figures(i, target if n == 0 else None, scale)
                if n == 0:
                    slots[target] = f"n{i} * '{scale!r}'::DOUBLE"
                    self._builder.missing += missing
        return slots

    def _figures(self, i: int, slot: str | None, scale: float | None) -> None:
        query = f"SELECT count(n{i}), fsum(n{i}), min(n{i}), max(n{i}) FROM {self._raw}"  # noqa: S608
        ((n, whole, low, high),) = self._store.connection.execute(query).fetchall()
        column = Column(source=self._table.header[i].strip(), slot=slot, scale=scale, n=n)
        self._builder.figures(column, (whole / n, low, high) if n else None)

    def _throttle(self) -> str:
        """Return the SQL of whether any column says that clocks were used down."""
        cases = []
        for i in self._flags:
            texts = list(self._texts(f"x{i}"))
            flags = throttled(pd.Series([text.strip() for text in texts], dtype=object))
            when = " ".join(
                f"WHEN {quoted(text)} THEN {flag:g}::DOUBLE"
                for text, flag in zip(texts, flags, strict=True)
                if np.isfinite(flag)
            )
            cases.append(f"CASE x{i} {when} END" if when else "NULL::DOUBLE")
        return f"greatest({', '.join(cases)})" if len(cases) > 1 else cases[0]

    def _devices(
        self, key: str, head: pd.DataFrame, memory: str | None
    ) -> tuple[pd.DataFrame, tuple[GpuIdentity, ...]]:
        """Return what the identifying columns say, each combination once, and the devices."""
        first = f"arg_min({memory}, rowid) FILTER ({memory} IS NOT NULL)" if memory else "NULL"
        keys = self._store.frame(
            f"SELECT key, {first}::DOUBLE AS memory, min(rowid) AS place FROM {self._raw} "  # noqa: S608
            f"GROUP BY key ORDER BY place LIMIT {_MOST_TEXTS + 1}"
        )
        later = keys["key"][~keys["key"].isin(head["key"])]
        if len(later):
            listed = ", ".join(map(str, later))
            head = pd.concat([head, self._table.rows(key, f" AND {key} IN ({listed})")])
        named = {name: f"x{self._places[name]}" for name in _IDENTITY if name in self._places}
        texts = head.drop_duplicates("key").set_index("key").loc[keys["key"]].reset_index()
        texts = pd.DataFrame({n: texts[c].astype(object).str.strip() for n, c in named.items()})
        odd = texts.apply(lambda column: column.str.contains('["\0]')).any().any()
        if len(keys) > _MOST_TEXTS or odd:
            raise NeedsSlowReaderError
        sheet = csv_log.Sheet(
            readings=keys[["memory"]].rename(columns={"memory": _MEMORY}),
            index=_index(texts["index"]) if "index" in texts else None,
            **{role: texts.get(role) for role in ("uuid", "bus", "host")},
            model=texts.get("name"),
        )
        if sheet.uuid is not None and 0 < sheet.uuid.map(real_uuid).notna().sum() < len(keys):
            raise NeedsSlowReaderError  # some of them blanked
        names = csv_log.keys_of(sheet, None, np.zeros(len(keys), dtype=np.int64), self._builder)
        if sheet.index is not None and sheet.index.groupby(names).nunique().max() > 1:
            raise NeedsSlowReaderError  # one uuid, blanked, of several devices
        gpus = tuple(map(plausible_identity, csv_log.identities_of(sheet, names)))
        place = {gpu.key: i for i, gpu in enumerate(gpus)}
        numbered = {"key": keys["key"], GPU: names.map(place).astype("int32")}
        return texts.assign(**numbered), gpus

    def _view(self, slots: Mapping[str, str], devices: pd.DataFrame) -> None:
        """Make the readings of rows with a time."""
        chosen = ", ".join(f'{sql} AS "{slot}"' for slot, sql in slots.items() if slot in SLOTS)
        run = self._store.connection.register("devices", devices[["key", GPU]]).execute
        run(f"CREATE TABLE of_{self._log} AS FROM devices")
        run(
            f"CREATE VIEW {self._log} AS SELECT gpu, t AS t_s, {chosen or 'NULL AS none'} "  # noqa: S608
            f"FROM {self._raw} JOIN of_{self._log} USING (key) WHERE isfinite(t)"
        )

    def _worst(self, gpus: tuple[GpuIdentity, ...]) -> Iterator[tuple[str, str, float]]:
        """Yield GPU, kind and greatest value of each column that tells of health."""
        for i, kind in self._of_health.items():
            of = f"FROM {self._raw} JOIN of_{self._log} USING (key) WHERE h{i} IS NOT NULL"
            answer = self._store.frame(f"SELECT gpu, max(h{i}) AS h {of} GROUP BY 1")
            for place, value in answer.itertuples(index=False):
                index = gpus[place].index
                yield "the GPU" if index is None else f"GPU {index}", kind, float(value)

    def _own(self) -> None:
        """Make the readings a table of their own, which can be changed."""
        if not self._log.startswith("own"):
            self._store.connection.execute(f"CREATE TABLE own{self._log} AS FROM {self._log}")
            self._log = f"own{self._log}"

    def _replace(self, table: str, column: str, values: NDArray[np.float64]) -> None:
        """Put other numbers in a column, in the order of its rows."""
        self._store.connection.register("values", pd.DataFrame({"value": values}))
        self._store.connection.execute(
            f"CREATE OR REPLACE TABLE {table} AS SELECT {table}.* REPLACE "  # noqa: S608
            f'(CASE WHEN isfinite(value) THEN value END AS "{column}") FROM {table} '
            'POSITIONAL JOIN "values"'
        )

    def _leave_out_blanks(self, slots: Mapping[str, str]) -> None:
        """Leave out zeros that stand for a reading that a device does not give."""
        for slot in (*NEVER_ZERO, *NOT_WHILE_BUSY):
            if slot not in slots:
                continue
            busy = f'max("{BUSY}") > 0 AND count("{slot}") >= {FEWEST_BLANKS}'
            also = "" if slot in NEVER_ZERO else f" AND {busy if BUSY in slots else 'false'}"
            answer = self._store.frame(
                f'SELECT gpu, count(*) FILTER ("{slot}" = 0) AS n FROM {self._log} GROUP BY 1 '  # noqa: S608
                f'HAVING max("{slot}") = 0{also}'
            )
            self._builder.blanks(slot, int(answer["n"].sum()))
            if len(answer):
                self._own()
                places = ", ".join(map(str, answer["gpu"]))
                self._store.connection.execute(
                    f'UPDATE {self._log} SET "{slot}" = NULL WHERE gpu IN ({places})'  # noqa: S608
                )

    def _leave_out_impossible(
        self, slots: Mapping[str, str], gpus: tuple[GpuIdentity, ...]
    ) -> None:
        """Leave out what cannot be, as the exact reader does."""
        keys = pd.Index([gpu.key for gpu in gpus])
        limited = _LIMIT in slots
        most = {"mem.used_gib": min((g.memory_gib for g in gpus if g.memory_gib), default=np.inf)}
        for slot in (slot for slot in slots if slot in SLOTS):
            if slot == "power.board_w":
                most[slot] = (self._bounds(_LIMIT)[0] or 0.0) if limited else MOST_WATTS
            low, high = self._bounds(slot)
            high_most = min(most.get(slot, np.inf), SLOTS[slot].high or np.inf)
            if low is None or (low >= (SLOTS[slot].low or 0.0) and high <= high_most):
                continue
            self._own()
            limit = f', "{_LIMIT}"' if slot == "power.board_w" and limited else ""
            frame = self._store.frame(f'SELECT gpu, "{slot}"{limit} FROM {self._log}')  # noqa: S608
            frame[GPU] = pd.Categorical.from_codes(frame[GPU], keys)
            self._replace(self._log, slot, self._builder.checked(frame, slot, gpus))

    def _bounds(self, slot: str) -> tuple[float | None, float]:
        query = f'SELECT min("{slot}"), max("{slot}") FROM {self._log}'  # noqa: S608
        ((low, high),) = self._store.connection.execute(query).fetchall()
        return low, high


def _index(texts: pd.Series) -> pd.Series:
    numbers = [_INDEX.fullmatch(text) for text in texts]
    if not all(numbers):
        raise NeedsSlowReaderError
    return pd.Series([float(number[1]) for number in numbers if number])


def _once(used: Mapping[int, Meaning]) -> dict[str, int]:
    """Return the places of the columns that say when and of which device a row is.

    Raises:
        NeedsSlowReaderError: they do not, or one of them comes twice.
    """
    targets = Counter(holds.target for holds in used.values())
    once = ("timestamp", *_IDENTITY)
    if (
        targets["timestamp"] != 1
        or any(targets[name] > 1 for name in once)
        or targets["date"]
        or targets["partition"]
        or not (targets["uuid"] or targets["index"] or targets["bus"])
        or any(target in EXTRA or target in HOST_UNITS for target in targets)
    ):
        raise NeedsSlowReaderError
    return {holds.target: i for i, holds in used.items() if holds.target in once}
