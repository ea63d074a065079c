"""Speed on another GPU by specifications, one law a class of work.

ln speed-up = p ln(P'/P) + b ln(B'/B) + w ln(W'/W) + family' - family

P: dense peak of the precision used; B: memory bandwidth; W: board power limit (a board that may
draw more keeps its clock under load). `planner/models/data/classes.toml` holds the exponents and
the families' effects, fitted by research/class_fits.py on published measurements, with
the conformal quantiles that make 90 % intervals of them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.models.coefficients import coefficients
from planner.models.estimate import Estimate, within
from planner.models.gpu_speed.arithmetic import peak_tflops
from planner.models.gpu_speed.gpu_family import families, family
from planner.models.gpu_speed.work_class import WorkClass
from pricing.errors import InputError
from pricing.hardware import Gpu

FEATURES = ("peak", "bandwidth", "power")
# The width of an interval grows with the distance of two GPUs: calibrated was the error over
# sqrt(0.7^2 + distance^2), the distance being that of the logarithms of the three specifications.
_NEAR = 0.7


@dataclass(frozen=True, slots=True)
class Law:
    """The law of one class.

    Attributes:
        name: of the class.
        exponents: of peak, bandwidth and power.
        families: ln of what a generation does above its specifications.
        gpus: the models that were measured.
        seen: quantile of scaled errors where both models are among them.
        unseen: the same where one is not.
    """

    name: str
    exponents: tuple[float, ...]
    families: Mapping[str, float]
    gpus: frozenset[str]
    seen: float
    unseen: float


def law(name: WorkClass) -> Law:
    """Return the shipped law of a class."""
    return law_from(name, coefficients("classes")[name])


def law_from(name: str, row: Mapping[str, Any]) -> Law:
    """Return a law from a row of `classes.toml`."""
    return Law(
        name=name,
        exponents=tuple(float(row[feature]) for feature in FEATURES),
        families=row.get("family", {}),
        gpus=frozenset(row["gpus"]),
        seen=float(row["seen"]),
        unseen=float(row["unseen"]),
    )


def steps(source: Gpu, target: Gpu, precision: str | None) -> tuple[float, ...]:
    """Return ln of the ratios of peak, bandwidth and power limit.

    Raises:
        InputError: a specification is missing.
    """
    found = []
    for one in (source, target):
        bandwidth, power = one.memory_bandwidth_gb_s, one.tdp_w
        if bandwidth is None or power is None:
            raise InputError(f"the specifications of {one.name} are incomplete.")
        found.append((peak_tflops(one, precision), bandwidth, power))
    return tuple(math.log(after / before) for before, after in zip(*found, strict=True))


def scale_of(difference: tuple[float, ...]) -> float:
    """Return what errors grow with: sqrt(0.7^2 + distance^2) of two GPUs' specifications."""
    return math.hypot(_NEAR, *difference)


def predicted(found: Law, source: Gpu, target: Gpu, precision: str | None) -> Estimate:
    """Return the speed-up by a law, with its 90 % interval; weak outside of its families."""
    difference = steps(source, target, precision)
    exponents = zip(found.exponents, difference, strict=True)
    log = sum(exponent * step for exponent, step in exponents)
    log += found.families.get(family(target), 0.0) - found.families.get(family(source), 0.0)
    new = [gpu.name for gpu in (source, target) if gpu.name not in found.gpus]
    half = (found.unseen if new else found.seen) * scale_of(difference)
    basis = f"{_TITLES[found.name]}: {_formula(found)}"
    if new:
        basis += f"; {' and '.join(dict.fromkeys(new))} not among the measured GPUs"
    return within(math.exp(log), math.exp(half), basis)


def covers(found: Law, gpu: Gpu) -> bool:
    """Return whether GPUs of this one's family were among those that the law was fitted on."""
    return family(gpu) in families(found.gpus)


def _formula(found: Law) -> str:
    parts = [
        f"{feature}^{exponent:.2f}"
        for feature, exponent in zip(FEATURES, found.exponents, strict=True)
        if round(exponent, 2)
    ]
    return " x ".join(parts)


_TITLES = {
    "scaled-training": "training on several GPUs, by specifications",
    "llm-training": "training of language models, by specifications",
    "fp32": "single precision without TF32, by specifications",
    "inference": "inference, by specifications",
    "llm-decode": "tokens of a served language model, by specifications",
    "llm-prefill": "prompts of a served language model, by specifications",
}
