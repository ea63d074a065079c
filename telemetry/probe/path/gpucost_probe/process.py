"""The one probe of a process, made anew in a forked child."""

from __future__ import annotations

import atexit
import os
import sys
from importlib import import_module

from .events import APPLY, Events
from .stacks import Watch
from .steps import Reporter, Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable

    from .applying.input import Trial
    from .applying.recipe import Recipe
    from .tracing import Trace

# Module: its framework, and what in the module is set once a device is in use.
_IN_USE = {
    "jax._src.xla_bridge": ("jax", "_backends"),
    "tensorflow.python.eager.context": ("tensorflow", "_context"),
    "cupy": ("cupy", "__version__"),
}


def _greet(probe: Probe) -> None:
    """Say hello for a framework of the table that is in use, where nobody has said it yet."""
    for module, (framework, attribute) in _IN_USE.items():
        loaded = sys.modules.get(module)
        if loaded is not None and getattr(loaded, attribute, None):
            probe.events.hello(framework)
            return


class Probe(Reporter):
    """What the hooks of one process share.

    Attributes:
        watch: the thread that looks at stacks.
        autocast: type that autocast was entered with since the last step, None without.
        generation: changes in a forked child, so that what the parent has said is said again.
        others: a framework was imported whose steps are not seen.
        by_hand: the program tells its steps itself, so optimizers do not.
        recipe: what is to be applied; None where nothing is.
        trial: of a batch, which this process was started for; None where it was not.
        trace: of some steps, by the framework's own profiler; None where none was asked for.
        each_look: called by the thread that looks at stacks, before each look.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.generation = 0
        self.autocast: object = None
        self.others = False
        self.by_hand = False
        self.trial: Trial | None = None
        self.trace: Trace | None = None
        self.each_look: Callable[[], None] | None = None
        self.recipe = _recipe_in(self)
        self._watched = False
        self.watch = Watch(
            lambda: self.steps.samples, lambda: self.steps.thread, self._look_around, self._odd
        )
        self._begin()

    def _begin(self) -> None:
        permit_looks(self.folder)
        self.events = Events(self.folder)
        self.steps = Steps(self.events)
        if self.trial is not None:
            self.steps.taken = self.trial.stepped
        elif self.trace is not None:
            self.steps.taken = self.trace.stepped
        elif self.recipe is not None and self.recipe.turns is not None:
            self.steps.taken = self.recipe.turns.stepped
        self.events.greet = self.watch.start
        self.events.finish = self._finish

    def renew(self) -> None:
        """Forget everything that belongs to the parent process."""
        self.watch.forget()
        self.events.forget()
        self.trace = None
        if self.recipe is not None:
            self.recipe.forget()
        self.generation += 1
        self._begin()

    def before_fork(self) -> None:
        """End the thread: a program that forks has no more threads than without us."""
        self._watched = self.watch.end()

    def after_fork(self) -> None:
        """Start it again in the parent."""
        if self._watched:
            self.watch.start()

    def _finish(self) -> dict[str, object]:
        self.watch.end()
        if self.trace is not None:
            self.trace.end()
        return {**self.steps.finish(), **ending()}

    def _look_around(self) -> None:
        if self.each_look is not None:
            self.each_look()
        if self.others and not self.events.greeted:
            _greet(self)

    def _odd(self, sentence: str) -> None:
        self.events.odd(sentence)


_SCOPE, _PR_SET_PTRACER = "/proc/sys/kernel/yama/ptrace_scope", 0x59616D61


def permit_looks(folder: str) -> None:
    """Let who started us, and its own, read our stacks, where the kernel asks for that.

    Yama's first scope lets a process be read by its ancestors alone (prctl(2), PR_SET_PTRACER).
    """
    try:
        with open(_SCOPE) as scope, open(os.path.join(folder, "tracer")) as tracer:
            if scope.read().strip() != "1":
                return
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_PTRACER, int(tracer.read()), 0, 0, 0)
    except (OSError, ValueError, AttributeError, ImportError):
        return


def _recipe_in(probe: Probe) -> Recipe | None:
    """Return the actions of a recipe, None where none is to be applied here."""
    if not os.path.exists(os.path.join(probe.folder, APPLY)):
        return None
    from .applying.recipe import Recipe, read_orders, turns_of

    orders = read_orders(probe.folder)
    if orders.get("trial"):
        from .applying.input import trial_of

        probe.trial = trial_of(probe, orders)
    if orders.get("trace"):
        from .tracing import Trace

        probe.trace = Trace(probe, int(orders["trace"]))
    if not orders["actions"]:
        return None
    return Recipe(probe, orders["actions"], turns_of(probe, orders))


def ending() -> dict[str, object]:
    """Return how the program ends where an exception ends it: the name of its type alone.

    Python keeps the last exception that it printed; nothing is hooked for this.
    """
    kind = getattr(sys, "last_type", None)
    if kind is None:
        return {}
    name = str(getattr(kind, "__name__", ""))
    text = str(getattr(sys, "last_value", ""))
    if name == "OutOfMemoryError" or "CUDA out of memory" in text or "HIP out of memory" in text:
        return {"error": name, "out_of_memory": "gpu"}
    if name == "MemoryError" or "DefaultCPUAllocator" in text:
        return {"error": name, "out_of_memory": "host"}
    return {"error": name}


_probe: Probe | None = None


def probe_of(folder: str) -> Probe:
    """Return the probe of this process."""
    global _probe  # noqa: PLW0603 - one a process, by its nature
    if _probe is None:
        _probe = Probe(folder)
        atexit.register(_probe.watch.end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_probe.before_fork,
                after_in_parent=_probe.after_fork,
                after_in_child=_probe.renew,
            )
        _probe.watch.start()
    return _probe


def patch(module: ModuleType, patcher: tuple[str, str], folder: str) -> None:
    """Patch a module that has just been imported."""
    probe = probe_of(folder)
    try:
        hooks = import_module(".hooks." + patcher[0], __package__)
        getattr(hooks, patcher[1])(module, probe)
    except Exception as error:
        probe.events.odd("%s was not patched: %r" % (module.__name__, error))
