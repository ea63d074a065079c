"""The root model that an optimizer trains, found among the living objects, without a patch."""

from __future__ import annotations

import gc
import sys
from itertools import compress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GIB = 2**30

# Name of a class among the bases of any module in the model: parallelism.
PARALLEL = {
    "DistributedDataParallel": "ddp",
    "FullyShardedDataParallel": "fsdp",
    "FSDPModule": "fsdp",
    "DeepSpeedEngine": "deepspeed",
    "DataParallel": "dp",
}


def describe(optimizer: Any) -> dict[str, Any]:
    """Return size, main data type and parallelism of what an optimizer trains.

    The model is the outermost module that holds the most of the optimizer's parameters; where none
    is found the optimizer's parameters stand for it.
    """
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    root = root_of({id(parameter) for parameter in trained})
    parameters = trained if root is None else list(root.parameters())
    by_dtype: dict[str, int] = {}
    size = 0
    for parameter in parameters:
        count = parameter.numel()
        size += count * parameter.element_size()
        name = str(parameter.dtype).rpartition(".")[2]
        by_dtype[name] = by_dtype.get(name, 0) + count
    return {
        "parameters": sum(by_dtype.values()),
        "gib": round(size / GIB, 6),
        "dtype": max(by_dtype, key=lambda name: by_dtype[name]) if by_dtype else None,
        "parallelism": "none" if root is None else _parallelism(root),
    }


def root_of(wanted: set[int]) -> Any:
    """Return the outermost module with the most wanted parameters, at least half of them."""
    modules = _modules()
    children = {id(child) for module in modules for child in module._modules.values()}
    best, most = None, len(wanted) / 2
    for module in modules:
        if id(module) not in children:
            held = len(wanted & {id(parameter) for parameter in module.parameters()})
            if held >= most and held > 0 and (best is None or held > most):
                best, most = module, held
    return best


def _modules() -> list[Any]:
    """Return all modules that are alive."""
    classes = {sys.modules["torch.nn"].Module}
    waiting = list(classes)
    while waiting:
        for each in type.__subclasses__(waiting.pop()):
            if each not in classes:
                classes.add(each)
                waiting.append(each)
    # A million objects are looked through: without a loop of Python's own.
    alive = gc.get_objects()
    found = compress(alive, map(classes.__contains__, map(type, alive)))
    return [each for each in found if "_modules" in vars(each)]


def _parallelism(root: Any) -> str:
    for module in root.modules():
        for base in type(module).__mro__:
            if base.__name__ in PARALLEL:
                return PARALLEL[base.__name__]
    return "none"
