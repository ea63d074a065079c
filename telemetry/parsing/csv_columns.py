"""The name table of CSV columns: what nvidia-smi calls them, and what people's own loggers do."""

import csv
import re
from collections.abc import Sequence

from telemetry.parsing.hints import Hints
from telemetry.parsing.mapping.targets import ROLES, meaning_of
from telemetry.parsing.units import COUNTED_SLOWDOWNS, SLOWDOWNS, Meaning, names, spelled

# Columns that feed `throttle.fraction`: set when the driver held clocks for power or heat.
BITMASK, FLAG = "throttle.bitmask", "throttle.flag"


# Names are folded by `_fold`: lower case, unit taken off, separators as `_`. The first name of a
# row wins where a file has several.
_NAMES = {
    **names(
        "timestamp",
        "",
        "timestamp time datetime ts unix_time epoch timestamp_s wall_time elapsed "
        "elapsed_s elapsed_sec time_s t_s",
    ),
    **names(
        "index",
        "",
        "index gpu_index gpu_id gpu gpu_idx gpu_no device_id device id gpuid",
    ),
    **names("uuid", "", "uuid gpu_uuid"),
    **names("host", "", "hostname host node_name nodename node"),
    **names("bus", "", "pci_bus_id gpu_bus_id"),
    **names("name", "", "name gpu_name model gpu_model product_name"),
    **names("mig", "", "mig_mode_current"),
    **names(
        "memory.total",
        "MiB",
        "memory_total mem_total gpu_mem_total gpu_memory_total total_memory fb_total",
    ),
    **names(
        "util.kernel_time",
        "%",
        "utilization_gpu gpu_utilization gpu_util util_gpu utilization util gpu_usage "
        "gpu_load dcgm_fi_dev_gpu_util",
    ),
    **names("util.mem_controller", "%", "utilization_memory memory_controller_util"),
    **names("util.encoder", "%", "utilization_encoder"),
    **names("util.decoder", "%", "utilization_decoder"),
    **names("util.sm_active", "ratio", "sm_active dcgm_fi_prof_sm_active"),
    **names("util.sm_occupancy", "ratio", "sm_occupancy dcgm_fi_prof_sm_occupancy"),
    **names(
        "util.tensor_active",
        "ratio",
        "tensor_active dcgm_fi_prof_pipe_tensor_active",
    ),
    **names("util.dram_active", "ratio", "dram_active dcgm_fi_prof_dram_active"),
    **names(
        "mem.used_gib",
        "MiB",
        "memory_used mem_used gpu_mem_used gpu_memory_used used_memory used_mem vram_used fb_used",
    ),
    **names(
        "power.board_w",
        "W",
        "power_draw power_draw_average power_draw_instant power gpu_power power_usage "
        "gpu_power_draw board_power",
    ),
    **names("power.limit_w", "W", "enforced_power_limit power_limit gpu_power_limit"),
    **names(
        "temp.core_c",
        "C",
        "temperature_gpu gpu_temperature temperature gpu_temp temp temp_gpu",
    ),
    **names(
        "clock.sm_mhz",
        "MHz",
        "clocks_sm clocks_current_sm sm_clock clock_sm gpu_clock_sm",
    ),
    **{f"clocks_{word}_reasons_active": Meaning(target=BITMASK) for word in ("event", "throttle")},
    **{
        f"clocks_{word}_reasons_{cause}": Meaning(target=FLAG)
        for word in ("event", "throttle")
        for cause in SLOWDOWNS
    },
    **{
        f"clocks_event_reasons_counters_{cause}": Meaning(target="counter.throttle_s", unit="us")
        for cause in COUNTED_SLOWDOWNS
    },
}
# Used by loggers for capacity in use as well as for the controller's busy time: never guessed.
AMBIGUOUS = frozenset(
    {"memory_util", "mem_util", "gpu_memory_util", "gpu_mem_util", "memory_utilization", "mem"}
)
_UNIT_WORDS = re.compile(
    r"^(.*?)[_ ](percent|pct|percentage|ratio|w|watts|mw|mib|mb|gib|gb|bytes|mhz|c|celsius)$"
)


# As the table of nvidia-smi heads them; a log's own `memory_usage` may as well be a share.
_AS_PRINTED = {
    "memory-usage": Meaning(target="mem.used_gib", unit="MiB"),
    "pwr:usage/cap": Meaning(target="power.board_w", unit="W"),
}


def _fold(header: str) -> tuple[str, str | None]:
    text = header.strip().strip('"').lower()
    unit = None
    if bracket := re.search(r"\s*[\[(]([^\])]*)[\])]\s*$", text):
        text, unit = text[: bracket.start()], spelled(bracket[1])
    text = re.sub(r"[\s.\-/]+", "_", text).strip("_")
    if unit is None and text not in _NAMES and (worded := _UNIT_WORDS.match(text)):
        text, unit = worded[1], spelled(worded[2])
    return text, unit


def meaning(header: str, hints: Hints) -> Meaning | None:
    """Return what a column holds by its header, None when gpucost has no use for it."""
    said = _said_of(header, hints)
    if said is not None:
        return meaning_of(said, _fold(header)[1])
    if (printed := _printed(header)) is not None:
        return printed
    name, unit = _fold(header)
    known = _NAMES.get(name)
    if known is None or unit is None or known.unit == "":
        return known
    renamed = Meaning(target=known.target, unit=unit, rank=known.rank)
    return renamed if renamed.scale is not None else None


def _printed(header: str) -> Meaning | None:
    return _AS_PRINTED.get(header.strip(" *`").lower())


def _said_of(header: str, hints: Hints) -> str | None:
    """Return what `--map` says of a column, None where it does not name it."""
    name = header.strip().strip('"').lower()
    return next((said for column, said in hints.map if column.strip().lower() == name), None)


def ambiguous(header: str) -> bool:
    """Return whether the name is used for two different quantities."""
    return _fold(header)[0] in AMBIGUOUS


_MEASURES = ("util.", "mem.", "power.board")


def is_header(cells: Sequence[str], hints: Hints) -> bool:
    """Return whether a row of cells names columns, at least one of them a measurement of load.

    One that `--map` gives a slot is a measurement, whatever it measures.
    """
    if any(re.fullmatch(r"[-+]?[\d.]+( *[%A-Za-z]+)?", cell.strip()) for cell in cells):
        return False
    mapped = (_said_of(cell, hints) for cell in cells) if hints.map else ()
    if any(said is not None and said.partition(":")[0] not in ROLES for said in mapped):
        return True
    # What nvidia-smi's own table says in its middle heads no column of a log.
    known = (meaning(cell, hints) for cell in cells if _printed(cell) is None)
    return any(m is not None and m.target.startswith(_MEASURES) for m in known)


_DELIMITERS = ",;\t|"
_RULE = re.compile(r"[\s|+=:-]*")


def is_rule(line: str) -> bool:
    """Return whether a line only separates others, as `|---|:-:|` below a heading."""
    return _RULE.fullmatch(line) is not None


def cells_of(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line."""
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return line.split(delimiter)


def fields_of(line: str, delimiter: str) -> int:
    """Return how many cells a line has."""
    return len(cells_of(line, delimiter)) if '"' in line else line.count(delimiter) + 1


def csv_header(lines: Sequence[str], hints: Hints) -> tuple[str, list[str], int] | None:
    """Return the delimiter, the column names and the place of the first header among the lines.

    Where no line is a header but `hints.map` names columns by number, the names are those numbers
    and the place is the first row; None where there is neither.
    """
    numbered = any(column.isdigit() for column, _ in hints.map)
    first: tuple[str, list[str], int] | None = None
    for i, line in enumerate(lines):
        if not line.strip() or is_rule(line):
            continue
        delimiter = max(_DELIMITERS, key=line.count)
        cells = cells_of(line, delimiter)
        if is_header(cells, hints):
            return delimiter, cells, i
        if numbered and first is None:
            first = delimiter, [str(n + 1) for n in range(len(cells))], i
    return first
