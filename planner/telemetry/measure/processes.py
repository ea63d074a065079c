"""The processes of a job: who they are, and which of them the probe did not reach."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

_PYTHON = "python"
# Younger ones may be on their way through their start-up still.
_OLD_S = 2.0


@dataclass(frozen=True, slots=True)
class Tree:
    """A process and its descendants.

    Attributes:
        pid: the process at the top.
    """

    pid: int

    def pids(self) -> frozenset[int]:
        """Return the processes alive now."""
        return frozenset(_alive(self.pid))

    def unreached(self, reached: Collection[int], now_s: float) -> tuple[str, ...]:
        """Return the names of Python programs without the probe, as `python train.py (pid 7)`.

        A fork runs with what its parent loaded, so a process with its parent's command line counts
        as reached when the parent is.

        Args:
            reached: processes that the probe came up in.
            now_s: seconds since 1970 UTC.
        """
        found = []
        for pid in sorted(self.pids()):
            try:
                process = psutil.Process(pid)
                words = process.cmdline()
                if pid in reached or not _is_python(process.name(), words):
                    continue
                if now_s - process.create_time() < _OLD_S or _forked(process, words, reached):
                    continue
            except psutil.Error:
                continue
            found.append(f"{_program(words)} (pid {pid})")
        return tuple(found)


def _alive(pid: int) -> Iterator[int]:
    try:
        children = _children(pid)
    except OSError:
        return
    yield pid
    for child in children:
        yield from _alive(child)


def _children(pid: int) -> list[int]:
    """Children by the kernel's own list, which costs nothing; where it is absent, by a search."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():
        try:
            return [child.pid for child in psutil.Process(pid).children()]
        except psutil.Error as error:
            raise ProcessLookupError(pid) from error
    found = []
    for task in tasks.iterdir():
        listed = task / "children"
        try:
            found += [int(word) for word in listed.read_text(encoding="ascii").split()]
        except FileNotFoundError:
            if task.exists():  # a kernel without the list
                return [child.pid for child in psutil.Process(pid).children()]
    return found


def _is_python(name: str, words: list[str]) -> bool:
    program = Path(words[0]).name if words else ""
    return name.lower().startswith(_PYTHON) or program.lower().startswith(_PYTHON)


def _forked(process: psutil.Process, words: list[str], reached: Collection[int]) -> bool:
    parent = process.parent()
    while parent is not None and parent.cmdline() == words:
        if parent.pid in reached:
            return True
        parent = parent.parent()
    return False


def _program(words: list[str]) -> str:
    """The program and its script, without arguments: those may carry secrets."""
    script = next((Path(w).name for w in words[1:] if w.endswith(".py")), "")
    options = [w for w in words[1:3] if w in {"-I", "-E", "-S"}]
    return " ".join([Path(words[0]).name, *options, *([script] if script else [])])
