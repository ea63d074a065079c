"""How well the serving engine predicts published open-arrival runs: the bars, beside baselines.

    python -m research.serving ../shared/datasets/serving

Runs are 200 requests; lengths are the shape `chat` scaled to each run's means; median of 3 seeds.
Each sweep ran from 32 to 1 request a second on one server with the same prompts and prefix caching,
so that every rate but 32 found its prompts cached where they all fit.
"""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from msgspec import structs

from planner.serving.anchor import MeasuredRun, anchored
from planner.serving.language_model import LanguageModel, model_like, model_named
from planner.serving.server import Server, server
from planner.serving.simulation import simulate
from planner.serving.traffic import Traffic, requests
from pricing.hardware import gpus

METRICS = ("ttft_p50", "ttft_p95", "ttft_p99", "tpot_p50", "tpot_p99")
GPUS = {"H100-PCIe": "H100-PCIe-80GB", "GeForce-RTX-4090": "RTX-4090", "H200": "H200-SXM-141GB"}
_SEEDS = (0, 1, 2)
_ALL_CACHED_TOKENS = 8.0  # half of the last block of 16, which is computed again


def _qwen(billion: float, layers: int, hidden: int, heads: int, kv_heads: int) -> LanguageModel:
    shape = model_like(1e9 * billion, layers=layers, kv_heads=kv_heads, head_dim=128)
    return structs.replace(shape, hidden=hidden, attention_width=heads * 128)


def shapes() -> Mapping[str, LanguageModel]:
    """Return the shapes of the runs' models, from their config.json on Hugging Face."""
    qwen_7b, qwen_32b = _qwen(7.62, 28, 3584, 28, 4), _qwen(32.76, 64, 5120, 40, 8)
    return {
        "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": model_named("meta-llama/Meta-Llama-3.1-8B"),
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": qwen_7b,
        "nvidia/AceMath-7B-Instruct": qwen_7b,
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": qwen_32b,
        "Qwen/QwQ-32B-Preview": qwen_32b,
        "microsoft/phi-4": _qwen(14.66, 40, 5120, 40, 10),
        "google/gemma-2-9b-it": model_named("google/gemma-2-9b-it"),
    }


@dataclass(frozen=True, kw_only=True)
class Run:
    """One published run; times in ms."""

    model: str
    gpu: str
    gpus: int
    rate: float
    prompt: float
    output: float
    measured: Mapping[str, float]

    @property
    def sweep(self) -> tuple[str, str, int]:
        """What its neighbours at other rates share."""
        return self.model, self.gpu, self.gpus


def read_runs(folder: Path) -> list[Run]:
    """Return the runs of the sweeps that state their lengths."""
    with (folder / "poisson_runs.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["source"] == "iog"]
    return [
        Run(
            model=row["model"],
            gpu=GPUS[row["gpu"]],
            gpus=int(row["gpus"]),
            rate=float(row["rate"]),
            prompt=float(row["in_mean"]),
            output=float(row["out_mean"]),
            measured={metric: float(row[metric]) for metric in METRICS},
        )
        for row in rows
    ]


def traffic(run: Run, copy: Server, top_rate: float) -> Traffic:
    """Return what a run answered; prompts of all but the first rate are cached where they fit."""
    fits = 200 * (run.prompt + run.output) < copy.kv_tokens
    cached = 1.0 - _ALL_CACHED_TOKENS / run.prompt if fits and run.rate < top_rate else 0.0
    return Traffic(rate=run.rate, prompt=run.prompt, output=run.output, cached_fraction=cached)


def law_copy(run: Run) -> Server:
    """Return the run's server by the law alone."""
    copy = server(
        shapes()[run.model], gpus()[run.gpu], tensor_parallel=run.gpus, precision="fp16"
    )
    assert copy is not None
    return copy


def predicted(copy: Server, asked: Traffic) -> dict[str, float]:
    """Return each metric in ms, median over the seeds."""
    seen = [simulate(copy, requests(asked, asked.rate, 200, seed)) for seed in _SEEDS]
    return {
        metric: 1000.0 * median(one.percentile(metric[:4], float(metric[6:])) for one in seen)
        for metric in METRICS
    }


def by_sweep(runs: Sequence[Run]) -> dict[tuple[str, str, int], list[Run]]:
    """Return the runs of each sweep by rising rate."""
    sweeps: dict[tuple[str, str, int], list[Run]] = {}
    for run in sorted(runs, key=lambda one: one.rate):
        sweeps.setdefault(run.sweep, []).append(run)
    return sweeps


Pair = tuple[Run, Mapping[str, float], Mapping[str, float]]


def from_one_run(runs: Sequence[Run], *, single: bool = True) -> Iterator[Pair]:
    """Yield each other run, what one run at the lowest rate predicts, and that run unchanged."""
    for (_, _, count), sweep in by_sweep(runs).items():
        if (count == 1) is not single:
            continue
        first, top = sweep[0], sweep[-1].rate
        copy = law_copy(first)
        anchor = MeasuredRun(
            traffic=traffic(first, copy, top),
            first_token_s=first.measured["ttft_p50"] / 1000.0,
            token_s=first.measured["tpot_p50"] / 1000.0,
        )
        copy, _ = anchored(copy, anchor)
        for run in sweep[1:]:
            yield run, predicted(copy, traffic(run, copy, top)), first.measured


def from_nothing(runs: Sequence[Run], *, single: bool = True) -> Iterator[Pair]:
    """Yield each run, what the law predicts of it, and the law again."""
    for (_, _, count), sweep in by_sweep(runs).items():
        if (count == 1) is single:
            for run in sweep:
                copy = law_copy(run)
                told = predicted(copy, traffic(run, copy, sweep[-1].rate))
                yield run, told, told


def errors(pairs: Sequence[Pair], place: int = 1) -> dict[str, tuple[float, float]]:
    """Return median and mean error of each metric, in percent; the mean is cut at 999."""
    table = {}
    for metric in METRICS:
        off = [
            min(999.0, 100.0 * abs(pair[place][metric] / pair[0].measured[metric] - 1.0))
            for pair in pairs
        ]
        table[metric] = median(off), fmean(off)
    return table


def _row(name: str, pairs: Sequence[Pair], place: int = 1) -> str:
    cells = (f"{middle:6.1f}/{mean:<6.1f}" for middle, mean in errors(pairs, place).values())
    return f"{name:34}{len(pairs):4} " + " ".join(cells)


def main() -> None:
    """Print the table."""
    runs = read_runs(Path(sys.argv[1]))
    print(f"{'median/mean error %':34}{'n':>4} " + " ".join(f"{m:>13}" for m in METRICS))
    for single in (True, False):
        named = "1 GPU" if single else "tensor parallel"
        one = list(from_one_run(runs, single=single))
        print(_row(f"one run, {named}", one))
        print(_row(f"  no change, {named}", one, 2))
        print(_row(f"nothing measured, {named}", list(from_nothing(runs, single=single))))


if __name__ == "__main__":
    main()
