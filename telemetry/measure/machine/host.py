"""Reads the machine around the GPUs: what the job uses of it, and the machine's stand beside.

Of a job, its tree of processes is read: others' work on the machine is not the job's. Without one
it is the whole machine, or the control group that limits us. In a container `/proc` shows the whole
machine; there the control group says what may be used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from telemetry.measure.capture.pace import Pace
from telemetry.measure.machine.control_group import ControlGroup
from telemetry.measure.machine.counters import (
    DISK,
    NETWORK,
    busy_shares,
    counters,
    ram_gib,
    rates,
)

if TYPE_CHECKING:
    from telemetry.measure.machine.process_tree import ProcessTree, Used

EVERY_S = 1.0
_EARLY_S = 0.05
_SHARE = 0.0015  # of one core that walking the processes may take, where it is done once a second
_MOST_SHARE = 0.02  # the same, where it is the measurement's clock and done more often
_MEMORY_SHARE = 0.0005  # the same for their memory: the kernel walks their page tables
_LEAST_S = 0.09  # the kernel counts in steps of 0.01 s: rates of less time say nothing
_THREADS_FROM = 0.3  # of a core: below, no thread is near to filling one
_MACHINE = "machine."
# The kernel counts the network for the machine, not for a process: it is the job's while others
# use at most so many cores, or half of what the job uses.
_OTHERS_CORES, _OTHERS_SHARE = 0.5, 0.5


class HostReader:
    """Reads the host, about once a second; rates are over the time since the read before.

    Args:
        tree: the job's processes; None reads the whole machine.
        every_s: the least time between two readings; less than a second where nothing else is read.

    Attributes:
        machine_cores: cores of the machine.
        machine_ram_gib: memory of the machine.
    """

    def __init__(self, tree: ProcessTree | None = None, every_s: float = EVERY_S) -> None:
        self._tree = tree
        share = min(_MOST_SHARE, _SHARE * EVERY_S / every_s)
        self._pace = Pace(every_s, share, min(_EARLY_S, every_s / 4))
        self._memory_pace = Pace(EVERY_S, _MEMORY_SHARE, _EARLY_S)
        self._group = ControlGroup("self" if tree is None else tree.pid)
        self.machine_cores = os.cpu_count() or 1
        self.machine_ram_gib = ram_gib()[0]
        self._allowed = self._affinity()
        self._before = self._counters()
        self._threads: tuple[int, dict[int, float]] = (-1, {})
        self._oom_kills = self._group.oom_kills()

    @property
    def cpu_cores(self) -> float:
        """Cores that the job may use: affinity, its control groups' sets and quotas."""
        quota = self._group.quota_cores
        allowed = float(len(self._allowed))
        return allowed if quota is None else min(quota, allowed)

    @property
    def ram_gib(self) -> float:
        """Memory that the job may use, GiB."""
        limit = self._group.limit_gib
        whole = self.machine_ram_gib
        return round(whole if limit is None else min(limit, whole), 3)

    @property
    def killed_for_memory(self) -> int:
        """How many processes of the job's control group the kernel killed since the start."""
        now = self._group.oom_kills()
        return 0 if now is None or self._oom_kills is None else max(0, now - self._oom_kills)

    def read(self, now_s: float, *, last: bool = False) -> dict[str, float]:
        """Return the fields of `model.Host` that are known now, and the machine's as `machine.*`.

        Empty while the last reading is younger than that.

        Args:
            now_s: seconds, steady.
            last: whether the job ended, so that its memory is gone, and this is the last reading.
        """
        if not last and not self._pace.due(now_s):
            return {}
        with self._pace.taking(now_s):
            if self._tree is not None:
                self._tree.look()
                self._allowed = self._affinity() or self._allowed
            found = self._rates()
        if not last and self._memory_pace.due(now_s):
            with self._memory_pace.taking(now_s):
                found |= self._memory()
        return found

    def _rates(self) -> dict[str, float]:
        now = self._counters()
        elapsed_s = now["t_s"] - self._before["t_s"]
        if elapsed_s < _LEAST_S:
            return {}
        before, self._before = self._before, now
        machine = busy_shares(before, now)
        found = {f"{_MACHINE}cpu_util": sum(machine) / len(machine)} if machine else {}
        network = rates(before, now, elapsed_s, NETWORK)
        if self._tree is None:
            found |= self._whole(before, now, elapsed_s)
            return found | network | rates(before, now, elapsed_s, DISK)
        used = (now["job_cpu_s"] - before["job_cpu_s"]) / elapsed_s
        found["cpu_util"] = min(1.0, max(0.0, used / self.cpu_cores))
        found |= rates(before, now, elapsed_s, [f"job {name}" for name in DISK])
        found |= self._busiest(elapsed_s)
        if sum(machine) - used <= max(_OTHERS_CORES, _OTHERS_SHARE * used):
            found |= network
        else:
            found |= {f"{_MACHINE}{name}": value for name, value in network.items()}
        return {name.removeprefix("job "): value for name, value in found.items()}

    def _whole(
        self, before: dict[str, float], now: dict[str, float], elapsed_s: float
    ) -> dict[str, float]:
        """Return all that runs where we run: the machine, or the control group with its limits."""
        if self.cpu_cores < len(self._allowed) and "group_cpu_s" in now and "group_cpu_s" in before:
            used_s = now["group_cpu_s"] - before["group_cpu_s"]
            return {"cpu_util": min(1.0, max(0.0, used_s / elapsed_s / self.cpu_cores))}
        shares = busy_shares(before, now, self._allowed)
        if not shares:
            return {}
        return {"cpu_util": sum(shares) / len(shares), "cpu_busiest_core": max(shares)}

    def _busiest(self, elapsed_s: float) -> dict[str, float]:
        """Return the share of a core that the busiest thread of the job's busiest process used."""
        if self._tree is None or not self._tree.members:
            return {}
        pid, spent_s = self._tree.busiest
        if spent_s / elapsed_s < _THREADS_FROM:
            self._threads = (-1, {})
            return {"cpu_busiest_core": min(1.0, spent_s / elapsed_s)}
        (before_pid, before), now = self._threads, self._tree.threads_s(pid)
        self._threads = (pid, now)
        grown = [s - before[tid] for tid, s in now.items() if tid in before]
        if pid != before_pid or not grown:
            return {}
        return {"cpu_busiest_core": min(1.0, max(0.0, *grown, 0.0) / elapsed_s)}

    def _memory(self) -> dict[str, float]:
        _, machine = ram_gib()
        found = {f"{_MACHINE}ram_used_gib": machine}
        if self._tree is not None:
            used = self._tree.memory_gib()
        else:
            limited = self._group.limit_gib is not None
            used = self._group.used_gib() if limited else machine
        return found if used is None else found | {"ram_used_gib": used}

    def _counters(self) -> dict[str, float]:
        found = counters()
        if (used_s := self._group.cpu_s()) is not None and self._tree is None:
            found["group_cpu_s"] = used_s
        if self._tree is not None:
            found |= _job(self._tree.used())
        return found

    def _affinity(self) -> frozenset[int]:
        pids = list(self._tree.members) if self._tree is not None else [0]
        found: set[int] = set()
        for pid in pids:
            try:
                found |= os.sched_getaffinity(pid)
            except (AttributeError, OSError):  # not on every system; gone
                continue
        cpus = self._group.cpus
        some = frozenset(found) if cpus is None else frozenset(found) & cpus or cpus
        return some or frozenset(range(os.cpu_count() or 1))


def _job(used: Used) -> dict[str, float]:
    found = {"job_cpu_s": used.cpu_s}
    sides = zip(DISK, (used.read_mib, used.written_mib), strict=True)
    return found | {f"job {name}": mib for name, mib in sides if mib is not None}
