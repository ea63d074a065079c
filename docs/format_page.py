"""The page of formats: which are read, what their columns fill, what --map may name."""  # noqa: INP001 - beside a script

import csv
from collections.abc import Iterator
from pathlib import Path

from page_text import MADE, prose, table

from planner.json_schema import meanings
from planner.profile.kinds import SLOTS
from planner.profile.model import Host
from telemetry.formats import sniff
from telemetry.readers.column_names import meaning, metrics
from telemetry.readers.hints import Hints
from telemetry.readers.units import MAPPABLE, Meaning, units_of

# Names that the pages list. What a column of nvidia-smi fills is asked of the reader; for dmon and
# W&B the tests compare the slots here with what the readers fill.
_COLUMNS = Path(__file__).with_name("columns.csv")


def formats() -> Iterator[str]:
    """Yield the lines of formats.md."""
    yield from ("# What import reads", "", MADE, "")
    yield from prose(
        "A file is recognised by its content, not by its name; `.gz` is read as it is, `-` is "
        "standard input. `gpucost diagnose` and `gpucost plan` take the same files. Several "
        "files given to one `gpucost import` complement each other. Slots are explained in "
        "[profile.md](profile.md#metric-slots). Rows that cannot be used are counted, with "
        "the reason, in `provenance` of the profile."
    )
    yield ""
    rows = [(f"`{row.name}`", row.title, row.seen, row.tells, row.lacks) for row in sniff.formats()]
    ready = ("`profile`", "a finished profile.json", "", "all that it holds", "")
    yield from table(
        ("`--format`", "what it is", "read of", "tells", "cannot tell"), [*rows, ready]
    )
    yield ""
    yield from prose(
        "*read of*: which files the reader was made and tried with; where it says by its source or "
        "by the documentation, no file of a real machine was at hand. A single instant (a "
        "snapshot) says which GPU it is and what memory it holds, never how busy it is over time, "
        "and the profile says so."
    )
    yield from ("", "## nvidia-smi CSV, and CSV of your own logger", "")
    yield from prose(
        "Units stand in brackets in the header or behind each value; without either the unit "
        "is the one below. Other spellings of the same names (`gpu_util`, `mem_used_mb` ...) "
        "are known too. Name any other column with `--map COLUMN=SLOT`, or `--map "
        "COLUMN=SLOT:UNIT`."
    )
    yield ""
    yield from table(
        ("column", "fills", "unit"),
        [_smi_row(name) for name, _ in _listed_columns("nvidia-smi-csv")],
    )
    yield from ("", "## What a mapped column may be", "")
    yield from prose(
        "A column is in the first unit of its row, unless its own name or `--map "
        "COLUMN=SLOT:UNIT` says another. A meter of energy counts up. Of an instant with several "
        "rows a reading of the host is their mean."
    )
    yield ""
    yield from table(("slot", "what it is", "units"), [_map_row(name) for name in MAPPABLE])
    yield from (
        "",
        "## nvidia-smi dmon",
        "",
        "`nvidia-smi dmon -s pucvmt -o DT` gives all of these.",
        "",
    )
    yield from table(("column", "fills"), _filled("nvidia-smi-dmon"))
    yield from ("", "## W&B system metrics", "")
    yield from prose(
        "JSON lines of `run.history(stream='events')`. The prefix `system.` may be absent. "
        "GPUs that the run does not use (no `gpu.process.N` keys) are left out, with a note."
    )
    yield ""
    yield from table(("key", "fills"), _filled("wandb-jsonl"))
    yield from ("", "## Prometheus: API JSON and exposition text", "")
    yield from prose(
        "The answer of `/api/v1/query_range` (a matrix). A vector or a scrape of an exporter "
        "is one instant: it says which GPU and how much memory, not how busy the GPU is over "
        "time."
    )
    yield ""
    metrics = [
        (f"`{n.upper() if n.startswith('dcgm') else n}`", f"`{m.target}`") for n, m in _named()
    ]
    yield from table(("metric", "fills"), metrics)
    yield from ("", "## Recognised and refused", "")
    yield from prose("These are named in the message, with what to give instead (exit 2):")
    yield ""
    yield from prose("; ".join(row.kind for row in sniff.refused_kinds()) + ".")


def _map_row(name: str) -> tuple[str, str, str]:
    return f"`{name}`", _ROLES.get(name) or _meaning_of_slot(name), ", ".join(units_of(name))


def _meaning_of_slot(name: str) -> str:
    if name in SLOTS:
        return SLOTS[name].meaning
    return (
        meanings(Host)[name.removeprefix("host.")]
        .rstrip(".")
        .removesuffix(", GiB")
        .removesuffix(", MiB/s")
    )


def _listed_columns(format_name: str) -> list[tuple[str, str]]:
    with _COLUMNS.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        return [(row["column"], row["slot"]) for row in rows if row["format"] == format_name]


def _filled(format_name: str) -> list[tuple[str, str]]:
    return [(f"`{name}`", f"`{slot}`") for name, slot in _listed_columns(format_name)]


def _smi_row(header: str) -> tuple[str, ...]:
    found = meaning(header, Hints())
    if found is None:
        raise LookupError(f"{header}: the reader has no use for this column any more")
    slot = found.target if found.target in SLOTS else _ROLES[found.target]
    return (f"`{header}`", slot if slot == _ROLES.get(found.target) else f"`{slot}`", found.unit)


_ROLES = {
    "timestamp": "when (local time unless it says a zone; `--tz`)",
    "index": "which GPU",
    "uuid": "which GPU",
    "bus": "which GPU",
    "host": "which machine",
    "name": "the GPU model",
    "memory.total": "`hardware.gpu_memory_gib`",
    "throttle.bitmask": "`throttle.fraction`",
}


def _named() -> list[tuple[str, Meaning]]:
    return [(name, found) for name, found in metrics().items() if found.target in SLOTS]
