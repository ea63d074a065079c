"""What this machine is, for what a recipe puts in front of a command; nothing here can hang."""

import os
import shutil
from pathlib import Path

from planner.documents.launcher import Surroundings

_GPUS = Path("/proc/driver/nvidia/gpus")
_PCI = Path("/sys/bus/pci/devices")
_NODES = Path("/sys/devices/system/node")


def surroundings() -> Surroundings:
    """Return this machine, as the kernel's files tell it."""
    gpus = _listed(_GPUS)
    return Surroundings(
        exists=os.path.exists,
        installed=lambda name: shutil.which(name) is not None,
        text_of=lambda path: _text(Path(path)),
        gpus=None if gpus is None else len(gpus),
        gpu_node=_node(gpus[0]) if gpus and _several_nodes() else None,
    )


def _node(bus: str) -> int | None:
    text = (_text(_PCI / bus.lower() / "numa_node") or "").strip()
    return int(text) if text.isdecimal() else None


def _several_nodes() -> bool:
    names = _listed(_NODES) or []
    return sum(name.startswith("node") for name in names) > 1


def _listed(folder: Path) -> list[str] | None:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except OSError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
