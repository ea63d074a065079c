"""Which processes of a job the probe did not reach."""

from collections.abc import Collection
from pathlib import Path

import psutil

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
    found = []
    for pid in sorted(set(pids) - set(reached)):
        try:
            process = psutil.Process(pid)
            words = process.cmdline()
            if not _is_python(process.name(), words):
                continue
            if now_s - process.create_time() < _OLD_S or _forked(process, words, reached):
                continue
        except psutil.Error:
            continue
        found.append(f"{_program(words)} (pid {pid})")
    return tuple(found)


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
    """Return the program and its script, without arguments: those may carry secrets."""
    script = next((Path(w).name for w in words[1:] if w.endswith(".py")), "")
    options = [w for w in words[1:3] if w in {"-I", "-E", "-S"}]
    return " ".join([Path(words[0]).name, *options, *([script] if script else [])])
