"""What the parts of a run on one machine used of it together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields
from typing import TYPE_CHECKING

from planner.profile.model import Host, Profile, Statistics

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGITS = 6
_SHARE = "cpu_util"
# The machine's own counters, or the most of one: what each part saw of the same is not added up.
_SEEN_BY_ALL = ("cpu_busiest_core", "net_rx_mib_s", "net_tx_mib_s")


def cores_of(parts: Sequence[Profile]) -> float | None:
    """Return the cores that the parts may use together: those of each set of cores once."""
    known = [cores for cores in _by_cores(parts).values() if cores is not None]
    return sum(known) if known else None


def host_of(parts: Sequence[Profile]) -> Host | None:
    """Return what the parts used together; quantiles and maxima are at most so much.

    Of one part it is what that part says.
    """
    read = [part for part in parts if part.host is not None]
    if len(read) < len(parts) or len(parts) == 1:
        return read[0].host if read else None
    found: dict[str, Statistics] = {}
    for field in fields(Host):
        values = [getattr(part.host, field.name) for part in parts]
        known = [value for value in values if value is not None]
        if len(known) < len(parts):
            continue
        if field.name == _SHARE:
            shared = _shared(known, parts)
            if shared is not None:
                found[field.name] = shared
        elif field.name in _SEEN_BY_ALL:
            found[field.name] = _combined(known, [1.0] * len(known), greatest=True)
        else:
            found[field.name] = _combined(known, [1.0] * len(known))
    return Host(**found)


def _by_cores(parts: Sequence[Profile]) -> dict[str, float | None]:
    """Return each set of cores, with how many of it may be used; sets do not overlap in part."""
    found: dict[str, list[float]] = defaultdict(list)
    for part in parts:
        name = (part.run.cpus if part.run else None) or ""
        found[name] += [part.hardware.cpu_cores] if part.hardware.cpu_cores else []
    return {name: max(cores, default=None) for name, cores in found.items()}


def _shared(values: Sequence[Statistics], parts: Sequence[Profile]) -> Statistics | None:
    """Return the share of all their cores in use; None where a part does not know its cores."""
    every = cores_of(parts)
    own = [part.hardware.cpu_cores for part in parts]
    known = [cores for cores in own if cores]
    if not every or len(known) < len(own):
        return None
    return _combined(values, [cores / every for cores in known], most=1.0)


def _combined(
    values: Sequence[Statistics],
    weights: Sequence[float],
    *,
    most: float = float("inf"),
    greatest: bool = False,
) -> Statistics:
    found = {}
    for field in fields(Statistics):
        each = [getattr(value, field.name) for value in values]
        if None in each:
            continue
        scaled = [value * weight for value, weight in zip(each, weights, strict=True)]
        found[field.name] = round(min(most, max(scaled) if greatest else sum(scaled)), _DIGITS)
    return Statistics(**found)
