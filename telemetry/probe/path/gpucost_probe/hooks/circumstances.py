"""What is written beside the steps: rank, model, precision; and how long copies take.

The model is the root module that an optimizer trains, found among the living objects without a
patch.

Copies from the host to the device are timed on the GPU: two CUDA events are recorded around each
`Tensor.to` and `Tensor.cuda` that makes one. They are read when they have passed, so a copy may be
told in a later line than its step; nothing is ever waited for. The two functions are wrapped after
the first step of a program that uses CUDA, so copying the model is not among them. A copy that
raises shows one line of ours in its traceback. It was tried with a stand-in for torch.cuda.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import sys
from collections import deque
from itertools import compress
from time import perf_counter

from .instrument import Hook, attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Mapping, Tuple

    from ..foreign import Foreign
    from ..process import Probe

    _Pair = Tuple[Foreign, Foreign]


LOOK_EVERY_S = 5.0
MOST_TOLD = 100  # a program that changes its precision each step is not told for ever


class Circumstances:
    """Looks around after steps: at everything after the first, then at what may change."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._optimizer = 0
        self._autocast: object = self
        self._dtype: str | None = None
        self._looked_s = 0.0
        self._told = 0

    def look(self, optimizer: Foreign, end_s: float) -> None:
        """Write what is new since the last step.

        Args:
            optimizer: the one that stepped.
            end_s: when it did, by time.perf_counter().
        """
        probe = self._probe
        autocast, probe.autocast = probe.autocast, None
        if id(optimizer) != self._optimizer:
            if not self._optimizer:
                self._guarded(_write_rank, probe)
            self._optimizer = id(optimizer)
            self._guarded(self._write_model, optimizer)
            self._autocast = self
        if autocast != self._autocast and self._told < MOST_TOLD:
            self._autocast = autocast
            self._told += 1
            self._guarded(write_precision, probe, autocast, self._dtype)
        if end_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = end_s
            self._guarded(watch_copies, probe)
            probe.steps.resume(perf_counter())

    def _write_model(self, optimizer: Foreign) -> None:
        model = describe(optimizer)
        self._dtype = None if model["dtype"] is None else str(model["dtype"])
        self._probe.events.write("model", None, **model)

    def _guarded(self, part: Callable[..., object], *arguments: object) -> None:
        try:
            part(*arguments)
        except Exception as error:
            self._probe.events.odd("%s is unknown: %r" % (part.__name__.strip("_"), error))


def _write_rank(probe: Probe) -> None:
    """Write the rank of this process in a distributed job of more than one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    world = distributed.get_world_size()
    if world > 1:
        rank = distributed.get_rank()
        probe.events.write("rank", rank=rank, world=world, run=_run(os.environ))


def _run(environ: Mapping[str, str]) -> str | None:
    """Return what all ranks of this run have in common; a hash, for it may be an address."""
    name = environ.get("TORCHELASTIC_RUN_ID", "none")
    if name == "none":
        address = (environ.get("MASTER_ADDR"), environ.get("MASTER_PORT"))
        if None in address:
            return None
        name = ":".join(map(str, address))
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]


# Name of a class among the bases of any module in the model: parallelism.
PARALLEL = {
    "DistributedDataParallel": "ddp",
    "FullyShardedDataParallel": "fsdp",
    "FSDPModule": "fsdp",
    "DeepSpeedEngine": "deepspeed",
    "DataParallel": "dp",
}


def describe(optimizer: Foreign) -> dict[str, object]:
    """Return number of parameters, main data type and parallelism of what an optimizer trains.

    The model is the outermost module that holds the most of the optimizer's parameters; where none
    is found the optimizer's parameters stand for it.
    """
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    root = root_of({id(parameter) for parameter in trained})
    parameters = trained if root is None else list(root.parameters())
    by_dtype: dict[str, int] = {}
    for parameter in parameters:
        name = str(parameter.dtype).rpartition(".")[2]
        by_dtype[name] = by_dtype.get(name, 0) + parameter.numel()
    return {
        "parameters": sum(by_dtype.values()),
        "dtype": max(by_dtype, key=lambda name: by_dtype[name]) if by_dtype else None,
        "parallelism": "none" if root is None else _parallelism(root),
    }


def root_of(trained: set[int]) -> Foreign | None:
    """Return the outermost module with the most wanted parameters, at least half of them."""
    modules = _modules()
    children = {id(child) for module in modules for child in module._modules.values()}
    best, top_share = None, len(trained) / 2
    for module in modules:
        if id(module) not in children:
            share = len(trained & {id(parameter) for parameter in module.parameters()})
            if share >= top_share and share > 0 and (best is None or share > top_share):
                best, top_share = module, share
    return best


def _modules() -> list[Foreign]:
    """Return all modules that are alive."""
    classes = {sys.modules["torch.nn"].Module}
    waiting = list(classes)
    while waiting:
        for kind in type.__subclasses__(waiting.pop()):
            if kind not in classes:
                classes.add(kind)
                waiting.append(kind)
    # A million objects are looked through: without a loop of Python's own.
    alive = gc.get_objects()
    modules = compress(alive, map(classes.__contains__, map(type, alive)))
    return [kind for kind in modules if "_modules" in vars(kind)]


def _parallelism(root: Foreign) -> str:
    for module in root.modules():
        for base in type(module).__mro__:
            if base.__name__ in PARALLEL:
                return PARALLEL[base.__name__]
    return "none"


def write_precision(probe: Probe, autocast: object, dtype: str | None) -> None:
    """Write the number formats.

    Args:
        probe: of this process.
        autocast: type that autocast was entered with since the last step, None without.
        dtype: of most of the parameters.
    """
    probe.events.write(
        "precision",
        autocast=None if autocast is None else str(autocast).rpartition(".")[2],
        dtype=dtype,
        tf32=_tf32(),
    )


def _tf32() -> bool | None:
    """Return whether matrix products may use TF32, None without CUDA."""
    torch = sys.modules["torch"]
    if not torch.cuda.is_initialized():
        return None
    getter = getattr(torch._C, "_get_fp32_precision_getter", None)
    if getter is not None:
        return bool(getter("cuda", "matmul") == "tf32")
    return bool(torch._C._get_cublas_allow_tf32())


def patch_precision(module: ModuleType, probe: Probe) -> None:
    """Patch torch.amp.autocast_mode: which type was asked for since the last step."""

    def enters(context: Foreign) -> None:
        if context._enabled:
            probe.autocast = context.fast_dtype

    attach(module.autocast, "__enter__", ("self",), Hook(probe.events.odd, enters))


# Copies that the GPU has not reached yet; more are not timed, and the sum is unknown.
MOST_WAITING = 256


class Copies:
    """Times copies with pairs of events that are used again and again.

    Errors of ours are kept from the program; after one, copies are timed no more.
    """

    def __init__(self, torch: ModuleType) -> None:
        self._torch = torch
        self._free: list[_Pair] = []
        self._waiting: deque[_Pair] = deque()
        self._seen = self._missed = False
        self._alive = True
        self.probe: Probe | None = None

    def begin(self, target: object) -> tuple[_Pair, Foreign] | None:
        """Return the events of a copy that begins, None if this call is not a copy to a GPU.

        Args:
            target: what `Tensor.to` was told first: device, other tensor, data type.
        """
        try:
            return self._begun(target) if self._alive else None
        except Exception as error:
            self._stop(error)
            return None

    def _begun(self, target: object) -> tuple[_Pair, Foreign] | None:
        device = self._device(target)
        if device is None:
            return None
        cuda = self._torch.cuda
        self._seen = True
        if cuda.is_current_stream_capturing():
            return None
        if len(self._waiting) >= MOST_WAITING:
            self._missed = True
            return None
        pair = self._free.pop() if self._free else _pair(cuda)
        stream: Foreign = cuda.current_stream(device)
        pair[0].record(stream)
        return pair, stream

    def end(self, begun: tuple[_Pair, Foreign]) -> None:
        """Take that the copy was handed to the GPU."""
        try:
            begun[0][1].record(begun[1])
            self._waiting.append(begun[0])
        except Exception as error:
            self._stop(error)

    def taken_s(self) -> float | None:
        """Return the GPU time of copies that ended since the last call, None if none is known."""
        seconds = 0.0
        try:
            while self._waiting and self._waiting[0][1].query():
                pair = self._waiting.popleft()
                seconds += pair[0].elapsed_time(pair[1]) / 1000.0
                self._free.append(pair)
        except Exception as error:
            self._stop(error)
        missed, self._missed = self._missed, False
        return seconds if self._seen and not missed and self._alive else None

    def _stop(self, error: Exception) -> None:
        self._alive = False
        self._waiting.clear()
        if self.probe is not None:
            self.probe.events.odd("copies are not timed any more: %r" % (error,))

    def _device(self, target: object) -> object:
        """Return the GPU that a target of `Tensor.to` means, None if it means none."""
        torch = self._torch
        if isinstance(target, torch.Tensor):
            target = target.device
        if isinstance(target, str):
            target = torch.device(target)
        if isinstance(target, torch.device):
            return target if target.type == "cuda" else None
        return target if isinstance(target, int) else None


_copies: Copies | None = None


def watch_copies(probe: Probe) -> None:
    """Start timing copies once CUDA is in use; in a forked child, anew."""
    global _copies
    torch = sys.modules["torch"]
    if _copies is not None and probe.steps.copies_s == _copies.taken_s:
        return
    if not torch.cuda.is_initialized():
        return
    first, _copies = _copies is None, Copies(torch)
    _copies.probe = probe
    probe.steps.copies_s = _copies.taken_s
    if first:
        for name in ("to", "cuda"):
            _wrap(torch.Tensor, name)


def _wrap(tensor: type, name: str) -> None:
    original = getattr(tensor, name)
    usual = "cuda" if name == "cuda" else None

    @functools.wraps(original)
    def copy(self: Foreign, *args: object, **kwargs: object) -> object:
        # Subclasses may make a call of every attribute: they are left alone.
        if type(self) is not tensor or self.is_cuda or _copies is None:
            return original(self, *args, **kwargs)
        target = args[0] if args else kwargs.get("device", kwargs.get("other"))
        begun = _copies.begin(usual if target is None else target)
        result = original(self, *args, **kwargs)
        if begun is not None:
            _copies.end(begun)
        return result

    setattr(tensor, name, copy)


def _pair(cuda: Foreign) -> _Pair:
    return cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
