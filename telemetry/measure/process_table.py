"""What the system knows of each process: who started it, what it used, which GPUs it may use.

CUDA_VISIBLE_DEVICES is read as NVIDIA's CUDA programming guide describes it: indices, or prefixes
of UUIDs, MIG devices included; entries after the first that names no device are ignored. An empty
list, or one that begins with -1, is none. NVIDIA_VISIBLE_DEVICES is what the container toolkit was
told, and says which devices there are in a container.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from telemetry.recording.recording import GpuIdentity

CUDA, ORDER, TOOLKIT = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"
_BY_BUS = "PCI_BUS_ID"  # as the driver's own indices are ordered
_ALL, _NONE = "all", ("none", "void", "")


@dataclass(frozen=True, slots=True)
class Visible:
    """What an environment leaves to a process.

    Attributes:
        keys: of the devices, as `GpuIdentity` has them; None where it names none, so all.
        certain: False where CUDA numbers the devices in an order of its own, which is not known.
    """

    keys: tuple[str, ...] | None
    certain: bool = True


def variables(environment: bytes | None) -> dict[str, str]:
    """Return the variables that count here, from an environment as the kernel shows it."""
    values = {}
    for entry in (environment or b"").split(b"\0"):
        name, is_set, value = entry.decode(errors="replace").partition("=")
        if is_set and name in {CUDA, ORDER, TOOLKIT}:
            values[name] = value
    return values


def visible(
    variables: Mapping[str, str], devices: Sequence[GpuIdentity], *, in_container: bool = False
) -> Visible:
    """Return the devices that a process with these variables may use.

    Args:
        variables: of its environment.
        devices: all of the machine, in the driver's order.
        in_container: whether it runs in a container and we do not, so that its indices count from
            the first device of the container.
    """
    whole = [gpu for gpu in devices if gpu.partition is None]
    base: Sequence[GpuIdentity] = whole
    toolkit = variables.get(TOOLKIT)
    if in_container and toolkit is not None and toolkit.strip() != _ALL:
        listed = "" if toolkit.strip() in _NONE else toolkit
        base = [gpu for gpu in devices if gpu.key in _listed(listed, whole, devices)]
    text = variables.get(CUDA)
    if text is None:
        return Visible(None if base is whole else tuple(gpu.key for gpu in base))
    keys = _listed(text, base, devices)
    one_order = len({gpu.model for gpu in whole}) == 1 or variables.get(ORDER) == _BY_BUS
    by_index = any(entry.strip().isdecimal() for entry in text.split(","))
    if by_index and not one_order:
        return Visible(None, certain=False)
    return Visible(keys)


def together(sets: Iterable[Visible]) -> Visible:
    """Return what several processes of one job may use.

    A process that is told to use none, as loaders often are, takes nothing from the others; one
    that is told nothing, as launchers are not, adds nothing to those that are told.
    """
    all_sets = list(sets)
    keys = dict.fromkeys(key for entry in all_sets for key in entry.keys or ())
    certain = all(entry.certain for entry in all_sets)
    if keys:
        return Visible(tuple(keys), certain)
    open_to_all = any(entry.keys is None for entry in all_sets) or not all_sets
    return Visible(None if open_to_all else (), certain)


def _listed(
    text: str, base: Sequence[GpuIdentity], devices: Sequence[GpuIdentity]
) -> tuple[str, ...]:
    keys: dict[str, None] = {}
    for entry in text.split(","):
        gpu = _named(entry.strip(), base, devices)
        if gpu is None:
            break
        keys[gpu.key] = None
    return tuple(keys)


def _named(
    word: str, base: Sequence[GpuIdentity], devices: Sequence[GpuIdentity]
) -> GpuIdentity | None:
    if word.isdecimal():
        return base[int(word)] if int(word) < len(base) else None
    if word.startswith("MIG-GPU-"):  # before driver 470: the device, its instance, the part of it
        uuid, _, tail = word.removeprefix("MIG-").partition("/")
        instance = tail.partition("/")[0]
        parts = [gpu for gpu in devices if gpu.partition is not None and gpu.uuid == uuid]
        return next((p for p in parts if p.key.partition(":")[2].split(".")[0] == instance), None)
    names = [(gpu, gpu.mig_uuid if gpu.partition else gpu.uuid) for gpu in devices]
    same = [gpu for gpu, name in names if word and name and name.startswith(word)]
    return same[0] if len(same) == 1 and word.startswith(("GPU-", "MIG-")) else None


MIB, GIB = 1 << 20, 1 << 30
_MOST_THREADS = 512
_PROC = Path("/proc")
_MOST_BYTES = 1 << 20
# Fields of /proc/PID/stat after the name, proc(5).
_STATE, _PARENT, _USER, _SYSTEM, _USER_WAITED, _SYSTEM_WAITED, _START = 0, 1, 11, 12, 13, 14, 19
_LEAST_FIELDS = 22


@dataclass(frozen=True, slots=True)
class Entry:
    """A process at one moment.

    Attributes:
        parent: number of the process that has it as a child now.
        start: when it started, in units of its table: number and start name a process for ever.
        cpu_s: seconds of all cores that it used itself.
        waited_cpu_s: seconds that children used which ended and were waited for.
        ended: whether it only waits to be collected.
    """

    parent: int
    start: float
    cpu_s: float
    waited_cpu_s: float
    ended: bool = False


class ProcessTable:
    """The processes as `/proc` shows them.

    Args:
        proc: its place, for tests.
    """

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = str(proc)
        self._tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
        self._page_gib = os.sysconf("SC_PAGE_SIZE") / GIB

    def numbers(self) -> set[int]:
        """Return the processes that there are."""
        names = os.listdir(self._proc)  # noqa: PTH208 - paths cost ten times as much
        return {int(name) for name in names if name.isdecimal()}

    def entry(self, pid: int | str) -> Entry | None:
        """Return a process, None where it is gone."""
        data = self.read(pid, "stat")
        fields = data[data.rfind(b")") + 2 :].split() if data else []
        if len(fields) < _LEAST_FIELDS:
            return None
        return Entry(
            parent=int(fields[_PARENT]),
            start=float(fields[_START]),
            cpu_s=(int(fields[_USER]) + int(fields[_SYSTEM])) * self._tick_s,
            waited_cpu_s=(int(fields[_USER_WAITED]) + int(fields[_SYSTEM_WAITED])) * self._tick_s,
            ended=fields[_STATE] in {b"Z", b"X"},
        )

    def transferred_mib(self, pid: int) -> tuple[float, float] | None:
        """Return what reached and left storage, not the page cache: proc(5), `/proc/PID/io`."""
        lines = (self.read(pid, "io") or b"").splitlines()
        counts = dict(line.split(b": ") for line in lines if b": " in line)
        read, written = counts.get(b"read_bytes"), counts.get(b"write_bytes")
        return None if read is None or written is None else (int(read) / MIB, int(written) / MIB)

    def memory_gib(self, pid: int) -> float | None:
        """Return proportional set size; of other users' processes, the pages that nobody shares."""
        for line in (self.read(pid, "smaps_rollup") or b"").splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) / MIB
        words = (self.read(pid, "statm") or b"").split()
        pages = int(words[1]) - int(words[2]) if len(words) > 2 else None  # noqa: PLR2004
        return None if pages is None else pages * self._page_gib

    def threads_s(self, pid: int) -> dict[int, float]:
        """Return the processor seconds of its threads, by number."""
        try:
            names = os.listdir(f"{self._proc}/{pid}/task")  # noqa: PTH208 - as above
        except OSError:
            return {}
        entries = ((tid, self.entry(f"{pid}/task/{tid}")) for tid in names[:_MOST_THREADS])
        return {int(tid): entry.cpu_s for tid, entry in entries if entry is not None}

    def environment(self, pid: int) -> bytes | None:
        """Return the environment that it was started with."""
        return self.read(pid, "environ")

    def read(self, pid: int | str, name: str) -> bytes | None:
        """Return one of a process's files; None where it is gone or not for this user."""
        try:
            handle = os.open(f"{self._proc}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            parts = []
            while part := os.read(handle, _MOST_BYTES):
                parts.append(part)
                if len(part) < _MOST_BYTES and name != "environ":
                    break
            return b"".join(parts)
        except OSError:
            return None
        finally:
            os.close(handle)
