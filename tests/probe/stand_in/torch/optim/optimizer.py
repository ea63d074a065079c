"""Optimizers, in the shape of PyTorch's: each class's `step` is wrapped once, and calls hooks.

With STAND_IN_OLD set there are no hooks, as before PyTorch 2.0.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

_before: list[Any] = []
_after: list[Any] = []


class Optimizer:
    """The base of optimizers."""

    def __init__(self, params: list[Any]) -> None:
        self.param_groups = [{"params": list(params)}]
        self._patch_step_function()

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a step that calls the hooks."""

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self, *_ = args
            for hook in _before:
                hook(self, args, kwargs)
            out = func(*args, **kwargs)
            for hook in _after:
                hook(self, args, kwargs)
            return out

        return wrapper

    def _patch_step_function(self) -> None:
        if not getattr(self.__class__.step, "hooked", None):
            self.__class__.step = self.profile_hook_step(self.__class__.step)
            self.__class__.step.hooked = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step."""
        raise NotImplementedError


class SGD(Optimizer):
    """An optimizer that does nothing."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step."""
        return None if closure is None else closure()


if not os.environ.get("STAND_IN_OLD"):
    register_optimizer_step_pre_hook = _before.append
    register_optimizer_step_post_hook = _after.append
