"""The probe in a program that measures itself: started, told of steps, and ended by a call.

PyTorch may have been imported before. What the probe patches stays patched; between two
measurements it writes nothing.
"""

from __future__ import annotations

import platform
import sys
from time import perf_counter

from . import import_hook, process

_installed = False


def begin(folder: str) -> None:
    """Start the probe in this process, or restart it.

    Args:
        folder: where it writes.
    """
    global _installed  # noqa: PLW0603 - one a process, like the probe
    from . import _note_reached

    _note_reached(folder)
    if _installed:
        probe = process.probe_of(folder)
        probe.folder, probe.by_hand = folder, False
        probe.renew()
        probe.watch.start()
        return
    _installed = True
    process.probe_of(folder)
    for name, patcher in import_hook.WATCHED.items():
        if name in sys.modules:
            process.patch(sys.modules[name], patcher, folder)
    _renew_copies()
    import_hook.install(folder)


def step(n: int, items: int | None) -> None:
    """Take the end of steps that the program tells; from then on optimizers tell none.

    Args:
        n: how many ended together.
        items: samples or tokens in them, None where unknown.
    """
    probe = process.probe_of("")
    if not probe.events.greeted:
        probe.events.hello("python", platform.python_version())
    if not probe.by_hand:
        probe.by_hand = True
        probe.events.write("by-hand")
    probe.steps.stepped(perf_counter(), None, n, items)


def end() -> None:
    """Write what was held back, and nothing more until the next begin."""
    probe = process.probe_of("")
    probe.events.bye()
    probe.watch.end()
    probe.events.forget()


def _renew_copies() -> None:
    """Let `torch.save` be the patched function; PyTorch copied it when it was imported."""
    torch, serialization = sys.modules.get("torch"), sys.modules.get("torch.serialization")
    if hasattr(torch, "save") and hasattr(serialization, "save"):
        torch.save = serialization.save  # type: ignore[union-attr]
