"""Which settings of a DataLoader the program wrote out itself, if only to the default."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

# They make a program's loader anew and pass every setting, also those that the program left alone.
_COPIERS = ("accelerate", "lightning", "pytorch_lightning", "lightning_fabric")
# They pass their own arguments' values, so nothing can be told from its default.
PASSERS = {
    "transformers": "Transformers passes %s itself: set it in TrainingArguments",
}
_OURS = ("torch.utils.data", "gpucost_probe")
_MOST = 4096  # data sets that are remembered


class Given:
    """Remembers what each loader was made with."""

    def __init__(self) -> None:
        self._of_loader: dict[int, tuple[Any, dict[str, str]]] = {}
        self._of_dataset: dict[int, dict[str, str]] = {}

    def of(self, loader: Any) -> dict[str, str] | None:
        """Return the settings that were written out, each with who did; None where unknown."""
        entry = self._of_loader.get(id(loader))
        return entry[1] if entry is not None and entry[0]() is loader else None

    def watch(self, module: ModuleType) -> None:
        """Wrap `DataLoader.__init__`."""
        owner: Any = module.DataLoader
        original = owner.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(loader, *args, **kwargs)
            try:
                named = list(signature.bind(loader, *args, **kwargs).arguments)[1:]
                self._take(loader, named, _caller())
            except Exception:
                self._of_loader.pop(id(loader), None)

        owner.__init__ = __init__

    def _take(self, loader: Any, named: list[str], caller: str) -> None:
        key, dataset = id(loader), id(loader.dataset)
        top = caller.partition(".")[0]
        if top in _COPIERS:
            given = self._of_dataset.get(dataset, {})
        else:
            given = {name: PASSERS.get(top, "") for name in named}
            if len(self._of_dataset) < _MOST:
                self._of_dataset[dataset] = given
        forget = self._of_loader.pop
        self._of_loader[key] = (weakref.ref(loader, lambda _: forget(key, None)), given)


def _caller() -> str:
    """Return the module that makes the loader: the first that is not PyTorch's or ours."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith(_OURS):
            return name
        frame = frame.f_back
    return ""
