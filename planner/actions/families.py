"""Which kinds of programs have an action: what PyTorch has does not help VASP.

An action that is not named here is for all. One that is `OWN` of a family needs the framework to be
known; the others are also given where no framework was stated.
"""

from collections.abc import Mapping
from dataclasses import replace

from planner.actions.action import Action
from planner.profile.frameworks import LEARNING
from planner.signals.condition import Test

_LOADERS = ("pytorch", "tensorflow", "jax", "graphs")
_EAGER = ("pytorch", "graphs", "reinforcement")  # each operation is launched from Python
_SERVERS = ("server", "llm-server")

OWN: Mapping[str, tuple[str, ...]] = {
    "environment-workers": ("reinforcement",),
    "gpu-sampling": ("graphs",),
    "device-data": ("boosting",),
    "kv-cache-room": ("llm-server",),
}
FOR: Mapping[str, tuple[str, ...]] = {
    "dataloader-workers": _LOADERS,
    "dataloader-prefetch": _LOADERS,
    "offline-preprocessing": _LOADERS,
    "local-cache": (*_LOADERS, "boosting", "video"),
    "gpu-preprocessing": (*_LOADERS, "server"),
    "persistent-workers": ("pytorch", "graphs"),
    "pinned-memory": (*_EAGER, "tensorflow", "server", "simulation"),
    "async-copy": (*_EAGER, "tensorflow", "server", "simulation"),
    "cuda-graphs": (*_EAGER, "server", "simulation"),
    "compile": (*_EAGER, "tensorflow", "server"),  # JAX is compiled already
    "fused-optimizer": _EAGER,
    "mixed-precision": (*LEARNING, "server"),
    "tf32": _EAGER,  # TensorFlow and JAX use it by default
    "larger-batch": (*LEARNING, "server"),
    "gradient-accumulation": LEARNING,
    "gradient-checkpointing": LEARNING,
    "channels-last": ("pytorch",),
    "quantization": ("pytorch", "tensorflow", "jax", *_SERVERS),
    "pruning": ("pytorch", "tensorflow", "jax", "server"),
    "dynamic-batching": ("pytorch", "tensorflow", "jax", "server"),  # vLLM batches by itself
    "allocator-tuning": (*_EAGER, "tensorflow"),
    "data-parallel": LEARNING,
    "sharded-data-parallel": LEARNING,
    "tensor-parallel": (*LEARNING, "llm-server"),
    "pipeline-parallel": (*LEARNING, "llm-server"),
    "nccl-tuning": (*LEARNING, "llm-server"),
}


def for_its_families(one: Action) -> Action:
    """Return the action, to be applied only where its family of programs has it."""
    own = OWN.get(one.code)
    wanted = own or FOR.get(one.code)
    if wanted is None:
        return one
    test = Test(signal="job.family", op="in", limit=wanted, or_unknown=own is None, quiet=True)
    return replace(one, when=(*one.when, test))
