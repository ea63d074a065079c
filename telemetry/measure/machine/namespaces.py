"""Namespaces of processes: whether we are in a container, whether another process is in ours."""

from pathlib import Path

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
