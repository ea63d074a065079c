"""The one probe of a process, made anew in a forked child."""

from __future__ import annotations

import os
from importlib import import_module

from .events import Events
from .steps import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class Probe:
    """What the hooks of one process share.

    Attributes:
        events: the event file.
        steps: the clock of the optimizer steps.
        autocast: type that autocast was entered with since the last step, None without.
        generation: changes in a forked child, so that what the parent has said is said again.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.generation = 0
        self.autocast: Any = None
        self.events = Events(folder)
        self.steps = Steps(self.events)

    def renew(self) -> None:
        """Forget everything that belongs to the parent process."""
        self.events.forget()
        self.generation += 1
        self.events = Events(self.folder)
        self.steps = Steps(self.events)


_probe: Probe | None = None


def probe_of(folder: str) -> Probe:
    """Return the probe of this process."""
    global _probe  # noqa: PLW0603 - one a process, by its nature
    if _probe is None:
        _probe = Probe(folder)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_probe.renew)
    return _probe


def patch(module: ModuleType, patcher: str, folder: str) -> None:
    """Patch a module that has just been imported."""
    probe = probe_of(folder)
    try:
        import_module("." + patcher, __package__).patch(module, probe)
    except Exception as error:
        probe.events.odd("%s was not patched: %r" % (module.__name__, error))
