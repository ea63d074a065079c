"""What the kernel's control groups grant a process: cores, memory, and what its group used.

Both versions, and the mixture of the two (a controller may be mounted as version 1 beside a tree of
version 2). Groups are nested: the least of a group and those above it holds. In a container the
mount shows a part of the tree, and may show other groups' names for the same place.

Files and units: the kernel's documentation, admin-guide/cgroup-v2 and cgroup-v1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

GIB = 1 << 30
_PROC = Path("/proc")
_UNLIMITED = 1 << 60  # version 1 writes the largest page-aligned number for "no limit"
_MOUNT_FIELDS = 10


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
        return min(self._each("cpu", {1: _quota_v1, 2: _quota_v2}), default=None)

    @property
    def cpus(self) -> frozenset[int] | None:
        """Numbers of the cores that it may run on; None where that is not said."""
        place = self._places.get("cpuset")
        if place is None:
            return None
        names = (
            ("cpuset.cpus.effective",)
            if place.version == 2  # noqa: PLR2004 - of control groups
            else ("cpuset.effective_cpus", "cpuset.cpus")
        )
        lists = (_text(folder / name) for folder in place.folders for name in names)
        return next((_cpu_list(text) for text in lists if text.strip()), None)

    @property
    def limit_gib(self) -> float | None:
        """Memory that it may use; None without a limit."""
        return min(self._each("memory", {1: _limit_v1, 2: _limit_v2}), default=None)

    def used_gib(self) -> float | None:
        """Return the memory that it holds, without the file cache that can go at once."""
        place = self._places.get("memory")
        if place is None:
            return None
        files = (
            ("memory.usage_in_bytes", "total_inactive_file")
            if place.version == 1
            else ("memory.current", "inactive_file")
        )
        used = _number(place.folders[0] / files[0])
        if used is None:
            return None
        cached = _keyed(place.folders[0] / "memory.stat", files[1]) or 0.0
        return max(0.0, used - cached) / GIB

    def cpu_s(self) -> float | None:
        """Return the seconds of all cores that its processes used, also those that ended."""
        for name in ("cpuacct", "cpu"):
            place = self._places.get(name)
            if place is None:
                continue
            if place.version == 1:
                used, unit = _number(place.folders[0] / "cpuacct.usage"), 1e-9
            else:
                used, unit = _keyed(place.folders[0] / "cpu.stat", "usage_usec"), 1e-6
            if used is not None:
                return used * unit
        return None

    def oom_kills(self) -> int | None:
        """Return how many of its processes the kernel killed for want of memory."""
        place = self._places.get("memory")
        if place is None:
            return None
        name = "memory.oom_control" if place.version == 1 else "memory.events"
        count = _keyed(place.folders[0] / name, "oom_kill")
        return None if count is None else int(count)

    def _each(self, controller: str, ways: dict[int, object]) -> Iterator[float]:
        place = self._places.get(controller)
        if place is None:
            return
        for folder in place.folders:
            found = ways[place.version](folder)  # type: ignore[operator]
            if found is not None:
                yield found


def _places(pid: int | str, proc: Path) -> Iterator[tuple[str, _Place]]:
    """Yield controller and place; version 2 has all controllers that version 1 does not have."""
    paths = dict(_paths(_text(proc / str(pid) / "cgroup")))
    mounts = list(_mounts(_text(proc / "self" / "mountinfo")))
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
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number and path.startswith("/"):
            for name in controllers.split(","):
                yield name, path


def _mounts(text: str) -> Iterator[tuple[int, str, Path, tuple[str, ...]]]:
    """Yield version, root and place of each mounted tree, and its controllers."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        left, right = before.split(), after.split()
        if len(left) + len(right) < _MOUNT_FIELDS - 1 or not right:
            continue
        if right[0] in {"cgroup", "cgroup2"}:
            version = 2 if right[0] == "cgroup2" else 1
            yield version, left[3], Path(left[4]), tuple(right[-1].split(","))


def _upwards(point: Path, root: str, path: str) -> Iterator[Path]:
    """Yield the folder of a group and of those above it, as far as the mount shows them."""
    inside = path.removeprefix(root.rstrip("/")) if _below(path, root) else "/"
    parts = [part for part in inside.split("/") if part]
    if ".." in parts:  # seen from a namespace that does not hold it
        parts = []
    found = [point.joinpath(*parts[:n]) for n in range(len(parts), -1, -1)]
    there = [folder for folder in found if folder.is_dir()]
    yield from there or [point]


def _below(path: str, root: str) -> bool:
    return root in {"/", path} or path.startswith(root.rstrip("/") + "/")


def _quota_v2(folder: Path) -> float | None:
    words = _text(folder / "cpu.max").split()
    known = len(words) == 2 and all(word.isdecimal() for word in words)  # noqa: PLR2004
    return int(words[0]) / int(words[1]) if known and int(words[1]) else None


def _quota_v1(folder: Path) -> float | None:
    quota = _number(folder / "cpu.cfs_quota_us")  # -1 without a limit
    period = _number(folder / "cpu.cfs_period_us")
    return quota / period if quota and period else None


def _limit_v2(folder: Path) -> float | None:
    limit = _number(folder / "memory.max")
    return None if limit is None else limit / GIB


def _limit_v1(folder: Path) -> float | None:
    limit = _number(folder / "memory.limit_in_bytes")
    return None if limit is None or limit >= _UNLIMITED else limit / GIB


def _cpu_list(text: str) -> frozenset[int] | None:
    """Read "0-3,8"."""
    found: set[int] = set()
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None
        found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)


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
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
