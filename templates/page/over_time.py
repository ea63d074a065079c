"""Shapes what was recorded over time for the page: whole percent, and phases as stretches."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from templates.language.speech import word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# A unit is used from twice its length on.
_UNITS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"))


def drawn(line: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a time line for the page; None where nothing was recorded over time."""
    if line is None:
        return None
    points = len(line["busy"])
    unit_s, unit = _unit(line["point_s"] * points)
    return {
        "gpus": line["gpus"],
        "unit": unit,
        "point": float(f"{line['point_s'] / unit_s:.6g}"),
        **{name: _percent(line[name]) for name in ("busy", "least", "most", "host")},
        "phases": _stretches(line["phases"]),
    }


def _unit(length_s: float) -> tuple[float, str]:
    return next(((s, name) for s, name in _UNITS if length_s >= 2 * s), (1.0, "seconds"))


def _percent(shares: Iterable[float | None]) -> list[int | None]:
    return [None if share is None else round(100 * share) for share in shares]


def _stretches(phases: Sequence[str | None]) -> list[list[Any]]:
    """Return each phase in words, the point that it begins with and the one that it ends before."""
    found, at = [], 0
    for kind, members in groupby(phases):
        end = at + len(list(members))
        if kind is not None:
            found.append([word("phase", kind), at, end])
        at = end
    return found
