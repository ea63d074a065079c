"""The name table of CSV columns: what nvidia-smi calls them, and what people's own loggers do."""

import csv
import re
from collections.abc import Mapping, Sequence

from telemetry.readers.hints import Hints
from telemetry.readers.units import (
    COUNTED_SLOWDOWNS,
    ROLES,
    SLOWDOWNS,
    Meaning,
    meaning_of,
    names,
    spelled,
)

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


_DEV, _PROF, _SMI = "dcgm_fi_dev_", "dcgm_fi_prof_", "nvidia_smi_"


def _named(prefix: str, rows: dict[str, Meaning]) -> dict[str, Meaning]:
    return {prefix + name: known for name, known in rows.items()}


# As metricslist.md of the exporter has them (read 2026-11-21). Percent, not ratios; memory in MB
# that are MiB; energy in microjoules. Of `gpu_prof_sm_active` it says VALU: not NVIDIA's SM.
_AMD_NAMES: dict[str, Meaning] = {
    "gpu_gfx_activity": Meaning(target="util.kernel_time", unit="%"),
    "gpu_umc_activity": Meaning(target="util.mem_controller", unit="%"),
    **names("mem.used_gib", "MiB", "gpu_used_vram"),
    **names("memory.total", "MiB", "gpu_total_vram"),
    **names("power.board_w", "W", "gpu_package_power gpu_average_package_power gpu_power_usage"),
    "gpu_junction_temperature": Meaning(target="temp.core_c", unit="C", rank=1),
    "gpu_edge_temperature": Meaning(target="temp.core_c", unit="C"),
    "gpu_prof_tensor_active_percent": Meaning(target="util.tensor_active", unit="%"),
    "gpu_prof_occupancy_percent": Meaning(target="util.sm_occupancy", unit="%"),
    "gpu_energy_consumed": Meaning(target="counter.energy_j", unit="uJ"),
}
AMD = {f"{prefix}{name}": known for name, known in _AMD_NAMES.items() for prefix in ("", "amd_")}


# Comet hands on NVML's bytes and milliwatts; Neptune's GB are GiB. MLflow divides bytes by 10^6;
# ClearML's GB are GiB (its resource monitor divides by 2^30). CloudWatch's agent has the names of
# nvidia-smi, in nvidia-smi's units. Lightning writes the names of nvidia-smi with their units;
# TensorBoard's writers put `_` for other signs.
TRACKERS: dict[str, Meaning] = {
    "system/gpu_n_utilization_percentage": Meaning(target="util.kernel_time", unit="%"),
    "system/gpu_n_memory_usage_megabytes": Meaning(target="mem.used_gib", unit="MB"),
    "system/gpu_n_memory_usage_percentage": Meaning(target="fraction.memory", unit="%"),
    "system/gpu_n_power_usage_watts": Meaning(target="power.board_w", unit="W"),
    ":monitor:gpu/gpu_n_utilization": Meaning(target="util.kernel_time", unit="%"),
    ":monitor:gpu/gpu_n_mem_used_gb": Meaning(target="mem.used_gib", unit="GiB"),
    ":monitor:gpu/gpu_n_mem_free_gb": Meaning(target="memory.rest", unit="GiB"),
    ":monitor:gpu/gpu_n_mem_usage": Meaning(target="fraction.memory", unit="%"),
    ":monitor:gpu/gpu_n_temperature": Meaning(target="temp.core_c", unit="C"),
    "sys_gpu_n_gpu_utilization": Meaning(target="util.kernel_time", unit="%"),
    "sys_gpu_n_memory_utilization": Meaning(target="util.mem_controller", unit="%"),
    "sys_gpu_n_used_memory": Meaning(target="mem.used_gib", unit="B"),
    "sys_gpu_n_total_memory": Meaning(target="memory.total", unit="B"),
    "sys_gpu_n_free_memory": Meaning(target="memory.rest", unit="B"),
    "sys_gpu_n_power_usage": Meaning(target="power.board_w", unit="mW"),
    "sys_gpu_n_temperature": Meaning(target="temp.core_c", unit="C"),
    "monitoring/gpu": Meaning(target="util.kernel_time", unit="%"),
    "monitoring/gpu_memory": Meaning(target="mem.used_gib", unit="GiB"),
    "monitoring/gpu_power": Meaning(target="power.board_w", unit="W"),
    **names("util.kernel_time", "%", "utilization_gpu_(%) utilization_gpu____"),
    **names("util.mem_controller", "%", "utilization_memory_(%) utilization_memory____"),
    **names("mem.used_gib", "MiB", "memory_used_(mb) memory_used__mb_"),
    **names("memory.rest", "MiB", "memory_free_(mb) memory_free__mb_"),
    **names("temp.core_c", "C", "temperature_gpu_(°c) temperature_gpu___c_"),
    "nvidia_smi_utilization_gpu": Meaning(target="util.kernel_time", unit="%"),
    "nvidia_smi_utilization_memory": Meaning(target="util.mem_controller", unit="%"),
    "nvidia_smi_memory_used": Meaning(target="mem.used_gib", unit="MiB"),
    "nvidia_smi_memory_total": Meaning(target="memory.total", unit="MiB"),
    "nvidia_smi_power_draw": Meaning(target="power.board_w", unit="W"),
    "nvidia_smi_temperature_gpu": Meaning(target="temp.core_c", unit="C"),
    "nvidia_smi_clocks_current_sm": Meaning(target="clock.sm_mhz", unit="MHz"),
    **{
        f"{whose}_gpu_{name}": Meaning(target=target, unit=unit)
        for whose in ("node", "pod", "container")
        for name, target, unit in (
            ("utilization", "util.kernel_time", "%"),
            ("memory_utilization", "fraction.memory", "%"),
            ("memory_used", "mem.used_gib", "B"),
            ("memory_total", "memory.total", "B"),
            ("power_draw", "power.board_w", "W"),
            ("temperature", "temp.core_c", "C"),
        )
    },
}


# DCGM 4.6 renamed fields; `_RATIO` counts to 1 where the old name counted to 100. PROF_* are ratios
# although older help texts say "(in %)". Energy counts mJ, violations ns, both since the driver
# was loaded. Names are compared in lower case: some clouds lower them.
METRICS: dict[str, Meaning] = {
    **AMD,
    **TRACKERS,
    **_named(
        _DEV,
        {
            "gpu_util": Meaning(target="util.kernel_time", unit="%"),
            "gpu_util_ratio": Meaning(target="util.kernel_time", unit="ratio", rank=1),
            "mem_copy_util": Meaning(target="util.mem_controller", unit="%"),
            "mem_copy_util_ratio": Meaning(target="util.mem_controller", unit="ratio", rank=1),
            "enc_util": Meaning(target="util.encoder", unit="%"),
            "dec_util": Meaning(target="util.decoder", unit="%"),
            "fb_used": Meaning(target="mem.used_gib", unit="MiB"),
            "fb_free": Meaning(target="memory.free", unit="MiB"),
            "fb_reserved": Meaning(target="memory.reserved", unit="MiB"),
            "fb_total": Meaning(target="memory.total", unit="MiB"),
            **names("fraction.memory", "ratio", "fb_used_ratio fb_used_percent"),
            **names("power.board_w", "W", "power_usage board_power_watts"),
            **names("power.limit_w", "W", "enforced_power_limit power_mgmt_limit"),
            "gpu_temp": Meaning(target="temp.core_c", unit="C"),
            "sm_clock": Meaning(target="clock.sm_mhz", unit="MHz"),
            "total_energy_consumption": Meaning(target="counter.energy_j", unit="mJ"),
            "power_violation": Meaning(target="counter.throttle_s", unit="ns"),
            "thermal_violation": Meaning(target="counter.throttle_s", unit="ns"),
            **names(BITMASK, "", "clocks_event_reasons clock_throttle_reasons"),
        },
    ),
    **_named(
        _PROF,
        {
            **names("util.sm_active", "ratio", "sm_active sm_util_ratio"),
            **names("util.sm_occupancy", "ratio", "sm_occupancy sm_occupancy_ratio"),
            **names("util.tensor_active", "ratio", "pipe_tensor_active tensor_util_ratio"),
            **names("util.fp32_active", "ratio", "pipe_fp32_active fp32_util_ratio"),
            **names("util.fp64_active", "ratio", "pipe_fp64_active fp64_util_ratio"),
            **names("util.dram_active", "ratio", "dram_active dram_util_ratio"),
            "pcie_rx_bytes": Meaning(target="io.pcie_rx_mib_s", unit="B/s"),
            "pcie_tx_bytes": Meaning(target="io.pcie_tx_mib_s", unit="B/s"),
            "nvlink_rx_bytes": Meaning(target="io.nvlink_rx_mib_s", unit="B/s"),
            "nvlink_tx_bytes": Meaning(target="io.nvlink_tx_mib_s", unit="B/s"),
        },
    ),
    **_named(
        _SMI,
        {
            "utilization_gpu_ratio": Meaning(target="util.kernel_time", unit="ratio"),
            "utilization_memory_ratio": Meaning(target="util.mem_controller", unit="ratio"),
            "utilization_encoder_ratio": Meaning(target="util.encoder", unit="ratio"),
            "utilization_decoder_ratio": Meaning(target="util.decoder", unit="ratio"),
            "memory_used_bytes": Meaning(target="mem.used_gib", unit="B"),
            "memory_total_bytes": Meaning(target="memory.total", unit="B"),
            **names(
                "power.board_w",
                "W",
                "power_draw_watts power_draw_average_watts power_draw_instant_watts",
            ),
            **names("power.limit_w", "W", "enforced_power_limit_watts power_limit_watts"),
            "temperature_gpu": Meaning(target="temp.core_c", unit="C"),
            "clocks_current_sm_clock_hz": Meaning(target="clock.sm_mhz", unit="Hz"),
            **names(BITMASK, "", "clocks_event_reasons_active clocks_throttle_reasons_active"),
            **{
                f"clocks_event_reasons_counters_{cause}_seconds": Meaning(
                    target="counter.throttle_s", unit="s"
                )
                for cause in COUNTED_SLOWDOWNS
            },
        },
    ),
}
# Ray divides bytes by 2^20 and says MB. Triton and OpenTelemetry count to 1, bytes and joules.
METRICS |= {
    # Memory of one pod's processes, told apart by `formats.metrics.pods`.
    "gpucost_process_fb_used": Meaning(target="mem.process_gib", unit="MiB"),
    **_named(
        "ray_node_",
        {
            "gpus_utilization": Meaning(target="util.kernel_time", unit="%"),
            "gram_used": Meaning(target="mem.used_gib", unit="MiB"),
            "gram_available": Meaning(target="memory.rest", unit="MiB"),
            "gpu_power_milliwatts": Meaning(target="power.board_w", unit="mW"),
            "gpu_temperature_celsius": Meaning(target="temp.core_c", unit="C"),
        },
    ),
    **_named(
        "nv_",
        {
            "gpu_utilization": Meaning(target="util.kernel_time", unit="ratio"),
            "gpu_memory_used_bytes": Meaning(target="mem.used_gib", unit="B"),
            "gpu_memory_total_bytes": Meaning(target="memory.total", unit="B"),
            "gpu_power_usage": Meaning(target="power.board_w", unit="W"),
            "gpu_power_limit": Meaning(target="power.limit_w", unit="W"),
            "energy_consumption": Meaning(target="counter.energy_j", unit="J"),
        },
    ),
    # What a `:` parts off is the value of the label of BY_LABEL; Prometheus adds units to names.
    **_named(
        "hw_",
        {
            **names(
                "util.kernel_time",
                "ratio",
                "gpu_utilization:general gpu_utilization: gpu_utilization:all "
                "gpu_utilization_ratio:general gpu_utilization_ratio: gpu_utilization_ratio:all",
            ),
            **names(
                "util.encoder", "ratio", "gpu_utilization:encoder gpu_utilization_ratio:encoder"
            ),
            **names(
                "util.decoder", "ratio", "gpu_utilization:decoder gpu_utilization_ratio:decoder"
            ),
            **names("mem.used_gib", "B", "gpu_memory_usage gpu_memory_usage_bytes"),
            **names("memory.total", "B", "gpu_memory_limit gpu_memory_limit_bytes"),
            **names(
                "fraction.memory", "ratio", "gpu_memory_utilization gpu_memory_utilization_ratio"
            ),
            **names("power.board_w", "W", "power:gpu power_watts:gpu gpu_power gpu_power_watts"),
            **names("power.limit_w", "W", "power_limit:gpu power_limit_watts:gpu"),
            **names("counter.energy_j", "J", "energy:gpu energy_joules_total:gpu"),
            **names("temp.core_c", "C", "temperature:gpu temperature_celsius:gpu"),
        },
    ),
    **_named(
        "gpu_dcgm_",
        {
            "utilization": Meaning(target="util.kernel_time", unit="ratio"),
            "sm_utilization": Meaning(target="util.sm_active", unit="ratio"),
            "sm_occupancy": Meaning(target="util.sm_occupancy", unit="ratio"),
            "pipe_utilization:tensor": Meaning(target="util.tensor_active", unit="ratio"),
            "pipe_utilization:fp32": Meaning(target="util.fp32_active", unit="ratio"),
            "pipe_utilization:fp64": Meaning(target="util.fp64_active", unit="ratio"),
            "memory_bandwidth_utilization": Meaning(target="util.dram_active", unit="ratio"),
            "memory_bytes_used:used": Meaning(target="mem.used_gib", unit="B"),
            "memory_bytes_used:free": Meaning(target="memory.rest", unit="B"),
            "energy_consumption": Meaning(target="counter.energy_j", unit="J"),
            "clock_frequency": Meaning(target="clock.sm_mhz", unit="Hz"),
            "temperature": Meaning(target="temp.core_c", unit="C"),
        },
    ),
}
# Metrics of several meanings, and the label that tells which.
BY_LABEL = {
    **dict.fromkeys(("hw_gpu_utilization", "hw_gpu_utilization_ratio"), "hw_gpu_task"),
    **dict.fromkeys(
        (
            "hw_power",
            "hw_power_watts",
            "hw_power_limit",
            "hw_power_limit_watts",
            "hw_energy",
            "hw_energy_joules_total",
            "hw_temperature",
            "hw_temperature_celsius",
        ),
        "hw_type",
    ),
    "gpu_dcgm_pipe_utilization": "gpu_pipe",
    "gpu_dcgm_memory_bytes_used": "gpu_memory_state",
}


def key_of(name: str, labels: Mapping[str, str]) -> str:
    """Return the name under which METRICS has a metric; "value" where a function dropped it.

    Args:
        name: as written; dots of OpenTelemetry are underscores here.
        labels: names in lower case.
    """
    plain = name.lower().replace(".", "_").replace(" ", "_") or "value"
    label = BY_LABEL.get(plain)
    return plain if label is None else f"{plain}:{labels.get(label, '').lower()}"


# Gauges of bytes per second in older exporters, counters of bytes in newer ones.
RATE_OR_COUNTER = {
    "io.pcie_rx_mib_s": "counter.pcie_rx_mib",
    "io.pcie_tx_mib_s": "counter.pcie_tx_mib",
    "io.nvlink_rx_mib_s": "counter.nvlink_rx_mib",
    "io.nvlink_tx_mib_s": "counter.nvlink_tx_mib",
}
IDENTITY_METRIC = "nvidia_smi_gpu_info"
# What DCGM writes for "no value": 32-bit, 64-bit and floating point, each in four kinds.
BLANKS = frozenset(
    base + kind for base in (2147483632.0, 140737488355328.0) for kind in (0.0, 1.0, 2.0, 3.0)
) | {9223372036854775792.0}
