"""Applies what may change results in the last bits, asked for by code: to model and optimizer.

The optimizer is settled before its first step, the model after it, for then it is known which one
is trained. What the program chose itself stays. Nothing of the model's class or methods is
replaced: PyTorch asks each module for another way to be called, which copies and checkpoints leave
behind.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

from ..hooks.circumstances import root_of
from .recipe import APPLIED, LEFT, Recipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from ..foreign import Foreign

AMP, COMPILE, LAYOUT = "mixed-precision", "compile", "channels-last"
FUSED, TF32 = "fused-optimizer", "tf32"
_IMAGES = 4  # dimensions of a batch of images, and of the weights of their convolutions
_PATIENCE = 3  # steps until the model must have been called as a whole
_CALL = "_compiled_call_impl"
_NOT_IN_TURNS = (
    "its state differs from that of the plain form, so it cannot be tried in turns: "
    "gpucost run without --ab applies it"
)


class Compute:
    """What is applied to models and optimizers of a process."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._torch = sys.modules["torch"]
        recipe.refuse_versions(str(self._torch.__version__))
        self._seen: set[int] = set()
        self._calls: list[_Called] = []

    def before_step(self, optimizer: Foreign) -> None:
        """Look at an optimizer before its first step."""
        if id(optimizer) not in self._seen and self._recipe.settings(FUSED) is not None:
            name = type(optimizer).__name__
            why = _NOT_IN_TURNS if self._recipe.turns is not None else self._fuse(optimizer)
            if why is None:
                self._recipe.tell(FUSED, APPLIED, "fused=True", name)
            else:
                self._recipe.tell(FUSED, LEFT, why, name)

    def after_step(self, optimizer: Foreign, autocast: object) -> None:
        """Look at what an optimizer trains, after its first step.

        Args:
            optimizer: that stepped.
            autocast: type that the program itself entered autocast with, None without.
        """
        for called in self._calls:
            called.stepped()
        if id(optimizer) in self._seen:
            return
        if not self._seen and self._recipe.settings(TF32) is not None:
            self._allow_tf32()
        self._seen.add(id(optimizer))
        codes = [c for c in (LAYOUT, COMPILE, AMP) if self._recipe.settings(c) is not None]
        if not codes:
            return
        trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
        root = root_of(trained)
        if root is None or not hasattr(root, _CALL):
            for code in codes:
                self._recipe.tell(code, LEFT, "no module was found that holds what is trained")
            return
        self._apply(root, optimizer, autocast, codes)

    def _apply(self, root: Foreign, optimizer: Foreign, autocast: object, codes: list[str]) -> None:
        name = type(root).__name__
        ways: dict[str, Callable[..., str | None]] = {
            LAYOUT: lambda: self._why_not_layout(root, optimizer),
            COMPILE: lambda: _why_not_compile(root),
            AMP: lambda: self._why_not_amp(root, autocast),
        }
        applied = []
        for code in codes:
            why = ways[code]()
            if why is None:
                applied.append(code)
            else:
                self._recipe.tell(code, LEFT, why, name)
        if applied:
            self._calls.append(_Called(self._recipe, root, applied))
        turns = self._recipe.turns
        if turns is not None and LAYOUT in applied:
            turns.join(LAYOUT, lambda on: self._lay_out(root, optimizer, last=on))

    def _fuse(self, optimizer: Foreign) -> str | None:
        """Let an optimizer step in one kernel; return why not, None where it does."""
        torch = self._torch
        groups = optimizer.param_groups
        if not type(optimizer).__module__.startswith("torch.optim") or "fused" not in groups[0]:
            return "it has no fused form"
        if any(group.get(name) is not None for group in groups for name in ("fused", "foreach")):
            return "the program chooses fused or foreach itself"
        if any(group.get("differentiable") for group in groups):
            return "its steps are differentiated"
        if optimizer.state:
            return "it has steps behind it"
        supported = torch.utils._foreach_utils._get_fused_kernels_supported_devices()
        for group in groups:
            for p in group["params"]:
                if p.device.type not in supported or not torch.is_floating_point(p):
                    return "there is no fused form for %s on %s" % (p.dtype, p.device.type)
        for group in groups:
            group["fused"] = True
        optimizer.defaults["fused"] = True
        optimizer._step_supports_amp_scaling = True
        return None

    def _why_not_amp(self, root: Foreign, autocast: object) -> str | None:
        dtype = (self._recipe.settings(AMP) or {}).get("dtype", "bf16")
        if autocast is not None:
            return "the program enters autocast itself"
        if any(p.dtype != self._torch.float32 for p in root.parameters()):
            return "not all of its parameters are float32"
        if dtype != "bf16":
            return "float16 needs torch.amp.GradScaler around loss and step, in the program itself"
        if _device(root) == "cuda" and not self._torch.cuda.is_bf16_supported():
            return "this GPU has no bfloat16; float16 needs torch.amp.GradScaler in the program"
        return None

    def _why_not_layout(self, root: Foreign, optimizer: Foreign) -> str | None:
        """Lay convolutions out with channels last; return why not, None where it was done."""
        torch = self._torch
        weights = [p for p in root.parameters() if p.dim() == _IMAGES]
        if not weights:
            return "it has no convolution of images"
        if any(hasattr(module, "reducer") for module in root.modules()):
            return "DistributedDataParallel was made for the other layout"
        if all(p.is_contiguous(memory_format=torch.channels_last) for p in weights):
            return "it is laid out so already"
        self._lay_out(root, optimizer, last=True)
        return None

    def _lay_out(self, root: Foreign, optimizer: Foreign, *, last: bool) -> None:
        """Lay weights, and what the optimizer keeps of them, out in one of the two ways."""
        torch = self._torch
        layout = torch.channels_last if last else torch.contiguous_format
        root.to(memory_format=layout)
        for p in root.parameters():
            if p.dim() == _IMAGES:
                for name, value in optimizer.state.get(p, {}).items():
                    if getattr(value, "shape", None) == p.shape:
                        optimizer.state[p][name] = value.contiguous(memory_format=layout)

    def _allow_tf32(self) -> None:
        """Let matrix products use TF32 where the program left that alone."""
        torch = self._torch
        products = torch.backends.cuda.matmul
        if not torch.cuda.is_available():
            why: str | None = "there is no GPU that could use it"
        else:
            why = "the program allows it itself" if products.allow_tf32 else None
        if why is None:
            products.allow_tf32 = True
            if self._recipe.turns is not None:
                self._recipe.turns.join(TF32, lambda on: setattr(products, "allow_tf32", on))
        sentence = "matrix products in TF32, from the second step on" if why is None else why
        self._recipe.tell(TF32, APPLIED if why is None else LEFT, sentence)


class _Called:
    """One model that is called in another way; the old one where that does not work."""

    def __init__(self, recipe: Recipe, root: Foreign, codes: list[str]) -> None:
        self._recipe, self._codes = recipe, codes
        self._torch = sys.modules["torch"]
        self._root, self._name = root, type(root).__name__
        self._device = _device(root)
        self._told = False
        self._turns = recipe.turns
        self._steps = 0
        self._plain = root._call_impl
        self._inner = self._torch.compile(self._plain) if COMPILE in codes else self._plain
        setattr(root, _CALL, self)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the model."""
        if self._turns is not None and not self._turns.on:
            return self._plain(*args, **kwargs)
        if LAYOUT in self._codes:
            args = tuple(self._laid_out(value) for value in args)
            kwargs = {name: self._laid_out(value) for name, value in kwargs.items()}
        with self._cast():
            value = self._first(args, kwargs) if not self._told else self._inner(*args, **kwargs)
        return self._single(value) if AMP in self._codes else value

    def stepped(self) -> None:
        """Take a step; a model that is never called as a whole cannot be applied to."""
        self._steps += 1
        if self._steps == _PATIENCE and not self._told:
            self._told = True
            setattr(self._root, _CALL, None)
            way = "its parts are called, not the whole; gpucost explain %s names the setting"
            for code in self._codes:
                if code != LAYOUT:
                    self._recipe.tell(code, LEFT, way % code, self._name)

    def _first(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        """Call it for the first time: what cannot be compiled is called as before."""
        self._told = True
        if COMPILE in self._codes:
            torch = self._torch
            random = torch.get_rng_state()
            before = _graphs()
            try:
                value = self._inner(*args, **kwargs)
                why = "nothing of it was captured" if _graphs() == before else None
            except Exception as error:
                value, why = None, "compiling failed: %s" % type(error).__name__
            if why is not None:
                self._codes = [code for code in self._codes if code != COMPILE]
                self._inner = self._plain
                self._recipe.tell(COMPILE, LEFT, why, self._name)
                torch.set_rng_state(random)
                value = self._plain(*args, **kwargs)
        else:
            value = self._inner(*args, **kwargs)
        reasons = {
            AMP: "autocast to bfloat16 around forward, from the second step on",
            COMPILE: "torch.compile, from the second step on",
            LAYOUT: "weights and image batches with channels last, from the second step on",
        }
        for code in self._codes:
            self._recipe.tell(code, APPLIED, reasons[code], self._name)
            if self._turns is not None and code != LAYOUT:
                self._turns.join(code)
        return value

    def _cast(self) -> AbstractContextManager[object]:
        cast: AbstractContextManager[object] = nullcontext()
        if AMP in self._codes:
            cast = self._torch.autocast(self._device, dtype=self._torch.bfloat16)
        return cast

    def _laid_out(self, value: object) -> object:
        torch = self._torch
        if isinstance(value, torch.Tensor) and value.dim() == _IMAGES:
            return value.contiguous(memory_format=torch.channels_last)
        return value

    def _single(self, value: object) -> object:
        """Return outputs in float32, as the program's own loss expects them."""
        if isinstance(value, self._torch.Tensor):
            return value.float() if value.dtype == self._torch.bfloat16 else value
        if isinstance(value, (list, tuple)):
            make = getattr(value, "_make", type(value))  # of a named tuple
            return make([self._single(part) for part in value])
        if isinstance(value, dict):
            for name in list(value):
                value[name] = self._single(value[name])
        return value


def _why_not_compile(root: Foreign) -> str | None:
    if type(root).__name__ == "OptimizedModule" or getattr(root, _CALL, None) is not None:
        return "the program compiles it itself"
    if root._forward_hooks or root._forward_pre_hooks or root._backward_hooks:
        return "it has hooks, which a compiled call may skip"
    return None


def _graphs() -> int:
    """Return how many graphs torch.compile has captured until now."""
    return int(import_module("torch._dynamo.utils").counters["stats"]["unique_graphs"])


def _device(root: Foreign) -> str:
    return next((str(p.device.type) for p in root.parameters()), "cpu")
