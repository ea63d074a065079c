"""How the program makes its loaders: what it wrote out itself, and what is changed when asked.

A process that was started to try one batch size makes a few steps with it, tells what memory they
took, and stands still until who started it ends it, so that nothing behind those steps (a
checkpoint, a report) is done.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
import weakref
from statistics import median

from .recipe import APPLIED, LEFT, MOST_WORKERS, WORKERS, Recipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType
    from typing import Any, Callable

    from ..foreign import Foreign
    from ..steps import Reporter


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


class _SeededStart:
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
            num_workers=count, worker_init_fn=_SeededStart(settings.get("worker_init_fn"))
        )
        detail = "num_workers %d -> %d, as asked: random streams are seeded per worker, so items"
        detail += " that draw are not the same bit for bit"
        recipe.tell(WORKERS, APPLIED, detail % (before, count), where)

    wrap_init(module, change)


def _asked_workers(recipe: Recipe) -> int:
    cores = len(os.sched_getaffinity(0))
    return min(recipe.number(WORKERS, "num_workers", max(1, cores - 1)), MOST_WORKERS)


_PATIENCE_S = 120.0  # until it is taken that nobody is there to end us
_GIB = 2**30
_STATUS = "/proc/self/status"


class Trial:
    """What this process tries.

    Args:
        probe: of this process.
        orders: `steps` to take; `batch` in place of `own`, both None for the program's own.
    """

    def __init__(self, probe: Reporter, orders: dict[str, Any]) -> None:
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


def trial_of(probe: Reporter, orders: dict[str, Any]) -> Trial | None:
    """Return the trial that this process was started for, None where it was not."""
    trial = orders.get("trial")
    try:
        return Trial(probe, trial) if isinstance(trial, dict) else None
    except (KeyError, TypeError, ValueError):
        return None
