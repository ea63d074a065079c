"""Several large logs of one job as one: the devices of all, the columns behind each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from telemetry.large.fields import MISSING, recounted
from telemetry.large.lines import UnfitError
from telemetry.large.profile import Counted, LargeRecording, profile_of
from telemetry.large.smi_recording import read_large
from telemetry.profiling.machines import (
    Different,
    LoggedRows,
    device_names,
    identities,
    machines_of,
    placed,
)
from telemetry.recording.recording import GPU, TIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.profile.model import Profile
    from telemetry.readers.hints import Hints

_Number = TypeVar("_Number", bound=np.generic)
_BLOCK_ROWS = 1 << 18


def profile_of_logs(paths: Sequence[str], hints: Hints) -> Profile | None:
    """Return the profile of large logs of one job; None where one is not plain.

    Args:
        paths: the logs, in the order of their names.
        hints: what they do not say.

    Raises:
        InputError: one cannot be read, may be of either of two machines, or no reading is left.
    """
    try:
        recordings = [read_large(path, hints) for path in paths]
        whole = recordings.pop() if len(recordings) == 1 else _joined(recordings)
    except UnfitError:
        return None
    return profile_of(whole, hints)


def _joined(recordings: list[LargeRecording]) -> LargeRecording:
    """Return recordings as one, as `profiling.merge` does; they are let go of one by one.

    Raises:
        UnfitError: some have dates and some have none.
        InputError: one may be of either of two machines.
    """
    if len({one.absolute for one in recordings}) > 1:
        raise UnfitError
    notes = [note for one in recordings for note in one.notes]
    places = machines_of([_logged(one) for one in recordings], notes)
    devices = placed([one.gpus for one in recordings], places)
    names = device_names(devices, places)
    gpus = identities(devices, names)
    order = {gpu.key: i for i, gpu in enumerate(gpus)}
    codes = [
        np.array([order[named[gpu.key]] for gpu in one.gpus], dtype=np.int32)[one.codes]
        for one, named in zip(recordings, names, strict=True)
    ]
    times = [one.t_s for one in recordings]
    columns = [dict(one.slots) for one in recordings]
    lengths = [len(t_s) for t_s in times]
    whole = replace(
        recordings[0],
        t_s=np.empty(0),
        codes=np.empty(0, dtype=np.int32),
        slots={},
        gpus=gpus,
        sources=tuple(source for one in recordings for source in one.sources),
        notes=tuple(notes),
        local_time=any(one.local_time for one in recordings),
        mig=any(one.mig for one in recordings),
    )
    recordings.clear()
    return replace(
        whole,
        t_s=_end_to_end(times, np.empty(sum(lengths))),
        codes=_end_to_end(codes, np.empty(sum(lengths), dtype=np.int32)),
        slots={
            slot: _column([one.pop(slot, None) for one in columns], lengths)
            for slot in sorted({slot for one in columns for slot in one})
        },
    )


def _end_to_end(parts: list[NDArray[_Number]], whole: NDArray[_Number]) -> NDArray[_Number]:
    """Return parts as one, which they are written to; each is let go of."""
    begin = len(whole)
    while parts:
        part = parts.pop()
        whole[begin - len(part) : begin] = part
        begin -= len(part)
    return whole


def _column(parts: list[Counted | None], lengths: Sequence[int]) -> Counted:
    """Return one column of all logs, missing where a log has none; the parts are let go."""
    forms = {(part.per, part.scale) for part in parts if part is not None}
    per, scale = max(forms)
    if min(forms)[0] == 0 or len({scale for _, scale in forms}) > 1:
        per, scale = 0, 1.0
    whole = np.full(sum(lengths), np.nan) if per == 0 else _missing(sum(lengths))
    begin = sum(lengths)
    for length in reversed(lengths):
        part = parts.pop()
        if part is not None:
            values = part.floats(slice(None)) if per == 0 else part.counts
            same = per in {0, part.per}
            rows = slice(begin - length, begin)
            whole[rows] = values if same else recounted(part.counts, part.per, per)
        begin -= length
    return Counted(whole, per, scale)


def _missing(length: int) -> NDArray[np.int32]:
    return np.full(length, MISSING, dtype=np.int32)


def _logged(one: LargeRecording) -> LoggedRows:
    """Return what of a log tells its machine."""

    def rows(slots: tuple[str, ...]) -> Different:
        return Different.of(_hashes(one, slots), one.t_s)

    return LoggedRows(
        source=one.sources[0],
        gpus=one.gpus,
        slots=frozenset(one.slots),
        span_s=(float(one.t_s.min()), float(one.t_s.max())) if len(one.t_s) else None,
        rows=rows,
    )


def _hashes(one: LargeRecording, slots: tuple[str, ...]) -> NDArray[np.uint64]:
    """Return a number for each row: the same for the same index, time and readings."""
    index = np.array([-1.0 if gpu.index is None else gpu.index for gpu in one.gpus])
    found = np.empty(len(one.t_s), dtype=np.uint64)
    for begin in range(0, len(found), _BLOCK_ROWS):
        rows = slice(begin, begin + _BLOCK_ROWS)
        columns = {slot: one.slots[slot].floats(rows) for slot in slots}
        frame = pd.DataFrame({TIME: one.t_s[rows], **columns, GPU: index[one.codes[rows]]})
        found[rows] = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    return found
