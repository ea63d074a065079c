"""Frameworks whose steps are not seen: that they are in use is told, and where time is spent."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..process import Probe

# Module: its framework, and what in the module is set once a device is in use.
IN_USE = {
    "jax._src.xla_bridge": ("jax", "_backends"),
    "tensorflow.python.eager.context": ("tensorflow", "_context"),
    "cupy": ("cupy", "__version__"),
}


def greet(probe: Probe) -> None:
    """Say hello for a framework of the table that is in use, where nobody has said it yet."""
    for module, (framework, attribute) in IN_USE.items():
        loaded: Any = sys.modules.get(module)
        if loaded is not None and getattr(loaded, attribute, None):
            version = getattr(sys.modules.get(framework), "__version__", "")
            probe.events.hello(framework, str(version))
            return


def patch(_module: ModuleType, probe: Probe) -> None:
    """Take that such a framework was imported; the thread that looks at stacks does the rest."""
    probe.others = True
