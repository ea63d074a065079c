"""The names of metrics: DCGM, old and renamed, nvidia_gpu_exporter, Triton, Ray, OpenTelemetry."""

from collections.abc import Mapping

from telemetry.parsing.csv_columns import BITMASK
from telemetry.parsing.devices.amd_metrics import AMD
from telemetry.parsing.devices.tracker_metrics import TRACKERS
from telemetry.parsing.units import COUNTED_SLOWDOWNS, Meaning, names

_DEV, _PROF, _SMI = "dcgm_fi_dev_", "dcgm_fi_prof_", "nvidia_smi_"


def _named(prefix: str, rows: dict[str, Meaning]) -> dict[str, Meaning]:
    return {prefix + name: known for name, known in rows.items()}


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
