"""Knows when a module of PyTorch, Keras or JAX has been imported, and patches it then."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable

# Module of the program: the module in `hooks` that patches it, by `patch(module, probe)`.
WATCHED = {
    "torch.utils.data.dataloader": "loader",
    "torch.optim.optimizer": "optimizer",
    "torch.autograd": "backward",
    "torch.amp.autocast_mode": "precision",
    "torch.serialization": "checkpoint",
    "torch.distributed.checkpoint.state_dict_saver": "checkpoint",
    "safetensors.torch": "checkpoint",
    "lightning.fabric.utilities.cloud_io": "checkpoint",
    "lightning_fabric.utilities.cloud_io": "checkpoint",
    "keras.src.callbacks.callback_list": "keras_fit",
    "jax._src.xla_bridge": "others",
    "tensorflow.python.eager.context": "others",
    "cupy": "others",
}


class Finder:
    """A finder of sys.meta_path that finds nothing itself: it watches modules being found."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._waiting = dict(WATCHED)

    def find_spec(
        self, name: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find; the module gets patched when it has been executed."""
        patcher = self._waiting.pop(name, None)
        if patcher is None:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                self._watch(spec, patcher)
                return spec
        self._waiting[name] = patcher
        return None

    def _watch(self, spec: ModuleSpec, patcher: str) -> None:
        loader = spec.loader
        try:
            execute = loader.exec_module  # type: ignore[union-attr]
            loader.exec_module = _after(  # type: ignore[union-attr, method-assign]
                execute, lambda module: self._patch(loader, module, patcher)
            )
        except Exception:
            pass

    def _patch(self, loader: Any, module: ModuleType, patcher: str) -> None:
        try:
            del loader.exec_module
            from . import process

            process.patch(module, patcher, self._folder)
        except Exception:
            pass


def _after(
    execute: Callable[[ModuleType], None], then: Callable[[ModuleType], None]
) -> Callable[[ModuleType], None]:
    """Return `execute` followed by `then`, hidden from tracebacks like the import machinery itself.

    Python leaves frames out of a traceback that end in this name of this file (import.c,
    remove_importlib_frames), so that the error of a broken installation looks as it does without
    us.
    """

    def exec_module(module: ModuleType) -> None:
        execute(module)
        then(module)

    exec_module.__code__ = exec_module.__code__.replace(
        co_filename="<frozen importlib._bootstrap>", co_name="_call_with_frames_removed"
    )
    return exec_module


def install(folder: str) -> None:
    """Start watching imports."""
    sys.meta_path.insert(0, Finder(folder))
