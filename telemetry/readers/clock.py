"""Timestamps of text sources: from the spellings in use to seconds since 1970 UTC."""

import re
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from telemetry.readers.payload import DATE_LINE

Texts: TypeAlias = "pd.Series | pd.Categorical[str]"
"""A column of cells; as categories each distinct text once, without blanks around it."""

_SMI_MILLIS, _SMI_SECONDS = "%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S"
_DATE_COMMAND = "%b %d %H:%M:%S %Y"
# nvidia-smi's own, the same to the second, `date`, ISO 8601, and what file names use.
_FORMS = (_SMI_MILLIS, _SMI_SECONDS, _DATE_COMMAND, "ISO8601", "%Y%m%d_%H%M%S", "%Y%m%d-%H%M%S")
# 03-11-2026 (tegrastats), 11.03.2026, 3/11/2026 3:13:16 PM.
_NUMERIC = re.compile(
    r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})[ T,]+(\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)\s*([AP]M)?",
    re.IGNORECASE,
)
_MONTHS = 12
_ORDERS = ("month/day", "day/month")
_OF_DAY = re.compile(r"^(\d\d?):(\d\d):(\d\d(?:\.\d+)?)$")
_NO_SECONDS = re.compile(r"\d[T ,]+\d\d?:\d\d(?!:?\d)(?!.*\d:\d\d:\d\d)")
_MOSTLY = 0.9
_FIRST_ROWS = 10_000  # of a source, which say how all its times are spelled
_DAY_S = 86_400.0
_ZONED = re.compile(r"(?:Z|UTC|GMT|[+-]\d\d:?\d\d)$")
# Least value of each epoch unit for a date after 1990; below them, seconds since the start.
_EPOCHS = ((6e17, 1e-9), (6e14, 1e-6), (6e11, 1e-3), (6e8, 1.0))
_STEP_BACK_S = 1800.0
# The year 9998; calendars end with the next.
_MOST_SECONDS = 253_370_764_800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceClock:
    """Parsed times.

    Attributes:
        t_s: seconds, NaN where a time could not be read.
        absolute: whether they count from 1970 UTC.
        local: whether the texts carried no zone.
        stepped_back: whether the clock was set back by half an hour or more (summer time ends).
        order: of day and month, where nothing tells it and it was assumed.
        to_the_minute: whether the texts have no seconds, as spreadsheets show and save them.
        above_rows: whether they are of date lines above the rows.
    """

    t_s: NDArray[np.float64]
    absolute: bool
    local: bool = False
    stepped_back: bool = False
    order: str = ""
    to_the_minute: bool = False
    above_rows: bool = False


@dataclass(slots=True)
class TimeTexts:
    """Times as texts, taken block by block; the first block says how all of them are spelled.

    Attributes:
        zone: the zone of times without one; None takes them as UTC.
        day_first: whether the source writes as those do who put the day before the month.
    """

    zone: tzinfo | None = None
    day_first: bool = False
    _spelling: str = ""
    _to_the_minute: bool = False
    _parts: list[NDArray[np.float64]] = field(default_factory=list)

    def take(self, texts: Texts) -> None:
        """Add texts: epoch seconds, milli-, micro- or nanoseconds, or as `_FORMS` spells them.

        Also HH:MM:SS, and seconds since the start.
        """
        codes, unique = distinct(texts)
        cells = pd.Series(unique, dtype=object)
        cells = cells if isinstance(texts, pd.Categorical) else cells.str.strip()
        if not self._parts:
            rows = np.bincount(codes[:_FIRST_ROWS], minlength=len(cells))
            first_cells, rows = cells[rows > 0], rows[rows > 0]
            self._spelling = _spelling_of(first_cells, rows)
            no_seconds = first_cells.str.contains(_NO_SECONDS) @ rows
            self._to_the_minute = bool(no_seconds > _MOSTLY * rows.sum())
        if self._spelling == "number":
            numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        elif self._spelling == "of day":
            numbers = _of_day(cells)
        elif self._spelling == "zoned":
            zoned = cells.where(cells.str.contains(_ZONED))
            zoned = zoned.str.replace(r"\s*(UTC|GMT)$", "Z", regex=True)
            numbers = _seconds(pd.to_datetime(zoned, utc=True, format="ISO8601", errors="coerce"))
        else:
            times, self._spelling = _local(cells, self._spelling, day_first=self.day_first)
            numbers = _seconds(times)
        self._parts.append(numbers[codes])

    @property
    def any(self) -> bool:
        """Whether there are texts."""
        return bool(self._parts)

    def instants(self) -> SourceClock:
        """Return the instants of all texts, in their order."""
        seconds = np.concatenate(self._parts)
        if self._spelling == "number":
            return epoch(seconds)
        if self._spelling == "of day":
            filled = pd.Series(seconds).ffill().bfill().to_numpy()
            midnights = np.cumsum(np.diff(filled, prepend=filled[:1]) < -_DAY_S / 2)
            return SourceClock(t_s=placed(seconds + midnights * _DAY_S), absolute=False)
        if self._spelling == "zoned":
            return SourceClock(t_s=seconds, absolute=True, to_the_minute=self._to_the_minute)
        back = _steps_back(seconds)
        placed_s = seconds if self.zone is None else _to_utc(seconds, back, self.zone)
        stepped = bool(back.any())
        return SourceClock(
            t_s=placed_s,
            absolute=True,
            local=True,
            stepped_back=stepped,
            order=self._spelling if self._spelling in _ORDERS else "",
            to_the_minute=self._to_the_minute,
        )


def _spelling_of(cells: pd.Series, rows: NDArray[np.int64]) -> str:
    """Return how most of some texts are spelled; "" for times without a zone.

    Args:
        cells: the distinct texts, that of the first row first.
        rows: how often each of them comes.
    """
    signs = {
        "number": pd.to_numeric(cells, errors="coerce").notna(),
        "of day": cells.str.match(_OF_DAY) & bool(cells[:1].str.match(_OF_DAY).all()),
        "zoned": cells.str.contains(_ZONED),
    }
    return next((name for name, fits in signs.items() if fits @ rows > rows.sum() / 2), "")


def parse(texts: pd.Series, zone: tzinfo | None) -> SourceClock:
    """Return the instants of a column of texts, as `TimeTexts` reads them."""
    column = TimeTexts(zone)
    column.take(texts)
    return column.instants()


def distinct(texts: Texts) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Return which of the distinct texts each text is, -1 for none, and these."""
    array = texts.array if isinstance(texts, pd.Series) else texts
    if isinstance(array, pd.Categorical):
        return np.asarray(array.codes), np.asarray(array.categories, dtype=object)
    codes, unique = pd.factorize(texts)
    return codes, np.asarray(unique, dtype=object)


def _local(cells: pd.Series, form: str, *, day_first: bool) -> tuple[pd.Series, str]:
    """Return times without a zone, and the first spelling that fits any; `form` if it is given."""
    for spelling in _FORMS if form not in _FORMS else (form,):
        texts = cells
        if spelling == _DATE_COMMAND:
            texts = cells.str.replace(DATE_LINE, r"\1 \3", regex=True)
        try:
            times = pd.to_datetime(texts, format=spelling, errors="coerce")
        except ValueError:  # zones spelled oddly beside times without one
            times = pd.to_datetime(texts, format=spelling, errors="coerce", utc=True)
        if times.notna().any() or form in _FORMS:
            return times, spelling
    return _numeric(cells, day_first=day_first)


def _numeric(cells: pd.Series, *, day_first: bool) -> tuple[pd.Series, str]:
    """Return times whose dates are day, month and year in numbers; the order if it is assumed.

    A number above 12 tells the day from the month, a dot says that the day comes first; else the
    order is taken in which the times lie closer together, and where both do the month first, unless
    the source writes otherwise.
    """
    parts = cells.str.extract(_NUMERIC)
    first, second = (pd.to_numeric(parts[column]).fillna(0) for column in (0, 2))
    day = parts[4].where(parts[4].str.find(":") != 1, "0" + parts[4])
    day = day.where(day.str.count(":") != 1, day + ":00")
    halves = parts[5].notna().any()
    clocks = day + " " + parts[5].fillna("") if halves else day
    dates = [
        pd.to_datetime(
            parts[3] + "-" + month.str.zfill(2) + "-" + monthday.str.zfill(2) + " " + clocks,
            format="%Y-%m-%d %I:%M:%S %p" if halves else "ISO8601",
            errors="coerce",
        )
        for month, monthday in ((parts[0], parts[2]), (parts[2], parts[0]))
    ]
    if (parts[1] == ".").any() or (first > _MONTHS).any():
        return dates[1], ""
    if (second > _MONTHS).any():
        return dates[0], ""
    spans = [times.max() - times.min() for times in dates]
    if spans[0] == spans[1] and not dates[0].equals(dates[1]):
        return dates[day_first], _ORDERS[day_first]
    return dates[1] if spans[1] < spans[0] else dates[0], ""


def _of_day(cells: pd.Series) -> NDArray[np.float64]:
    """Return the seconds of HH:MM:SS texts since midnight, NaN for others."""
    parts = cells.str.extract(_OF_DAY).astype(float)
    return (parts[0] * 3600 + parts[1] * 60 + parts[2]).to_numpy(dtype=float)


def placed(t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return times, seconds, with NaN where they are not instants that anyone recorded."""
    with np.errstate(invalid="ignore"):
        return np.where((t_s >= 0) & (t_s < _MOST_SECONDS), t_s, np.nan)


def epoch(numbers: NDArray[np.float64]) -> SourceClock:
    """Return the instants of numbers, whose unit their size tells."""
    typical = float(np.nanmedian(numbers))
    for floor, scale in _EPOCHS:
        if typical >= floor:
            return SourceClock(t_s=placed(numbers * scale), absolute=True)
    return SourceClock(t_s=placed(numbers), absolute=False)


def _seconds(times: pd.Series) -> NDArray[np.float64]:
    if isinstance(times.dtype, pd.DatetimeTZDtype):
        times = times.dt.tz_localize(None)
    micros = times.astype("datetime64[us]").to_numpy()
    return placed(np.where(np.isnat(micros), np.nan, micros.astype("int64") / 1e6))


def _steps_back(seconds: NDArray[np.float64]) -> NDArray[np.bool_]:
    filled = pd.Series(seconds).ffill().to_numpy()
    steps = np.diff(filled, prepend=filled[:1])
    return np.asarray(np.cumsum(steps < -_STEP_BACK_S) > 0)


def _to_utc(
    naive: NDArray[np.float64], after_step: NDArray[np.bool_], zone: tzinfo
) -> NDArray[np.float64]:
    finite = np.isfinite(naive)
    micros = np.rint(np.where(finite, naive, 0.0) * 1e6).astype("int64")
    stamps = pd.Series(micros.astype("datetime64[us]"))
    # The hour that happens twice: rows after the clock went back are its second pass.
    local = stamps.dt.tz_localize(zone, ambiguous=~after_step, nonexistent="shift_forward")
    return np.where(finite, _seconds(local.dt.tz_convert("UTC")), np.nan)
