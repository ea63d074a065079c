"""Callbacks of Lightning and Transformers that measure the training they are given to.

```python
from gpucost.callbacks import LightningCallback, TransformersCallback

Trainer(callbacks=[LightningCallback()])  # of Lightning
Trainer(..., callbacks=[TransformersCallback()])  # of Transformers
```

Neither library is imported before its callback is asked for, and none is needed for the other.
"""

from __future__ import annotations

import atexit
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucost.profiling.measuring import Measurement, measure

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LightningCallback", "TransformersCallback"]  # noqa: F822 - made by __getattr__

_FIT = "fit"
_JOB = "job"


class _Measuring:
    """Measures from the begin of a training to its end; what both callbacks share.

    Args:
        name: of the job; the script's name where None.
        options: as `gpucost.measure` takes them: `target`, `interval_s`, `gpus`, `gpu`, `quiet` ...

    Attributes:
        measurement: of the training that runs, or that ran last; None before the first.
    """

    def __init__(self, name: str | None = None, **options: Any) -> None:  # noqa: ANN401 - see measure
        super().__init__()
        self.measurement: Measurement | None = None
        self._name = name
        self._options = options
        self._running = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave the measurement out: it is of one process, and processes may be spawned."""
        return {**self.__dict__, "measurement": None, "_running": False}

    def _begin(self) -> None:
        self._end()  # of a training that was broken off, as in a notebook
        script = Path(sys.argv[0] if sys.argv else "").stem.strip("-")
        self.measurement = measure(self._name or script or _JOB, **self._options)
        self._running = True
        atexit.register(self._end)
        self.measurement.__enter__()

    def _end(self) -> None:
        if self._running and self.measurement is not None:
            self._running = False
            atexit.unregister(self._end)
            self.measurement.__exit__(None, None, None)


def _lightning() -> type:
    """Return the callback for Lightning, of whichever of its two packages the program uses."""
    base = _class_of(("lightning.pytorch", "pytorch_lightning"), "Callback", "lightning")

    class LightningCallback(_Measuring, base):  # type: ignore[misc, valid-type]
        """Measures `trainer.fit`, in each of its processes; the profile is of the run.

        Takes a `name` and the options of `gpucost.measure`.
        """

        def setup(self, trainer: object, pl_module: object, stage: str) -> None:  # noqa: ARG002 - Lightning's
            """Begin, where it is a fit."""
            if stage == _FIT:
                self._begin()

        def teardown(self, trainer: object, pl_module: object, stage: str) -> None:  # noqa: ARG002 - the same
            """Write the profile."""
            if stage == _FIT:
                self._end()

        def on_exception(self, *_: object) -> None:
            """Write the profile of a fit that was broken off."""
            self._end()

    return LightningCallback


def _transformers() -> type:
    """Return the callback for the Trainer of Transformers."""
    base = _class_of(("transformers",), "TrainerCallback", "transformers")

    class TransformersCallback(_Measuring, base):  # type: ignore[misc, valid-type]
        """Measures `trainer.train`, in each of its processes; the profile is of the run.

        Takes a `name` and the options of `gpucost.measure`. The Trainer tells no callback of an
        exception: then the profile is written when the program ends.
        """

        def on_train_begin(self, *_: object, **__: object) -> None:
            """Begin."""
            self._begin()

        def on_train_end(self, *_: object, **__: object) -> None:
            """Write the profile."""
            self._end()

    return TransformersCallback


def _class_of(modules: tuple[str, ...], name: str, package: str) -> type:
    """Return a class of the first module that the program has imported, or that is installed.

    Raises:
        ImportError: none is.
    """
    for module in sorted(modules, key=lambda name_of: name_of not in sys.modules):
        try:
            kind: type = getattr(import_module(module), name)
        except ModuleNotFoundError:
            continue
        return kind
    raise ImportError(
        f"this callback is for {package}, which is not installed here: pip install {package}."
    )


_MADE: dict[str, Callable[[], type]] = {
    "LightningCallback": _lightning,
    "TransformersCallback": _transformers,
}


def __getattr__(name: str) -> type:
    """Make a callback when it is first asked for."""
    if name not in _MADE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    callback = _MADE[name]()
    callback.__qualname__ = name  # so that it can be pickled for a process that is spawned
    globals()[name] = callback
    return callback
