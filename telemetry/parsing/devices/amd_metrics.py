"""The name table of AMD's device-metrics-exporter; its prefix (`amd_`) may be set or absent."""

from telemetry.parsing.units import Meaning, names

# As metricslist.md of the exporter has them (read 2026-11-21). Percent, not ratios; memory in MB
# that are MiB; energy in microjoules. Of `gpu_prof_sm_active` it says VALU: not NVIDIA's SM.
_NAMES: dict[str, Meaning] = {
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
AMD = {f"{prefix}{name}": known for name, known in _NAMES.items() for prefix in ("", "amd_")}
