"""One copy of a server: how long a step of its batch takes, and how much its memory holds.

A step reads the weights that its tokens touch and the keys and values of all requests in the batch,
computes, and, split over several GPUs, sums twice a block over their links:
t = sqrt(memory^2 + compute^2) + launches + a little a request + all-reduces. The coefficients and
their source are in `law.toml`; one measured run scales the steps of the server it was measured on.
"""

import math
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from planner.models.communication import link_class, ring, typical_all_reduce_s
from planner.serving.language_model import WEIGHT_BYTES, LanguageModel
from pricing.hardware import Gpu

_GIB = 2**30
_BYTES_16BIT = 2.0
_LATENCY_BYTES = 2.0**14  # of a decode's all-reduce: latency, whatever the size
_WITHOUT_BF16 = frozenset({"fp16", "int8", "int4"})
_BF16_CAPABILITY = 8.0
_PROMPT_TOKENS = 2048.0  # of a step with prompts in it
_READ = 0.85  # of the weights, at least: a token's embedding is looked up, not all of them read


@cache
def law() -> Mapping[str, Any]:
    """Return the shipped coefficients, `law.toml`."""
    return tomllib.loads(Path(__file__).with_name("law.toml").read_text(encoding="utf-8"))


class Server(Struct, frozen=True, kw_only=True):
    """One copy of a model on one machine's GPUs, in seconds and tokens.

    Attributes:
        model: its shape.
        gpu: the GPU's name.
        tensor_parallel: GPUs that split the model.
        precision: of the weights.
        nvlink: whether those GPUs are linked so.
        weight_s: of reading one parameter's share of a step.
        kv_s: of reading the keys and values of one token.
        token_s: of computing one token through all matrices.
        pair_s: of computing the attention of one token to one other.
        fixed_s: of any step.
        sequence_s: more for each request in the batch.
        prompt_s: more for a step with a prompt in it.
        link_s: of the all-reduces of a step, whatever its size.
        link_token_s: more for each token.
        first_token_s: of a request outside of the engine.
        kv_tokens: whose keys and values fit; negative where not even the weights do.
        max_sequences: requests in the batch, at most.
        token_budget: tokens of a step, at most.
        least_token_s: that no token of an answer can beat: its weights at the memory's full speed.
    """

    model: LanguageModel
    gpu: str
    tensor_parallel: int
    precision: str
    nvlink: bool
    weight_s: float
    kv_s: float
    token_s: float
    pair_s: float
    fixed_s: float
    sequence_s: float
    prompt_s: float
    link_s: float
    link_token_s: float
    first_token_s: float
    kv_tokens: float
    max_sequences: int
    token_budget: int
    least_token_s: float

    def step_s(
        self, sequences: float, context: float, prompt: float = 0.0, pairs: float = 0.0
    ) -> float:
        """Return how long a step takes.

        Args:
            sequences: requests that get a token each.
            context: tokens whose keys and values are read, of all requests.
            prompt: tokens of prompts that are computed in the same step.
            pairs: of a prompt's token and one before it.
        """
        tokens = sequences + prompt
        memory = self.weight_s * self.model.parameters_touched(tokens) + self.kv_s * context
        compute = self.token_s * tokens + self.pair_s * (context + pairs)
        seconds = math.sqrt(memory * memory + compute * compute)
        seconds += self.fixed_s + self.sequence_s * sequences
        seconds += self.link_s + self.link_token_s * tokens
        return seconds + self.prompt_s if prompt else seconds


def server(  # noqa: PLR0913 - each a fact of a copy of its own
    model: LanguageModel,
    gpu: Gpu,
    *,
    tensor_parallel: int = 1,
    precision: str | None = None,
    nvlink: bool = False,
    kv_bytes_factor: float = 1.0,
) -> Server | None:
    """Return a copy by the law; None where the GPU's figures for that precision are not known.

    Args:
        model: its shape.
        gpu: each of its GPUs.
        tensor_parallel: how many, in one machine.
        precision: of the weights; None: as published.
        nvlink: how they are linked.
        kv_bytes_factor: bytes of a key or value over those at 16 bit; 0.5 for an FP8 cache.
    """
    step, limits = law()["step"], law()["limits"]
    kind = precision or model.native_precision
    peak, bandwidth = peak_tflops(gpu, kind), gpu.memory_bandwidth_gb_s
    if peak is None or bandwidth is None:
        return None
    more, slow = (step["mixture_reads"], step["mixture_steps"]) if model.is_mixture else (1.0, 1.0)
    byte_s = slow / (1e9 * bandwidth * tensor_parallel)
    operation_s = slow * step["compute"] / (1e12 * _reached_tflops(peak) * tensor_parallel)
    kv_bytes = kv_bytes_factor * model.kv_bytes * max(1.0, tensor_parallel / model.kv_heads)
    link_s, link_token_s = _all_reduces(model, gpu, tensor_parallel, nvlink=nvlink)
    return Server(
        model=model,
        gpu=gpu.name,
        tensor_parallel=tensor_parallel,
        precision=kind,
        nvlink=nvlink,
        weight_s=more * step["weight_reads"] * WEIGHT_BYTES[kind] * byte_s,
        kv_s=step["kv_reads"] * kv_bytes * byte_s,
        token_s=2.0 * model.active_parameters * operation_s,
        pair_s=4.0 * model.attention_layers * model.attention_width * operation_s,
        fixed_s=slow * (step["fixed_s"] + step["layer_s"] * model.layers),
        sequence_s=slow * step["sequence_s"],
        prompt_s=slow * step["prompt_layer_s"] * model.layers,
        link_s=slow * link_s,
        link_token_s=slow * link_token_s,
        first_token_s=step["first_token_s"],
        kv_tokens=_room_bytes(model, gpu, tensor_parallel, kind) / kv_bytes,
        max_sequences=limits["max_sequences"],
        token_budget=_token_budget(gpu),
        least_token_s=_READ * WEIGHT_BYTES[kind] * model.parameters_touched(1.0) * byte_s / slow,
    )


def _token_budget(gpu: Gpu) -> int:
    limits = law()["limits"]
    large = gpu.memory_gib >= limits["large_memory_gib"]
    return int(limits["large_token_budget" if large else "token_budget"])


def _reached_tflops(peak: float) -> float:
    """Return what of a peak is reached: less and less of a larger one, never more of a smaller."""
    step = law()["step"]
    reached = step["peak_tflops"] * (peak / step["peak_tflops"]) ** step["peak_exponent"]
    return float(min(reached, step["most_of_peak"] * peak))


def _room_bytes(model: LanguageModel, gpu: Gpu, ranks: int, precision: str) -> float:
    """Return what the engine keeps for keys and values beside the weights; negative: too little."""
    limits = law()["limits"]
    room = limits["memory_fraction"] * (gpu.usable_memory_gib or gpu.memory_gib) * _GIB
    room -= 1e9 * limits["mixture_workspace_gb" if model.is_mixture else "workspace_gb"]
    return float(room * ranks - model.weight_bytes(precision))


def runs_in(gpu: Gpu, precision: str) -> bool:
    """Return whether engines run weights of a precision there.

    Those of bf16, and of fp8 and fp4, which are multiplied by bf16, need bfloat16: compute
    capability 8.0 and up (vLLM refuses them below; docs.vllm.ai, 2026-11).
    """
    capability = gpu.compute_capability
    return precision in _WITHOUT_BF16 or capability is None or float(capability) >= _BF16_CAPABILITY


def peak_tflops(gpu: Gpu, precision: str) -> float | None:
    """Return the peak at which a GPU multiplies weights of a precision; None: it cannot, unknown.

    Weights of fewer bits than a GPU's units take, and `int4` anywhere, are multiplied at 16 bit.
    """
    half = gpu.fp16_tflops if precision == "fp16" else gpu.bf16_tflops or gpu.fp16_tflops
    if precision == "fp8":
        return gpu.fp8_tflops or half
    if precision == "int8":
        return gpu.int8_tops or half
    if precision == "fp4":
        return gpu.fp4_tflops or half
    return half


def _all_reduces(
    model: LanguageModel, gpu: Gpu, ranks: int, *, nvlink: bool
) -> tuple[float, float]:
    """Return seconds of a step's all-reduces whatever its size, and more for each token."""
    if ranks == 1:
        return 0.0, 0.0

    reduces, token_bytes = 2.0 * model.layers, model.hidden * _BYTES_16BIT
    if link_class("nvlink" if nvlink else "pcie", gpu.name) == "geforce":
        boards = law()["no_peers"]
        token_s = token_bytes * ring(ranks) / (1e9 * boards["bus_gb_s"])
        return reduces * boards["latency_s"], reduces * token_s

    def took_s(size: float) -> float:
        return typical_all_reduce_s(size, gpu.architecture, ranks, nvlink=nvlink)

    latency_s = took_s(_LATENCY_BYTES)
    token_s = max(0.0, took_s(_PROMPT_TOKENS * token_bytes) - latency_s) / _PROMPT_TOKENS
    return reduces * latency_s, reduces * token_s
