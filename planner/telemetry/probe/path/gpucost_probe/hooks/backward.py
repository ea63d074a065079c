"""Backward passes: what tells the steps of a loop that has no optimizer of PyTorch."""

from __future__ import annotations

import sys
from time import perf_counter

from .instrument import Hook, attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..process import Probe


class BackwardHook(Hook):
    """Around torch.autograd.backward."""

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe.events.odd, "torch.autograd.backward")
        self._probe = probe

    def after(self, token: Any, value: Any) -> None:
        """Take the end of a pass."""
        events = self._probe.events
        if not events.greeted:
            events.hello("pytorch", str(sys.modules["torch"].__version__))
        self._probe.steps.went_back(perf_counter())


def patch(module: ModuleType, probe: Probe) -> None:
    """Patch torch.autograd."""
    attach(module, "backward", BackwardHook(probe), ())
