"""What became of every name in a source, and what some of them say of the health of a GPU.

A name is understood, known and not needed, or not understood. Of health are errors of memory, of
the link, and power limits.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from math import isfinite

from planner.profile.kinds import HARDWARE_XIDS
from planner.profile.model import Column, Health
from pricing.listing import counted, listed
from pricing.message import Message
from telemetry.readers.column_names import AMBIGUOUS, HEALTH, fold, names_of, unneeded
from telemetry.readers.hints import Hints
from telemetry.readers.units import SCALES

XID, MEMORY, _REMAP = "xid", "memory errors", "remap failure"
_WIDTH, _WIDTH_MOST = "lanes", "lanes at most"
_LIMIT, _LIMIT_DEFAULT = "limit", "limit by default"

_GIVEN = {XID: "xid", MEMORY: "memory", _REMAP: "remapping"}
# Xid errors of hardware (`HARDWARE_XIDS`): by NVIDIA's Health Validation (48), its notes on GPU
# operational events (79) and stas00/ml-engineering (64), all read 2026-11-27.
_CAPPED = 0.9  # of the limit by default; drivers round limits by a few watts


@cache
def kind_of(name: str) -> str | None:
    """Return what a column or metric says of health; None for any other."""
    folded = fold(name)[0]
    return next((kind for kind, sign in HEALTH.items() if re.fullmatch(sign, folded)), None)


def findings(readings: Iterable[tuple[str, str, float]]) -> list[Health]:
    """Return each thing that is wrong with a GPU.

    Args:
        readings: which GPU, the kind of reading, and the greatest value that it had.
    """
    by_gpu: dict[str, dict[str, float]] = defaultdict(dict)
    for gpu, kind, value in readings:
        if isfinite(value):
            by_gpu[gpu][kind] = max(value, by_gpu[gpu].get(kind, value))
    return [fault for gpu, values in sorted(by_gpu.items()) for fault in _faults(gpu, values)]


def _faults(gpu: str, values: dict[str, float]) -> Iterator[Health]:
    for kind, code in _GIVEN.items():
        value = values.get(kind, 0.0)
        if value in HARDWARE_XIDS if kind == XID else value > 0:
            yield Health(gpu=gpu, code=code, value=value)
    lanes, full_lanes = values.get(_WIDTH, 0.0), values.get(_WIDTH_MOST, 0.0)
    if 0 < lanes < full_lanes:
        yield Health(gpu=gpu, code="lanes", value=lanes, most=full_lanes)
    limit, default = values.get(_LIMIT, 0.0), values.get(_LIMIT_DEFAULT, 0.0)
    if 0 < limit < _CAPPED * default:
        yield Health(gpu=gpu, code="power-cap", value=limit, most=default)


_SHOWN = 4
# Of a scrape with metrics of a whole machine, those are named that may be of a GPU.
_OF_GPU = re.compile(
    r"gpu|dcgm|nvidia|nvml|cuda|vram|rocm|amd|xpu|hami|mig|_fb_|smi", re.IGNORECASE
)

# Of a log, those that may be of the machine around the GPUs.
_OF_HOST = re.compile(r"(^|_)(cpu|ram|host|system|disk|net|network)(_|$)")

_VENDOR = re.compile(r"^dcgm_fi_(dev|prof)_", re.IGNORECASE)


@dataclass(slots=True)
class Ledger:
    """The names of a source.

    Attributes:
        names: all of them, in lower case; what `--map` may name.
        understood: how many are read.
        not_needed: how many are known, and say nothing that a profile holds.
        unread: rows or points behind each name that is not understood.
    """

    names: set[str] = field(default_factory=set)
    understood: int = 0
    not_needed: int = 0
    unread: Counter[str] = field(default_factory=Counter)

    def enter(self, name: str, count: int, *, read: bool, metric: bool = False) -> None:
        """Note a name, with the rows or points that it has."""
        self.names.add(name.strip().strip('"').lower())
        if read or kind_of(name):
            self.understood += 1
        elif unneeded(name) or (metric and not _OF_GPU.search(name)) or not count:
            self.not_needed += 1
        elif fold(name)[0] not in AMBIGUOUS:  # of which a note of its own says more
            self.unread[name.strip()] += count

    def columns(self) -> Iterator[Column]:
        """Yield the names that are not understood as columns without a slot and a scale."""
        for name, count in sorted(self.unread.items()):
            yield Column(source=name, n=count)

    def note(self) -> str | None:
        """Return the sentence on what is not understood; None where everything is."""
        if not self.unread:
            return None
        names = [name for name, _ in self.unread.most_common()]
        shown = listed([repr(name) for name in names], _SHOWN)
        return (
            f"{counted(len(names), 'column')} not understood ({shown}), {self.understood} read, "
            f"{self.not_needed} not needed. To read one: {_example(names)}."
        )

    def host_note(self) -> Message | None:
        """Return which names may be of the machine and are not clear enough to be read."""
        names = sorted(name for name in self.unread if _OF_HOST.search(fold(name)[0]))
        if not names:
            return None
        quoted = [repr(name) for name in names][:_SHOWN]
        return Message("read.host-columns", columns=quoted, example=_example(names))


def _example(names: Sequence[str]) -> str:
    """Return the `--map` of the name that is nearest to a known one."""
    for name in names:
        own, unit = fold(_VENDOR.sub("", name))  # which is alike in all of its names
        fitting = {
            reading: holds.target
            for reading, holds in names_of("nvidia-smi-csv").items()
            if holds.scale and ("mem" in own) == holds.target.startswith("mem.")
            if unit is None or (unit, holds.to) in SCALES
        }
        if near := get_close_matches(own, fitting, n=1, cutoff=0.7):
            return f"--map '{name}={fitting[near[0]]}'"
    cpu = next((name for name in names if fold(name)[0] == "cpu"), None)
    return f"--map '{cpu}=host.cpu_util'" if cpu else f"--map '{names[0]}=SLOT'"


def unmatched_map(hints: Hints, ledgers: Iterable[frozenset[str] | None]) -> list[str]:
    """Return a problem for each column of `--map` that no source has.

    Args:
        hints: `map` is used.
        ledgers: the names in each source; None where its reader does not tell.
    """
    by_source = list(ledgers)
    names = {name for ledger in by_source for name in ledger or ()}
    if not names or None in by_source:
        return []
    shown = listed(sorted(name for name in names if not name.isdecimal()), 3 * _SHOWN)
    return [
        f"--map {column}={slot}: no column {column}; the columns are {shown}."
        for column, slot in hints.map
        if column.strip().lower() not in names
    ]
