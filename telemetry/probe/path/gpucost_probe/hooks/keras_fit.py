"""Keras 3: the batches of `fit`, told by the list of callbacks that every backend calls.

A step is a batch that `fit` trained. Waits for data are seen where a loader of PyTorch feeds it, as
on the PyTorch backend; elsewhere data is fetched within the step, and waits are unknown. Loops of
the program's own are not seen, nor is the time of the optimizer.
"""

from __future__ import annotations

import sys
from time import perf_counter

from ..timing.readings import Loader
from .instrument import Hook, attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable

    from ..process import Probe

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

    def epoch(self, callbacks: Any, _number: int) -> None:
        """Take the begin of an epoch."""
        probe = self.probe
        if self._generation != probe.generation:
            self.__init__(probe)  # type: ignore[misc]
        self._tell(callbacks)
        if not probe.steps.is_reading():
            now_s = perf_counter()
            probe.steps.started(self._training, now_s, now_s)

    def begin(self, _callbacks: Any, batch: int) -> None:
        """Take the begin of a batch, or of several in one call."""
        self._batch = batch
        if not self.probe.steps.is_reading(self._training):
            now_s = perf_counter()
            self.probe.steps.fetched(self._training, now_s, now_s, None)

    def end(self, _callbacks: Any, batch: int) -> None:
        """Take its end."""
        steps = self.probe.steps
        steps.waits_known = steps.is_reading(self._training)
        steps.stepped(perf_counter(), None, batch - self._batch + 1)

    def evaluate(self, _callbacks: Any) -> None:
        """Take the begin of an evaluation."""
        if self.probe.events.greeted:
            now_s = perf_counter()
            self.probe.steps.started(self._evaluation, now_s, now_s)
            self.probe.steps.fetched(self._evaluation, now_s, now_s, None)

    def evaluated(self, _callbacks: Any) -> None:
        """Take the end of an evaluation."""
        if self.probe.events.greeted:
            now_s = perf_counter()
            self.probe.steps.exhausted(self._evaluation, now_s, now_s)

    def _tell(self, callbacks: Any) -> None:
        """Say hello and describe the model, at the first epoch."""
        if not self.probe.events.greeted:  # a loader of PyTorch may have been earlier
            self.probe.events.hello("keras", str(sys.modules["keras"].__version__))
        model = getattr(callbacks, "model", None)
        if model is not None and not self._told:
            self._told = True
            self._tell_model(model)

    def _tell_model(self, model: Any) -> None:
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


class FitHook(Hook):
    """Around one method of keras.callbacks.CallbackList."""

    def __init__(self, fit: Fit, name: str, take: Callable[..., None]) -> None:
        super().__init__(fit.probe.events.odd, "CallbackList." + name)
        self._take = take

    def before(self, *arguments: Any) -> Any:
        """Take the call."""
        self._take(*arguments)


def patch(module: ModuleType, probe: Probe) -> None:
    """Patch keras.src.callbacks.callback_list."""
    fit = Fit(probe)
    for name, arguments, take in (
        ("on_epoch_begin", ("self", "epoch"), fit.epoch),
        ("on_train_batch_begin", ("self", "batch"), fit.begin),
        ("on_train_batch_end", ("self", "batch"), fit.end),
        ("on_test_begin", ("self",), fit.evaluate),
        ("on_test_end", ("self",), fit.evaluated),
    ):
        attach(module.CallbackList, name, FitHook(fit, name, take), arguments)
