"""Published training throughput by GPU, task and precision: Lambda's PyTorch benchmarks."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from planner.models.gpu_speed import Specs, specs
from pricing.hardware import gpus

# Substrings of the systems' names, in the order of the match. v1 and v2 are the published tables;
# v0 are the older runs (runs.csv, version 0), of other GPUs and older software.
_V1 = {
    "Quadro RTX 8000": "Quadro-RTX-8000",
    "RTX 3090": "RTX-3090",
    "RTX 4090": "RTX-4090",
    "RTX A6000": "RTX-A6000",
    "RTX 6000 Ada": "RTX-6000-Ada",
    "V100 16GB": "V100-16GB",
    "A100 40GB PCIe": "A100-PCIe-40GB",
    "A100 80GB PCIe": "A100-PCIe-80GB",
    "A100 80GB SXM4": "A100-SXM-80GB",
    "H100 80GB PCIe": "H100-PCIe-80GB",
    "H100 80GB SXM5": "H100-SXM-80GB",
    "LambdaCloud A10": "A10",
}
_V2 = {
    "_1xH200_": "H200-SXM-141GB",
    "_1xGH200_96": "GH200",
    "_1xH100_80GB_SXM5": "H100-SXM-80GB",
    "_1xH100_80GB_PCIe": "H100-PCIe-80GB",
    "_1xB200": "B200-SXM",
}
_V0 = {
    "2080Ti": "RTX-2080Ti",
    "3070": "RTX-3070",
    "3080": "RTX-3080",
    "3090": "RTX-3090",
    "A100_80GB_PCIe": "A100-PCIe-80GB",
    "A100_80GB_SXM4": "A100-SXM-80GB",
    "A100_PCIe": "A100-PCIe-40GB",
    "A100_SXM4": "A100-SXM-40GB",
    "A100_p4": "A100-SXM-40GB",
    "A40": "A40",
    "A4000": "RTX-A4000",
    "A4500": "RTX-A4500",
    "A5000": "RTX-A5000",
    "A5500": "RTX-A5500",
    "A6000": "RTX-A6000",
    "LambdaCloud_A6000": "RTX-A6000",
    "QuadroRTX5000": "Quadro-RTX-5000",
    "QuadroRTX6000": "Quadro-RTX-6000",
    "QuadroRTX8000": "Quadro-RTX-8000",
    "TitanRTX": "TITAN-RTX",
    "V100": "V100-32GB",
    "p3.2xlarge": "V100-16GB",
}
# Cards of the v0 runs that no cloud sells: NVIDIA's data sheets, dense rates, fp16 with 32-bit
# accumulation. Used for the fit only.
_UNSOLD = {
    "RTX-3070": ("Ampere", 448.0, 20.3, 40.6, 8.0),
    "RTX-A4500": ("Ampere", 640.0, 47.3, 94.6, 20.0),
    "RTX-A5500": ("Ampere", 768.0, 68.2, 136.4, 24.0),
    "Quadro-RTX-5000": ("Turing", 448.0, 11.2, 89.2, 16.0),
    "TITAN-RTX": ("Turing", 672.0, 16.3, 130.5, 24.0),
}
UNRELIABLE = ("ncf", "tacotron2")  # says the index of the data sets
TASKS = ("bert_base_squad", "gnmt", "resnet50", "transformerxlbase", "waveglow")
PRECISIONS = ("fp16", "fp32")
# Their single-precision runs had TF32 switched off: half precision is 2.7 to 3.0 times as fast on
# these tasks, 1.8 to 1.9 on like cards.
_TF32_OFF = (("A40", "RTX-A4000", "RTX-A5000"), ("gnmt", "transformerxlbase"))


@dataclass(frozen=True, slots=True)
class Run:
    """One measured throughput.

    Attributes:
        version: "v0", "v1" or "v2": the software; rates compare within one only.
        task: what was trained.
        named: the precision that its table names.
        used: the precision that the kernels used.
        gpu: canonical name.
        log_rate: logarithm of items a second.
    """

    version: str
    task: str
    named: str
    used: str
    gpu: str
    log_rate: float


@cache
def specs_of(gpu: str, precision: str) -> Specs:
    """Return the specifications of a GPU of these tables; the peak is that of fp16 or fp32."""
    if gpu in _UNSOLD:
        architecture, bandwidth, tf32, fp16, memory = _UNSOLD[gpu]
        return Specs(
            name=gpu,
            architecture=architecture,
            bandwidth_gb_s=bandwidth,
            peak_tflops=fp16 if precision == "fp16" else tf32,
            memory_gib=memory,
        )
    model = gpus()[gpu]
    single = model.tf32_tflops or model.fp32_tflops
    return specs(model, (model.fp16_tflops if precision == "fp16" else single) or 0.0)


def used_precision(version: str, task: str, named: str) -> str:
    """Return what the kernels used: waveglow's fp16 rates of v1 and v2 equal its fp32 ones."""
    return "fp32" if task == "waveglow" and version != "v0" else named


def table(folder: Path, version: str, precision: str) -> Mapping[str, Mapping[str, float]]:
    """Return the median items per second of each task on one GPU of each model, by task and GPU."""
    names, key = (_V2, "Unnamed: 0") if version == "v2" else (_V1, "name_gpu")
    stem = "pytorch-train-throughput-" + ("v2-" if version == "v2" else "")
    rows = pd.read_csv(folder / "lambda" / f"{stem}{precision}.csv")
    gpu = rows[key].map(lambda name: next((m for part, m in names.items() if part in name), None))
    single = rows.get("num_gpu", pd.Series(1.0, index=rows.index)) == 1
    found: dict[str, Mapping[str, float]] = {}
    for task in (*TASKS, "maskrcnn"):
        if task in rows:
            kept = single & gpu.notna() & (rows[task] > 0)
            medians = rows[kept].groupby(gpu[kept])[task].median()
            found[task] = {str(name): float(rate) for name, rate in medians.items()}
    return MappingProxyType(found)


def _published(folder: Path, version: str) -> Iterable[Run]:
    for precision in PRECISIONS:
        for task, by_gpu in table(folder, version, precision).items():
            used = used_precision(version, task, precision)
            for gpu, rate in by_gpu.items():
                yield Run(version, task, precision, used, gpu, math.log(rate))


def _older(folder: Path) -> Iterable[Run]:
    rows = pd.read_csv(folder / "lambda" / "runs.csv")
    rows = rows[(rows.version == 0) & rows.system.isin(list(_V0)) & (rows.throughput > 0)]
    rows = rows[~rows.task.isin(UNRELIABLE) & rows.precision.isin(["FP16", "FP32"])]
    keys = ["precision", "task", "gpu"]
    medians = rows.assign(gpu=rows.system.map(_V0)).groupby(keys).throughput.median()
    for precision, task, gpu, rate in medians.reset_index().itertuples(index=False):
        off = precision == "FP32" and gpu in _TF32_OFF[0] and task in _TF32_OFF[1]
        if not off:
            named = precision.lower()
            yield Run("v0", task, named, named, gpu, math.log(rate))


def runs(folder: Path, *versions: str) -> tuple[Run, ...]:
    """Return the runs of some versions on one GPU, unreliable ones left out."""
    found: list[Run] = []
    for version in versions:
        found.extend(_older(folder) if version == "v0" else _published(folder, version))
    return tuple(found)


def several_gpus(folder: Path) -> pd.DataFrame:
    """Return throughput by GPU count: columns 1, 2, 4, 8; index system, task, precision."""
    rows = pd.read_csv(folder / "lambda" / "runs.csv")
    rows = rows[(rows.throughput > 0) & ~rows.task.isin([*UNRELIABLE, "bert_base_squad"])].copy()
    parts = [_family(name) for name in rows.system]
    rows["family"], rows["gpus"] = zip(*parts, strict=True)
    return rows.pivot_table(
        index=["family", "task", "precision"],
        columns="gpus",
        values="throughput",
        aggfunc="median",
    )


_EC2 = {"p3.2xlarge": ("p3", 1), "p3.8xlarge": ("p3", 4), "p3.16xlarge": ("p3", 8)}


def _family(system: str) -> tuple[str, int]:
    """Return the system without its number of GPUs, and that number."""
    if system in _EC2:
        return _EC2[system]
    count = re.search(r"(?:^|_)(\d+)x", system)
    return re.sub(r"(^|_)\d+x", r"\1", system), int(count[1]) if count else 1
