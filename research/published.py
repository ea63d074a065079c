"""Published speeds of the same work on several GPUs, as the profiles a user would have of them.

Each set is a table of measurements with a model, what must be alike for two rows to compare, a GPU
and a rate. Every ordered pair of GPUs is a case: a profile from one, and the speed-up that the
other really gave.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from planner.models.gpu_speed import WorkClass, work_class
from planner.prediction.kernels import used_precision
from planner.profile.model import Hardware, Job, Profile, Work
from pricing.hardware import gpus
from research import language_models

_SILICON = {
    "h100_sxm": "H100-SXM-80GB",
    "h200_sxm": "H200-SXM-141GB",
    "b200_sxm": "B200-SXM",
    "b300_sxm": "B300-SXM",
    "gb200": "GB200",
}
_FOUNDRY = {
    "h100_80gb": "H100-SXM-80GB",
    "a100_80gb": "A100-SXM-80GB",
    "a100_40gb": "A100-SXM-40GB",
}
# The P100 and V100 boards measured were PCIe ones, slower than the SXM rows of the hardware table
# by a tenth; the P4 is not in it.
_NEUSIGHT = {
    "NVIDIA_A100-PCIE-40GB": "A100-PCIe-40GB",
    "NVIDIA_A100_80GB_PCIe": "A100-PCIe-80GB",
    "NVIDIA_H100_80GB_HBM3": "H100-SXM-80GB",
    "NVIDIA_L4": "L4",
    "Tesla_P100-PCIE-16GB": "P100-SXM-16GB",
    "Tesla_T4": "T4",
    "Tesla_V100-PCIE-32GB": "V100-32GB",
}
_MLPERF = {
    "NVIDIA H100-PCIe-80GB": "H100-PCIe-80GB",
    "NVIDIA H100-SXM5-80GB": "H100-SXM-80GB",
    "NVIDIA H100-SXM-80GB": "H100-SXM-80GB",
    "NVIDIA H100-NVL-94GB": "H100-NVL-94GB",
    "NVIDIA H200-SXM5-141GB": "H200-SXM-141GB",
    "NVIDIA H200-SXM-141GB": "H200-SXM-141GB",
    "NVIDIA GH200 Grace Hopper Superchip 96GB": "GH200",
    "NVIDIA L40S": "L40S",
    "NVIDIA L4": "L4",
    "NVIDIA GeForce RTX 4090": "RTX-4090",
}
_TIMM = "benchmark-infer-amp-nchw-pt240-cu124-{}.csv"
_ENERGY = {"B200": "B200-SXM", "H100": "H100-SXM-80GB"}
_ENERGY_PRECISION = {"bfloat16": "bf16", "fp8": "fp8", "mxfp4": "fp4"}
_SAME_BATCH = 0.9  # a server that holds fewer requests than the other is another measurement


@dataclass(frozen=True, slots=True)
class Case:
    """One measured speed-up.

    Attributes:
        name: of the set.
        group: the model or benchmark, which is left out as a whole.
        work: the class that the profile is told to be of.
        profile: what was measured on the first GPU.
        target: the other GPU, canonical name.
        true: measured speed-up.
    """

    name: str
    group: str
    work: WorkClass
    profile: Profile
    target: str
    true: float

    @property
    def source(self) -> str:
        """The first GPU, canonical name."""
        return str(self.profile.hardware.gpu)


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """A set of published measurements.

    Attributes:
        name: of it.
        read: its rows from the folder of the data sets: `group`, `gpu`, `rate` and what is in
            `alike`.
        alike: columns in which two rows must agree.
        job: fields of the job that are the same in all rows.
        columns: fields of the job that are columns of the rows.
        unit: of the rate.
    """

    name: str
    read: Callable[[Path], pd.DataFrame]
    alike: tuple[str, ...]
    job: Mapping[str, Any]
    columns: tuple[str, ...] = ()
    unit: str | None = None


def _foundry(folder: Path) -> pd.DataFrame:
    rows = pd.read_csv(folder / "llm-training" / "llm_foundry.csv")
    rows = rows[rows.prec.isin(["amp_bf16", "bf16"])]
    # The same model and sequence; parameters differ by the position table of the sequence only.
    sizes = rows.groupby("model").params.transform("median")
    return rows.assign(
        group=rows.model,
        gpu=rows.gpu.map(_FOUNDRY),
        rate=rows.ts,
        parameters=sizes,
        gpu_count=rows.n,
    )


def _neusight(folder: Path) -> pd.DataFrame:
    table = pd.read_csv(folder / "transformers-fp32" / "latency_ms.csv")
    rows = table.melt("workload", var_name="gpu", value_name="ms").dropna()
    parts = rows.workload.str.rsplit("-", n=3, expand=True)
    kinds = parts[1].map({"inf": "inference_offline", "train": "training"})
    return rows.assign(
        group=parts[0],
        kind=kinds,
        batch_per_gpu=parts[3].astype(int),
        gpu=rows.gpu.map(_NEUSIGHT),
        rate=parts[3].astype(int) * 1000.0 / rows.ms,
        gpu_count=1,
    )


def _mlperf_training(folder: Path) -> pd.DataFrame:
    rows = pd.read_csv(folder / "mlperf" / "training_v4.0.csv")
    return rows.assign(
        group=rows.bench,
        gpu=rows.acc.map(_MLPERF),
        rate=1.0 / (rows.minutes * 60.0),
        gpu_count=rows.n,
    )


def _mlperf_inference(folder: Path) -> pd.DataFrame:
    rows = pd.read_csv(folder / "mlperf" / "inference_v4.1_closed.csv")
    rows = rows[rows.bench.notna()]
    model = rows.bench.str.replace(r"-99(\.9)?$", "", regex=True)
    return rows.assign(
        group=model,
        gpu=rows.acc.map(_MLPERF),
        rate=rows.throughput,
        gpu_count=(rows.per_node * rows.nodes).fillna(0).astype(int),
        **language_models.served(model),
        kind=rows.scenario.map({"Offline": "inference_offline", "Server": "inference_online"}),
    )


def _silicon(column: str) -> Callable[[Path], pd.DataFrame]:
    def read(folder: Path) -> pd.DataFrame:
        rows = pd.read_csv(folder / "llm-serving" / "silicon.csv.gz")
        rows = rows[(rows["mode"] == "agg") & rows[column].notna()]
        return rows.assign(
            group=rows.model_path,
            gpu=rows.system.map(_SILICON),
            rate=1000.0 / rows[column],
            gpu_count=rows.tp_size.fillna(1).astype(int),
            batch_per_gpu=rows.batch_size.fillna(1).astype(int),
        )

    return read


_SILICON_ALIKE = (
    "backend",
    "precision",
    "isl",
    "osl",
    "batch_per_gpu",
    "gpu_count",
    "pp_size",
    "attention_dp_size",
    "moe_tp_size",
    "moe_ep_size",
)


def _energy_tokens(folder: Path) -> pd.DataFrame:
    rows = _energy(folder)
    rows = rows[rows.median_itl_ms.notna()]
    keys = ["group", "task", "gpu_count", "precision", "max_num_seqs"]
    held = rows.groupby(keys).avg_batch_size.transform(lambda b: b.min() / b.max())
    return rows[held >= _SAME_BATCH].assign(rate=1000.0 / rows.median_itl_ms)


def _energy_pictures(folder: Path) -> pd.DataFrame:
    rows = _energy(folder)
    rows = rows[rows.batch_latency_s.notna()]
    return rows.assign(
        rate=rows.batch_size / rows.batch_latency_s, batch_per_gpu=rows.batch_size.astype(int)
    )


def _energy(folder: Path) -> pd.DataFrame:
    rows = pd.read_csv(folder / "llm-serving" / "ml_energy.csv")
    return rows.assign(
        group=rows.model_id,
        gpu=rows.gpu_model.map(_ENERGY),
        gpu_count=rows.num_gpus,
        precision=rows.weight_precision.map(_ENERGY_PRECISION),
        parameters=rows.total_params_billions * 1e9,
    )


def _timm(folder: Path) -> pd.DataFrame:
    parts = [
        pd.read_csv(folder / "timm" / _TIMM.format(name)).assign(gpu=gpu)
        for name, gpu in (("rtx3090", "RTX-3090"), ("rtx4090", "RTX-4090"))
    ]
    rows = pd.concat(parts)
    return rows.assign(
        group=rows.model.str.extract(r"^([a-z]+)", expand=False),
        rate=rows.infer_samples_per_sec,
        gpu_count=1,
    )


def _with_parameters(rows: pd.DataFrame, *, known: bool) -> pd.DataFrame:
    return rows[rows.parameters.notna() == known]


SETS = (
    Set(
        name="llm-foundry",
        read=_foundry,
        alike=("seq", "gpu_count"),
        job={"kind": "training", "precision": "amp-bf16", "parallelism": "fsdp"},
        columns=("parameters",),
        unit="token",
    ),
    Set(
        name="NeuSight",
        read=_neusight,
        alike=("kind", "workload", "batch_per_gpu", "gpu_count"),
        job={"precision": "fp32", "parameters": 1e9},
        columns=("kind", "batch_per_gpu"),
        unit="sample",
    ),
    Set(
        name="MLPerf Training v4.0",
        read=_mlperf_training,
        alike=("gpu_count",),
        job={"kind": "training", "precision": "amp-fp16"},
        unit="run",
    ),
    Set(
        name="MLPerf Inference v4.1",
        read=_mlperf_inference,
        alike=("bench", "kind", "gpu_count", "unit"),
        job={"precision": "fp16"},
        columns=("kind", "parameters"),
    ),
    Set(
        name="timm",
        read=_timm,
        alike=("model", "infer_img_size", "gpu_count"),
        job={"kind": "inference_offline", "precision": "amp-fp16"},
        unit="image",
    ),
    Set(
        name="ML.ENERGY, images and video",
        read=_energy_pictures,
        alike=("task", "gpu_count", "precision", "batch_per_gpu", "parameters"),
        job={"kind": "inference_online"},
        columns=("precision", "batch_per_gpu", "parameters"),
        unit="image",
    ),
    Set(
        name="aiconfigurator, time per token",
        read=_silicon("silicon_tpot_ms"),
        alike=_SILICON_ALIKE,
        job={"kind": "inference_online"},
        columns=("precision", "batch_per_gpu"),
        unit="token",
    ),
    Set(
        name="ML.ENERGY, time per token",
        read=_energy_tokens,
        alike=("task", "gpu_count", "precision", "max_num_seqs", "parameters", "tensor_parallel"),
        job={"kind": "inference_online"},
        columns=("precision", "parameters"),
        unit="token",
    ),
    Set(
        name="aiconfigurator, time to first token",
        read=_silicon("silicon_ttft_ms"),
        alike=_SILICON_ALIKE,
        job={"kind": "inference_online"},
        columns=("precision", "batch_per_gpu"),
        unit="prompt",
    ),
    Set(
        name="MLPerf Training v5, language models",
        read=lambda folder: _with_parameters(language_models.mlperf_training(folder), known=True),
        alike=("round", "gpu_count", "global_batch"),
        job={"kind": "training"},
        columns=("precision", "parameters"),
        unit="run",
    ),
    Set(
        name="MLPerf Training v5",
        read=lambda folder: _with_parameters(language_models.mlperf_training(folder), known=False),
        alike=("round", "gpu_count", "global_batch"),
        job={"kind": "training"},
        columns=("precision",),
        unit="run",
    ),
    Set(
        name="Megatron-Bridge",
        read=language_models.megatron,
        alike=("release", "task", "seq", "gpu_count"),
        job={"kind": "training"},
        columns=("precision", "parameters"),
        unit="token",
    ),
    Set(
        name="MLPerf Inference v5.1, v6.0",
        read=language_models.mlperf_inference,
        alike=("round", "kind", "gpu_count", "unit"),
        job={},
        columns=("kind", "precision", "parameters"),
    ),
    Set(
        name="TensorRT-LLM overview",
        read=language_models.tensorrt,
        alike=("isl", "osl", "gpu_count"),
        job={"kind": "inference_offline"},
        columns=("precision",),
        unit="token",
    ),
    Set(
        name="GPUStack lab",
        read=language_models.gpustack,
        alike=("gpu_count",),
        job={"kind": "inference_offline", "precision": "fp16"},
        unit="token",
    ),
    Set(
        name="Argonne, NVIDIA",
        read=language_models.argonne,
        alike=("framework", "in_out_tokens", "gpu_count"),
        job={"kind": "inference_offline", "precision": "fp16"},
        columns=("batch_per_gpu",),
        unit="token",
    ),
    Set(
        name="llama.cpp, one stream",
        read=language_models.llamacpp,
        alike=("model", "gpu_count", "unit"),
        job={"kind": "inference_online", "framework": "llama.cpp", "batch_per_gpu": 1},
        columns=("precision",),
    ),
)


@cache
def cases(folder: Path) -> tuple[Case, ...]:
    """Return the cases of all sets, in a fixed order."""
    return tuple(case for one in SETS for case in _cases(one, folder))


def _cases(one: Set, folder: Path) -> Iterable[Case]:
    rows = one.read(folder)
    keys = list(dict.fromkeys(("group", *one.alike, *one.columns)))
    rows = rows[rows.gpu.notna()]
    medians = rows.groupby([*keys, "gpu"], dropna=False).rate.median().reset_index()
    groups = medians.groupby(keys, dropna=False, sort=True).ngroup()
    alike: dict[int, list[dict[str, Any]]] = {}
    for group, record in sorted(zip(groups, _records(medians), strict=True), key=itemgetter(0)):
        alike.setdefault(group, []).append(record)
    for records in alike.values():
        for before, after in itertools.permutations(records, 2):
            yield _case(one, before, after)


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def _case(one: Set, before: Mapping[str, Any], after: Mapping[str, Any]) -> Case:
    fields = {n: _plain(before[n]) for n in one.columns if not pd.isna(before[n])}
    profile = Profile(
        job=Job(name="job", **{**one.job, **fields}),
        hardware=Hardware(gpu=before["gpu"], gpu_count=max(1, int(before["gpu_count"]))),
        work=Work(unit=before.get("unit", one.unit), rate_per_s=float(before["rate"])),
    )
    source = gpus()[before["gpu"]]
    told = work_class(profile, used_precision(profile, source)[0])
    return Case(
        name=one.name,
        group=str(before["group"]),
        work=told,
        profile=profile,
        target=str(after["gpu"]),
        true=float(after["rate"] / before["rate"]),
    )


def _plain(value: object) -> object:
    return value.item() if hasattr(value, "item") else value


def of_class(some: Sequence[Case], work: WorkClass) -> list[Case]:
    """Return the cases of one class."""
    return [case for case in some if case.work == work]
