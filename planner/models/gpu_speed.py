"""How fast a GPU is for a job: by benchmarks of its kind, or by class of work and specifications.

Which class of work a profile belongs to: what a prediction of its speed elsewhere goes by.
Jobs that lean on the same parts of a GPU gain alike from another one, so each class has its own law
(`speed_laws`; `training` has `fitted_speed`), fitted and scored on measurements of its kind
(docs/accuracy.md). The class is told from what a profile says: the kind of job, its precision, its
unit of work, its parameters, its GPUs. What no class covers is `other`.

Speed on another GPU by specifications, one law a class of work.
ln speed-up = p ln(P'/P) + b ln(B'/B) + w ln(W'/W) + family' - family

P: dense peak of the precision used; B: memory bandwidth; W: board power limit (a board that may
draw more keeps its clock under load). `planner/models/data/classes.toml` holds the exponents and
the families' effects, fitted by research/class_fits.py on published measurements, with
the conformal quantiles that make 90 % intervals of them.

The fitted speed of a GPU's kernels, from its specifications and from benchmarks of its kind.
ln rate = task + p ln P + b ln B - m 8/M + board + architecture + GPU

P: dense peak of the precision really used, TFLOP/s; B: memory bandwidth, TB/s; M: memory, GiB (jobs
take the largest batch that fits, and a small batch fills a GPU badly). The coefficients are the
posterior means of a hierarchical regression (research/effects.py) on Lambda's PyTorch
training benchmarks; `planner/models/data/speed.toml` says which, and when.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from planner.models.coefficients import coefficients
from planner.models.estimate import Estimate, within
from planner.profile.model import Profile
from pricing.errors import InputError
from pricing.hardware import Gpu, gpus, is_geforce_rtx
from pricing.message import Message, join


def family(gpu: Gpu) -> str:
    """Return the generation of a GPU; B200, GB200 and B300 are one.

    Consumer and workstation boards of Blackwell are another (compute capability 12): they have
    none of the tensor memory that kernels of the data-centre boards are written for.
    """
    if not gpu.architecture.startswith("Blackwell"):
        return gpu.architecture
    return "Blackwell RTX" if (gpu.compute_capability or "").startswith("12") else "Blackwell"


@lru_cache(maxsize=64)
def families(names: frozenset[str]) -> frozenset[str]:
    """Return the families of some GPUs of the hardware table."""
    return frozenset(family(gpus()[name]) for name in names)


_AMPERE = 8.0
CUDA = "cuda"  # single precision outside the tensor cores: TF32 off, or AMP without effect
SINGLE_PRECISION = ("fp32", "tf32")


@lru_cache(maxsize=1024)  # models x precisions
def peak_tflops(gpu: Gpu, precision: str | None) -> float:
    """Return the dense rate, TFLOP/s, at which a GPU does a precision; None = single precision.

    Raises:
        InputError: the hardware table has no rate of that GPU.
    """
    precisions = coefficients("precisions")
    names = precisions.get(precision or "fp32", precisions["fp32"])["rates"]
    rates = [rate for rate in (getattr(gpu, name) for name in names) if rate]
    if not rates:
        raise InputError(f"the arithmetic rates of {gpu.name} are not known.")
    return float(max(rates[0], rates[-1]))  # the format's own, not that of one between


def is_single(precision: str | None) -> bool:
    """Return whether the numbers are of 32 bits, on tensor cores or off."""
    return precision in (*SINGLE_PRECISION, CUDA)


def has_tf32(gpu: Gpu) -> bool:
    """Return whether single precision runs on tensor cores: compute capability 8 and later."""
    return gpu.tf32_tflops is not None or float(gpu.compute_capability or 0.0) >= _AMPERE


WorkClass = Literal[
    "training", "scaled-training", "llm-training", "fp32", "inference", "diffusion",
    "llm-inference", "llm-decode", "llm-prefill", "other",
]  # fmt: skip

_TOKENS = re.compile(r"\btok(en)?s?\b|_tok(en)?s?\b")
_PROMPTS = re.compile(r"prompt|prefill|input[ _]?tok|ttft|first[ _]?tok")
_PICTURES = re.compile(r"image|img|frame|video|picture|pixel")
_LLM_ENGINES = ("vllm", "sglang", "tensorrt-llm", "trtllm", "tgi", "lmdeploy", "llama.cpp")
_LLM_SERVED = 1e9  # parameters from which a served model is taken for a language model
_DRAWING = 5e8  # parameters from which a model of pictures is taken to make, not to read them
_LLM_TRAINED = 1e9  # the same of training; from a tenth of it where tokens are counted or sharded
# Up to so many sequences a step of decoding reads weights longer than it computes: half of the FLOP
# a byte of an A100's tensor cores and memory, 312 TFLOP/s over 2 TB/s.
STEPPED_BATCH = 78
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
    has_comm = profile.step is not None and profile.step.comm_s is not None
    return "scaled-training" if profile.gpu_count >= _SCALED and not has_comm else "training"


def _serving(profile: Profile, precision: str | None) -> WorkClass:
    if precision == "fp32":
        return "fp32"
    unit = _unit(profile)
    if not serves_language_model(profile):
        drawn = _PICTURES.search(unit) and (profile.job.parameters or 0.0) >= _DRAWING
        return "diffusion" if drawn else "inference"
    if _PROMPTS.search(unit):
        return "llm-prefill"
    batch = profile.job.batch_per_gpu
    fills = not profile.job.kind.answers and (batch is None or batch > STEPPED_BATCH)
    return "llm-inference" if fills else "llm-decode"


def serves_language_model(profile: Profile) -> bool:
    """Return whether an inference job makes tokens: by its unit, engine, server or size."""
    unit, job = _unit(profile), profile.job
    if _TOKENS.search(unit) or _PROMPTS.search(unit):
        return True
    if (job.framework or "").lower() in _LLM_ENGINES:
        return True
    if job.serving is not None and job.serving.makes_tokens:
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


FEATURES = ("peak", "bandwidth", "power")
# What every law is shrunk to, the geometric mean of peak and bandwidth, by its exponents.
RULE = (0.5, 0.5, 0.0)
# The width of an interval grows with the distance of two GPUs: calibrated was the error over
# sqrt(0.7^2 + distance^2), the distance being that of the logarithms of the specifications.
_NEAR = 0.7


@dataclass(frozen=True, slots=True)
class Law:
    """The law of one class.

    Attributes:
        name: of the class.
        exponents: of peak, bandwidth and power.
        families: ln of what a generation does above its specifications, if any class measured it.
        gpus: the same of a model above its generation.
        measured: models that this class measured.
        trust: how far a prediction goes by the law, 0 to 1, the rest being `RULE`: where both
            models were measured, and where one was not. Decided from errors on what was left out.
        error_measured: quantile of scaled errors where both models were measured.
        unseen: the same where one was not.
        strange: the same where one's generation was not.
    """

    name: str
    exponents: tuple[float, ...]
    families: Mapping[str, float]
    gpus: Mapping[str, float]
    measured: frozenset[str]
    trust: tuple[float, float]
    error_measured: float
    unseen: float
    strange: float

    def effect(self, gpu: Gpu) -> float:
        """Return ln of what a GPU does above its specifications."""
        return self.families.get(family(gpu), 0.0) + self.gpus.get(gpu.name, 0.0)


def law(name: WorkClass) -> Law:
    """Return the shipped law of a class."""
    row = coefficients("classes")[name]
    return Law(
        name=name,
        exponents=tuple(float(row[feature]) for feature in FEATURES),
        families=row["family"],
        gpus=row["gpu"],
        measured=frozenset(row["measured"]),
        trust=(float(row["trust"]), float(row["trust_unseen"])),
        error_measured=float(row["seen"]),
        unseen=float(row["unseen"]),
        strange=float(row["strange"]),
    )


def steps(source: Gpu, target: Gpu, precision: str | None) -> tuple[float, ...]:
    """Return ln of the ratios of peak, bandwidth and power limit.

    Raises:
        InputError: a specification is missing.
    """
    figures = []
    for gpu in (source, target):
        bandwidth, power = gpu.memory_bandwidth_gb_s, gpu.tdp_w
        if bandwidth is None or power is None:
            raise InputError(f"the specifications of {gpu.name} are incomplete.")
        figures.append((peak_tflops(gpu, precision), bandwidth, power))
    return tuple(math.log(after / before) for before, after in zip(*figures, strict=True))


def scale_of(difference: tuple[float, ...]) -> float:
    """Return what errors grow with: sqrt(0.7^2 + distance^2) of two GPUs' specifications."""
    return math.hypot(_NEAR, *difference)


def predicted(by: Law, source: Gpu, target: Gpu, precision: str | None) -> Estimate:
    """Return the speed-up by a law, with its 90 % interval."""
    difference = steps(source, target, precision)
    pair = (source, target)
    unmeasured = dict.fromkeys(gpu.name for gpu in pair if gpu.name not in by.measured)
    strange = not {family(gpu) for gpu in pair} <= families(by.measured)
    trust = by.trust[bool(unmeasured)]
    exponents = [trust * own + (1.0 - trust) * r for own, r in zip(by.exponents, RULE, strict=True)]
    log = sum(a * b for a, b in zip(exponents, difference, strict=True))
    log += trust * (by.effect(target) - by.effect(source))
    width = by.strange if strange else by.unseen if unmeasured else by.error_measured
    parts: list[str] = [Message(f"law.{by.name}", formula=_formula(exponents))]
    if trust < 1.0:
        parts.append(Message("law.halfway" if trust else "law.rule"))
    if unmeasured:
        parts.append(Message("law.unmeasured", gpus=join(unmeasured, "and")))
    return within(math.exp(log), math.exp(width * scale_of(difference)), join(parts))


def _formula(exponents: Sequence[float]) -> str:
    parts = [
        f"{feature}^{exponent:.2f}"
        for feature, exponent in zip(FEATURES, exponents, strict=True)
        if round(exponent, 2)
    ]
    return " x ".join(parts) or "no change"


Family = Literal["half", "single"]

# GeForce RTX boards halve the tensor rate with 32-bit accumulation. The older benchmarks (v0, GPUs
# left out in turn) cannot tell a full from a half rate; the middle predicts them best.
_GEFORCE_PEAK = math.sqrt(2.0)
_SMALL_GIB = 8.0  # scale of the memory term


@dataclass(frozen=True, slots=True)
class Specs:
    """What the model looks at.

    Attributes:
        name: canonical.
        architecture: its generation, as `planner.models.gpu_speed` names it.
        bandwidth_gb_s: peak memory bandwidth.
        peak_tflops: dense rate of the precision that the kernels use.
        memory_gib: as sold.
    """

    name: str
    architecture: str
    bandwidth_gb_s: float
    peak_tflops: float
    memory_gib: float

    @property
    def is_geforce(self) -> bool:
        """Whether it is a consumer board."""
        return is_geforce_rtx(self.name)

    @property
    def logs(self) -> tuple[float, float, float]:
        """Logarithms of peak (100 TFLOP/s) and bandwidth (TB/s), and the memory term."""
        peak = self.peak_tflops * (_GEFORCE_PEAK if self.is_geforce else 1.0)
        return (
            math.log(peak / 100.0),
            math.log(self.bandwidth_gb_s / 1000.0),
            -_SMALL_GIB / self.memory_gib,
        )


def specs(gpu: Gpu, peak: float) -> Specs:
    """Return what the model looks at.

    Raises:
        InputError: the hardware table does not have it.
    """
    if gpu.memory_bandwidth_gb_s is None:
        raise InputError(f"the specifications of {gpu.name} are incomplete.")
    return Specs(gpu.name, family(gpu), gpu.memory_bandwidth_gb_s, peak, gpu.memory_gib)


def log_score(gpu: Specs, family: Family) -> float:
    """Return the log throughput of a GPU but for the task's own level."""
    table = coefficients("speed")
    peak, bandwidth, memory = gpu.logs
    part = table[family]
    score: float = part["peak"] * peak + part["bandwidth"] * bandwidth + table["memory"] * memory
    score += table["geforce"] * gpu.is_geforce
    score += part["architecture"].get(gpu.architecture, 0.0) + part["gpu"].get(gpu.name, 0.0)
    return score


def trained_on(gpu: Gpu) -> bool:
    """Return whether benchmarks of training on the GPU's generation are in the fit."""
    return family(gpu) in coefficients("speed")["half"]["architecture"]


def is_measured(gpu: Gpu) -> bool:
    """Return whether work of any class was measured on the GPU's generation."""
    return trained_on(gpu) or family(gpu) in coefficients("classes")["inference"]["family"]


def log_spread(source: Specs, target: Specs, widths: Mapping[str, float] | None = None) -> float:
    """Return the standard deviation of ln of a job's speed ratio between two GPUs, before scaling.

    Jobs differ in how they use peak, bandwidth and memory, so the further two GPUs lie apart, the
    less their ratio is known: s^2 = w^2 |difference of logs|^2 + 2 a^2 [other generation] + n^2.
    """
    widths = coefficients("speed")["widths"] if widths is None else widths
    distance = sum((x - y) ** 2 for x, y in zip(source.logs, target.logs, strict=True))
    across = 2.0 * widths["task-architecture"] ** 2 * (source.architecture != target.architecture)
    own = 2.0 * sum(widths[name] ** 2 for name in ("task-gpu", "version-gpu", "noise"))
    return math.sqrt(widths["task-slope"] ** 2 * distance + across + own)


def interval_factor(source: Specs, target: Specs, family: Family) -> float:
    """Return the factor x/: of the 90 % interval of a job's speed ratio between two GPUs.

    Conformal: quantiles of errors on benchmarks left out, by GPU and task, of each precision by
    itself. Scaled by `log_spread`, at least what near pairs err by, or pairs with an unseen model.
    """
    table = coefficients("speed")["interval"][family]
    scaled = math.exp(table["scale"] * log_spread(source, target))
    fitted = coefficients("speed")["half"]["gpu"]
    kind_ = "near" if {source.name, target.name} <= fitted.keys() else "unseen_gpu"
    return max(scaled, float(table[kind_]))
