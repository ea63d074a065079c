"""The processes of a job: the first and all that it started, also those that lost their parent.

Also which of them the probe did not reach, and whether they are in our PID namespace.
"""

import contextlib
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from telemetry.readers.units import GIB, MIB

FIRST = "pid:[4026531836]"  # of the system itself: PROC_PID_INIT_INO, include/linux/proc_ns.h


def namespace(pid: int | str = "self") -> str | None:
    """Return the namespace in which a process is numbered; None where that may not be seen."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return None


def in_container() -> bool:
    """Return whether we are numbered by another than the system's own namespace."""
    return namespace() not in {FIRST, None}


_PYTHON = "python"
# Younger ones may be on their way through their start-up still.
_OLD_S = 2.0


def unreached(pids: Collection[int], reached: Collection[int], now_s: float) -> tuple[str, ...]:
    """Return the names of Python programs without the probe, as `python train.py (pid 7)`.

    A fork runs with what its parent loaded, so a process with its parent's command line counts
    as reached when the parent is.

    Args:
        pids: the job's processes.
        reached: processes that the probe came up in.
        now_s: seconds since 1970 UTC.
    """
    missed = []
    for pid in sorted(set(pids) - set(reached)):
        try:
            process = psutil.Process(pid)
            argv = process.cmdline()
            names = (process.name(), Path(argv[0]).name if argv else "")
            if not any(name.lower().startswith(_PYTHON) for name in names):
                continue
            if now_s - process.create_time() < _OLD_S or _forked(process, argv, reached):
                continue
        except psutil.Error:
            continue
        missed.append(f"{_program(argv)} (pid {pid})")
    return tuple(missed)


def runs_python(pid: int) -> bool:
    """Return whether a process is an interpreter of Python, by its program's name."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name.startswith(_PYTHON)
    except OSError:
        return False


def _forked(process: psutil.Process, argv: list[str], reached: Collection[int]) -> bool:
    parent = process.parent()
    while parent is not None and parent.cmdline() == argv:
        if parent.pid in reached:
            return True
        parent = parent.parent()
    return False


def _program(argv: list[str]) -> str:
    """Return the program and its script, without arguments: those may carry secrets."""
    script = next((Path(w).name for w in argv[1:] if w.endswith(".py")), "")
    options = [w for w in argv[1:3] if w in {"-I", "-E", "-S"}]
    return " ".join([Path(argv[0]).name, *options, *([script] if script else [])])


@dataclass(frozen=True, slots=True)
class Entry:
    """A process at one moment.

    Attributes:
        parent: number of the process that has it as a child now.
        start: when it started: number and start name a process for ever.
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
    """The processes of the system; what is gone, or not for this user, is None."""

    def numbers(self) -> set[int]:
        """Return the processes that there are."""
        return set(psutil.pids())

    def entry(self, pid: int) -> Entry | None:
        """Return a process."""
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                times = process.cpu_times()
                return Entry(
                    parent=process.ppid(),
                    start=process.create_time(),
                    cpu_s=times.user + times.system,
                    waited_cpu_s=times.children_user + times.children_system,
                    ended=process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD},
                )
        except psutil.Error:
            return None

    def transferred_mib(self, pid: int) -> tuple[float, float] | None:
        """Return what reached and left storage, not the page cache: proc(5), `/proc/PID/io`."""
        try:
            moved = psutil.Process(pid).io_counters()
        except psutil.Error:
            return None
        return moved.read_bytes / MIB, moved.write_bytes / MIB

    def memory_gib(self, pid: int) -> float | None:
        """Return proportional set size; of other users' processes, the pages that nobody shares."""
        try:
            process = psutil.Process(pid)
            with contextlib.suppress(psutil.AccessDenied):
                return float(process.memory_full_info().pss) / GIB
            memory = process.memory_info()
        except psutil.Error:
            return None
        return float(memory.rss - memory.shared) / GIB

    def threads_s(self, pid: int) -> dict[int, float]:
        """Return the processor seconds of its threads, by number."""
        try:
            threads = psutil.Process(pid).threads()
        except psutil.Error:
            return {}
        return {thread.id: thread.user_time + thread.system_time for thread in threads}

    def environment(self, pid: int) -> bytes | None:
        """Return the environment that it was started with."""
        try:
            return Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return None


def kernel_text(path: Path) -> str:
    """Return what the kernel says in a file, without blanks around it; "" where it is not there."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


_MOST_STEPS = 64  # from a process to its ancestor, in case numbers go round in a circle
# A tick of the scheduler's clock, more than what rounding takes from a sum of few processes.
_ROUNDING_S = 0.05


@dataclass(frozen=True, slots=True)
class Used:
    """What processes used since some start.

    Attributes:
        cpu_s: seconds of all cores.
        read_mib: from storage; None where that is not said of one of them.
        written_mib: to storage; None where that is not said of one of them.
    """

    cpu_s: float
    read_mib: float | None
    written_mib: float | None


class ProcessTree:
    """A process and its descendants.

    One that was seen below it stays a member when its parents end and another process adopts it;
    one that was never seen there is known by its environment, where `mark` is given. `look` reads
    the members and what is new in the system since the last look, nothing else, so a machine full
    of others' processes costs nothing.

    Args:
        pid: the process at the top, numbered as in `/proc`.
        mark: NAME=VALUE that stands in the environment of the job's processes alone.
        begun_s: when it began, by `time.monotonic`, where what it used before it was first seen
            counts, too; None where it does not.
        table: the system's processes; for tests.

    Attributes:
        begun_s: as given.
        table: as given.
        members: alive at the last look.
        busiest: the member that used most of the processor between the last two looks, and the
            seconds that it used.
    """

    def __init__(
        self,
        pid: int,
        mark: bytes | None = None,
        *,
        begun_s: float | None = None,
        table: ProcessTable | None = None,
    ) -> None:
        self.pid = pid
        self.begun_s = begun_s
        self._mark = mark
        self.table = table or ProcessTable()
        self.members: Mapping[int, Entry] = {}
        self.busiest = (pid, 0.0)
        self._transferred: dict[int, tuple[float, float]] = {}
        self._silent: set[int] = set()
        self._others: set[int] = set()
        self._unread: set[int] = set()
        self._met = False
        # A program that measures itself has us, and what we start, below it.
        us = own_number(os.getpid())
        self._us = None if us == pid else us
        self._lost_cpu_s = self._lost_read_mib = self._lost_written_mib = 0.0
        self._seen_s: float | None = None
        self.look()
        self._before = self._sum() if begun_s is None else (0.0, 0.0, 0.0)

    def look(self) -> frozenset[int]:
        """Find the processes again, and return their numbers."""
        numbers = self.table.numbers()
        living = {pid: entry for pid in self.members if (entry := self._same(pid)) is not None}
        if not self._met and (top := self.table.entry(self.pid)) is not None:
            living[self.pid], self._met = top, True
        new = numbers - self._others - living.keys() - {self._us}
        entries = {pid: entry for pid in new if (entry := self.table.entry(pid)) is not None}
        before, self._unread = self._unread, set()
        joined = self._joined(entries, living)
        self._count_lost(living)
        now = living | joined
        spent_before = {pid: entry.cpu_s for pid, entry in self.members.items()}
        spent = {p: e.cpu_s - spent_before.get(p, 0.0) for p, e in now.items() if not e.ended}
        first = max(spent, key=lambda pid: (spent[pid], -pid), default=self.pid)
        self.busiest = (first, spent.get(first, 0.0))
        self.members = now
        self._others = numbers - self.members.keys() - (self._unread - before)
        self._read_transfers()
        return frozenset(self.members)

    def holds(self, pid: int) -> bool:
        """Return whether a process is of the tree, also one that is younger than the last look."""
        for _ in range(_MOST_STEPS):
            if pid in self.members:
                return True
            if pid == self._us:
                return False
            entry = self.table.entry(pid) if pid > 1 else None
            if entry is None:
                return False
            if self._marked(pid):
                return True
            pid = entry.parent
        return False

    @property
    def has_ended(self) -> bool:
        """Whether the process at the top is gone, perhaps before it was ever seen."""
        return self._seen_s is not None or not self._met

    def ended(self, cpu_s: float) -> None:
        """Take the processor time that the top and all that it waited for used, by its parent."""
        self.look()
        if self._seen_s is None and not self._met:  # it was over before it was first seen
            self._seen_s = 0.0
        if self._seen_s is not None:
            self._lost_cpu_s += max(0.0, cpu_s - self._seen_s)
            self._seen_s = max(cpu_s, self._seen_s)

    def used(self) -> Used:
        """Return what the tree used from its first look to its last, ended processes included."""
        now, before = self._sum(), self._before
        first_time = not self._silent
        return Used(
            cpu_s=max(0.0, now[0] - before[0]),
            read_mib=max(0.0, now[1] - before[1]) if first_time else None,
            written_mib=max(0.0, now[2] - before[2]) if first_time else None,
        )

    def memory_gib(self) -> float | None:
        """Return the memory that the members hold now, each shared page once; None if unknown."""
        sizes = (self.table.memory_gib(pid) for pid, e in self.members.items() if not e.ended)
        readable = [gib for gib in sizes if gib is not None]
        return sum(readable) if readable else None

    def _same(self, pid: int) -> Entry | None:
        """Return the member of that number, unless the number went to another process."""
        entry = self.table.entry(pid)
        return entry if entry is not None and entry.start == self.members[pid].start else None

    def _joined(
        self, entries: Mapping[int, Entry], members: Mapping[int, Entry]
    ) -> dict[int, Entry]:
        """Return the new processes whose ancestor is a member, or that carry the mark."""
        joined = set(members)
        for pid in sorted(entries):
            path: list[int] = []
            at = pid
            while at in entries and at not in joined and len(path) < _MOST_STEPS:
                path.append(at)
                at = entries[at].parent
            if at in joined:
                joined.update(path)
            elif at != self._us:
                marked = next((i for i in reversed(range(len(path))) if self._marked(path[i])), -1)
                joined.update(path[: marked + 1])
        return {pid: entries[pid] for pid in joined & entries.keys()}

    def _marked(self, pid: int) -> bool:
        if self._mark is None or pid in {os.getpid(), os.getppid()}:
            return False
        environment = self.table.environment(pid)
        if not environment:
            # The kernel's own have none; one that begins another program, for a moment: it is
            # looked at once more.
            self._unread.add(pid)
            return False
        return self._mark in environment.split(b"\0")

    def _count_lost(self, alive: Mapping[int, Entry]) -> None:
        """Keep what ended members used, unless the parent that waited for them counts it.

        A process that ended adds its time to its parent's, if that one waits for it; one that was
        adopted, or whose parent ignores its children, takes its time along.
        """
        lost: dict[int | None, list[int]] = defaultdict(list)
        for pid in self.members.keys() - alive.keys():
            lost[self._ancestor(pid, alive)].append(pid)
        for parent, ended in lost.items():
            spent_s = sum(_total_s(self.members[pid]) for pid in ended)
            if self.pid in ended:
                self._seen_s = spent_s
            grown_s = 0.0
            if parent is not None:
                grown_s = alive[parent].waited_cpu_s - self.members[parent].waited_cpu_s
            if grown_s + _ROUNDING_S < spent_s:
                self._lost_cpu_s += spent_s - grown_s
            if parent is None or (spent_s > _ROUNDING_S and grown_s < spent_s / 2):
                moved = [self._transferred.get(pid, (0.0, 0.0)) for pid in ended]
                self._lost_read_mib += sum(read for read, _ in moved)
                self._lost_written_mib += sum(written for _, written in moved)
        for pid in self.members.keys() - alive.keys():
            self._transferred.pop(pid, None)
            self._silent.discard(pid)

    def _ancestor(self, pid: int, alive: Mapping[int, Entry]) -> int | None:
        """Return the nearest member that lives still, by what was last known."""
        at = self.members[pid].parent
        for _ in range(_MOST_STEPS):
            if at in alive:
                return at
            if at not in self.members:
                return None
            at = self.members[at].parent
        return None

    def _read_transfers(self) -> None:
        for pid, entry in self.members.items():
            transfers = self.table.transferred_mib(pid)
            if transfers is not None:
                self._transferred[pid] = transfers
                self._silent.discard(pid)
            elif not entry.ended:
                self._silent.add(pid)

    def _sum(self) -> tuple[float, float, float]:
        transfers = self._transferred.values()
        return (
            self._lost_cpu_s + sum(_total_s(entry) for entry in self.members.values()),
            self._lost_read_mib + sum(read for read, _ in transfers),
            self._lost_written_mib + sum(written for _, written in transfers),
        )


def _total_s(entry: Entry) -> float:
    return entry.cpu_s + entry.waited_cpu_s


def own_number(pid: int, numbers: Iterable[int] | None = None) -> int:
    """Return the number under which `/proc` shows a process that we know by another.

    In a namespace of processes whose `/proc` is still the outer one, a child's number is not its
    own there. NSpid of proc(5) lists all numbers of a process, the outermost that is seen first.
    """
    table = ProcessTable()
    try:
        shown = int(str(Path("/proc/self").readlink()))
    except (OSError, ValueError):
        return pid
    if shown == os.getpid():
        return pid
    for number in sorted(numbers or table.numbers()):
        if _numbers_of(number)[-1:] == [pid] and namespace(number) == namespace(shown):
            return number
    return pid


def _numbers_of(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123
            line = next((line for line in status if line.startswith("NSpid:")), "")
    except OSError:
        return []
    return [int(word) for word in line.split()[1:]]
