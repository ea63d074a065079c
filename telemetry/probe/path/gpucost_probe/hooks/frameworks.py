"""Steps of Keras 3, files that a program saves, and frameworks whose steps are not seen.

A step of Keras is a batch that `fit` trained, told by the list of callbacks that every backend
calls. Waits for data are seen where a loader of PyTorch feeds it, as on the PyTorch backend;
elsewhere data is fetched within the step, and waits are unknown. Loops of the program's own are not
seen, nor is the time of the optimizer. Of JAX, TensorFlow and CuPy it is told that they are in use.
"""

from __future__ import annotations

from time import perf_counter

from ..steps import Loader
from .instrument import Hook, Outermost, attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from ..foreign import Foreign
    from ..process import Probe


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
        self.probe.events.write("model", parameters=count, dtype=dtype, parallelism="none")
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


# Module: the function that saves.
SAVING = {
    "torch.serialization": "save",
    "torch.distributed.checkpoint.state_dict_saver": "save",
    "safetensors.torch": "save_file",
    "lightning.fabric.utilities.cloud_io": "_atomic_save",
    "lightning_fabric.utilities.cloud_io": "_atomic_save",
}


class _Checkpoints:
    """Times the files that a process saves, once it has trained."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._outermost = Outermost()

    def saves(self) -> float | None:
        """Return when a file begins to be saved; None of one within another: it is part of that."""
        return perf_counter() if self._outermost.enter() else None

    def saved(self, begin_s: float | None, _value: object) -> None:
        """Take one saved file."""
        if begin_s is None:
            return
        length_s, probe = perf_counter() - begin_s, self._probe
        self._outermost.leave()
        if probe.events.greeted:  # else it has not trained: what it saves is not a checkpoint
            probe.steps.saved(length_s)
            probe.steps.spans.add("checkpoint", begin_s, length_s)

    def not_saved(self, begin_s: float | None) -> None:
        """Take that nothing was saved."""
        if begin_s is not None:
            self._outermost.leave()


_checkpoints: dict[int, _Checkpoints] = {}


def patch_saving(module: ModuleType, probe: Probe) -> None:
    """Patch a module with a function that saves."""
    checkpoints = _checkpoints.setdefault(id(probe), _Checkpoints(probe))
    hook = Hook(probe.events.odd, checkpoints.saves, checkpoints.saved, checkpoints.not_saved)
    attach(module, SAVING[module.__name__], (), hook)


def note_other(_module: ModuleType, probe: Probe) -> None:
    """Take that such a framework was imported; the thread that looks at stacks does the rest."""
    probe.others = True
