"""Steps of Keras 3, files that a program saves, and frameworks whose steps are not seen.

A step of Keras is a batch that `fit` trained, told by the list of callbacks that every backend
calls. Waits for data are seen where a loader of PyTorch feeds it, as on the PyTorch backend;
elsewhere data is fetched within the step, and waits are unknown. Loops of the program's own are not
seen, nor is the time of the optimizer. Of JAX, TensorFlow and CuPy it is told that they are in use.
"""

from __future__ import annotations

import os
from time import perf_counter

from ..steps import Loader
from .instrument import Hook, Outermost, attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Tuple

    from ..foreign import Foreign
    from ..process import Probe

    _Saving = Tuple[Foreign, float]


GIB = 2**30


class Fit:
    """What is known of the training that goes on in this process."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self._training = Loader(1, is_timed=False)
        self._evaluation = Loader(2, is_timed=False)
        self._batch = 0
        self._told = False
        self._generation = probe.generation

    def epoch(self, callbacks: Foreign) -> None:
        """Take the begin of an epoch."""
        probe = self.probe
        if self._generation != probe.generation:
            self.__init__(probe)  # type: ignore[misc]
        self._tell(callbacks)
        if not probe.steps.is_reading():
            now_s = perf_counter()
            probe.steps.started(self._training, now_s, now_s)

    def begin(self, batch: int) -> None:
        """Take the begin of a batch, or of several in one call."""
        self._batch = batch
        if not self.probe.steps.is_reading(self._training):
            now_s = perf_counter()
            self.probe.steps.fetched(self._training, now_s, now_s, None)

    def end(self, batch: int) -> None:
        """Take its end."""
        steps = self.probe.steps
        steps.waits_known = steps.is_reading(self._training)
        steps.stepped(perf_counter(), None, batch - self._batch + 1)

    def evaluate(self) -> None:
        """Take the begin of an evaluation."""
        if self.probe.events.greeted:
            now_s = perf_counter()
            self.probe.steps.started(self._evaluation, now_s, now_s)
            self.probe.steps.fetched(self._evaluation, now_s, now_s, None)

    def evaluated(self) -> None:
        """Take the end of an evaluation."""
        if self.probe.events.greeted:
            now_s = perf_counter()
            self.probe.steps.exhausted(self._evaluation, now_s, now_s)

    def _tell(self, callbacks: Foreign) -> None:
        """Say hello and describe the model, at the first epoch."""
        self.probe.events.hello("keras")  # unless a loader of PyTorch was earlier
        model = getattr(callbacks, "model", None)
        if model is not None and not self._told:
            self._told = True
            self._tell_model(model)

    def _tell_model(self, model: Foreign) -> None:
        policy = model.dtype_policy
        count = int(model.count_params())
        mixed = policy.compute_dtype != policy.variable_dtype
        dtype = str(policy.variable_dtype)
        width = int("".join(filter(str.isdigit, dtype)) or 32) // 8
        self.probe.events.write(
            "model",
            parameters=count,
            gib=round(count * width / GIB, 6),
            dtype=dtype,
            parallelism="none",
        )
        self.probe.events.write(
            "precision",
            autocast=str(policy.compute_dtype) if mixed else None,
            dtype=dtype,
            tf32=None,
        )


def patch_keras(module: ModuleType, probe: Probe) -> None:
    """Patch keras.src.callbacks.callback_list."""
    fit = Fit(probe)
    for name, arguments, take in (
        ("on_epoch_begin", ("self",), fit.epoch),
        ("on_train_batch_begin", ("batch",), fit.begin),
        ("on_train_batch_end", ("batch",), fit.end),
        ("on_test_begin", (), fit.evaluate),
        ("on_test_end", (), fit.evaluated),
    ):
        attach(module.CallbackList, name, arguments, Hook(probe.events.odd, take))


# Module: the function that saves, and the parameter that names the file.
SAVING = {
    "torch.serialization": ("save", "f"),
    "torch.distributed.checkpoint.state_dict_saver": ("save", "checkpoint_id"),
    "safetensors.torch": ("save_file", "filename"),
    "lightning.fabric.utilities.cloud_io": ("_atomic_save", "filepath"),
    "lightning_fabric.utilities.cloud_io": ("_atomic_save", "filepath"),
}
TOGETHER_S = 2.0  # files of one checkpoint follow each other within this time


class _Checkpoints:
    """Numbers the checkpoints of a process: several files, saved in a row, are one."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._outermost = Outermost()
        self._number = 0
        self._end_s = 0.0
        self._step = -1

    def saves(self, target: Foreign) -> _Saving | None:
        """Take a file that begins to be saved; one within another is part of it."""
        return (target, perf_counter()) if self._outermost.enter() else None

    def saved(self, saving: _Saving | None, _value: object) -> None:
        """Take one saved file."""
        if saving is None:
            return
        end_s, probe, (target, begin_s) = perf_counter(), self._probe, saving
        self._outermost.leave()
        if not probe.events.greeted:
            return  # it has not trained: what it saves is not a checkpoint
        if self._step != probe.steps.count or begin_s - self._end_s > TOGETHER_S:
            self._number += 1
        self._step, self._end_s = probe.steps.count, end_s
        probe.steps.saved(end_s - begin_s)
        entry = (_size(target), self._number)
        probe.steps.spans.add("checkpoint", begin_s, end_s - begin_s, saved=entry)

    def not_saved(self, saving: _Saving | None) -> None:
        """Take that nothing was saved."""
        if saving is not None:
            self._outermost.leave()


def _size(target: Foreign | str) -> int | None:
    """Return the bytes of what was saved, None if that cannot be told."""
    try:
        if isinstance(target, (str, os.PathLike)):
            return None if os.path.isdir(target) else os.path.getsize(target)
        return int(target.tell())
    except Exception:
        return None


_checkpoints: dict[int, _Checkpoints] = {}


def patch_saving(module: ModuleType, probe: Probe) -> None:
    """Patch a module with a function that saves."""
    name, target = SAVING[module.__name__]
    checkpoints = _checkpoints.setdefault(id(probe), _Checkpoints(probe))
    hook = Hook(probe.events.odd, checkpoints.saves, checkpoints.saved, checkpoints.not_saved)
    attach(module, name, (target,), hook)


def note_other(_module: ModuleType, probe: Probe) -> None:
    """Take that such a framework was imported; the thread that looks at stacks does the rest."""
    probe.others = True
