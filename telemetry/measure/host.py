"""The machine around the GPUs: what the job uses of it, and what it may use.

Of a job, its process tree is read: others' work on the machine is not the job's. Without one, it is
the whole machine, or the control group that limits us. In a container `/proc` shows the whole
machine; there the control group says what may be used: cores, memory, and what was used. Both
versions of control groups are read, and mixtures of the two (a controller may be mounted as version
1 beside a version 2 tree). Groups are nested: the lowest limit of a group and its parents holds. In
a container the mount shows a part of the tree, and may show other groups' names for the same place.

Files and units: the kernel's documentation, admin-guide/cgroup-v2 and cgroup-v1.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from telemetry.measure.capture_file import Pace
from telemetry.measure.processes import ProcessTree, kernel_text
from telemetry.readers.units import GIB, MIB

_IDLE = ("idle", "iowait")
# Counted in `user` already.
_TWICE = ("guest", "guest_nice")
_TICKS_S = 0.05  # the kernel counts cores in ticks of 0.01 s
DISK = ("disk_read_mib_s", "disk_write_mib_s")
NETWORK = ("net_rx_mib_s", "net_tx_mib_s")


def counters() -> dict[str, float]:
    """Return what the machine has counted: `busy_s N`, `all_s N` of each core, MiB, and `t_s`."""
    counts = {"t_s": time.monotonic()}
    for core, times in enumerate(psutil.cpu_times(percpu=True)):
        parts = {name: s for name, s in times._asdict().items() if name not in _TWICE}
        counts[f"all_s {core}"] = sum(parts.values())
        counts[f"busy_s {core}"] = sum(s for name, s in parts.items() if name not in _IDLE)
    if disk := psutil.disk_io_counters():
        counts |= dict(zip(DISK, (disk.read_bytes / MIB, disk.write_bytes / MIB), strict=True))
    cards = [card for name, card in psutil.net_io_counters(pernic=True).items() if name != "lo"]
    counts["net_rx_mib_s"] = sum(card.bytes_recv for card in cards) / MIB
    counts["net_tx_mib_s"] = sum(card.bytes_sent for card in cards) / MIB
    return counts


def busy_shares(
    before: Mapping[str, float], now: Mapping[str, float], cores: Collection[int] | None = None
) -> list[float]:
    """Return the share of time that each core was busy; of all, or of some, but of a few ticks."""
    names = [name.removeprefix("busy_s ") for name in now if name.startswith("busy_s ")]
    chosen = names if cores is None else [name for name in names if int(name) in cores]
    busy = [
        (now[f"busy_s {core}"] - before[f"busy_s {core}"])
        / (now[f"all_s {core}"] - before[f"all_s {core}"])
        for core in chosen
        if f"busy_s {core}" in before and now[f"all_s {core}"] >= before[f"all_s {core}"] + _TICKS_S
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


_PROC = Path("/proc")
_UNLIMITED = 1 << 60  # version 1 writes the largest page-aligned number for "no limit"
_MOUNT_FIELDS = 10
# Files by version: which cores; memory in use, the key of what can go of it, and who was killed
# for want of it.
_CORES = {1: ("cpuset.effective_cpus", "cpuset.cpus"), 2: ("cpuset.cpus.effective",)}
_MEMORY = {
    1: ("memory.usage_in_bytes", "total_inactive_file", "memory.oom_control"),
    2: ("memory.current", "inactive_file", "memory.events"),
}


@dataclass(frozen=True, slots=True)
class _Place:
    """A process's group under one controller.

    Attributes:
        version: 1 or 2.
        folders: of the group and of those above it that can be seen, the innermost first.
    """

    version: int
    folders: tuple[Path, ...]


class ControlGroup:
    """The groups of one process, as they are now.

    Args:
        pid: the process.
        proc: where the kernel shows processes; for tests.
    """

    def __init__(self, pid: int | str = "self", proc: Path = _PROC) -> None:
        self._places = dict(_places(pid, proc))

    @property
    def quota_cores(self) -> float | None:
        """Cores of time that the group may use; None without a limit."""
        return self._lowest_limit("cpu", _quota_cores)

    @property
    def cpus(self) -> frozenset[int] | None:
        """Numbers of the cores that it may run on; None where that is not said."""
        group = self._places.get("cpuset")
        if group is None:
            return None
        names = _CORES[group.version]
        lists = (kernel_text(folder / name) for folder in group.folders for name in names)
        return next((_cpu_list(text) for text in lists if text.strip()), None)

    @property
    def limit_gib(self) -> float | None:
        """Memory that it may use; None without a limit."""
        return self._lowest_limit("memory", _limit_gib)

    def used_gib(self) -> float | None:
        """Return the memory that it holds, without the file cache that can go at once."""
        group = self._places.get("memory")
        if group is None:
            return None
        file, key, _ = _MEMORY[group.version]
        used = _number(group.folders[0] / file)
        if used is None:
            return None
        cached = _keyed(group.folders[0] / "memory.stat", key) or 0.0
        return max(0.0, used - cached) / GIB

    def cpu_s(self) -> float | None:
        """Return the seconds of all cores that its processes used, also those that ended."""
        for name in ("cpuacct", "cpu"):
            group = self._places.get(name)
            if group is None:
                continue
            if group.version == 1:
                used, unit = _number(group.folders[0] / "cpuacct.usage"), 1e-9
            else:
                used, unit = _keyed(group.folders[0] / "cpu.stat", "usage_usec"), 1e-6
            if used is not None:
                return used * unit
        return None

    def oom_kills(self) -> int | None:
        """Return how many of its processes the kernel killed for want of memory."""
        group = self._places.get("memory")
        if group is None:
            return None
        count = _keyed(group.folders[0] / _MEMORY[group.version][-1], "oom_kill")
        return None if count is None else int(count)

    def _lowest_limit(
        self, controller: str, limit: Callable[[int, Path], float | None]
    ) -> float | None:
        """Return the lowest limit of a group and of those above it; None without one."""
        group = self._places.get(controller)
        if group is None:
            return None
        values = (limit(group.version, folder) for folder in group.folders)
        return min((value for value in values if value is not None), default=None)


def _places(pid: int | str, proc: Path) -> Iterator[tuple[str, _Place]]:
    """Yield controller and place; version 2 has all controllers that version 1 does not have."""
    paths = dict(_paths(kernel_text(proc / str(pid) / "cgroup")))
    mounts = list(_mounts(kernel_text(proc / "self" / "mountinfo")))
    for version in (2, 1):
        for mounted, root, point, controllers in mounts:
            if mounted != version:
                continue
            names = ("cpu", "cpuset", "memory") if version == 2 else controllers  # noqa: PLR2004
            for name in names:
                path = paths.get("" if version == 2 else name)  # noqa: PLR2004 - the version
                if path is not None:
                    yield name, _Place(version, tuple(_upwards(point, root, path)))


def _paths(text: str) -> Iterator[tuple[str, str]]:
    """Yield controller and path from `/proc/PID/cgroup`; version 2 is "" there."""
    for line in text.splitlines():
        number, _, group_path = line.partition(":")
        controllers, _, path = group_path.partition(":")
        if number and path.startswith("/"):
            for name in controllers.split(","):
                yield name, path


def _mounts(text: str) -> Iterator[tuple[int, str, Path, tuple[str, ...]]]:
    """Yield version, root and place of each mounted tree, and its controllers."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, right = before.split(), after.split()
        if len(fields) + len(right) < _MOUNT_FIELDS - 1 or not right:
            continue
        if right[0] in {"cgroup", "cgroup2"}:
            version = 2 if right[0] == "cgroup2" else 1
            yield version, fields[3], Path(fields[4]), tuple(right[-1].split(","))


def _upwards(point: Path, root: str, path: str) -> Iterator[Path]:
    """Yield the folder of a group and of those above it, as far as the mount shows them."""
    is_below = root in {"/", path} or path.startswith(root.rstrip("/") + "/")
    inside = path.removeprefix(root.rstrip("/")) if is_below else "/"
    parts = [part for part in inside.split("/") if part]
    if ".." in parts:  # seen from a namespace that does not hold it
        parts = []
    folders = [point.joinpath(*parts[:n]) for n in range(len(parts), -1, -1)]
    existing = [folder for folder in folders if folder.is_dir()]
    yield from existing or [point]


def _quota_cores(version: int, folder: Path) -> float | None:
    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if version == 1 else ("cpu.max",)
    # Quota and period; without a limit the first is -1, or "max".
    fields = [word for name in names for word in kernel_text(folder / name).split()]
    limited = len(fields) == 2 and all(word.isdecimal() and int(word) for word in fields)  # noqa: PLR2004
    return int(fields[0]) / int(fields[1]) if limited else None


def _limit_gib(version: int, folder: Path) -> float | None:
    limit = _number(folder / ("memory.limit_in_bytes" if version == 1 else "memory.max"))
    return None if limit is None or limit >= _UNLIMITED else limit / GIB


def _cpu_list(text: str) -> frozenset[int] | None:
    """Read "0-3,8"."""
    cores: set[int] = set()
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None
        cores.update(range(int(low), int(high or low) + 1))
    return frozenset(cores)


def _number(path: Path) -> float | None:
    text = kernel_text(path)
    return float(text) if text.isdecimal() else None


def _keyed(path: Path, key: str) -> float | None:
    for line in kernel_text(path).splitlines():
        name, _, text = line.partition(" ")
        if name == key and text.strip().isdecimal():
            return float(text)
    return None


EVERY_S = 1.0
_EARLY_S = 0.05
_SHARE = 0.0015  # of one core that walking the processes may take, where it is done once a second
_MOST_SHARE = 0.02  # the same, where it is the measurement's clock and done more often
_MEMORY_SHARE = 0.002  # the same for their memory: the kernel walks their page tables
_LEAST_S = 0.09  # the kernel counts in steps of 0.01 s: rates of less time say nothing
_THREADS_FROM = 0.3  # of a core: below, no thread is near to filling one
_MACHINE = "machine."
# The kernel counts the network for the machine, not for a process: it is the job's while others
# use at most so many cores, or half of what the job uses.
_OTHERS_CORES, _OTHERS_SHARE = 0.5, 0.5


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended, as its parent saw it.

    Attributes:
        moment_s: by `time.monotonic`.
        cpu_s: seconds of all cores that it and all that it waited for used.
        code: its exit code, -N where signal N ended it.
    """

    moment_s: float
    cpu_s: float
    code: int = 0


class HostReader:
    """Reads the host, about once a second; rates are over the time since the read before.

    Args:
        tree: the job's processes, the first reading of those that count from their start is of the
            time since; None reads the whole machine.
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
        begun_s = None if tree is None else tree.begun_s
        self._since_begin = begun_s is not None
        if begun_s is not None:
            zeros = {name: 0.0 for name in self._before if name.startswith("job")}
            self._before |= {**zeros, "t_s": begun_s}
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
        installed = self.machine_ram_gib
        return round(installed if limit is None else min(limit, installed), 3)

    @property
    def killed_for_memory(self) -> int:
        """How many processes of the job's control group the kernel killed since the start."""
        now = self._group.oom_kills()
        return 0 if now is None or self._oom_kills is None else max(0, now - self._oom_kills)

    def read(
        self, now_s: float, *, last: bool = False, ended: JobEnd | None = None
    ) -> dict[str, float]:
        """Return the fields of `model.Host` that are known now, and the machine's as `machine.*`.

        Empty while the last reading is younger than that.

        Args:
            now_s: seconds, steady.
            last: whether the job ended, so that its memory is gone, and this is the last reading.
            ended: how it ended, where its parent says so; else the time since the reading before
                is left out, as nobody knows what an ended process used in it.
        """
        if not last and not self._pace.due(now_s):
            return {}
        with self._pace.taking(now_s):
            if self._tree is not None:
                self._tree.look()
                self._allowed = self._affinity() or self._allowed
                if ended is not None:
                    self._tree.ended(ended.cpu_s)
            readings = self._rates(ended)
        if not last and self._memory_pace.due(now_s):
            with self._memory_pace.taking(now_s):
                readings |= self._memory()
        return readings

    def _rates(self, ended: JobEnd | None) -> dict[str, float]:
        now = self._counters()
        if ended is not None:
            now["t_s"] = min(now["t_s"], ended.moment_s)
        elapsed_s = now["t_s"] - self._before["t_s"]
        is_open = ended is None and self._tree is not None and self._tree.has_ended
        if elapsed_s < _LEAST_S or is_open:
            return {}
        before, self._before = self._before, now
        machine = busy_shares(before, now)
        readings = {f"{_MACHINE}cpu_util": sum(machine) / len(machine)} if machine else {}
        network = rates(before, now, elapsed_s, NETWORK)
        if self._tree is None:
            readings |= self._of_machine(before, now, elapsed_s)
            return readings | network | rates(before, now, elapsed_s, DISK)
        used = (now["job_cpu_s"] - before["job_cpu_s"]) / elapsed_s
        readings["cpu_util"] = min(1.0, max(0.0, used / self.cpu_cores))
        if not self._tree.has_ended:
            readings |= rates(before, now, elapsed_s, [f"job {name}" for name in DISK])
            readings |= {} if self._since_begin else self._busiest(elapsed_s)
        self._since_begin = False
        if sum(machine) - used <= max(_OTHERS_CORES, _OTHERS_SHARE * used):
            readings |= network
        else:
            readings |= {f"{_MACHINE}{name}": value for name, value in network.items()}
        return {name.removeprefix("job "): value for name, value in readings.items()}

    def _of_machine(
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
        (before_pid, before), now = self._threads, self._tree.table.threads_s(pid)
        self._threads = (pid, now)
        grown = [s - before[tid] for tid, s in now.items() if tid in before]
        if pid != before_pid or not grown:
            return {}
        return {"cpu_busiest_core": min(1.0, max(0.0, *grown, 0.0) / elapsed_s)}

    def _memory(self) -> dict[str, float]:
        _, machine = ram_gib()
        readings = {f"{_MACHINE}ram_used_gib": machine}
        if self._tree is not None:
            used = self._tree.memory_gib()
        else:
            limited = self._group.limit_gib is not None
            used = self._group.used_gib() if limited else machine
        return readings if used is None else readings | {"ram_used_gib": used}

    def _counters(self) -> dict[str, float]:
        counts = counters()
        if (used_s := self._group.cpu_s()) is not None and self._tree is None:
            counts["group_cpu_s"] = used_s
        if self._tree is not None:
            used = self._tree.used()
            counts["job_cpu_s"] = used.cpu_s
            sides = zip(DISK, (used.read_mib, used.written_mib), strict=True)
            counts |= {f"job {name}": mib for name, mib in sides if mib is not None}
        return counts

    def _affinity(self) -> frozenset[int]:
        pids = list(self._tree.members) if self._tree is not None else [0]
        cores: set[int] = set()
        for pid in pids:
            try:
                cores |= os.sched_getaffinity(pid)
            except (AttributeError, OSError):  # not on every system; gone
                continue
        cpus = self._group.cpus
        some = frozenset(cores) if cpus is None else frozenset(cores) & cpus or cpus
        return some or frozenset(range(os.cpu_count() or 1))
