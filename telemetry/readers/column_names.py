"""What names of columns and metrics hold: by the tables in columns.toml, and by `--map`."""

import csv
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from planner.profile.kinds import SLOTS
from telemetry.readers.hints import Hints
from telemetry.readers.payload import is_date_line
from telemetry.readers.units import HOST_UNITS, ROLES, Meaning, meaning_of, spelled
from telemetry.recording.recording import COUNTERS, MEMORY_FRACTION

# Columns that feed `throttle.fraction`: set when the driver held clocks for power or heat.
BITMASK, FLAG = "throttle.bitmask", "throttle.flag"


_SHARED = {
    "wandb-csv": "wandb-jsonl",
    "dcgmi-stats": "dcgm-job",
    "dcgm-job-table": "dcgm-job",
    "slurm-sacct": "jobstats",
    "slurm-sacct-json": "jobstats",
}  # a format without a section has that of another


_COLUMNS = tomllib.loads(Path(__file__).with_name("columns.toml").read_text(encoding="utf-8"))
_UNNEEDED = re.compile("|".join(_COLUMNS.pop("not-needed")))
_METRIC_SECTIONS = _COLUMNS.pop("metrics")
AMBIGUOUS: frozenset[str] = frozenset(_COLUMNS.pop("ambiguous"))
HEALTH: Mapping[str, str] = _COLUMNS.pop("health")


@cache
def _tables() -> dict[str, dict[str, Meaning]]:
    return {section: _meanings(rows) for section, rows in _COLUMNS.items()}


def unneeded(name: str) -> bool:
    """Return whether a name is known to hold nothing that a profile does."""
    return _UNNEEDED.fullmatch(fold(name)[0]) is not None


def _meanings(rows: Sequence[Sequence[str | int]]) -> dict[str, Meaning]:
    meanings: dict[str, Meaning] = {}
    for target, unit, *names in rows:
        first = names.pop() if isinstance(names[-1], int) else 0
        for rank, name in enumerate(names, start=int(first)):
            meanings[str(name)] = Meaning(target=str(target), unit=str(unit), rank=rank)
    return meanings


def sections() -> tuple[str, ...]:
    """Return the sections of columns.toml."""
    return tuple(_tables())


def names_of(section: str) -> Mapping[str, Meaning]:
    """Return what the names of a format hold, by its section in columns.toml."""
    return _tables()[_SHARED.get(section, section)]


@cache
def metrics() -> Mapping[str, Meaning]:
    """Return what metrics with labels hold, by their names in lower case (see `key_of`)."""
    table: dict[str, Meaning] = {}
    for section in _METRIC_SECTIONS:
        # The prefix of AMD's exporter is an option of it.
        prefixes = ("", "amd_") if section == "amd-exporter" else ("",)
        table |= {
            f"{p}{name}": meaning for name, meaning in names_of(section).items() for p in prefixes
        }
    return table


@cache
def _csv_names() -> Mapping[str, Meaning]:
    """Return what columns of a CSV hold: people also head them with DCGM's names of fields."""
    dcgm = {
        name: holds
        for name, holds in names_of("dcgm").items()
        if holds.target in (*SLOTS, *COUNTERS, MEMORY_FRACTION, BITMASK)
    }
    return {**dcgm, **names_of("nvidia-smi-csv")}


_UNIT_WORDS = re.compile(
    r"^(.*?)[_ ](percent|pct|percentage|ratio|w|watts|mw|mib|mb|gib|gb|bytes|mhz|c|celsius"
    r"|[kmg]i?b_s)$"
)


# As the table of nvidia-smi heads them; a log's own `memory_usage` may as well be a share.
_AS_PRINTED = {
    "memory-usage": Meaning(target="mem.used_gib", unit="MiB"),
    "pwr:usage/cap": Meaning(target="power.board_w", unit="W"),
}


def fold(header: str) -> tuple[str, str | None]:
    """Return a column's name as tables have it, and the unit that it names."""
    text = header.strip().strip('"').strip().lower()
    unit = None
    # No bracket within the brackets: a line of 100,000 of them would be searched from each.
    if bracket := re.search(r"[\[(]([^\[\]()]*)[\])]$", text):
        text, unit = text[: bracket.start()].rstrip(), spelled(bracket[1])
    text = re.sub(r"[\s.\-/]+", "_", text).strip("_")
    if unit is None and text not in _csv_names() and (worded := _UNIT_WORDS.match(text)):
        text, unit = worded[1], spelled(worded[2].replace("_s", "/s"))
    return text, unit


def meaning(header: str, hints: Hints) -> Meaning | None:
    """Return what a column holds by its header, None when gpucost has no use for it."""
    mapped = _said_of(header, hints)
    if mapped is not None:
        return meaning_of(mapped, fold(header)[1])
    if (printed := _printed(header)) is not None:
        return printed
    name, unit = fold(header)
    holds = _csv_names().get(name)
    if holds is None or unit is None or holds.unit == "":
        unclear = holds is not None and holds.target in HOST_UNITS  # a share, percent, which bytes?
        return None if unclear else holds
    renamed = Meaning(target=holds.target, unit=unit, rank=holds.rank)
    return renamed if renamed.scale is not None else None


def meanings(header: Sequence[str], hints: Hints) -> dict[int, Meaning | None]:
    """Return what the columns under a header hold; `--map` may name them by number, from 1."""
    numbered = {
        int(column) - 1: role
        for column, role in hints.map
        if column.isdecimal() and 0 < int(column) <= len(header)
    }
    return {
        i: meaning_of(numbered[i], fold(cell)[1]) if i in numbered else meaning(cell, hints)
        for i, cell in enumerate(header)
    }


def first_of(columns: Mapping[int, Meaning | None], target: str) -> int | None:
    """Return the place of the first column that fills a target; None without any."""
    ranked = [(holds.rank, i) for i, holds in columns.items() if holds and holds.target == target]
    return min(ranked)[1] if ranked else None


def _printed(header: str) -> Meaning | None:
    return _AS_PRINTED.get(header.strip(" *`").lower())


def _said_of(header: str, hints: Hints) -> str | None:
    """Return what `--map` says of a column, None where it does not name it."""
    name = header.strip().strip('"').lower()
    return next((role for column, role in hints.map if column.strip().lower() == name), None)


def ambiguous(header: str) -> bool:
    """Return whether the name is used for two different quantities."""
    return fold(header)[0] in AMBIGUOUS


_MEASURES = ("util.", "mem.", "power.board")


def is_header(cells: Sequence[str], hints: Hints) -> bool:
    """Return whether a row of cells names columns, at least one of them a measurement of load.

    One that `--map` gives a slot is a measurement, whatever it measures.
    """
    if any(re.fullmatch(r"[-+]?[\d.]+( *[%A-Za-z]+)?", cell.strip()) for cell in cells):
        return False
    mapped = (_said_of(cell, hints) for cell in cells) if hints.map else ()
    if any(role is not None and role.partition(":")[0] not in ROLES for role in mapped):
        return True
    # What nvidia-smi's own table says in its middle heads no column of a log.
    meanings = (meaning(cell, hints) for cell in cells if _printed(cell) is None)
    return any(m is not None and m.target.startswith(_MEASURES) for m in meanings)


_RULE = re.compile(r"[\s|+=:-]*")


def delimiter_of(line: str) -> str:
    """Return what stands between the cells of a line."""
    return max(",;\t|", key=line.count)


def is_rule(line: str) -> bool:
    """Return whether a line only separates others, as `|---|:-:|` below a heading."""
    return _RULE.fullmatch(line) is not None


def cells_of(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line."""
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return line.split(delimiter)


def csv_cells(line: str) -> list[str]:
    """Return the cells between the commas of a line, without the blanks around them."""
    return [cell.strip() for cell in cells_of(line, ",")]


def csv_header(lines: Sequence[str], hints: Hints) -> tuple[str, list[str], int] | None:
    """Return the delimiter, the column names and the place of the first header among the lines.

    Where no line is a header but `hints.map` names columns by number, the names are those numbers
    and the place is the first row; None where there is neither.
    """
    numbered = any(column.isdigit() for column, _ in hints.map)
    first: tuple[str, list[str], int] | None = None
    for i, line in enumerate(lines):
        if not line.strip() or is_rule(line) or is_date_line(line):
            continue
        delimiter = delimiter_of(line)
        cells = cells_of(line, delimiter)
        if is_header(cells, hints):
            return delimiter, cells, i
        if numbered and first is None:
            first = delimiter, [str(n + 1) for n in range(len(cells))], i
    return first


# Labels of series, as the tables in labels.toml name them.
LABELS = tomllib.loads(Path(__file__).with_name("labels.toml").read_text(encoding="utf-8"))
_BY_LABEL = {name: label for label, names in LABELS["by-label"].items() for name in names}


def label_of(labels: Mapping[str, str], kind: str) -> str | None:
    """Return the text of the first label of a kind in labels.toml; None without any."""
    return next((labels[name] for name in LABELS[kind] if labels.get(name)), None)


def key_of(name: str, labels: Mapping[str, str]) -> str:
    """Return the name under which `metrics` has a metric; "value" where a function dropped it.

    Args:
        name: as written; dots of OpenTelemetry are underscores here.
        labels: names in lower case.
    """
    plain = name.lower().replace(".", "_").replace(" ", "_") or "value"
    label = _BY_LABEL.get(plain)
    return plain if label is None else f"{plain}:{labels.get(label, '').lower()}"


# Gauges of bytes per second in older exporters, counters of bytes in newer ones.
RATE_OR_COUNTER = {
    slot: counter
    for counter, slot in COUNTERS.items()
    if counter.startswith(("counter.pcie_", "counter.nvlink_"))
}
IDENTITY_METRIC = "nvidia_smi_gpu_info"
LABELS_METRIC = "kube_pod_labels"
# What DCGM writes for "no value": 32-bit, 64-bit and floating point, each in four kinds.
BLANKS = frozenset(
    base + kind for base in (2147483632.0, 140737488355328.0) for kind in (0.0, 1.0, 2.0, 3.0)
) | {9223372036854775792.0}
