"""Reads the machine around the GPUs: cores, memory, disk and network, as the job may use them.

In a container with limits, `/proc` shows the whole machine; there the control group (v2) says what
the job may use and what it used.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

GIB, MIB = 1 << 30, 1 << 20
_CGROUP = Path("/sys/fs/cgroup")
_MICRO = 1e-6
_IDLE = ("idle", "iowait")
# Counted in `user` already.
_TWICE = ("guest", "guest_nice")


class HostReader:
    """Reads the host; rates are over the time since the read before.

    Attributes:
        cpu_cores: cores that the job may use: affinity and the control group's quota.
        ram_gib: memory that it may use.
    """

    def __init__(self, cgroup: Path = _CGROUP) -> None:
        self._cgroup = cgroup
        allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        self._cores = allowed or list(range(os.cpu_count() or 1))
        quota = _quota_cores(cgroup)
        self._limited = quota is not None and quota < len(self._cores)
        self.cpu_cores = float(quota if self._limited and quota else len(self._cores))
        memory, limit = psutil.virtual_memory().total, _number(cgroup / "memory.max")
        self._memory_limited = limit is not None and limit < memory
        self.ram_gib = round((limit if self._memory_limited and limit else memory) / GIB, 3)
        self._before = self._counters()

    def read(self) -> dict[str, float]:
        """Return the fields of `model.Host` that are known now."""
        now = self._counters()
        elapsed_s = now["t_s"] - self._before["t_s"]
        found = {"ram_used_gib": self._ram_used_gib()}
        if elapsed_s > 0:
            found |= _rates(self._before, now, elapsed_s)
            found |= self._cpu(self._before, now, elapsed_s)
        self._before = now
        return found

    def _cpu(
        self, before: Mapping[str, float], now: Mapping[str, float], elapsed_s: float
    ) -> dict[str, float]:
        if self._limited and "cgroup_cpu_s" in now and "cgroup_cpu_s" in before:
            used_s = now["cgroup_cpu_s"] - before["cgroup_cpu_s"]
            return {"cpu_util": min(1.0, max(0.0, used_s / elapsed_s / self.cpu_cores))}
        busy = [
            (now[f"busy_s {core}"] - before[f"busy_s {core}"])
            / max(now[f"all_s {core}"] - before[f"all_s {core}"], 1e-9)
            for core in self._cores
            if f"busy_s {core}" in now and f"busy_s {core}" in before
        ]
        shares = [min(1.0, max(0.0, share)) for share in busy]
        if not shares:
            return {}
        return {"cpu_util": sum(shares) / len(shares), "cpu_busiest_core": max(shares)}

    def _counters(self) -> dict[str, float]:
        found = {"t_s": time.monotonic()}
        for core, times in enumerate(psutil.cpu_times(percpu=True)):
            parts = {name: s for name, s in times._asdict().items() if name not in _TWICE}
            found[f"all_s {core}"] = sum(parts.values())
            found[f"busy_s {core}"] = sum(s for name, s in parts.items() if name not in _IDLE)
        if self._limited and (used := _keyed(self._cgroup / "cpu.stat", "usage_usec")) is not None:
            found["cgroup_cpu_s"] = used * _MICRO
        if disk := psutil.disk_io_counters():
            found |= {
                "disk_read_mib_s": disk.read_bytes / MIB,
                "disk_write_mib_s": disk.write_bytes / MIB,
            }
        cards = [card for name, card in psutil.net_io_counters(pernic=True).items() if name != "lo"]
        found["net_rx_mib_s"] = sum(card.bytes_recv for card in cards) / MIB
        found["net_tx_mib_s"] = sum(card.bytes_sent for card in cards) / MIB
        return found

    def _ram_used_gib(self) -> float:
        if self._memory_limited and (used := _number(self._cgroup / "memory.current")) is not None:
            cached = _keyed(self._cgroup / "memory.stat", "inactive_file") or 0.0
            return max(0.0, used - cached) / GIB
        memory = psutil.virtual_memory()
        return (memory.total - memory.available) / GIB


def _rates(
    before: Mapping[str, float], now: Mapping[str, float], elapsed_s: float
) -> dict[str, float]:
    """Counters as rates; one that fell was reset, and says nothing this time."""
    return {
        name: (now[name] - before[name]) / elapsed_s
        for name in now
        if name.endswith("_mib_s") and name in before and now[name] >= before[name]
    }


def _quota_cores(cgroup: Path) -> float | None:
    words = _text(cgroup / "cpu.max").split()
    known = len(words) == 2 and words[0].isdecimal() and words[1].isdecimal()  # noqa: PLR2004
    return int(words[0]) / int(words[1]) if known and int(words[1]) else None


def _number(path: Path) -> float | None:
    text = _text(path).strip()
    return float(text) if text.isdecimal() else None


def _keyed(path: Path, key: str) -> float | None:
    for line in _text(path).splitlines():
        name, _, text = line.partition(" ")
        if name == key and text.strip().isdecimal():
            return float(text)
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
