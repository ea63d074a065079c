"""Fits and scores how GPUs speed up one copy of a language model, over NVLink and over PCIe."""

import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from planner.models.coefficients import coefficients, fitted_as
from planner.prediction.predict import predict
from planner.profile.kinds import JobKind, Parallelism
from planner.profile.model import Hardware, Job, Profile, Work
from research.class_fits import quantile
from research.score import Score, Section, covered, errors

_NVLINK = {"Nvidia A100 GPU": "A100-SXM-40GB", "Nvidia H100 GPU": "H100-SXM-80GB"}
_ENGINES = ("vLLM", "TensorRT-LLM", "Deepspeed-MII")
_SATURATED = 16.0  # requests a second from which one RTX 4090 has more than it can do


@dataclass(frozen=True, slots=True)
class Pair:
    """One model on two numbers of GPUs of one machine.

    Attributes:
        link: `nvlink` or `pcie`.
        model: left out as a whole.
        gpu: canonical name.
        counts: of GPUs, before and after.
        true: measured speed-up.
    """

    link: str
    model: str
    gpu: str
    counts: tuple[int, int]
    true: float

    @property
    def slope(self) -> float:
        """Exponent of the ratio of GPUs that gives the measured speed-up."""
        return math.log(self.true) / math.log(self.counts[1] / self.counts[0])


def pairs(folder: Path) -> list[Pair]:
    """Return every pair of fewer and more GPUs, the same engine, batch and length."""
    argonne = pd.read_csv(folder / "argonne_llm" / "runs.csv")
    argonne = argonne[argonne.framework.isin(_ENGINES)]
    alike = ["framework", "model", "in_out_tokens", "batch"]
    found = _pairs(
        argonne.assign(gpu=argonne.gpu.map(_NVLINK), rate=argonne.tokens_per_s), alike, "nvlink"
    )
    iog = pd.read_csv(folder / "iog_serving" / "runs.csv")
    iog = iog[(iog.gpu == "NVIDIA-GeForce-RTX-4090") & (iog.qps >= _SATURATED)]
    return found + _pairs(
        iog.assign(gpu="RTX-4090", rate=iog.output_tok_s), ["model", "qps"], "pcie"
    )


def _pairs(rows: pd.DataFrame, alike: list[str], link: str) -> list[Pair]:
    medians = rows.groupby([*alike, "gpu", "gpus"]).rate.median().reset_index()
    found = []
    for _, some in medians.groupby([*alike, "gpu"]):
        runs = some.sort_values("gpus").to_dict("records")
        for few, more in itertools.combinations(runs, 2):
            counts = int(few["gpus"]), int(more["gpus"])
            speed = float(more["rate"] / few["rate"])
            found.append(Pair(link, str(few["model"]), str(few["gpu"]), counts, speed))
    return found


def fitted(some: list[Pair]) -> dict[str, dict[str, float]]:
    """Return exponent and spread of each link: the median of models, 90 % of what they stray."""
    table = {}
    for link in ("nvlink", "pcie"):
        mine = [pair for pair in some if pair.link == link]
        exponent = float(np.median([pair.slope for pair in mine]))
        spread = quantile([pair.slope - exponent for pair in mine])
        table[link] = {"exponent": round(exponent, 3), "spread": round(spread, 3)}
    return table


def section(folder: Path) -> Section:
    """Return the scores, whole models left out."""
    some = pairs(folder)
    answers = []
    for model in sorted({pair.model for pair in some}):
        table = fitted([pair for pair in some if pair.model != model])
        with fitted_as(scale={**coefficients("scale"), "tensor": table}):
            answers += [
                (pair, predict(_profile(pair), gpu=pair.gpu, gpu_count=pair.counts[1]))
                for pair in some
                if pair.model == model
            ]
    scores, coverages = [], []
    for link in ("nvlink", "pcie"):
        mine = [(pair, guess) for pair, guess in answers if pair.link == link]
        true = np.array([pair.true for pair, _ in mine])
        ratio = np.array([pair.counts[1] / pair.counts[0] for pair, _ in mine])
        question = f"one copy of a language model on 2 and 4 GPUs over {link}, model unseen"
        linear = errors(ratio, true)
        scores.append(
            Score(
                question=f"{question}; linear: {linear}",
                cases=len(mine),
                ours=errors([guess.mid for _, guess in mine], true),
                baseline=("no gain", errors(np.ones(len(true)), true)),
            )
        )
        coverages.append(covered(question, [guess for _, guess in mine], true))
    return Section(
        title="Tensor parallel",
        scores=tuple(scores),
        coverages=tuple(coverages),
        notes=(_NOTE,),
    )


def _profile(pair: Pair) -> Profile:
    return Profile(
        job=Job(
            name="job",
            kind=JobKind.INFERENCE_OFFLINE,
            precision="fp16",
            framework="vllm",
            parallelism=Parallelism.TENSOR,
        ),
        hardware=Hardware(
            gpu=pair.gpu,
            gpu_count=pair.counts[0],
            interconnect="nvlink" if pair.link == "nvlink" else "pcie",
        ),
        work=Work(unit="token", rate_per_s=1000.0),
    )


_NOTE = """\
NVLink: LLM-Inference-Bench, A100 and H100 at batches 1 to 64, three engines; PCIe: vLLM on RTX 4090
at 16 and 32 requests a second. The law is a power of the ratio of GPUs; its form was chosen with
these runs in sight. Copies of a model that fits one GPU share nothing and grow with number."""
