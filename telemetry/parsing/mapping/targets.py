"""What `--map COLUMN=SLOT[:UNIT]` may name: each reading of a profile, and who and when."""

from dataclasses import dataclass

from planner.profile.metrics import SLOTS
from telemetry.parsing.units import HOST_UNITS, SCALES, SPELLINGS, Meaning, spelled

# Besides the readings: who and when a row is about.
ROLES = ("timestamp", "host", "index", "uuid", "name", "memory.total")
NAMES = (*SLOTS, *HOST_UNITS, *ROLES)
# What a column is in where neither its name nor the mapping says; else the slot's own unit.
_NATURAL = {"fraction": "%", "GiB": "MiB", "°C": "C"}
_COUNTED = {"energy.total_j": "counter.energy_j"}  # a meter counts up; the window's is a difference


@dataclass(frozen=True, slots=True, kw_only=True)
class MapTarget:
    """What a mapped column can be.

    Attributes:
        name: as it stands behind the `=`.
        units: that may stand behind a colon; none for texts.
        natural: the unit where none is said.
    """

    name: str
    units: tuple[str, ...]
    natural: str


def target_of(name: str) -> MapTarget:
    """Return what a column that is mapped to a name can be."""
    own = Meaning(target=_COUNTED.get(name, name)).to
    units = tuple(unit for unit, to in SCALES if to == own and unit in SPELLINGS.values())
    return MapTarget(name=name, units=units, natural=_NATURAL.get(own, own))


def problem(column: str, said: str) -> str | None:
    """Return why a mapping cannot be used, None where it can."""
    name, _, unit = said.partition(":")
    if name not in NAMES:
        return (
            f"--map {column}={said}: {name!r} is not a slot, so the column cannot be read. "
            f"Use one of: {', '.join(NAMES)}."
        )
    units = target_of(name).units
    if unit and spelled(unit) not in units:
        known = f"Use one of: {', '.join(units)}." if units else "Leave it out: it is a text."
        return f"--map {column}={said}: {name} is not told in {unit!r}. {known}"
    return None


def meaning_of(said: str, header_unit: str | None) -> Meaning:
    """Return what a mapped column holds.

    Args:
        said: the slot, with its unit behind a colon or without.
        header_unit: the unit in the column's own name.
    """
    name, _, unit = said.partition(":")
    target = target_of(name)
    found = spelled(unit) or (header_unit if header_unit in target.units else target.natural)
    return Meaning(target=_COUNTED.get(name, name), unit=found if target.units else "", rank=-1)
