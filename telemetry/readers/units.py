"""What a source's name for a quantity means: the slot it fills and the factor between the units."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.profile.kinds import SLOTS
from telemetry.recording.recording import COUNTERS

MIB = 1 << 20
GIB = 1 << 30
MOST = 1e30  # nothing measured is greater, and sums of greater numbers overflow
THROTTLE_BITS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80  # power cap, slowdowns, thermal, power brake

_TABLE = tomllib.loads(Path(__file__).with_name("units.toml").read_text(encoding="utf-8"))
# (source's unit, slot's unit) -> factor.
SCALES: Mapping[tuple[str, str], float] = {
    (unit, own): factor for own, units in _TABLE["scales"].items() for unit, factor in units.items()
}
SPELLINGS: Mapping[str, str] = {
    word: unit for unit, spellings in _TABLE["spellings"].items() for word in spellings
}


def spelled(unit: str) -> str | None:
    """Return the table's spelling of a unit, None when it is not one; nvidia-smi's MB is MiB."""
    return SPELLINGS.get(unit.strip().lower())


HOST_UNITS: Mapping[str, str] = _TABLE["host"]
# The unit of what is not a slot.
_UNITS: Mapping[str, str] = {
    **HOST_UNITS,
    **_TABLE["figures"],
    **{name: "MiB" for name in COUNTERS if name.endswith("_mib")},
    **{name: "s" for name in COUNTERS if name.endswith("_s")},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a name of a source holds.

    Attributes:
        target: a slot, a role of `ROLES`, or a column of `recording.EXTRA`.
        unit: the unit of values that carry none; "" for texts.
        rank: among names of one target the lowest rank is used.
    """

    target: str
    unit: str = ""
    rank: int = 0

    @property
    def to(self) -> str:
        """The target's own unit; "" for texts."""
        slot = SLOTS.get(self.target)
        return slot.unit if slot else _UNITS.get(self.target, "")

    @property
    def scale(self) -> float | None:
        """The factor to the target's unit; None for texts and units that do not convert."""
        return SCALES.get((self.unit, self.to))


OTHER_MEASURE = 10  # from this rank on a name measures its target in another way


def first_measure(ranks: Iterable[int]) -> int:
    """Return the rank below which names of one target complement each other."""
    first = min(ranks)
    return OTHER_MEASURE if first < OTHER_MEASURE else first + 1


# Besides the readings: who and when a row is about.
ROLES = ("timestamp", "host", "index", "uuid", "name", "memory.total")
MAPPABLE = (*SLOTS, *HOST_UNITS, *ROLES)
# What a column is in where neither its name nor the mapping says; else the slot's own unit.
_NATURAL = {"fraction": "%", "GiB": "MiB", "°C": "C"}
_COUNTED = {"energy.total_j": "counter.energy_j"}  # a meter counts up; the window's is a difference


def units_of(name: str) -> tuple[str, ...]:
    """Return the units of a column that is mapped to a name; none for texts.

    The first is meant where none is said; the others may stand behind a colon, too.
    """
    own = Meaning(target=_COUNTED.get(name, name)).to
    units = [unit for unit, to in SCALES if to == own and unit in SPELLINGS.values()]
    return tuple(sorted(units, key=lambda unit: unit != _NATURAL.get(own, own)))


def mapping_problem(column: str, mapping: str) -> str | None:
    """Return why a mapping cannot be used, None where it can."""
    name, _, unit = mapping.partition(":")
    if name not in MAPPABLE:
        return (
            f"--map {column}={mapping}: {name!r} is not a slot, so the column cannot be read. "
            f"Use one of: {', '.join(MAPPABLE)}."
        )
    units = units_of(name)
    if unit and spelled(unit) not in units:
        choice = f"Use one of: {', '.join(units)}." if units else "Leave it out: it is a text."
        return f"--map {column}={mapping}: {name} is not told in {unit!r}. {choice}"
    return None


def meaning_of(mapping: str, header_unit: str | None) -> Meaning:
    """Return what a mapped column holds.

    Args:
        mapping: the slot, with its unit behind a colon or without.
        header_unit: the unit in the column's own name.
    """
    name, _, unit = mapping.partition(":")
    stated = [spelled(unit), header_unit]
    units = units_of(name) or ("",)
    own = next((unit for unit in stated if unit in units), units[0])
    return Meaning(target=_COUNTED.get(name, name), unit=own or "", rank=-1)
