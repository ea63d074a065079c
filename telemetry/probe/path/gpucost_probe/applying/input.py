"""Gives loaders that the program left without workers the workers of the recipe.

The loader's settings stay as the program reads them; which of them the program wrote out itself, if
only to the default, is remembered. A process that was started to try one batch size makes a few
steps with it, tells what memory they took, and stands still until who started it ends it, so that
nothing behind those steps (a checkpoint, a report) is done.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import sys
import threading
import time
import weakref
from statistics import median

from .certificate import Evidence, Watch, affordable, indices_of, why_not_begin
from .feed import PINNED, PREFETCH, WORKERS, Feed
from .recipe import APPLIED, LEFT, Recipe
from .workers import WatchedSet, in_forked_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType
    from typing import Any, Callable

    from ..foreign import Foreign
    from ..process import Probe


# They make a program's loader anew and pass every setting, also those that the program left alone.
_COPIERS = ("accelerate", "lightning", "pytorch_lightning", "lightning_fabric")
# They pass their own arguments' values, so nothing can be told from its default.
PASSERS = {"transformers": "Transformers passes %s itself: set it in TrainingArguments"}
_OURS = ("torch.utils.data", "gpucost_probe")
_MOST = 4096  # data sets that are remembered


class WrittenSettings:
    """Remembers what each loader was made with."""

    def __init__(self) -> None:
        self._of_loader: dict[int, tuple[Callable[[], object], dict[str, str]]] = {}
        self._of_dataset: dict[int, dict[str, str]] = {}

    def of(self, loader: Foreign) -> dict[str, str] | None:
        """Return the settings that were written out, each with who did; None where unknown."""
        entry = self._of_loader.get(id(loader))
        return entry[1] if entry is not None and entry[0]() is loader else None

    def watch(self, module: ModuleType) -> None:
        """Wrap `DataLoader.__init__`."""

        def looked_at(arguments: dict[str, object]) -> Callable[[Foreign], None]:
            named, caller = list(arguments)[1:], _caller()
            return lambda loader: self._take(loader, named, caller)

        wrap_init(module, looked_at)

    def _take(self, loader: Foreign, named: list[str], caller: str) -> None:
        key, dataset = id(loader), id(loader.dataset)
        top = caller.partition(".")[0]
        if top in _COPIERS:
            settings = self._of_dataset.get(dataset, {})
        else:
            settings = {name: PASSERS.get(top, "") for name in named}
            if len(self._of_dataset) < _MOST:
                self._of_dataset[dataset] = settings
        forget = self._of_loader.pop
        self._of_loader[key] = (weakref.ref(loader, lambda _: forget(key, None)), settings)


def _caller() -> str:
    """Return the module that makes the loader: the first that is not PyTorch's or ours."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith(_OURS):
            return name
        frame = frame.f_back
    return ""


class SeededStart:
    """What a worker does first: seeds the random streams that PyTorch leaves alone, per worker."""

    def __init__(self, own: Callable[[int], None] | None) -> None:
        self._own = own

    def __call__(self, worker_id: int) -> None:
        """Begin."""
        import random

        torch = sys.modules["torch"]
        seed = torch.initial_seed() % 2**32  # PyTorch's own of this worker
        random.seed(seed)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(seed)
        if self._own is not None:
            self._own(worker_id)


def wrap_init(
    module: ModuleType, change: Callable[[dict[str, Any]], Callable[[Foreign], None] | None]
) -> None:
    """Have `change` look at the arguments of each DataLoader, and change them, by their names.

    What it returns, if anything, is called with the loader that was made. An error of ours leaves
    the arguments as they were.
    """
    owner = module.DataLoader
    original = owner.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(loader: Foreign, *args: object, **kwargs: object) -> None:  # noqa: N807
        then = None
        try:
            bound = signature.bind(loader, *args, **kwargs)
            then = change(bound.arguments)
            args, kwargs = bound.args[1:], bound.kwargs
        except Exception:
            pass
        original(loader, *args, **kwargs)
        try:
            if then is not None:
                then(loader)
        except Exception:
            pass

    owner.__init__ = __init__


def give_workers(module: ModuleType, recipe: Recipe) -> None:
    """Have every map-style loader made with workers, as was asked for, whatever it was to have."""
    iterable = sys.modules["torch.utils.data.dataset"].IterableDataset

    def change(settings: dict[str, Any]) -> None:
        where = "loader (%s)" % type(settings["dataset"]).__name__
        if isinstance(settings["dataset"], iterable):
            recipe.tell(WORKERS, LEFT, "an iterable data set would give every batch twice", where)
            return
        before, count = settings.get("num_workers", 0), _asked_workers(recipe)
        settings.update(
            num_workers=count, worker_init_fn=SeededStart(settings.get("worker_init_fn"))
        )
        detail = "num_workers %d -> %d, as asked: random streams are seeded per worker, so items"
        detail += " that draw are not the same bit for bit"
        recipe.tell(WORKERS, APPLIED, detail % (before, count), where)

    wrap_init(module, change)


def _asked_workers(recipe: Recipe) -> int:
    cores = len(os.sched_getaffinity(0))
    return min(recipe.number(WORKERS, "num_workers", max(1, cores - 1)), _MOST_WORKERS)


_MOST_WORKERS = 16
_START_S, _START_SHARE = 0.03, 0.1  # a worker's start, measured: 25-36 ms; of an epoch's reading
_WAITS = 0.5  # share of the reading on a core: below it, items mostly wait for something else


class Reading:
    """One loader that may get workers.

    Attributes:
        where: its name for people.
        evidence: of its first batches.
        watch: over its data set.
        left: why it is left alone, None as long as it is not.
        lengths: batches of each iteration that ended or was left.
        repeated: whether workers have read the first batches again.
        workers: how many it has.
        costly_ahead: batches that workers read ahead at the cost of the program's cores.
        start_s: that starting them took.
    """

    def __init__(self, loader: Foreign, where: str, reason: str | None) -> None:
        self.loader = weakref.ref(loader)
        self.where, self.left = where, reason
        self.evidence = Evidence()
        roots = (loader.dataset, loader.collate_fn, indices_of(loader))
        self.watch = Watch(*(roots if reason is None else ()))
        self.lengths: list[int] = []
        self.repeated = False
        self.workers = 0
        self.costly_ahead = 0
        self.start_s = 0.0


class Inputs:
    """All loaders of a process that may get workers."""

    def __init__(self, module: ModuleType, recipe: Recipe) -> None:
        self.module = module
        self.recipe = recipe
        recipe.refuse_versions(str(sys.modules["torch"].__version__))
        self.busy = threading.local()  # reading a batch: a loader that begins now is within it
        self.live = 0  # workers of all loaders
        self._written = WrittenSettings()
        self._readings: dict[int, Reading] = {}
        self._count = 0
        if all(recipe.settings(code) is None for code in (WORKERS, PREFETCH, PINNED)):
            pass
        elif (recipe.settings(WORKERS) or {}).get("any_loader"):
            give_workers(module, recipe)
        else:
            self._written.watch(module)
            self.feed()
        os.register_at_fork(after_in_child=self._in_child)

    def feed(self) -> None:
        """Wrap `DataLoader.__iter__`: its iterator reads from our feed, where there is one."""
        owner, fed = self.module.DataLoader, self._fed
        original = owner.__iter__

        @functools.wraps(original)
        def __iter__(self: Foreign) -> object:  # noqa: N807
            return original(fed(self))

        owner.__iter__ = __iter__

    def _fed(self, loader: Foreign) -> object:
        """Return the loader, or one that is the same but for what it reads from."""
        try:
            outer: Reading | None = getattr(self.busy, "reading", None)
            if outer is not None and outer.left is None:
                outer.left = "its items are read from another DataLoader"
                self.leave(outer.where, outer.left)
            if outer is not None or isinstance(loader.dataset, WatchedSet):
                return loader
            if self.module.get_worker_info() is not None:
                return loader
            reading = self._reading(loader)
            return loader if reading.left is not None else Feed(self, reading, loader).loader
        except Exception as error:
            self.recipe.probe.events.odd("a loader is left as it is: %r" % (error,))
            return loader

    def _reading(self, loader: Foreign) -> Reading:
        reading = self._readings.get(id(loader))
        if reading is not None and reading.loader() is loader:
            return reading
        self._count += 1
        where = "loader %d (%s)" % (self._count, type(loader.dataset).__name__)
        why = self._why_not(loader)
        reading = Reading(loader, where, why)
        if why is not None:
            self.leave(where, why)
        self._readings[id(loader)] = reading
        key, forget = id(loader), self._readings.pop
        reading.loader = weakref.ref(loader, lambda _: forget(key, None))
        return reading

    def _why_not(self, loader: Foreign) -> str | None:
        written = self._written.of(loader)
        if written is None:
            return "how the program made it is unknown"
        if "num_workers" in written:
            setting = "num_workers=%r" % loader.num_workers
            return (
                written["num_workers"] % setting
                if written["num_workers"]
                else ("the program sets %s itself" % setting)
            )
        if self.recipe.settings(WORKERS) is None:
            return "it has no workers, and none were asked for"
        if loader.num_workers > 0:
            return "it has %d workers already" % loader.num_workers
        return why_not_begin(loader)

    def _in_child(self) -> None:
        """Take that this process was forked: workers are those of its parent."""
        in_forked_child()
        self.live = 0
        self.busy.reading = None

    def leave(self, where: str, why: str) -> None:
        """Say that a loader stays as it is."""
        for code in (WORKERS, PREFETCH, PINNED):
            if self.recipe.settings(code) is not None:
                self.recipe.tell(code, LEFT, why, where)

    def why_not_pin(self, loader: Foreign) -> str | None:
        """Return why batches of workers are not pinned; None where they are."""
        if self.recipe.settings(PINNED) is None:
            return "it was not asked for"
        if "pin_memory" in (self._written.of(loader) or ()):
            return "the program sets pin_memory itself"
        torch = sys.modules["torch"]
        return None if torch.cuda.is_available() else "there is no GPU to copy to"

    def count_for(self, evidence: Evidence, batches: int | None) -> tuple[int, int, str]:
        """Return workers and batches ahead for each, and what they follow from.

        The recipe's number is what the cores of its machine afford. Where items mostly wait, for a
        disk or a network, cores do not limit them: then as many as the program's pace needs. Never
        so many that starting them takes more than a tenth of the reading.
        """
        workers = self.recipe.number(WORKERS, "num_workers", 1)
        ahead = self.recipe.number(WORKERS, "prefetch_factor", 2)
        ahead = self.recipe.number(PREFETCH, "prefetch_factor", ahead)
        own_s = max(evidence.round_typical_s - evidence.fetch_typical_s, 1e-4)
        needed = math.ceil(evidence.fetch_typical_s / own_s) + 1
        count, why = min(workers, _MOST_WORKERS), "the recipe's"
        if evidence.busy_share < _WAITS and needed > count:
            cores = len(os.sched_getaffinity(0))
            fit = int(cores / max(evidence.busy_share, cores / _MOST_WORKERS))
            count = max(count, min(needed, fit))
            why = "items keep a core busy for %.0f %% of their time" % (100 * evidence.busy_share)
        if batches is not None:
            read_s = evidence.fetch_typical_s * batches
            count = max(1, min(count, int(_START_SHARE * read_s / _START_S)))
        count, ahead = affordable(count, ahead, max(1, evidence.size))
        return max(0, min(count, _MOST_WORKERS - self.live)), ahead, why


_PATIENCE_S = 120.0  # until it is taken that nobody is there to end us
_GIB = 2**30
_STATUS = "/proc/self/status"


class Trial:
    """What this process tries.

    Args:
        probe: of this process.
        orders: `steps` to take; `batch` in place of `own`, both None for the program's own.
    """

    def __init__(self, probe: Probe, orders: dict[str, Any]) -> None:
        self._probe = probe
        self._most = int(orders["steps"])
        self._batch, self._own = orders.get("batch"), orders.get("own")
        self._lengths: list[float] = []
        self._count = 0

    def watch(self, module: ModuleType) -> None:
        """Give every loader of the program's own batch size the other one."""
        if self._batch is None:
            return

        def change(arguments: dict[str, object]) -> None:
            if arguments.get("batch_size", 1) == self._own:
                arguments["batch_size"] = self._batch

        wrap_init(module, change)

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
            line = next(text for text in stream if text.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / _GIB
    except (OSError, ValueError, StopIteration):
        return None


def _gpu_gib() -> float | None:
    """Return the most GPU memory that PyTorch ever held here; None without a GPU."""
    torch = sys.modules["torch"]
    try:
        if not torch.cuda.is_initialized():
            return None
        return float(torch.cuda.max_memory_reserved()) / _GIB
    except Exception:
        return None


def trial_of(probe: Probe, orders: dict[str, Any]) -> Trial | None:
    """Return the trial that this process was started for, None where it was not."""
    trial = orders.get("trial")
    try:
        return Trial(probe, trial) if isinstance(trial, dict) else None
    except (KeyError, TypeError, ValueError):
        return None
