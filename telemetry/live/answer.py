"""One answer to a range query as columns of numbers: no point becomes an object of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_POINTS, _END = b'"values":[[', b"]]"
_PLAIN = bytes.maketrans(b'[]"', b"   ")
_KEPT_AS = ("<i2", "<i4", "<f4", "<f8")  # the first that holds every value exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeAnswer:
    """The series of one metric over one stretch of time.

    Attributes:
        labels: of each series, as the server writes them.
        runs: a row for points that follow each other without a gap: which series, how many steps
            after the begin its first point lies, how many points it has; by series and time.
        values: the points' values, in the order of the runs.
        warnings: what the server said beside its data.
    """

    labels: tuple[Mapping[str, str], ...]
    runs: NDArray[np.int32]
    values: NDArray[Any]
    warnings: tuple[str, ...] = ()


class AnswerError(Exception):
    """An answer that is not all of the data, or none; asked again it may be whole."""


def answer_of(body: bytes, begin_s: int, step_s: int) -> RangeAnswer:
    """Return an answer, its values in the smallest type that holds them exactly.

    Args:
        body: the server's words: a matrix.
        begin_s: the first instant asked for.
        step_s: time between instants.

    Raises:
        AnswerError: it is cut off, partial, no matrix, or of other times than those asked for.
    """
    rest, points = _cut(body)
    try:
        told = msgspec.json.decode(rest)
        partial, result = bool(told.get("isPartial")), told["data"]["result"]
        labels = tuple({str(k): str(v) for k, v in one["metric"].items()} for one in result)
        if len(points) == len(labels) and all(one["values"] == [] for one in result):
            pairs = [_pairs(one) for one in points]
        else:  # as a proxy may write it
            pairs = [_table(one["values"]) for one in msgspec.json.decode(body)["data"]["result"]]
        kind = told["data"]["resultType"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise AnswerError("the answer is cut off, or not a matrix of series") from None
    if partial:
        raise AnswerError("the answer is partial: a part of its storage did not answer")
    if kind != "matrix":
        raise AnswerError("the answer is not a matrix of series")
    runs, values = _runs(pairs, begin_s, step_s)
    warnings = tuple(str(one)[:200] for one in told.get("warnings") or ())
    return RangeAnswer(labels=labels, runs=runs, values=_small(values), warnings=warnings)


def _table(points: list[Any]) -> NDArray[np.float64]:
    return np.array(points, dtype=np.float64).reshape(-1, 2)


def _cut(body: bytes) -> tuple[bytes, list[bytes]]:
    """Return an answer without its points, and the points of each series.

    Within a text the quotes of `"values"` carry a backslash, so that it is never found there.
    """
    rest: list[bytes] = []
    points: list[bytes] = []
    at = 0
    while (place := body.find(_POINTS, at)) >= 0:
        begin = place + len(_POINTS) - 1
        end = body.find(_END, begin)
        if end < 0:
            break
        rest.append(body[at:begin])
        points.append(body[begin:end])
        at = end + 1
    rest.append(body[at:])
    return b"".join(rest), points


def _pairs(points: bytes) -> NDArray[np.float64]:
    """Return times and values: `[1700000000,"80"],[1700000060,"NaN"` without the last bracket."""
    flat = b"[" + points.translate(_PLAIN) + b"]"
    try:
        found = np.array(msgspec.json.decode(flat), dtype=np.float64)
    except (ValueError, TypeError):  # NaN and +Inf are not JSON
        found = np.array([float(cell) for cell in flat[1:-1].split(b",")])
    return found.reshape(-1, 2)


def _runs(
    pairs: list[NDArray[np.float64]], begin_s: int, step_s: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    if not pairs:
        return np.empty((0, 3), dtype=np.int32), np.empty(0)
    points = np.concatenate(pairs)
    series = np.repeat(np.arange(len(pairs)), [len(one) for one in pairs])
    exact = (points[:, 0] - begin_s) / step_s
    place = np.rint(exact)
    if not np.array_equal(exact, place) or (place < 0).any():
        raise AnswerError("the answer's times are not those asked for")
    broken = (np.diff(series) != 0) | (np.diff(place) != 1)
    first = np.flatnonzero(np.concatenate(([True], broken)))
    length = np.diff(np.append(first, len(points)))
    runs = np.column_stack((series[first], place[first], length))
    return runs.astype(np.int32), np.ascontiguousarray(points[:, 1])


def _small(values: NDArray[np.float64]) -> NDArray[Any]:
    """Return the values in the smallest type that holds each of them exactly."""
    for kind in _KEPT_AS[:-1]:
        with np.errstate(invalid="ignore", over="ignore"):
            kept = values.astype(kind)
        if np.array_equal(kept.astype(np.float64), values):
            return kept
    return values
