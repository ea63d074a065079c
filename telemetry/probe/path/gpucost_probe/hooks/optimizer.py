"""PyTorch's optimizers: each step counts once. Backward passes count where no optimizer steps."""

from __future__ import annotations

import sys
import weakref
from time import perf_counter

from .circumstances import Circumstances
from .instrument import Hook, attach, is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable

    from ..applying.compute import Compute
    from ..foreign import Foreign
    from ..process import Probe


PATIENCE = 20  # steps of another optimizer until it becomes the clock


class _StepClock:
    """Decides which optimizer's steps are the steps of the process: the first that steps."""

    def __init__(self) -> None:
        self._chosen: weakref.ref[Foreign] | None = None
        self._others: dict[int, int] = {}

    def is_chosen(self, optimizer: Foreign) -> bool:
        """Return whether a step of this optimizer counts."""
        chosen = None if self._chosen is None else self._chosen()
        if chosen is optimizer:
            if self._others:
                self._others.clear()
            return True
        if chosen is not None:
            key = id(optimizer)
            self._others[key] = self._others.get(key, 0) + 1
            if self._others[key] < PATIENCE:
                return False
        self._chosen = weakref.ref(optimizer)
        self._others.clear()
        return True


class _StepHooks:
    """The hooks that PyTorch 2 calls before and after each step.

    A step within a step (`super().step()`, a wrapper) is part of it. The hooks are never in the
    stack of the step itself. A step that raises calls no second hook; whether an earlier step is
    still going on is then read from the stack. While torch.compile traces an optimizer, the hooks
    are nothing, so a compiled step is not counted.

    Args:
        probe: of this process.
        compute: applies a recipe to models and optimizers; None where there is no recipe.
    """

    def __init__(self, probe: Probe, compute: Compute | None) -> None:
        self._probe = probe
        self._compute = compute
        self._torch = sys.modules["torch"]
        self._alive = True
        self._depth = 0
        self._begin_s = 0.0
        self._spent_s: float | None = 0.0
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._generation = self._probe.generation
        self._clock = _StepClock()
        self._circumstances = Circumstances(self._probe)

    def before(self, optimizer: Foreign, _args: object, _kwargs: object) -> None:
        """Take the begin of a step."""
        if self._alive and not _is_compiling(self._torch):
            try:
                wrapper = sys._getframe(1)
                if self._depth and not is_within(wrapper, wrapper.f_code):
                    self._depth = 0
                if self._compute is not None and not self._depth:
                    self._apply(self._compute.before_step, optimizer)
                self._depth += 1
                if self._depth == 1:
                    self._begin_s = perf_counter()
            except Exception as error:
                self._stop(error)

    def after(
        self, optimizer: Foreign, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        """Take the end of a step; `args` begins with the optimizer itself."""
        if self._alive and not _is_compiling(self._torch):
            try:
                if self._compute is not None and self._depth == 1:
                    self._apply(self._compute.after_step, optimizer, self._probe.autocast)
                self._depth -= 1
                if not self._depth:
                    arguments = (*args[1:], *kwargs.values())
                    self._ended(optimizer, closure=any(map(callable, arguments)))
            except Exception as error:
                self._stop(error)

    def _ended(self, optimizer: Foreign, *, closure: bool) -> None:
        """Take the end of an outermost step.

        Args:
            optimizer: that stepped.
            closure: the step was given the model to run, so its time is not the optimizer's alone.
        """
        end_s = perf_counter()
        if self._generation != self._probe.generation:
            self._begin_anew()
        if closure or self._spent_s is None:
            self._spent_s = None
        else:
            self._spent_s += end_s - self._begin_s
        if self._clock.is_chosen(optimizer):
            spent_s, self._spent_s = self._spent_s, 0.0
            self._probe.events.hello("pytorch")
            if not self._probe.by_hand:
                self._probe.steps.stepped(end_s, spent_s)
            self._circumstances.look(optimizer, end_s)

    def _apply(self, part: Callable[..., None], *arguments: object) -> None:
        """Let model and optimizer have what a recipe says; an error leaves them as they are."""
        try:
            part(*arguments)
        except Exception as error:
            self._compute = None
            self._probe.events.odd("models and optimizers are left as they are: %r" % (error,))

    def _stop(self, error: Exception) -> None:
        self._alive = False
        self._probe.events.odd("the hook of Optimizer.step stepped aside: %r" % (error,))


def _is_compiling(torch: ModuleType) -> bool:
    """Return whether torch.compile is tracing this call; PyTorch 2.0 cannot tell."""
    compiler = getattr(torch, "compiler", None)
    return compiler is not None and bool(compiler.is_compiling())


def patch_optimizers(module: ModuleType, probe: Probe) -> None:
    """Patch torch.optim.optimizer."""
    if not hasattr(module, "register_optimizer_step_post_hook"):
        probe.events.odd("PyTorch before 2.0 does not tell of the steps of its optimizers")
        return
    compute = None
    if probe.recipe is not None:
        from ..applying.compute import Compute

        compute = Compute(probe.recipe)
    hooks = _StepHooks(probe, compute)
    module.register_optimizer_step_pre_hook(hooks.before)
    module.register_optimizer_step_post_hook(hooks.after)


def patch_backward(module: ModuleType, probe: Probe) -> None:
    """Patch torch.autograd: its backward pass."""

    def begins(tensors: Foreign | None) -> None:
        probe.steps.loss = loss_of(tensors)  # that the pass starts from

    def ended(_token: None, _value: object) -> None:
        probe.events.hello("pytorch")
        probe.steps.went_back(perf_counter())

    attach(module, "backward", ("tensors",), Hook(probe.events.odd, begins, ended))


def loss_of(tensors: Foreign | list[Foreign] | None) -> Foreign | None:
    """Return the loss, where it is one number that costs nothing to read; None else.

    On a GPU, reading it would wait for the device. What a product ends with may be scaled for half
    precision, by a factor that is none of the loss's.
    """
    if isinstance(tensors, (list, tuple)):
        tensors = tensors[0] if len(tensors) == 1 else None
    device = getattr(tensors, "device", None)
    if tensors is None or device is None or device.type != "cpu" or tensors.numel() != 1:
        return None
    made_by = type(tensors.grad_fn).__name__
    return None if made_by.startswith("Mul") else tensors.detach()
