"""Timestamps of text sources: from the spellings in use to seconds since 1970 UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from datetime import tzinfo

    from numpy.typing import NDArray

_NVIDIA = "%Y/%m/%d %H:%M:%S.%f"
_ZONED = re.compile(r"(?:Z|UTC|GMT|[+-]\d\d:?\d\d)$")
# Least value of each epoch unit for a date after 1990; below them, seconds since the start.
_EPOCHS = ((6e17, 1e-9), (6e14, 1e-6), (6e11, 1e-3), (6e8, 1.0))
_STEP_BACK_S = 1800.0
# The year 9999; beyond it no calendar goes.
_MOST_SECONDS = 253_402_300_799.0
_DATE_LINE = re.compile(r"^\w{3} (\w{3} +\d+ \d\d:\d\d:\d\d) (?:(UTC|GMT) )?(?:\w+ )?(\d{4})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Parsed times.

    Attributes:
        t_s: seconds, NaN where a time could not be read.
        absolute: whether they count from 1970 UTC.
        local: whether the texts carried no zone.
        stepped_back: whether the clock was set back by half an hour or more (summer time ends).
    """

    t_s: NDArray[np.float64]
    absolute: bool
    local: bool = False
    stepped_back: bool = False


def parse(texts: pd.Series, zone: tzinfo | None) -> Clock:
    """Return the instants of a column of texts.

    Args:
        texts: epoch seconds, milli-, micro- or nanoseconds, nvidia-smi's `YYYY/MM/DD HH:MM:SS.mmm`,
            ISO 8601 with or without offset, or seconds since the start.
        zone: the zone of times without one; None takes them as UTC.
    """
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    if np.isfinite(numbers).sum() > len(numbers) / 2:
        return _epoch(numbers)
    codes, unique = pd.factorize(texts)
    cells = pd.Series(unique.astype(object)).str.strip()
    zoned = cells.str.contains(_ZONED)
    if zoned.any():
        cells = cells.str.replace(r"\s*(UTC|GMT)$", "Z", regex=True)
        times = pd.to_datetime(cells.where(zoned), utc=True, format="ISO8601", errors="coerce")
        return Clock(t_s=_seconds(times)[codes], absolute=True)
    naive = _seconds(_local(cells))[codes]
    back = _steps_back(naive)
    seconds = naive if zone is None else _to_utc(naive, back, zone)
    return Clock(t_s=seconds, absolute=True, local=True, stepped_back=bool(back.any()))


def _local(cells: pd.Series) -> pd.Series:
    """Times without a zone: the first spelling that reads any of them."""
    dates = cells.str.replace(_DATE_LINE, r"\1 \3", regex=True)
    for texts, form in ((cells, _NVIDIA), (dates, "%b %d %H:%M:%S %Y"), (cells, "ISO8601")):
        times = pd.to_datetime(texts, format=form, errors="coerce")
        if times.notna().any():
            break
    return times


def placed(t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return times with NaN where they are no instant anyone recorded."""
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(t_s) < _MOST_SECONDS, t_s, np.nan)


def is_date_line(text: str) -> bool:
    """Whether a line is what the `date` command prints."""
    return bool(_DATE_LINE.match(text.strip()))


def _epoch(numbers: NDArray[np.float64]) -> Clock:
    typical = float(np.nanmedian(numbers))
    for least, scale in _EPOCHS:
        if typical >= least:
            return Clock(t_s=placed(numbers * scale), absolute=True)
    return Clock(t_s=placed(numbers), absolute=False)


def _seconds(times: pd.Series) -> NDArray[np.float64]:
    if isinstance(times.dtype, pd.DatetimeTZDtype):
        times = times.dt.tz_localize(None)
    whole = times.astype("datetime64[ns]").to_numpy()
    seconds = whole.astype("int64") / 1e9
    return np.where(np.isnat(whole), np.nan, seconds)


def _steps_back(seconds: NDArray[np.float64]) -> NDArray[np.bool_]:
    known = pd.Series(seconds).ffill().to_numpy()
    steps = np.diff(known, prepend=known[:1])
    return np.asarray(np.cumsum(steps < -_STEP_BACK_S) > 0)


def _to_utc(
    naive: NDArray[np.float64], after_step: NDArray[np.bool_], zone: tzinfo
) -> NDArray[np.float64]:
    stamps = pd.Series(pd.to_datetime(naive, unit="s"))
    # The hour that happens twice: rows after the clock went back are its second pass.
    placed = stamps.dt.tz_localize(zone, ambiguous=~after_step, nonexistent="shift_forward")
    return _seconds(placed.dt.tz_convert("UTC"))
