"""Published speeds of work on new GPUs: language models, and MLPerf of 2025 and 2026.

Each reader returns rows as `research.published.Set` wants them: `group`, `gpu`, `rate`, and what
must be alike. Rates are of eight GPUs, as these results are of machines of which each GPU does a
like share.
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

_GPUS: Mapping[str, str] = {
    "AMD Instinct MI300X 192GB HBM3": "MI300X",
    "AMD Instinct MI325X 256GB HBM3e": "MI325X",
    "AMD Instinct MI325X 256GB HBM3E": "MI325X",
    "AMD Instinct MI350X": "MI350X",
    "AMD Instinct MI350X 288GB HBM3e": "MI350X",
    "AMD Instinct MI355X": "MI355X",
    "AMD Instinct MI355X 288GB HBM3e": "MI355X",
    "AMD Instinct MI355X 288GB HBM3e (x87)": "MI355X",
    "NVIDIA B200-SXM-180GB": "B200-SXM",
    "NVIDIA B300-SXM-270GB": "B300-SXM",
    "NVIDIA Blackwell GPU (B200-SXM-180GB)": "B200-SXM",
    "NVIDIA Blackwell GPU (GB200)": "GB200",
    "NVIDIA Blackwell Ultra GPU (B300-SXM-270GB)": "B300-SXM",
    "NVIDIA Blackwell Ultra GPU (GB300)": "GB300",
    "NVIDIA GB200": "GB200",
    "NVIDIA GB300": "GB300",
    "NVIDIA GeForce RTX 4090": "RTX-4090",
    "NVIDIA H100-SXM-80GB": "H100-SXM-80GB",
    "NVIDIA H100-SXM5-80GB": "H100-SXM-80GB",
    "NVIDIA H200-NVL-141GB": "H200-NVL-141GB",
    "NVIDIA H200-SXM-141GB": "H200-SXM-141GB",
    "NVIDIA H200-SXM5-141GB": "H200-SXM-141GB",
    "NVIDIA L4-PCIe-24GB": "L4",
    "NVIDIA L40S": "L40S",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX-PRO-6000",
}
_SYSTEMS: Mapping[str, str] = {
    "DGX-H100": "H100-SXM-80GB",
    "DGX-B200": "B200-SXM",
    "DGX-B300": "B300-SXM",
    "DGX-GB200": "GB200",
    "DGX-GB300": "GB300",
}
_LLAMACPP: Mapping[str, str] = {
    "3080 10GB": "RTX-3080",
    "3090 24GB": "RTX-3090",
    "4090 24GB": "RTX-4090",
    "A100 PCIe 80GB": "A100-PCIe-80GB",
    "A100 SXM 80GB": "A100-SXM-80GB",
    "RTX 6000 Ada 48GB": "RTX-6000-Ada",
    "RTX A6000 48GB": "RTX-A6000",
    "L40S 48GB": "L40S",
    "A40 48GB": "A40",
    "RTX A4000 16GB": "RTX-A4000",
    "RTX A5000 24GB": "RTX-A5000",
}
_ARGONNE: Mapping[str, str] = {
    "Nvidia A100 GPU": "A100-SXM-40GB",
    "Nvidia H100 GPU": "H100-SXM-80GB",
}
_SHORT: Mapping[str, str] = {
    "a100": "A100-SXM-80GB",
    "h100": "H100-SXM-80GB",
    "h200": "H200-SXM-141GB",
    "B200": "B200-SXM",
    "GB200": "GB200",
    "H100": "H100-SXM-80GB",
    "H200": "H200-SXM-141GB",
}
_TOKENS = ("llama", "mixtral", "deepseek", "gpt")
_DRAWN = "stable-diffusion-xl"
_DRAWN_PARAMETERS = 2.6e9  # of its UNet, arXiv 2307.01952
_FP4 = frozenset(("B200-SXM", "B300-SXM", "GB200", "GB300", "RTX-PRO-6000", "MI350X", "MI355X"))
_MACHINE = 8
_BILLIONS: Mapping[str, float] = {"llama2_70b_lora": 70.0, "llama31_405b": 405.0}


def mlperf_inference(folder: Path) -> pd.DataFrame:
    """Return MLPerf Inference v5.1 and v6.0, closed, Offline and Server; a rate of eight GPUs."""
    first = pd.read_csv(folder / "mlperf_inference_v5" / "v5.1.csv")
    first = first[first.division == "closed"].assign(count=first.per_node * first.nodes)
    second = pd.read_csv(folder / "mlperf_inference_v5" / "v6.0.csv")
    second = second.assign(round="v6.0", count=second.total)
    rows = pd.concat([first, second])
    rows = rows[rows.scenario.isin(["Offline", "Server"])]
    model = rows.model.str.replace(r"-99(\.9)?$", "", regex=True)
    gpu = rows.accelerator.map(_GPUS)
    # v6.0 does not tell the precision: what has FP4 ran it, the others FP8.
    usual = gpu.isin(_FP4).map({True: "fp4", False: "fp8"})
    precision = rows.precision.str.lower().replace("mxfp4", "fp4").where(rows["round"] != "v6.0")
    return rows.assign(
        group=model,
        gpu=gpu,
        rate=rows.result / rows["count"] * _MACHINE,
        gpu_count=_MACHINE,
        precision=precision.fillna(usual).map(
            lambda name: name if name in ("fp4", "fp8", "fp16", "int8") else "fp16"
        ),
        **served(model),
        kind=rows.scenario.map({"Offline": "inference_offline", "Server": "inference_online"}),
    )


def served(model: pd.Series) -> dict[str, pd.Series]:
    """Return what a server of MLPerf's models counts, and the size of the one that draws."""
    unit = model.str.startswith(_TOKENS).map({True: "token", False: "sample"})
    drawn = model == _DRAWN
    return {
        "unit": unit.mask(drawn, "image"),
        "parameters": drawn.map({True: _DRAWN_PARAMETERS, False: None}).astype(float),
    }


def mlperf_training(folder: Path) -> pd.DataFrame:
    """Return MLPerf Training v5.0 and v5.1: runs a second, same benchmark, GPUs and batch."""
    rows = pd.read_csv(folder / "mlperf_training_v5" / "runs.csv")
    rows = rows[rows.accelerator != "NVIDIA H200-NVL-141GB"]  # bridges between pairs or fours
    billions = rows.benchmark.map(_BILLIONS)
    return rows.assign(
        group=rows.benchmark,
        gpu=rows.accelerator.str.replace(" DLC", "").map(_GPUS),
        rate=1.0 / (rows.median_minutes * 60.0),
        gpu_count=rows.n,
        parameters=billions * 1e9,
        precision=billions.notna().map({True: "fp8", False: "amp-fp16"}),
    )


def megatron(folder: Path) -> pd.DataFrame:
    """Return tokens a second of the best layout of each system, same release and precision."""
    rows = pd.read_csv(folder / "megatron_bridge" / "runs.csv")
    model = rows.model.str.replace(r" \(.*\)", "", regex=True)
    precision = rows.precision.str.replace("MXFP8", "FP8").str.extract(
        "(BF16|NVFP4|FP8)", expand=False
    )
    keyed = rows.assign(
        group=model,
        gpu=rows.system.map(_SYSTEMS),
        precision=precision.replace({"BF16": "amp-bf16", "NVFP4": "fp4", "FP8": "fp8"}),
        rate=rows.tokens_s_gpu.str.extract(r"([\d.]+)", expand=False).astype(float),
    )
    best = keyed.groupby(["group", "release", "task", "precision", "seq", "gpu"]).rate.max()
    return best.reset_index().assign(gpu_count=_MACHINE, parameters=8e9)


def llamacpp(folder: Path) -> pd.DataFrame:
    """Return tokens a second of a single stream, generating or reading a prompt."""
    rows = pd.read_csv(folder / "llamacpp_gpus" / "runs.csv")
    rows = rows[(rows.gpus == 1) & ~((rows.phase == "prompt") & rows.model.str.contains("F16"))]
    return rows.assign(
        group=rows.model.str.extract("(8B|70B)", expand=False),
        gpu=rows.gpu.map(_LLAMACPP),
        rate=rows.tokens_s,
        gpu_count=1,
        precision=rows.model.str.contains("F16").map({True: "fp16", False: "int4"}),
        unit=rows.phase.map({"generate": "token", "prompt": "prompt token"}),
    )


def tensorrt(folder: Path) -> pd.DataFrame:
    """Return output tokens a second of eight GPUs at full load, TensorRT-LLM."""
    rows = pd.read_csv(folder / "trtllm_overview" / "runs.csv")
    return rows.assign(
        group=rows.model,
        gpu=rows.gpu.map(_SHORT),
        rate=rows.output_tok_s_per_gpu * _MACHINE,
        gpu_count=_MACHINE,
    )


def argonne(folder: Path) -> pd.DataFrame:
    """Return tokens a second at a batch and length, the same framework and number of GPUs."""
    rows = pd.read_csv(folder / "argonne_llm" / "runs.csv")
    rows = rows[rows.framework.isin(["vLLM", "TensorRT-LLM"])]
    return rows.assign(
        group=rows.model,
        gpu=rows.gpu.map(_ARGONNE),
        rate=rows.tokens_per_s,
        gpu_count=rows.gpus,
        batch_per_gpu=rows.batch,
    )


def gpustack(folder: Path) -> pd.DataFrame:
    """Return tokens a second of the best setting of each machine, saturated."""
    rows = pd.read_csv(folder / "gpustack_lab" / "blocks.csv")
    count = rows.hardware.str.extract(r"^(\d+)", expand=False).astype(float)
    named = rows.assign(count=count, group=rows.model, gpu=rows.gpu.map(_SHORT))
    best = named.groupby(["group", "gpu", "count"])["Total Token throughput (tok/s)"].max()
    return best.rename("rate").reset_index().assign(gpu_count=lambda part: part["count"])
