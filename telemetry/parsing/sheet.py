"""One table of a CSV log as typed columns: readings in slot units, and who and when each row is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from telemetry.parsing import csv_text
from telemetry.parsing.cells import Numbers, numbers, throttled
from telemetry.parsing.csv_columns import BITMASK, FLAG, ambiguous, meaning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from telemetry.parsing.hints import Hints
    from telemetry.parsing.recording_builder import RecordingBuilder
    from telemetry.parsing.units import Meaning

_THROTTLE = "throttle.fraction"
_MOSTLY = 0.5
_SIGNS = {",": ".", "|": ""}  # of decimals, by what stands between cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Typed columns of the same length.

    Attributes:
        readings: one float column per slot, counter or `memory.total`; NaN where missing.
        index: the driver's index, as floats; None where no column has it, likewise below.
        uuid: as written.
        bus: PCI address as written.
        host: the machine's name as written.
        model: product name as written.
        time: timestamp as written.
        mig: whether MIG is on, as written.
    """

    readings: pd.DataFrame
    index: pd.Series | None = None
    uuid: pd.Series | None = None
    bus: pd.Series | None = None
    host: pd.Series | None = None
    model: pd.Series | None = None
    time: pd.Series | None = None
    mig: pd.Series | None = None


def sheet_of(
    table: csv_text.CsvTable, delimiter: str, hints: Hints, builder: RecordingBuilder
) -> Sheet:
    """Return a table's columns; figures and missing values are counted in the draft."""
    named = {i: meaning(cell, hints) for i, cell in enumerate(table.header)}
    wanted = {i: known for i, known in named.items() if known is not None}
    for i, cell in enumerate(table.header):
        if ambiguous(cell) and named[i] is None:
            builder.notes.append(
                f"column {cell.strip()!r} may be capacity or controller time, so it is not used; "
                f"say which with --map '{cell.strip()}=util.mem_controller'."
            )
    cells = csv_text.frame(table, delimiter, sorted(wanted))
    index, model = _index(cells, wanted, builder)
    named_model = _text(cells, wanted, "name")
    time = _text(cells, wanted, "timestamp")
    if time is None and any(table.dates):
        time = pd.Series(table.dates, dtype=object)
    return Sheet(
        readings=_readings(table, cells, wanted, delimiter, builder),
        index=index,
        uuid=_text(cells, wanted, "uuid"),
        bus=_text(cells, wanted, "bus"),
        host=_text(cells, wanted, "host"),
        model=model if named_model is None else named_model,
        time=time,
        mig=_text(cells, wanted, "mig"),
    )


def joined(sheets: Sequence[Sheet]) -> Sheet:
    """Return the rows of several tables as one, in their order."""
    if len(sheets) == 1:
        return sheets[0]
    columns: dict[str, pd.Series | None] = {}
    for name in (field.name for field in fields(Sheet) if field.name != "readings"):
        parts = [getattr(sheet, name) for sheet in sheets]
        columns[name] = None
        if any(part is not None for part in parts):
            filled = [
                pd.Series([None] * len(sheet.readings), dtype=object)
                if part is None
                else part.astype(object)
                for part, sheet in zip(parts, sheets, strict=True)
            ]
            columns[name] = pd.concat(filled, ignore_index=True)
    readings = pd.concat([sheet.readings for sheet in sheets], ignore_index=True)
    return Sheet(readings=readings, **columns)


def _readings(
    table: csv_text.CsvTable,
    cells: pd.DataFrame,
    wanted: dict[int, Meaning],
    delimiter: str,
    builder: RecordingBuilder,
) -> pd.DataFrame:
    parsed: dict[str, list[tuple[int, int, Numbers]]] = {}
    columns: dict[str, NDArray[np.float64]] = {}
    for i, known in sorted(wanted.items()):
        if known.target in {BITMASK, FLAG}:
            held = throttled(cells[i])
            columns[_THROTTLE] = np.fmax(columns.get(_THROTTLE, held), held)
        elif known.scale is not None:
            sign = _SIGNS.get(delimiter, ",")
            got = numbers(cells[i], scale=known.scale, to=known.to, sign=sign, typical=known.unit)
            parsed.setdefault(known.target, []).append((known.rank, i, got))
    for target, found in parsed.items():
        best = sorted(found, key=lambda item: (not np.isfinite(item[2].raw).any(), *item[:2]))
        used = range(len(best) if target.startswith("counter.") else 1)
        for n, (_, i, got) in enumerate(best):
            slot = target if n in used else None
            builder.column(table.header[i].strip(), slot, wanted[i].scale, got.raw)
        # Causes of throttling add up; other columns of one target repeat each other.
        columns[target] = np.sum([best[n][2].scaled for n in used], axis=0)
        builder.missing += best[0][2].missing
    return pd.DataFrame(columns, index=cells.index)


def _text(cells: pd.DataFrame, wanted: dict[int, Meaning], target: str) -> pd.Series | None:
    found = sorted((known.rank, i) for i, known in wanted.items() if known.target == target)
    return cells[found[0][1]].str.strip() if found else None


def _index(
    cells: pd.DataFrame, wanted: dict[int, Meaning], builder: RecordingBuilder
) -> tuple[pd.Series | None, pd.Series | None]:
    """Return the index column that tells most devices apart, and a `gpu` column that holds names.

    Some loggers write a second index column that is always 0.
    """
    numbered: list[tuple[int, int, int, pd.Series]] = []
    model: pd.Series | None = None
    for i, known in sorted(wanted.items()):
        if known.target != "index":
            continue
        codes, unique = pd.factorize(cells[i])
        texts = pd.Series(unique.astype(object))
        digits = texts.str.extract(r"^\s*(?:[A-Za-z_: ]*?)(\d{1,4})\s*$")[0].astype(float)
        column = pd.Series(digits.to_numpy()[codes])
        if column.notna().mean() > _MOSTLY:
            numbered.append((-column.nunique(), known.rank, i, column))
        elif model is None:
            model = cells[i].str.strip()
    numbered.sort(key=lambda item: item[:3])
    if len(numbered) > 1 and numbered[0][0] != numbered[1][0]:
        builder.notes.append("two index columns disagree; the one that tells GPUs apart is used.")
    return (numbered[0][3] if numbered else None), model
