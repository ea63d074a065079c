"""Mixtures of experts: what they weigh, what their cache takes, and how full a copy is."""

import pytest

from planner.serving.language_model import model_named, models
from planner.serving.load import fits, saturated_rate
from planner.serving.server import Server, server
from planner.serving.traffic import Traffic
from pricing.hardware import gpus

CHAT = Traffic(rate=1.0, prompt=500.0, output=300.0)


def copy(model: str, gpu: str, ranks: int, precision: str | None = None) -> Server:
    """A copy on GPUs that NVLink joins."""
    made = server(
        model_named(model), gpus()[gpu], tensor_parallel=ranks, precision=precision, nvlink=True
    )
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("model", "gpu", "ranks", "precision", "holds"),
    [
        ("deepseek-r1", "H200-SXM-141GB", 8, None, True),  # the recipe of vLLM: FP8
        ("deepseek-r1", "B200-SXM", 4, None, False),  # 688.6 GB of 4 x 173 GB
        ("deepseek-r1", "B200-SXM", 4, "fp4", True),  # its recipe there
        ("deepseek-r1", "H100-SXM-80GB", 8, None, False),
        ("deepseek-v3", "H100-SXM-80GB", 8, "int4", True),
        ("kimi-k2", "H200-SXM-141GB", 8, None, False),  # Moonshot: 16 at the least
        ("kimi-k2", "H200-SXM-141GB", 16, None, True),
        ("gpt-oss-120b", "H100-SXM-80GB", 1, None, True),  # one GPU, as published
        ("gpt-oss-120b", "L40S", 1, None, False),
    ],
)
def test_a_model_fits_where_its_makers_run_it(
    model: str, gpu: str, ranks: int, precision: str | None, *, holds: bool
) -> None:
    """Bytes of the published files and what the engine keeps for itself decide."""
    assert fits(copy(model, gpu, ranks, precision), CHAT) is holds


def test_every_rank_keeps_the_latent_cache_whole() -> None:
    """R1 on 8 H200, by hand: 8 x (0.9 x 140.4 GiB - 7 GB) - 688.59 GB, 8 x 70,272 bytes a token."""
    room = 8 * (0.9 * 143_771 / 1024 * 2**30 - 7e9) - 688.59e9
    assert copy("deepseek-r1", "H200-SXM-141GB", 8).kv_tokens == pytest.approx(room / 8 / 70_272)
    assert models()["deepseek-ai/DeepSeek-R1"].kv_heads == 1


@pytest.mark.parametrize(
    ("model", "gpu", "ranks", "lengths", "least", "most"),
    [  # requests a second of full servers in GPUStack's lab (@47277d79), x/÷ 1.72
        ("gpt-oss-120b", "A100-SXM-80GB", 1, (217, 201), 11.6, 12.3),
        ("gpt-oss-120b", "H100-SXM-80GB", 1, (217, 201), 14.8, 15.7),
        ("gpt-oss-120b", "H100-SXM-80GB", 2, (217, 201), 39.0, 39.0),
        ("deepseek-r1", "H200-SXM-141GB", 8, (4000, 200), 3.77, 3.77),
        ("qwen3-235b-a22b-fp8", "H100-SXM-80GB", 4, (217, 201), 18.2, 18.8),
    ],
)
def test_a_full_copy_answers_what_was_measured(  # noqa: PLR0913, PLR0917 - a case
    model: str, gpu: str, ranks: int, lengths: tuple[int, int], least: float, most: float
) -> None:
    """Within the factor that nine of ten runs of models that were left out keep."""
    asked = Traffic(rate=1.0, prompt=lengths[0], output=lengths[1], shape="sharegpt")
    rate = saturated_rate(copy(model, gpu, ranks), asked)
    assert least / 1.72 <= rate <= most * 1.72


@pytest.mark.parametrize(
    ("name", "billions", "kv_kib"),
    [
        ("meta-llama/Meta-Llama-3-8B", 8.03, 128),
        ("Llama-3-8B-Instruct", 8.03, 128),
        ("Meta-Llama-3-70B-Instruct", 70.55, 320),
        ("Qwen/Qwen2-72B-Instruct", 72.71, 320),
        ("qwen2-72b", 72.71, 320),
        ("meta-llama/Llama-2-7b-chat-hf", 6.74, 512),
    ],
)
def test_a_model_is_known_by_its_family(name: str, billions: float, kv_kib: int) -> None:
    """Owner, -Instruct and -hf name one shape: 2 x layers x KV heads x 128 x 2 bytes a token."""
    model = model_named(name)
    assert model.parameters == pytest.approx(billions * 1e9)
    assert model.kv_bytes == kv_kib * 1024
