"""The name tables of trackers and of CloudWatch's agent; `n` stands for the GPU's number."""

from telemetry.parsing.units import Meaning, names

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
