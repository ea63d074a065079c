"""The number formats that a program computes in."""

from __future__ import annotations

import sys

from .instrument import Hook, attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..process import Probe


class AutocastHook(Hook):
    """Around `autocast.__enter__`: which type was asked for since the last step."""

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe.events.odd, "autocast.__enter__")
        self._probe = probe

    def before(self, context: Any) -> Any:
        """Note the type."""
        if context._enabled:
            self._probe.autocast = context.fast_dtype


def write(probe: Probe, autocast: Any, dtype: str | None) -> None:
    """Write the number formats.

    Args:
        probe: of this process.
        autocast: type that autocast was entered with since the last step, None without.
        dtype: of most of the parameters.
    """
    probe.events.write(
        "precision",
        autocast=None if autocast is None else str(autocast).rpartition(".")[2],
        dtype=dtype,
        tf32=_tf32(),
    )


def _tf32() -> bool | None:
    """Return whether matrix products may use TF32, None without CUDA."""
    torch = sys.modules["torch"]
    if not torch.cuda.is_initialized():
        return None
    getter = getattr(torch._C, "_get_fp32_precision_getter", None)
    if getter is not None:
        return bool(getter("cuda", "matmul") == "tf32")
    return bool(torch._C._get_cublas_allow_tf32())


def patch(module: ModuleType, probe: Probe) -> None:
    """Patch torch.amp.autocast_mode."""
    attach(module.autocast, "__enter__", AutocastHook(probe), ("self",))
