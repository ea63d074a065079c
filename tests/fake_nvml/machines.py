"""Machines for scenarios: what each GPU model offers through NVML.

After NVIDIA's NVML API reference and captures of nvidia-smi; that an A100 counts PCIe bytes in 64
bits and a T4 not at all is an assumption, so that both paths are walked.
"""

from __future__ import annotations

from tests.fake_nvml.scenario import Value

Device = dict[str, Value]

BUSY: Device = {
    "util.kernel_time": 0.62,
    "util.mem_controller": 0.31,
    "mem.used_gib": 21.5,
    "power.board_w": 340.25,
    "clock.sm_mhz": 1755,
    "throttle.reasons": 0,
    "temp.core_c": 61,
    "util.encoder": 0,
    "util.decoder": 0,
    "process.children": 20.25,
    "process.4242": 1.0,
}


def t4(index: int = 0) -> Device:
    """Return a T4: no NVLink, no GPM, no MIG, no PCIe counters."""
    return {
        **BUSY,
        "name": "Tesla T4",
        "uuid": _uuid(index),
        "memory.total_gib": 15360 / 1024,
        "memory.reserved_gib": 0.375,
        "mem.used_gib": 8.25,
        "process.children": 8.0,
        "process.4242": 0.125,
        "power.board_w": 58.5,
        "power.limit_w": 70,
        "io.pcie_rx_mib_s": 1200,
        "io.pcie_tx_mib_s": 150,
        "offers.energy": 1,
        "offers.pcie_throughput": 1,
    }


def a100(index: int = 0, peers: str = "") -> Device:
    """Return an A100: counters of PCIe and NVLink, no GPM, MIG off."""
    return {
        **BUSY,
        "name": "NVIDIA A100-SXM4-80GB",
        "uuid": _uuid(index),
        "memory.total_gib": 80,
        "memory.reserved_gib": 0.59375,
        "power.limit_w": 400,
        "mig.mode": 0,
        "nvlink.peers": peers or "none",
        "io.pcie_rx_mib_s": 2100,
        "io.pcie_tx_mib_s": 300,
        "io.nvlink_rx_mib_s": 41000,
        "io.nvlink_tx_mib_s": 40000,
        "offers.energy": 1,
        "offers.power_instant": 1,
        "offers.pcie_counters": 64,
        "offers.pcie_throughput": 1,
        "offers.nvlink_counters": 64,
    }


def h100(index: int = 0, peers: str = "") -> Device:
    """Return an H100: as an A100, and GPM."""
    return {
        **a100(index, peers),
        "name": "NVIDIA H100 80GB HBM3",
        "memory.total_gib": 81559 / 1024,
        "power.limit_w": 700,
        **ACTIVE,
        "offers.gpm": 1,
    }


ACTIVE: Device = {
    "util.sm_active": 0.5,
    "util.sm_occupancy": 0.25,
    "util.tensor_active": 0.125,
    "util.fp32_active": 0.0625,
    "util.dram_active": 0.375,
}


def mig_h100(index: int = 0) -> dict[str, Device]:
    """Return an H100 that is split into a 3g.40gb and a 1g.10gb, by name."""
    silent = ("util.kernel_time", "util.mem_controller", "process.children", "process.4242")
    whole = {key: value for key, value in h100(index).items() if key not in (*silent, *ACTIVE)}
    name = f"{whole['name']} MIG"
    return {
        str(index): {**whole, "mig.mode": 1},
        f"{index}:1": {
            "name": f"{name} 3g.40gb",
            "uuid": f"MIG-{_uuid(index)}-1",
            "memory.total_gib": 39.5,
            "mem.used_gib": 12.0,
            "process.children": 11.5,
            **ACTIVE,
            "offers.gpm": 1,
        },
        f"{index}:2": {
            "name": f"{name} 1g.10gb",
            "uuid": f"MIG-{_uuid(index)}-2",
            "memory.total_gib": 9.75,
            "mem.used_gib": 3.0,
            "process.4242": 2.5,
            **ACTIVE,
            "util.sm_active": 0.75,
            "offers.gpm": 1,
        },
    }


def machine(count: int, kind: object = h100) -> dict[str, Device]:
    """Return GPUs that are all joined with each other, by name."""
    everyone = ",".join(str(index) for index in range(count))
    return {str(index): kind(index, everyone) for index in range(count)}  # type: ignore[operator]


def _uuid(index: int) -> str:
    return f"GPU-{index:08x}-2f1e-4d7c-9a55-0123456789ab"
