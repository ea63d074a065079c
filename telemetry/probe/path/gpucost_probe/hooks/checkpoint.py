"""Checkpoints: the files that a program saves."""

from __future__ import annotations

import os
from time import perf_counter

from .instrument import Hook, Outermost, attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..process import Probe

# Module: the function that saves, and the parameter that names the file.
SAVING = {
    "torch.serialization": ("save", "f"),
    "torch.distributed.checkpoint.state_dict_saver": ("save", "checkpoint_id"),
    "safetensors.torch": ("save_file", "filename"),
    "lightning.fabric.utilities.cloud_io": ("_atomic_save", "filepath"),
    "lightning_fabric.utilities.cloud_io": ("_atomic_save", "filepath"),
}
TOGETHER_S = 2.0  # files of one checkpoint follow each other within this time


class Checkpoints:
    """Numbers the checkpoints of a process: several files, saved in a row, are one."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.outermost = Outermost()
        self._number = 0
        self._end_s = 0.0
        self._step = -1

    def saved(self, begin_s: float, end_s: float, size: int | None) -> None:
        """Take one saved file."""
        probe = self.probe
        if not probe.events.greeted:
            return  # it has not trained: what it saves is not a checkpoint
        if self._step != probe.steps.count or begin_s - self._end_s > TOGETHER_S:
            self._number += 1
        self._step, self._end_s = probe.steps.count, end_s
        probe.steps.saved(end_s - begin_s)
        probe.steps.spans.add("checkpoint", begin_s, end_s - begin_s, saved=(size, self._number))


class SaveHook(Hook):
    """Around a function that saves; one that another calls is part of it."""

    def __init__(self, checkpoints: Checkpoints, name: str) -> None:
        super().__init__(checkpoints.probe.events.odd, name)
        self._checkpoints = checkpoints

    def before(self, target: Any) -> Any:
        """Return the file and the time."""
        return (target, perf_counter()) if self._checkpoints.outermost.enter() else None

    def after(self, token: Any, value: Any) -> None:
        """Take the file."""
        if token is not None:
            end_s = perf_counter()
            self._checkpoints.outermost.leave()
            self._checkpoints.saved(token[1], end_s, _size(token[0]))

    def failed(self, token: Any) -> None:
        """Take that nothing was saved."""
        if token is not None:
            self._checkpoints.outermost.leave()


def _size(target: Any) -> int | None:
    """Return the bytes of what was saved, None if that cannot be told."""
    try:
        if isinstance(target, (str, os.PathLike)):
            return None if os.path.isdir(target) else os.path.getsize(target)
        return int(target.tell())
    except Exception:
        return None


_checkpoints: dict[int, Checkpoints] = {}


def patch(module: ModuleType, probe: Probe) -> None:
    """Patch a module with a function that saves."""
    name, target = SAVING[module.__name__]
    checkpoints = _checkpoints.setdefault(id(probe), Checkpoints(probe))
    attach(module, name, SaveHook(checkpoints, module.__name__ + "." + name), (target,))
