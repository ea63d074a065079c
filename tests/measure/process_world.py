"""A system of processes in memory: they fork, work, end and are collected as a kernel does it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from telemetry.measure.processes import Entry

INIT = 1


@dataclass(slots=True)
class Process:
    """A process of the world.

    Attributes:
        parent: its parent now.
        start: when it started.
        cpu_s: what it used itself.
        waited_cpu_s: of the children that it collected.
        ended: whether it is a zombie.
        careless: whether it ignores the end of its children, so that none is ever added to it.
        environment: that it was started with.
    """

    parent: int
    start: float
    cpu_s: float = 0.0
    waited_cpu_s: float = 0.0
    ended: bool = False
    careless: bool = False
    environment: bytes = b""


class World:
    """The processes; a `ProcessTable` that a test moves on by hand.

    Attributes:
        reads: how many processes were read until now.
    """

    def __init__(self) -> None:
        self.processes = {INIT: Process(parent=0, start=0.0)}
        self.clock = 0.0
        self.reads = 0

    def fork(self, pid: int, parent: int, environment: bytes = b"") -> int:
        """Start a process."""
        self.clock += 1.0
        self.processes[pid] = Process(parent, self.clock, environment=environment)
        return pid

    def work(self, pid: int, seconds: float) -> None:
        """Let one use the processor."""
        self.processes[pid].cpu_s += seconds

    def end(self, pid: int) -> None:
        """End one: its children are adopted by init, which collects at once."""
        self.processes[pid].ended = True
        for child, process in list(self.processes.items()):
            if process.parent == pid:
                process.parent = INIT
                if process.ended:
                    self.processes.pop(child)
        parent = self.processes.get(self.processes[pid].parent)
        if self.processes[pid].parent == INIT or (parent is not None and parent.careless):
            self.processes.pop(pid)

    def wait(self, pid: int) -> None:
        """Let a parent collect a child that ended."""
        process = self.processes.pop(pid)
        parent = self.processes[process.parent]
        parent.waited_cpu_s += process.cpu_s + process.waited_cpu_s

    def numbers(self) -> set[int]:
        """Return the processes that there are."""
        return set(self.processes)

    def entry(self, pid: int) -> Entry | None:
        """Return a process."""
        self.reads += 1
        found = self.processes.get(pid)
        if found is None:
            return None
        return Entry(found.parent, found.start, found.cpu_s, found.waited_cpu_s, found.ended)

    def transferred_mib(self, pid: int) -> tuple[float, float] | None:
        """Return a MiB read for each second used."""
        found = self.processes.get(pid)
        return None if found is None else (found.cpu_s + found.waited_cpu_s, 0.0)

    def memory_gib(self, pid: int) -> float | None:
        """Return 1 GiB a process."""
        return 1.0 if pid in self.processes else None

    def threads_s(self, pid: int) -> dict[int, float]:
        """Return one thread."""
        return {pid: self.processes[pid].cpu_s} if pid in self.processes else {}

    def environment(self, pid: int) -> bytes | None:
        """Return what it was started with."""
        found = self.processes.get(pid)
        return None if found is None else found.environment

    def reuse(self, pid: int, parent: int) -> None:
        """Give the number of a process that ended to another."""
        self.clock += 1.0
        self.processes[pid] = replace(self.processes[pid], parent=parent, start=self.clock)
