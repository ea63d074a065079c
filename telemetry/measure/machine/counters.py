"""What the whole machine counts: the time of its cores, memory, disks and network."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

GIB, MIB = 1 << 30, 1 << 20
_IDLE = ("idle", "iowait")
# Counted in `user` already.
_TWICE = ("guest", "guest_nice")
DISK = ("disk_read_mib_s", "disk_write_mib_s")
NETWORK = ("net_rx_mib_s", "net_tx_mib_s")


def counters() -> dict[str, float]:
    """Return what the machine has counted: `busy_s N`, `all_s N` of each core, MiB, and `t_s`."""
    found = {"t_s": time.monotonic()}
    for core, times in enumerate(psutil.cpu_times(percpu=True)):
        parts = {name: s for name, s in times._asdict().items() if name not in _TWICE}
        found[f"all_s {core}"] = sum(parts.values())
        found[f"busy_s {core}"] = sum(s for name, s in parts.items() if name not in _IDLE)
    if disk := psutil.disk_io_counters():
        found |= dict(zip(DISK, (disk.read_bytes / MIB, disk.write_bytes / MIB), strict=True))
    cards = [card for name, card in psutil.net_io_counters(pernic=True).items() if name != "lo"]
    found["net_rx_mib_s"] = sum(card.bytes_recv for card in cards) / MIB
    found["net_tx_mib_s"] = sum(card.bytes_sent for card in cards) / MIB
    return found


def busy_shares(
    before: Mapping[str, float], now: Mapping[str, float], cores: Collection[int] | None = None
) -> list[float]:
    """Return the share of time that each core was busy; of all, or of some."""
    names = [name.removeprefix("busy_s ") for name in now if name.startswith("busy_s ")]
    wanted = names if cores is None else [name for name in names if int(name) in cores]
    busy = [
        (now[f"busy_s {core}"] - before[f"busy_s {core}"])
        / max(now[f"all_s {core}"] - before[f"all_s {core}"], 1e-9)
        for core in wanted
        if f"busy_s {core}" in before
    ]
    return [min(1.0, max(0.0, share)) for share in busy]


def rates(
    before: Mapping[str, float], now: Mapping[str, float], elapsed_s: float, names: Collection[str]
) -> dict[str, float]:
    """Return counters as rates; one that fell was reset, and says nothing this time."""
    return {
        name: (now[name] - before[name]) / elapsed_s
        for name in names
        if name in now and name in before and now[name] >= before[name]
    }


def ram_gib() -> tuple[float, float]:
    """Return the machine's memory and what of it is in use, caches aside."""
    memory = psutil.virtual_memory()
    return memory.total / GIB, (memory.total - memory.available) / GIB
