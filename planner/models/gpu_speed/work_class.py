"""Which class of work a profile belongs to: what a prediction of its speed elsewhere goes by.

Jobs that lean on the same parts of a GPU gain alike from another one, so each class has its own law
(`speed_laws`; `training` has `fitted_speed`), fitted and scored on measurements of its kind
(docs/accuracy.md). The class is told from what a profile says: the kind of job, its precision, its
unit of work, its parameters, its GPUs. What no class covers is `other`.
"""

import re
from typing import Literal

from planner.models.gpu_speed.arithmetic import CUDA, is_single
from planner.profile.model import Profile

WorkClass = Literal[
    "training", "scaled-training", "llm-training", "fp32", "inference", "llm-decode",
    "llm-prefill", "other",
]  # fmt: skip

_TOKENS = re.compile(r"\btok(en)?s?\b|_tok(en)?s?\b")
_PROMPTS = re.compile(r"prompt|prefill|input[ _]?tok|ttft|first[ _]?tok")
_PICTURES = re.compile(r"image|img|frame|video|picture|pixel")
_LLM_ENGINES = ("vllm", "sglang", "tensorrt-llm", "trtllm", "tgi", "lmdeploy", "llama.cpp")
_LLM_SERVED = 1e9  # parameters from which a served model is taken for a language model
_LLM_TRAINED = 1e9  # the same of training; from a tenth of it where tokens are counted or sharded
_SCALED = 4  # GPUs: a job that someone spread so far keeps each of them full


def work_class(profile: Profile, precision: str | None) -> WorkClass:
    """Return the class of a profile whose kernels used a precision (None = unknown)."""
    if precision == "fp64":
        return "other"
    if precision == CUDA:
        return "fp32"
    if profile.job.kind.serves:
        return _serving(profile, precision)
    if not profile.job.kind.trains:
        return "other"
    if precision == "fp32" and profile.job.parameters is not None:
        # Frameworks leave TF32 off for matrix products and on for convolutions, and convolution
        # networks are not described by their parameters.
        return "fp32"
    if trains_language_model(profile) and not is_single(precision):
        return "llm-training"
    # What several GPUs gain from others holds their links, unless those were measured apart.
    apart = profile.step is not None and profile.step.comm_s is not None
    return "scaled-training" if profile.gpu_count >= _SCALED and not apart else "training"


def _serving(profile: Profile, precision: str | None) -> WorkClass:
    if precision == "fp32":
        return "fp32"
    unit = _unit(profile)
    if not serves_language_model(profile) or not profile.job.kind.answers:
        return "inference"  # offline, batches fill the GPU, whatever the model
    return "llm-prefill" if _PROMPTS.search(unit) else "llm-decode"


def serves_language_model(profile: Profile) -> bool:
    """Return whether an inference job makes tokens: by its unit, its engine or its size."""
    unit, job = _unit(profile), profile.job
    if _TOKENS.search(unit) or _PROMPTS.search(unit):
        return True
    if (job.framework or "").lower() in _LLM_ENGINES:
        return True
    return (job.parameters or 0.0) >= _LLM_SERVED and not _PICTURES.search(unit)


def trains_language_model(profile: Profile) -> bool:
    """Return whether training is of a language model: by size, unit and sharding."""
    job, unit = profile.job, _unit(profile)
    size = job.parameters or 0.0
    if _PICTURES.search(unit):
        return False
    signs = bool(_TOKENS.search(unit)) or job.splits_the_model
    return size >= (_LLM_TRAINED / 10.0 if signs else _LLM_TRAINED)


def _unit(profile: Profile) -> str:
    return ((profile.work.unit if profile.work else None) or "").lower()
