"""What the columns of a table mean, by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.profile.metrics import SLOTS
from pricing.errors import InputError
from telemetry.parsing.csv_columns import meaning
from telemetry.parsing.prometheus_metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telemetry.parsing.hints import Hints

_JOBS = ("job", "job_id", "jobid", "job_name", "slurm_job_id", "exported_pod", "pod", "workload")
_ROLES = ("timestamp", "host", "uuid", "index", "name", "memory.total")
# Quantiles are told apart to these, in a slot's unit.
_STEPS = {"fraction": 0.001, "GiB": 0.01, "W": 1.0, "°C": 1.0, "MHz": 5.0, "MiB/s": 1.0}


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
        time: when a row was taken.
        job: the workload; None where no column names it.
        host: the machine.
        uuid: the device's identity.
        index: its index.
        model: its product name.
        memory: its memory, and the factor to GiB.
        slots: readings.
    """

    time: str
    job: str | None
    host: str | None
    uuid: str | None
    index: str | None
    model: str | None
    memory: tuple[str, float] | None
    slots: tuple[SlotColumn, ...]


def columns_of(names: Sequence[str], table: str, hints: Hints) -> TableColumns:
    """Return which columns of a table are used.

    Raises:
        InputError: no column says when, or none is a reading, or the job's column is not there.
    """
    found: dict[str, tuple[int, str, float]] = {}
    for name in names:
        known = meaning(name, hints) or METRICS.get(name.lower())
        target = name if name in SLOTS else known.target if known is not None else None
        scale = 1.0 if name in SLOTS or known is None else known.scale
        if name == "t_s":
            target, scale = "timestamp", None
        rank = -1 if name in SLOTS or known is None else known.rank
        usable = target in _ROLES or (target in SLOTS and scale is not None)
        if target is not None and usable and rank < found.get(target, (1 << 30,))[0]:
            found[target] = (rank, name, scale or 1.0)
    slots = tuple(
        SlotColumn(slot=s, column=found[s][1], scale=found[s][2], step=_STEPS[SLOTS[s].unit])
        for s in SLOTS
        if s in found and SLOTS[s].unit in _STEPS
    )
    job_column = hints.job_label
    lower = {name.lower(): name for name in names}
    job = lower.get(job_column.lower()) if job_column else _first(lower)
    _refuse(names, table, hints, (bool(slots), "timestamp" in found, job is not None))

    def named(role: str) -> str | None:
        return found[role][1] if role in found else None

    return TableColumns(
        time=found["timestamp"][1],
        job=job,
        host=named("host"),
        uuid=named("uuid"),
        index=named("index"),
        model=named("name"),
        memory=found["memory.total"][1:] if "memory.total" in found else None,
        slots=slots,
    )


def _is_counted(name: str) -> bool:
    return name in _ROLES or (name in SLOTS and SLOTS[name].unit in _STEPS)


def _first(lower: dict[str, str]) -> str | None:
    return next((lower[name] for name in _JOBS if name in lower), None)


def _refuse(names: Sequence[str], table: str, hints: Hints, there: tuple[bool, bool, bool]) -> None:
    slots, time, job = there
    shown = ", ".join(names[:12])
    problems = [
        f"--map {column}={said}: a table is counted by its GPUs' readings, and {said} is not "
        f"among those that can be. Leave it out, or export {table} as CSV."
        for column, said in hints.map
        if not _is_counted(said.partition(":")[0])
    ]
    if not time:
        problems.append(f"{table}: no column says when ({shown}). Name it: --map COLUMN=timestamp.")
    if not slots:
        problems.append(
            f"{table}: no column is a GPU reading that gpucost knows ({shown}). Name one: "
            "--map COLUMN=util.kernel_time."
        )
    if hints.job_label and not job:
        problems.append(f"{table}: no column {hints.job_label} ({shown}), which --job-label names.")
    if problems:
        raise InputError(problems)
