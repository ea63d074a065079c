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

    def before(self, *arguments: Any) -> Any:
        """Keep the loss that the pass starts from."""
        self._probe.steps.loss = _loss(*arguments)

    def after(self, token: Any, value: Any) -> None:
        """Take the end of a pass."""
        events = self._probe.events
        if not events.greeted:
            events.hello("pytorch", str(sys.modules["torch"].__version__))
        self._probe.steps.went_back(perf_counter())


def patch(module: ModuleType, probe: Probe) -> None:
    """Patch torch.autograd."""
    attach(module, "backward", BackwardHook(probe), ("tensors",))


def _loss(tensors: Any = None) -> Any:
    """Return the loss, where it is one number that costs nothing to read; None else.

    On a GPU, reading it would wait for the device. What a product ends with may be scaled for half
    precision, by a factor that is none of the loss's.
    """
    if isinstance(tensors, (list, tuple)):
        tensors = tensors[0] if len(tensors) == 1 else None
    device = getattr(tensors, "device", None)
    if device is None or device.type != "cpu" or tensors.numel() != 1:
        return None
    made_by = type(tensors.grad_fn).__name__
    return None if made_by.startswith("Mul") else tensors.detach()
