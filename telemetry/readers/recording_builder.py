"""A recording being made: figures of the source, rows left out, and checks no reader may skip."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.kinds import SLOTS
from planner.profile.model import Column, Health, Source
from pricing.errors import InputError
from pricing.message import Message
from telemetry.readers.ledger import Ledger
from telemetry.readers.payload import Payload
from telemetry.readers.units import HOST_UNITS, MOST
from telemetry.recording.recording import (
    GPU,
    JOB,
    MEMORY_FRACTION,
    TIME,
    GpuIdentity,
    Recording,
    boards_of,
)

# Above 1 by rounding or by MIG instances measured a little apart: clamped. Beyond: not a fraction.
_NEARLY_ONE = 1.1
_MOST_PERCENT = 110.0
_POWER_OVER_LIMIT = 1.3
# Of its limit an idle board draws a tenth or more (68 of 700 W, H100, in the hardware table): less
# than a fifth of that, read as milliwatts, is not what a board draws.
_LEAST_DRAWN = 0.02
# No board draws more; the largest superchip modules are below 3 kW.
_MOST_WATTS = 3000.0
# More than a slot of the newest PCIe (x16 of generation 6) and an NVLink domain carry, MiB/s.
_MOST_MIB_S = {"io.pcie_": 1 << 17, "io.nvlink_": 1 << 22}
_LEAST_GIB, _MOST_GIB = 1 / 1024, 10_000.0
_MILLI = 1e-3
# What cannot be 0 on a device that is on, and what cannot be while its kernels run: loggers write
# 0 for what the driver does not tell. A few rows of an idle device say nothing.
_NEVER_ZERO, _BUSY = ("power.board_w", "power.limit_w"), "util.kernel_time"
_NOT_WHILE_BUSY = ("mem.used_gib", "clock.sm_mhz")
_FEWEST_BLANKS = 3
# What tools write in place of a name that the driver does not tell.
_NO_NAME = re.compile(
    r"|[(\[<]*(unknown|n/?a|none|null|unknown error|gpu is lost|not supported)[)\]>]*|err!?|error",
    re.IGNORECASE,
)
_MOST_FIGURE = 1e15  # what a profile may hold


class RecordingBuilder:
    """Collects what a reader finds, then checks it and makes the `Recording`.

    Args:
        payload: the file.
        form: the format's name.
        empty: what is said of a source of this format without a row that can be read.

    Attributes:
        payload: the file.
        form: the format's name.
        empty: as given.
        ledger: what became of the names in it.
        is_capture: whether it is a capture of our own, whose name and rows tell a user nothing.
        rows_read: rows or points found.
        dropped: rows left out, by reason.
        missing: values left out, by reason or placeholder.
        notes: what a reader of the profile should know.
        health: what is wrong with its GPUs.
    """

    def __init__(self, payload: Payload, form: str, empty: str = "") -> None:
        self.payload = payload
        self.form = form
        self.empty = empty
        self.is_capture = False
        self.ledger = Ledger()
        self._columns: list[Column] = []
        self._ratios: set[str] = set()
        self.rows_read = 0
        self.dropped: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.notes: list[str] = []
        self.health: list[Health] = []

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.payload.name

    @property
    def text(self) -> str:
        """The file as text."""
        return self.payload.text

    def empty_error(self) -> InputError:
        """Return the error of a source without a row that can be read."""
        return InputError(f"{self.name}: {self.empty}")

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count rows that were found and cannot be used."""
        if count:
            self.rows_read += count
            self.dropped[reason] += count

    def column(
        self,
        source: str,
        slot: str | None,
        scale: float | None,
        raw: NDArray[np.float64],
        counts: NDArray[np.int64] | None = None,
    ) -> None:
        """Keep the whole-file figures of a column, in the source's own unit.

        Args:
            source: the source's name of it.
            slot: the slot it fills.
            scale: factor to the slot's unit.
            raw: its values, NaN where missing.
            counts: how often each of them comes; None: once.
        """
        plausible = np.abs(raw) < MOST
        values = raw[plausible]
        weights = None if counts is None else counts[plausible]
        n = len(values) if weights is None else int(weights.sum())
        mean, low, high = (
            (np.average(values, weights=weights), values.min(), values.max())
            if n
            else (None, None, None)
        )
        if scale == 1.0 and slot is not None:
            self._ratios.add(slot)
        self._columns.append(
            Column(
                source=source,
                slot=slot if slot in SLOTS else None,
                scale=scale,
                n=n,
                mean=_figure(mean),
                min=_figure(low),
                max=_figure(high),
            )
        )

    def recording(
        self,
        samples: pd.DataFrame,
        gpus: tuple[GpuIdentity, ...],
        **more: Any,  # noqa: ANN401 - the other fields of a Recording
    ) -> Recording:
        """Return the checked recording.

        Args:
            samples: as `Recording.samples`, unchecked.
            gpus: as `Recording.gpus`.
            **more: other fields of `Recording`.
        """
        samples = samples.reset_index(drop=True)
        of_host = [name for name in samples.columns if name in HOST_UNITS]
        host = self.host(samples[[TIME, *of_host]])
        samples = samples.drop(columns=of_host)
        gpus = tuple(map(_plausible, gpus))
        self._leave_out_blanks(samples)
        for slot in [c for c in samples.columns if c not in (TIME, GPU, JOB)]:
            before = samples[slot].to_numpy(dtype=float)
            values = self._checked(before, samples, str(slot))
            if not np.array_equal(before, values, equal_nan=True):
                samples[slot] = values
        source, notes = self._source_and_notes(gpus)
        return Recording(
            samples=samples,
            gpus=gpus,
            sources=(source,),
            rows_read=self.rows_read,
            rows_used=self.rows_used,
            notes=notes,
            health=tuple(self.health),
            names=frozenset(self.ledger.names) or None,
            **{"host": host, **more},
        )

    def host(self, readings: pd.DataFrame) -> pd.DataFrame | None:
        """Return what is possible of a host's readings, once an instant; None without any.

        Where several machines are in the table, the host's are their mean.
        """
        columns = [str(name) for name in readings.columns if name != TIME]
        if not columns:
            return None
        host = readings.copy()
        for name in columns:
            values = host[name].to_numpy(dtype=float, copy=True)
            ceiling = _NEARLY_ONE if HOST_UNITS[name] == "fraction" else np.inf
            reason = "below 0 or above 100 %" if np.isfinite(ceiling) else "below 0"
            self._blank(values, (values < 0) | (values > ceiling), name, reason)
            host[name] = np.minimum(values, 1.0) if np.isfinite(ceiling) else values
        rows = host.groupby(TIME, as_index=False).mean().dropna(how="all", subset=columns)
        host = rows.rename(columns=lambda name: name.removeprefix("host."))
        return host if len(host) else None

    def _leave_out_blanks(self, samples: pd.DataFrame) -> None:
        """Put NaN where 0 stands for a reading that a device does not give."""
        slots = [slot for slot in (*_NEVER_ZERO, *_NOT_WHILE_BUSY) if slot in samples]
        for slot in slots:
            if not (samples[slot] == 0).any():
                continue
            values = samples[slot].astype(float)
            of_gpu = values.groupby(samples[GPU], observed=True)
            blank = (values == 0) & (of_gpu.transform("max") == 0)
            if slot in _NOT_WHILE_BUSY:
                load = samples[_BUSY].astype(float) if _BUSY in samples else values * 0.0
                blank &= load.groupby(samples[GPU], observed=True).transform("max") > 0
                blank &= of_gpu.transform("count") >= _FEWEST_BLANKS
            if count := int(blank.sum()):
                self.missing[f"{slot} 0 throughout"] += count
                self.notes.append(Message("read.zero-throughout", slot=slot))
                samples[slot] = values.mask(blank)

    @property
    def rows_used(self) -> int:
        """Rows or points that were not left out."""
        return self.rows_read - sum(self.dropped.values())

    def _source_and_notes(self, gpus: tuple[GpuIdentity, ...]) -> tuple[Source, tuple[str, ...]]:
        """Return the source with its figures, and the notes on it."""
        used = self.rows_used
        count = len(boards_of(gpus))
        reasons = "; ".join(f"{reason}: {n}" for reason, n in sorted((+self.dropped).items()))
        code = "read.as-in-part" if reasons else "read.as"
        counts = {"used": used, "rows": self.rows_read, "gpus": count}
        read_as = Message(code, form=self.form, reasons=reasons, **counts)
        dropped = {**+self.dropped, **{f"value {k}": n for k, n in self.missing.items()}}
        source = Source(
            path=self.name,
            sha256=self.payload.sha256,
            format=self.form,
            columns=tuple(sorted((*self._columns, *self.ledger.columns()), key=lambda c: c.source)),
            dropped=dict(sorted(dropped.items())),
        )
        return source, self._notes(read_as)

    def _notes(self, read_as: str) -> tuple[str, ...]:
        """Return what was noted, with the file's name.

        Our own captures are not files of the user's.
        """
        if self.is_capture:
            return tuple(self.notes)
        unmapped = [*filter(None, (self.ledger.note(), self.ledger.host_note()))]
        faults = (f"{fault.sentence}." for fault in self.health)
        notes = (read_as, *unmapped, *faults, *self.notes)
        return tuple(Message("note.about", job=self.name, note=note) for note in notes)

    def _checked(
        self, before: NDArray[np.float64], samples: pd.DataFrame, slot: str
    ) -> NDArray[np.float64]:
        """Return a slot's values, in its unit, with NaN for what cannot be; that is counted."""
        values = before.copy()
        self._blank(values, np.abs(values) > _MOST_FIGURE, slot, "beyond all measure")
        limits = SLOTS.get(slot)
        if limits is not None and limits.low is not None:
            self._blank(values, values < limits.low, slot, f"below {limits.low:g}")
        if (limits is not None and limits.unit == "fraction") or slot == MEMORY_FRACTION:
            return self._checked_fraction(values, slot)
        if limits is not None and limits.high is not None:
            self._blank(values, values > limits.high, slot, f"above {limits.high:g}")
        if ceiling := next(
            (ceiling for link, ceiling in _MOST_MIB_S.items() if slot.startswith(link)), None
        ):
            self._blank(values, values > ceiling, slot, "more than the link carries")
        if slot == "power.board_w":
            return self._checked_power(values, samples)
        return values

    def _checked_fraction(self, values: NDArray[np.float64], slot: str) -> NDArray[np.float64]:
        over = values > 1.0
        if not over.any():
            return values
        peak = float(np.nanmax(values))
        if slot in self._ratios and _NEARLY_ONE < peak <= _MOST_PERCENT:
            self.notes.append(f"{slot}: named a ratio, but up to {peak:g}; read as percent.")
            values = values * 0.01
        self._blank(values, values > _NEARLY_ONE, slot, "above 100 %")
        slightly = int((values > 1.0).sum())
        if slightly:
            self.notes.append(f"{slot}: {slightly} values slightly above 1 taken as 1 (MIG).")
        return np.minimum(values, 1.0)

    def _checked_power(
        self, values: NDArray[np.float64], samples: pd.DataFrame
    ) -> NDArray[np.float64]:
        ceiling = np.full(len(values), _MOST_WATTS)
        if "power.limit_w" in samples:
            limits = samples["power.limit_w"].astype(float).groupby(samples[GPU], observed=True)
            limit = limits.transform("median").to_numpy() * _POWER_OVER_LIMIT
            ceiling = np.where(np.isfinite(limit), limit, ceiling)
        with np.errstate(over="ignore"):  # a damaged limit may be next to nothing
            over, share = values > ceiling, values * _MILLI / ceiling
        floor = _LEAST_DRAWN if "power.limit_w" in samples else 0.0
        is_milli = over.any() and floor <= np.nanmax(share) <= 1
        if is_milli and over.sum() > np.isfinite(share).sum() / 2:
            self.notes.append("power.board_w: far above what a board draws; read as milliwatts.")
            return values * _MILLI
        self._blank(values, over, "power.board_w", "above 1.3 x the power limit")
        return values

    def _blank(
        self, values: NDArray[np.float64], wrong: NDArray[np.bool_], slot: str, reason: str
    ) -> None:
        if count := int(wrong.sum()):
            self.missing[f"{slot} {reason}"] += count
            self.notes.append(left_out(slot, count, int(np.isfinite(values).sum()), reason))
            values[wrong] = np.nan


_MUCH = 0.1  # of a column; a stray value is not its unit


def left_out(slot: str, n: int, of: int, reason: str) -> str:
    """Return that `n` of `of` values of a slot cannot be; of many, that its unit may change.

    Where all cannot be, nothing changed.
    """
    if not _MUCH * of <= n < of or n == 1:
        return f"{slot}: {n} values left out: {reason}."
    return Message("read.unit-changes", slot=slot, n=n, of=of, reason=reason)


def _figure(value: float | None) -> float | None:
    """Return a figure for people; None for one that no file of readings holds."""
    return None if value is None or abs(value) > _MOST_FIGURE else round(float(value), 6)


def _plausible(gpu: GpuIdentity) -> GpuIdentity:
    """Return a device without a memory size that no device has, or a name that is an error."""
    plausible = gpu.memory_gib is not None and _LEAST_GIB <= gpu.memory_gib < _MOST_GIB
    named = gpu.model is not None and not _NO_NAME.fullmatch(gpu.model.strip())
    return replace(
        gpu, memory_gib=gpu.memory_gib if plausible else None, model=gpu.model if named else None
    )


def real_uuid(cell: object) -> str | None:
    """Return a device's uuid; None for a placeholder or one that was blanked with zeros."""
    text = cell.strip() if isinstance(cell, str) else ""
    return text if text.strip("GPU-0 ") and not text.startswith("[") and text != "N/A" else None
