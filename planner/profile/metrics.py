"""The metric slots of a profile: one name, one unit, one meaning each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A metric that a GPU can report.

    Attributes:
        name: the key in `profile.json`.
        unit: the unit of every value; `fraction` runs from 0 to 1.
        low: the least possible value.
        high: the greatest possible value, None where there is no bound.
        meaning: what is counted.
    """

    name: str
    unit: str
    meaning: str
    low: float | None = 0.0
    high: float | None = None


def _fraction(name: str, meaning: str) -> Slot:
    return Slot(name=name, unit="fraction", meaning=meaning, high=1.0)


_TABLE = (
    _fraction("util.kernel_time", "time in which at least one kernel ran (nvidia-smi's GPU-Util)"),
    _fraction("util.mem_controller", "time in which the memory controller was busy"),
    _fraction("util.sm_active", "cycles in which an SM had a warp, mean over SMs"),
    _fraction("util.sm_occupancy", "resident warps over the most that fit"),
    _fraction("util.tensor_active", "cycles in which the tensor pipe was busy"),
    _fraction("util.fp32_active", "cycles in which the FP32 pipe was busy"),
    _fraction("util.fp64_active", "cycles in which the FP64 pipe was busy"),
    _fraction("util.dram_active", "cycles in which device memory moved data"),
    _fraction("util.encoder", "time in which the video encoder was busy"),
    _fraction("util.decoder", "time in which the video decoder was busy"),
    Slot(name="mem.used_gib", unit="GiB", meaning="device memory in use, all processes"),
    Slot(name="mem.process_gib", unit="GiB", meaning="device memory of this job's processes"),
    Slot(name="power.board_w", unit="W", meaning="board power"),
    Slot(name="power.limit_w", unit="W", meaning="enforced power limit"),
    Slot(name="temp.core_c", unit="°C", meaning="core temperature", low=-50.0, high=150.0),
    _fraction("throttle.fraction", "time in which clocks were held down by heat or power"),
    Slot(name="clock.sm_mhz", unit="MHz", meaning="SM clock"),
    Slot(name="io.pcie_rx_mib_s", unit="MiB/s", meaning="PCIe, into the GPU"),
    Slot(name="io.pcie_tx_mib_s", unit="MiB/s", meaning="PCIe, out of the GPU"),
    Slot(name="io.nvlink_rx_mib_s", unit="MiB/s", meaning="NVLink, into the GPU"),
    Slot(name="io.nvlink_tx_mib_s", unit="MiB/s", meaning="NVLink, out of the GPU"),
    Slot(name="energy.total_j", unit="J", meaning="energy over the window"),
)

SLOTS: dict[str, Slot] = {slot.name: slot for slot in _TABLE}
