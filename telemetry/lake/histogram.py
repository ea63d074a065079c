"""The questions to an engine: which devices, and how long each rounded value stood."""

from collections.abc import Sequence
from typing import Any

import ibis

from planner.profile.kinds import SLOTS
from telemetry.lake.place import SlotColumn, TableColumns

_RUNS, _BUSY_SLOTS = 0.005, ("util.kernel_time", "util.sm_active")
_GAP = 3.0
_SAME_TICK = 0.25
_NEARLY_ONE = 1.1
_MOST = {"power.board_w": 3000.0, "mem.used_gib": 10_000.0}
# Sums are of whole numbers, which come to the same in any order, so on every engine. Readings of
# up to a milliard over three hundred years stay within 64 bits.
_MOST_OF_ALL = 1e9
MILLION = 1e6
KEYS = ["job", "host", "uuid", "idx"]
Table = Any  # Ibis tables and values have no types of their own that mypy knows


def readings(table: Table, columns: TableColumns, unit_s: float) -> Table:
    """Return a table of one form: job, host, uuid, idx, model, memory, t and a column a slot.

    Args:
        table: as it lies.
        columns: what its columns mean.
        unit_s: seconds of a number of time; of no use where times are instants.
    """

    def text(role: str) -> Table:
        name = columns.named.get(role)
        column = ibis.null("string") if name is None else table[name].cast("string")
        return ibis.coalesce(column, "")

    time = table[columns.named["timestamp"]]
    if time.type().is_timestamp():
        seconds = time.epoch_seconds().cast("float64")
    else:
        seconds = time.cast("float64") * unit_s
    memory = ibis.null("float64")
    if columns.memory is not None:
        memory = table[columns.memory[0]].cast("float64") * columns.memory[1]
    slots = {
        f"v{i}": table[column.column].cast("float64") * column.scale
        for i, column in enumerate(columns.slots)
    }
    return table.select(
        job=text("job"),
        host=text("host"),
        uuid=text("uuid"),
        idx=text("index"),
        model=text("name"),
        memory=memory,
        t=seconds,
        **slots,
    ).filter(lambda row: row.t.notnull())


def _busy(rows: Table, columns: TableColumns) -> Table | None:
    places = [f"v{i}" for i, column in enumerate(columns.slots) if column.slot in _BUSY_SLOTS]
    return rows[places[0]] >= _RUNS if places else None


def devices(rows: Table, columns: TableColumns) -> Table:
    """Return one row a device and job: rows, first and last time, busy from and to, identity."""
    busy = _busy(rows, columns)
    when = rows.t if busy is None else busy.ifelse(rows.t, ibis.null("float64"))
    return rows.group_by(KEYS).aggregate(
        n=rows.count(),
        first=rows.t.min(),
        last=rows.t.max(),
        busy_from=when.min(),
        busy_to=when.max(),
        model=rows.model.max(),
        memory=rows.memory.max(),
        **{f"n{i}": rows[f"v{i}"].count() for i in range(len(columns.slots))},
    )


def steps(rows: Table) -> Table:
    """Return how often each time between rows of one device comes, to a tenth of a second."""
    order = ibis.window(group_by=KEYS, order_by="t")
    tenths = ((rows.t.lead().over(order) - rows.t) * 10.0 + 0.5).floor().cast("float64")
    between = rows.select(*KEYS, step=tenths / 10.0)
    later = between.filter(between.step > 0)
    return later.group_by([*KEYS, "step"]).aggregate(n=later.count())


def values(
    rows: Table, columns: TableColumns, interval_s: float, jobs: tuple[Sequence[str], set[int]]
) -> Table:
    """Return for each job, device and slot how many seconds each rounded value stood, and more.

    Columns: the keys, `slot` (its place), `code` (the value over the slot's step; null where it is
    out of range), `micros` (of time), `n`, `area` (value times seconds, its whole part) and
    `area_millionths` (the rest), `least`, `most`.

    Args:
        rows: as `readings` gives them.
        columns: what they are of.
        interval_s: the usual time between rows.
        jobs: those whose whole recording counts (of others the active window does), and the places
            of slots that some rows lack.
    """
    complete, lacking = jobs
    busy = _busy(rows, columns)
    when = rows.t if busy is None else busy.ifelse(rows.t, ibis.null("float64"))
    bounds = rows.group_by("job").aggregate(busy_from=when.min(), busy_to=when.max())
    rows = rows.inner_join(bounds, "job")  # a window over each job would sort all rows once more
    all_rows = _stood(rows, interval_s, complete)
    parts = []
    for i, column in enumerate(columns.slots):
        read = _stood(rows.filter(rows[f"v{i}"].notnull()), interval_s, complete)
        parts.append(_slot(read if i in lacking else all_rows, i, column))
    return ibis.union(*parts) if len(parts) > 1 else parts[0]


def _stood(rows: Table, interval_s: float, complete: Sequence[str]) -> Table:
    """Return the rows that count with how long each stood, at most three usual times."""
    order = ibis.window(group_by=KEYS, order_by="t")
    rows = rows.mutate(gap=ibis.coalesce(rows.t.lead().over(order) - rows.t, interval_s))
    slack = interval_s * _SAME_TICK
    inside = (rows.t >= rows.busy_from - slack) & (rows.t <= rows.busy_to + slack)
    inside |= rows.busy_from.isnull()
    counted = rows.filter(inside | rows.job.isin(list(complete)) if complete else inside)
    return counted.mutate(stood=ibis.least(counted.gap, _GAP * interval_s))


def _slot(rows: Table, index: int, column: SlotColumn) -> Table:
    limits = SLOTS[column.slot]
    low = limits.low if limits.low is not None else -_MOST_OF_ALL
    maximum = (
        _NEARLY_ONE if limits.high == 1.0 else limits.high or _MOST.get(column.slot, _MOST_OF_ALL)
    )
    value = rows[f"v{index}"]
    good = (value >= low) & (value <= maximum)
    capped = ibis.least(value, limits.high) if limits.high == 1.0 else value
    none = ibis.null("float64")
    code = good.ifelse((capped / column.step + 0.5).floor().cast("float64"), none)
    samples = rows.select(
        *KEYS, code=code, value=good.ifelse(capped, none), stood=rows.stood, seen=value
    )
    samples = samples.filter(samples.seen.notnull())
    area = samples.value * samples.stood
    fraction = area - area.floor().cast("float64")
    return samples.group_by([*KEYS, "code"]).aggregate(
        slot=samples.count() * 0 + index,
        micros=_sum(samples.stood * MILLION + 0.5),
        n=samples.count(),
        area=_sum(area),
        area_millionths=_sum(fraction * MILLION + 0.5),
        least=samples.value.min(),
        most=samples.value.max(),
    )


def _sum(of: Table) -> Table:
    """Return the sum of the whole parts."""
    return of.floor().cast("int64").sum().cast("int64")
