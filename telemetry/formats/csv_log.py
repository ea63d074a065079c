"""Reads `nvidia-smi --query-gpu ... --format=csv` logs and the CSV of people's own loggers."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.model import Health
from pricing.errors import InputError
from pricing.message import Message
from telemetry.formats.sniff import CELL_UNIT, headless, refused
from telemetry.readers import clock, csv_text
from telemetry.readers.clock import SourceClock, Texts
from telemetry.readers.column_names import ambiguous, cells_of, csv_header, first_of, fold, meanings
from telemetry.readers.devices import ONE_ROW, readings, table_recording
from telemetry.readers.hints import Hints
from telemetry.readers.ledger import findings
from telemetry.readers.payload import Payload
from telemetry.readers.recording_builder import RecordingBuilder, real_uuid
from telemetry.readers.records import refuse_twins
from telemetry.readers.units import Meaning, spelled
from telemetry.recording.recording import Recording

_LEAST_USED = 0.1  # of the rows; a log cut or garbled here and there keeps far more
_HEAD_CHARACTERS = 65_536


def read(builder: RecordingBuilder, hints: Hints) -> Recording:
    """Return the readings of a CSV log.

    Raises:
        InputError: no header names a measurement, or no row stands under one.
    """
    rows = csv_text.split(builder.payload.blocks(), hints)
    if rows is None:
        head = next(builder.payload.blocks())[:_HEAD_CHARACTERS]
        raise InputError(_no_header(builder.name, head))
    return read_rows(builder, rows, hints)


def read_rows(builder: RecordingBuilder, rows: csv_text.Rows, hints: Hints) -> Recording:
    """Return the readings of rows.

    Raises:
        InputError: there is none, or hardly any can be read.
    """
    headed = [table for table in rows.tables.values() if table.rows]
    if not headed:
        raise InputError(Message("read.header-alone", file=builder.name))
    _enter(headed, builder)
    tables = [part for table in headed for part in table.of_each_gpu()]
    _refuse_a_column_a_gpu(builder.name, tables, hints)
    builder.dropped += rows.dropped
    builder.health += [Health(gpu=f"GPU {address}", code="lost") for address in sorted(rows.lost)]
    sheets = [_sheet(table, rows.delimiter, builder) for table in tables]
    sheet = sheets[0] if len(sheets) == 1 else pd.concat(sheets, ignore_index=True)
    builder.rows_read = len(sheet) + sum(rows.dropped.values())
    times = _times(tables)
    if times is not None and not np.isfinite(times.t_s).any():
        builder.notes.append("no timestamp could be read; the rows' order is used.")
        times = None
    if "uuid" in sheet and "index" in sheet:
        uuids = sheet["uuid"].to_numpy()
        moves = sheet["index"].groupby(uuids).diff().fillna(0).ne(0).groupby(uuids).mean()
        if (moves >= _MOSTLY).any():  # from row to row: blanked, as in what people post
            sheet = sheet.drop(columns="uuid")
    blocks = np.concatenate([table.by_row(1).astype(np.int64) for table in tables])
    keys = _keys(sheet, times, blocks, builder)
    if times is not None and times.to_the_minute:
        times = replace(times, t_s=_within_minutes(times.t_s, keys))
    if "partition" in sheet and sheet["partition"].notna().any():
        keys = _paired(keys, sheet["partition"], "{}/part {}")
    if sheet.get("index") is None and keys.iloc[0].startswith(_PLACE):
        sheet["index"] = keys.astype(object).str.removeprefix(_PLACE).astype(float)
    mig = "mig" in sheet and bool((sheet["mig"] == "Enabled").any())
    recording = table_recording(builder, sheet, keys, times, hints, mig=mig)
    if recording.rows_used < _LEAST_USED * len(sheet):
        count = {"used": recording.rows_used, "rows": len(sheet)}
        raise InputError(Message("read.few-rows", file=builder.name, **count))
    return recording


def _enter(tables: Sequence[csv_text.CsvTable], builder: RecordingBuilder) -> None:
    """Note every column in the ledger."""
    for table in tables:
        for i, cell in enumerate(table.header):
            builder.ledger.enter(cell, table.rows, read=table.columns[i] is not None)
            if ambiguous(cell) and table.columns[i] is None:
                names = {"column": repr(cell.strip()), "name": cell.strip()}
                builder.notes.append(Message("read.ambiguous", **names))
        builder.ledger.names |= {str(i + 1) for i in range(len(table.header))}


def _refuse_a_column_a_gpu(name: str, tables: Sequence[csv_text.CsvTable], hints: Hints) -> None:
    """Refuse a table of which several columns are one reading: all but one would go."""
    for table in tables:
        if len(set(table.header)) < len(table.header):
            cells, read = table.cells(), table.columns.items()
            measured = {i: cells[i] for i, holds in read if holds and holds.scale is not None}
            refuse_twins(name, table.header, measured)
        mapped = defaultdict[str, list[str]](list)
        for column, slot in hints.map:
            if column in table.header:
                mapped[slot].append(column)
        for slot, columns in mapped.items():
            if len(columns) > 1:
                raise InputError(
                    Message("read.column-a-gpu", file=name, slot=slot, columns=columns)
                )


def _times(tables: Sequence[csv_text.CsvTable]) -> SourceClock | None:
    """Return the times of all rows; None where no table says any."""
    clocks = [table.times.instants() if table.times.any else None for table in tables]
    dated = [times for times in clocks if times is not None]
    if not dated:
        return None
    parts = [
        np.full(table.rows, np.nan) if times is None else times.t_s
        for table, times in zip(tables, clocks, strict=True)
    ]
    return SourceClock(
        t_s=np.concatenate(parts),
        absolute=dated[0].absolute,
        local=any(times.local for times in dated),
        stepped_back=any(times.stepped_back for times in dated),
        order=next((times.order for times in dated if times.order), ""),
        to_the_minute=all(times.to_the_minute for times in dated),
        above_rows=not any(table.of_time for table in tables),
    )


def _no_header(name: str, head: str) -> str:
    row = refused(head, late=True)
    if row is not None:
        return row.refusal(name)
    first = next((line.strip() for line in head.splitlines() if line.strip()), "")[:70]
    return headless(name, head) or Message("read.no-gpu-column", file=name, first=repr(first))


def header_for(rows: Payload, rotated: Payload) -> str | None:
    """Return the header of a log that fits the rows of another part of it, which has none."""
    heads = [next(payload.blocks(), "")[:_HEAD_CHARACTERS] for payload in (rows, rotated)]
    header = csv_header(heads[1].splitlines(), Hints())
    lines = [line for line in heads[0].splitlines() if line.strip()]
    if header is None or not lines or header[1][0] == "1":
        return None
    delimiter, names, _ = header
    cells = [cell.strip() for cell in cells_of(lines[0], delimiter)]
    columns = meanings(names, Hints())
    fits = len(cells) == len(names) and all(
        _can_be(columns[i], fold(name)[1], cells[i]) for i, name in enumerate(names)
    )
    return delimiter.join(names) if fits else None


def _can_be(holds: Meaning | None, unit: str | None, cell: str) -> bool:
    """Return whether a cell can stand under a column's name: its unit, a time, a text, a number."""
    own = CELL_UNIT.search(cell)
    if holds is not None and holds.target == "timestamp":
        return ":" in cell or cell.replace(".", "").isdecimal()
    if holds is not None and not holds.unit:
        return own is None or holds.target in {"name", "uuid", "host", "bus"}
    return ":" not in cell and (own is None or unit in (None, spelled(own[1])))


def _keys(
    sheet: pd.DataFrame,
    times: SourceClock | None,
    blocks: NDArray[np.int64],
    builder: RecordingBuilder,
) -> pd.Series:
    """Return a key for each row: uuid, else index, else PCI address, else place in the tick.

    The host is part of it where a column names one. Rows of one minute whose seconds are lost are
    one GPU's, after each other, unless as many stand below each header: those of a query.
    """
    if "uuid" in sheet and sheet["uuid"].notna().all():
        return sheet["uuid"]
    for column in ("index", "bus"):
        if column in sheet and sheet[column].notna().any():
            own = _mapped(sheet[column].ffill().bfill(), "device {}".format)
            return own if "host" not in sheet else _paired(sheet["host"], own, "{} {}")
    if "host" in sheet and len(sheet["host"].unique()) > 1:
        return _mapped(sheet["host"], str)
    if times is None and (size := _rows_of_a_query(sheet)) is not None:
        builder.notes.append(Message("read.rows-as-gpus", n=size))
        return pd.Series([f"{_PLACE}{row % size}" for row in range(len(sheet))], dtype=object)
    instants = None if times is None or times.to_the_minute else times.t_s
    keys, note = keys_by_position(instants, blocks)
    if times is not None and times.to_the_minute and keys[0] == ONLY:
        minutes, note = times.t_s[np.isfinite(times.t_s)], None
        if (rows := len(minutes) / max(1, len(np.unique(minutes)))) > ONE_ROW:
            note = Message("read.no-seconds", rows=rows)
    if note:
        builder.notes.append(note)
    return pd.Series(keys, dtype=object)


_MINUTE_S = 60.0


def _within_minutes(t_s: NDArray[np.float64], keys: pd.Series) -> NDArray[np.float64]:
    """Return times to the minute, the rows of each GPU and minute spread evenly over it.

    The first minute of a log began before its first row: its rows stand at its end.
    """
    rows = pd.DataFrame({"gpu": clock.distinct(keys)[0], "minute": t_s})
    groups = rows.groupby(["gpu", "minute"])["minute"]
    rank, size = groups.cumcount(), groups.transform("size")
    usual = float(np.median(groups.size()))
    step_s = _MINUTE_S / size.clip(lower=usual)
    late = (rows["minute"] == rows["minute"].min()) & (size < usual)
    spread = rows["minute"] + step_s * (rank + late * (usual - size))
    return np.asarray(spread, dtype=float)


def _mapped(texts: Texts, change: Callable[..., str | None]) -> pd.Series:
    """Return what becomes of each text, as categories; missing where that is None."""
    codes, unique = clock.distinct(texts)
    changed = pd.Series([*map(change, unique), None], dtype=object)
    return pd.Series(pd.Categorical(changed)[codes.astype(np.int64)])


def _paired(first: pd.Series, second: pd.Series, form: str) -> pd.Series:
    """Return two texts of each row in one; the first alone where there is no second."""
    codes, firsts = clock.distinct(first)
    places, seconds = clock.distinct(second)
    pairs = pd.Series(codes.astype(np.int64) * (len(seconds) + 1) + places + 1)

    def text(pair: int) -> str:
        first_code, second_code = divmod(pair, len(seconds) + 1)
        own = firsts[first_code] if first_code >= 0 else ""
        return form.format(own, seconds[second_code - 1]) if second_code else str(own)

    return _mapped(pairs, text)


_SIGNS = {",": ".", "|": ""}  # of decimals, by what stands between cells
_MOSTLY = 0.5
_PLACE = "row "


def _sheet(table: csv_text.CsvTable, delimiter: str, builder: RecordingBuilder) -> pd.DataFrame:
    """Return a table's columns, as `table_recording` takes them, and `bus` and `mig`."""
    cells, rows = table.cells(), pd.RangeIndex(table.rows)
    who = _index(cells, table.columns, builder)
    if table.gpu is not None:
        index, model = table.gpu
        who["index"] = pd.Series(float(index), index=rows)
        who["model"] = pd.Series(model, index=rows, dtype=object)
    for name, change in _TEXTS.items():
        column = first_of(table.columns, _ROLES.get(name, name))
        if column is not None:
            who[name] = _mapped(cells[column], change)
    builder.health += findings(_of_health(cells, table.of_health, who.get("index")))
    columns = [
        (table.header[i].strip(), holds, cells[i])
        for i, holds in table.columns.items()
        if holds is not None and i in cells
    ]
    read = readings(columns, builder, _SIGNS.get(delimiter, ","))
    return pd.DataFrame({**who, **read}, index=rows)


def _name(cell: str) -> str | None:
    text = cell.strip()
    return text if text and not text.startswith("[") and text != "N/A" else None


_ROLES = {"model": "name"}
_TEXTS: Mapping[str, Callable[..., str | None]] = {
    "uuid": real_uuid,
    "bus": str.strip,
    "host": _name,
    "model": _name,
    "mig": str.strip,
    "partition": lambda cell: cell.strip() or None,
}


def _of_health(
    cells: Mapping[int, Texts], kinds: Mapping[int, str], index: pd.Series | None
) -> Iterator[tuple[str, str, float]]:
    """Yield GPU, kind and greatest value of each column that tells of health."""
    for i, kind in kinds.items():
        whose = np.full(len(cells[i]), "the GPU") if index is None else index.ffill().bfill()
        codes, texts = clock.distinct(cells[i])
        cells_text = pd.Series(texts, dtype=object).str.strip().replace({"Yes": "1", "No": "0"})
        values = pd.to_numeric(cells_text.str.extract(r"^([\d.]+)")[0], errors="coerce").to_numpy()
        for gpu, value in pd.Series(values[codes]).groupby(whose).max().dropna().items():
            yield gpu if isinstance(gpu, str) else f"GPU {gpu:g}", kind, float(value)


def _index(
    cells: Mapping[int, Texts], columns: Mapping[int, Meaning | None], builder: RecordingBuilder
) -> dict[str, pd.Series]:
    """Return the index column that tells most devices apart, and a `gpu` column that holds names.

    Some loggers write a second index column that is always 0.
    """
    numbered: list[tuple[int, int, int, pd.Series]] = []
    who: dict[str, pd.Series] = {}
    for i, holds in sorted(columns.items()):
        if holds is None or holds.target != "index":
            continue
        codes, texts = clock.distinct(cells[i])
        digits = (re.match(r"\s*(?:[A-Za-z_: ]*?)(\d{1,4})\s*$", text) for text in texts)
        numbers = np.array([float(index[1]) if index else np.nan for index in digits])
        column = pd.Series(numbers[codes])
        if column.notna().mean() > _MOSTLY:
            numbered.append((-column.nunique(), holds.rank, i, column))
        else:
            who.setdefault("model", _mapped(cells[i], str.strip))
    numbered.sort(key=lambda item: item[:3])
    if len(numbered) > 1 and numbered[0][0] != numbered[1][0]:
        builder.notes.append("two index columns disagree; the one that tells GPUs apart is used.")
    return {**who, "index": numbered[0][3]} if numbered else who


_MOST_GPUS = 16
_SAME_SIZE = 0.9
_ONE_QUERY_S = 0.1
ONLY = "only"


def keys_by_position(
    t_s: NDArray[np.float64] | None, blocks: NDArray[np.int64]
) -> tuple[list[str], str | None]:
    """Return a key for each row and what was assumed.

    Rows of one tick are one row per GPU, in the same order each time. A tick is a run of rows
    closer together than half the time between ticks; without times, the rows between two headers or
    date lines. The reading is taken only where nearly all ticks have the same number of rows.

    Args:
        t_s: the rows' times in seconds, None where there are none.
        blocks: how many headers or date lines came before each row.
    """
    ticks = blocks if t_s is None else _ticks(t_s)
    if t_s is not None and _at_once(t_s):
        ticks = np.zeros(len(ticks), dtype=np.int64)
    starts = np.flatnonzero(np.diff(ticks, prepend=ticks[:1] - 1))
    sizes = np.diff(np.append(starts, len(ticks)))
    size = _rows_of_a_tick(sizes, timed=t_s is not None)
    if size is None and t_s is None and 1 < len(ticks) <= _MOST_GPUS and len(sizes) == 1:
        return [ONLY] * len(ticks), Message("read.rows-of-one-gpu", n=len(ticks))
    if size is None:
        return [ONLY] * len(ticks), None
    index = np.arange(len(ticks)) - np.repeat(starts, sizes)
    note = Message("read.rows-as-gpus", n=size)
    return [f"{_PLACE}{min(int(p), size - 1)}" for p in index], note


def _rows_of_a_query(sheet: pd.DataFrame) -> int | None:
    """Return after how many rows different models come again in the same order; None if never."""
    if "model" not in sheet or sheet["model"].nunique() < 2:  # noqa: PLR2004 - one tells nothing
        return None
    models = clock.distinct(sheet["model"])[0]
    sizes = range(2, min(len(models), _MOST_GPUS) + 1)
    return next((size for size in sizes if (models[size:] == models[:-size]).all()), None)


def _at_once(t_s: NDArray[np.float64]) -> bool:
    """Return whether all rows are of one moment: one query that was answered GPU by GPU."""
    times = t_s[np.isfinite(t_s)]
    return 1 < len(times) <= _MOST_GPUS and float(np.ptp(times)) <= _ONE_QUERY_S


def _rows_of_a_tick(sizes: NDArray[np.int64], *, timed: bool) -> int | None:
    """Return how many rows nearly every tick has, None where that is one, or differs."""
    inner = sizes[1:-1] if len(sizes) > 2 else sizes  # noqa: PLR2004 - the first and the last are cut
    size = int(np.median(inner))
    same = bool((inner == size).mean() >= _SAME_SIZE) and (timed or len(sizes) > 1)
    return size if same and 1 < size <= _MOST_GPUS else None


def _ticks(t_s: NDArray[np.float64]) -> NDArray[np.int64]:
    steps = np.diff(t_s, prepend=t_s[:1])
    finite = np.abs(steps[np.isfinite(steps)])
    # With up to 16 GPUs at least one step in 16 is a whole interval.
    interval = float(np.quantile(finite, 1 - 1 / (_MOST_GPUS + 4))) if len(finite) else 0.0
    return np.asarray(np.cumsum(~(np.abs(steps) < interval / 2)), dtype=np.int64)
