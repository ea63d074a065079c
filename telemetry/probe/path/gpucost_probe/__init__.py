"""The probe of gpucost, in the process of the program that is measured.

It waits until the program imports PyTorch or Keras (it never imports them itself), changes a
handful of their functions so that they tell when a batch is fetched, an optimizer steps, a
checkpoint is saved, and writes that as JSON lines into the folder named by GPUCOST_PROBE_DIR:

    reached            one line with the process id of each interpreter that started with the probe
    PID-START.jsonl    the events of one process; made when the first event happens

An error of the probe never reaches the program: the hook that failed goes silent and says so in an
`odd` event. Without a disk to write to, the probe goes silent altogether.

A program that measures itself, in an environment without gpucost, calls `measure`; the
distribution `gpucost-probe` is this package alone, and needs nothing but the standard library.

Tried with PyTorch 2.13 on CPU. What concerns CUDA (copies, memory) was tried with a stand-in for
the calls of torch.cuda that it makes; nothing here waits for a GPU.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Callable, Sequence

    from .by_hand import Measurement

__version__ = "0.1.0"

# Module of the program: the module in `hooks` and the function in it, f(module, probe), that
# patches it.
WATCHED = {
    "torch.utils.data.dataloader": ("loader", "patch_loaders"),
    "torch.optim.optimizer": ("optimizer", "patch_optimizers"),
    "torch.autograd": ("optimizer", "patch_backward"),
    "torch.amp.autocast_mode": ("circumstances", "patch_precision"),
    "torch.serialization": ("frameworks", "patch_saving"),
    "torch.distributed.checkpoint.state_dict_saver": ("frameworks", "patch_saving"),
    "safetensors.torch": ("frameworks", "patch_saving"),
    "lightning.fabric.utilities.cloud_io": ("frameworks", "patch_saving"),
    "lightning_fabric.utilities.cloud_io": ("frameworks", "patch_saving"),
    "keras.src.callbacks.callback_list": ("frameworks", "patch_keras"),
    "jax._src.xla_bridge": ("frameworks", "note_other"),
    "tensorflow.python.eager.context": ("frameworks", "note_other"),
    "cupy": ("frameworks", "note_other"),
}


class _Finder:
    """A finder of sys.meta_path that finds nothing itself: it watches modules being found."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._waiting = dict(WATCHED)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find; the module gets patched when it has been executed."""
        patcher = self._waiting.pop(name, None)
        if patcher is None:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                self._watch(spec.loader, patcher)
                return spec
        self._waiting[name] = patcher
        return None

    def _watch(self, loader: Loader | None, patcher: tuple[str, str]) -> None:
        if loader is None:
            return
        try:
            execute = loader.exec_module
            loader.exec_module = _after(  # type: ignore[method-assign, assignment]
                execute, lambda module: self._patch(loader, module, patcher)
            )
        except Exception:
            pass

    def _patch(self, loader: Loader, module: ModuleType, patcher: tuple[str, str]) -> None:
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


def start(folder: str) -> None:
    """Note that this interpreter was reached, and wait for PyTorch and Keras to be imported."""
    _note_reached(folder)
    watch_imports(folder)


def watch_imports(folder: str) -> None:
    """Wait for modules of the table to be imported."""
    sys.meta_path.insert(0, _Finder(folder))


def measure(name: str = "job", *, interval_s: float = 1.0) -> Measurement:
    """Measure a block of a program: steps, waits for data, and the host, but no GPU.

    Steps of PyTorch and Keras are found by themselves, whether they were imported before or are
    later; others are told by `m.step()`. At the end, also by an exception, `NAME.capture.jsonl` is
    written into the current folder: `gpucost import NAME.capture.jsonl` makes a profile of it, on
    any machine that has gpucost.

    Args:
        name: of the job, and of the file.
        interval_s: seconds between readings of the host.

    Returns:
        To be used in `with`; measuring begins there.
    """
    from .by_hand import Measurement

    return Measurement(name, interval_s)


def _note_reached(folder: str) -> None:
    """Append the process id to the file `reached`; one write, so that lines do not mix."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        file = os.open(os.path.join(folder, "reached"), flags, 0o666)
    except OSError:
        return
    try:
        os.write(file, b"%d\n" % os.getpid())
    except OSError:
        pass
    finally:
        os.close(file)
