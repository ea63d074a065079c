"""A trial of one batch size: a few steps with it, told with the memory they took, and no more.

The process is one that was started for this alone. After its last step it stands still until who
started it ends it, so that nothing behind those steps (a checkpoint, a report) is done.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
from statistics import median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..process import Probe

_PATIENCE_S = 120.0  # until it is taken that nobody is there to end us
_GIB = 2**30
_STATUS = "/proc/self/status"


class Trial:
    """What this process tries.

    Args:
        probe: of this process.
        asked: `steps` to take; `batch` in place of `own`, both None for the program's own.
    """

    def __init__(self, probe: Probe, asked: dict[str, Any]) -> None:
        self._probe = probe
        self._most = int(asked["steps"])
        self._batch, self._own = asked.get("batch"), asked.get("own")
        self._lengths: list[float] = []
        self._count = 0

    def watch(self, module: ModuleType) -> None:
        """Give every loader of the program's own batch size the other one."""
        if self._batch is None:
            return
        owner: Any = module.DataLoader
        original = owner.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            try:
                bound = signature.bind(loader, *args, **kwargs)
                if bound.arguments.get("batch_size", 1) == self._own:
                    bound.arguments["batch_size"] = self._batch
                args, kwargs = bound.args[1:], bound.kwargs
            except TypeError:
                pass
            original(loader, *args, **kwargs)

        owner.__init__ = __init__

    def stepped(self, length_s: float | None) -> None:
        """Take a step; after the last one tell, and stand still."""
        self._count += 1
        if self._count > 1 and length_s is not None:
            self._lengths.append(length_s)
        if self._count < self._most:
            return
        loader = self._probe.steps.training
        self._probe.events.write(
            "tried",
            batch=getattr(loader, "batch_size", None),
            items=getattr(loader, "sampled", None),
            step_s=median(self._lengths) if self._lengths else None,
            host_gib=_host_gib(),
            gpu_gib=_gpu_gib(),
        )
        time.sleep(_PATIENCE_S)
        os._exit(1)


def _host_gib() -> float | None:
    """Return the most memory that this process ever held."""
    try:
        with open(_STATUS, encoding="ascii") as stream:
            line = next(each for each in stream if each.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / _GIB
    except (OSError, ValueError, StopIteration):
        return None


def _gpu_gib() -> float | None:
    """Return the most GPU memory that PyTorch ever held here; None without a GPU."""
    torch: Any = sys.modules.get("torch")
    try:
        if not torch.cuda.is_initialized():
            return None
        return float(torch.cuda.max_memory_reserved()) / _GIB
    except Exception:
        return None


def trial_of(probe: Probe, told: dict[str, Any]) -> Trial | None:
    """Return the trial that this process was started for, None where it was not."""
    asked = told.get("trial")
    try:
        return Trial(probe, asked) if isinstance(asked, dict) else None
    except (KeyError, TypeError, ValueError):
        return None
