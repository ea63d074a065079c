"""How well the serving engine predicts published open-arrival runs: the bars, beside baselines.

    python -m research.serving ../shared/datasets/serving

Runs are 200 requests; lengths are the shape `chat` scaled to each run's means; median of 3 seeds.
Each sweep ran from 32 to 1 request a second on one server with the same prompts and prefix caching,
so that every rate but 32 found its prompts cached where they all fit.
"""

import csv
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from msgspec import structs

from planner.serving.anchor import MeasuredRun, anchored, scaled
from planner.serving.language_model import LanguageModel, model_like, model_named
from planner.serving.load import MOST_OF_SATURATION, Target, copy_limit, fits, saturated_rate
from planner.serving.search import SPREAD
from planner.serving.server import Server, server
from planner.serving.simulation import simulate
from planner.serving.traffic import Traffic, requests
from pricing.errors import InputError
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
    copy = server(shapes()[run.model], gpus()[run.gpu], tensor_parallel=run.gpus, precision="fp16")
    if copy is None:
        raise InputError(f"{run.gpu}: its figures are not known.")
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


class Pair(NamedTuple):
    """A run, what is predicted of it, and what "no change" says, in ms."""

    run: Run
    told: Mapping[str, float]
    unchanged: Mapping[str, float]


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
            yield Pair(run, predicted(copy, traffic(run, copy, top)), first.measured)


def from_nothing(runs: Sequence[Run], *, single: bool = True) -> Iterator[Pair]:
    """Yield each run, what the law predicts of it, and the law again."""
    for (_, _, count), sweep in by_sweep(runs).items():
        if (count == 1) is single:
            for run in sweep:
                copy = law_copy(run)
                told = predicted(copy, traffic(run, copy, sweep[-1].rate))
                yield Pair(run, told, told)


def _sides(pairs: Sequence[Pair], *, simulated: bool) -> Iterator[tuple[Run, Mapping[str, float]]]:
    return ((pair.run, pair.told if simulated else pair.unchanged) for pair in pairs)


def inside(pairs: Sequence[Pair], kind: str) -> dict[str, float]:
    """Return the percent of runs inside the interval that a plan prints, by metric."""
    table = {}
    for metric in METRICS:
        spread = SPREAD[kind][metric[:4]][{"50": 0, "95": 1, "99": 2}[metric[6:]]]
        ratios = [run.measured[metric] / told[metric] for run, told, _ in pairs]
        table[metric] = fmean(100.0 * (1.0 / spread <= ratio <= spread) for ratio in ratios)
    return table


def from_other_gpu(runs: Sequence[Run]) -> Iterator[Pair]:
    """Yield the runs of a model on one GPU as one run on the other predicts them."""
    sweeps = {key: sweep for key, sweep in by_sweep(runs).items() if key[2] == 1}
    for (model, gpu, _), sweep in sweeps.items():
        first, top = sweep[0], sweep[-1].rate
        law = law_copy(first)
        run = MeasuredRun(
            traffic=traffic(first, law, top),
            first_token_s=first.measured["ttft_p50"] / 1000.0,
            token_s=first.measured["tpot_p50"] / 1000.0,
        )
        anchor, factor = anchored(law, run)
        others = (o for key, o in sweeps.items() if key[0] == model and key[1] != gpu)
        for other in (one for found in others for one in found):
            copy = scaled(law_copy(other), factor)
            copy = structs.replace(copy, first_token_s=anchor.first_token_s)
            yield Pair(other, predicted(copy, traffic(other, copy, top)), first.measured)


def errors(pairs: Sequence[Pair], *, simulated: bool = True) -> dict[str, tuple[float, float]]:
    """Return median and mean error of each metric, in percent; the mean is cut at 999."""
    table = {}
    for metric in METRICS:
        off = [
            min(999.0, 100.0 * abs(values[metric] / run.measured[metric] - 1.0))
            for run, values in _sides(pairs, simulated=simulated)
        ]
        table[metric] = median(off), fmean(off)
    return table


def _row(name: str, pairs: Sequence[Pair], *, simulated: bool = True) -> str:
    cells = (
        f"{middle:6.1f}/{mean:<6.1f}"
        for middle, mean in errors(pairs, simulated=simulated).values()
    )
    return f"{name:34}{len(pairs):4} " + " ".join(cells)


TTFT_MS, TPOT_MS = (100.0, 200.0, 500.0, 2000.0), (15.0, 25.0, 50.0)
_DEMANDS = (30.0, 100.0, 300.0)


def _keeps(values: Mapping[str, float], ttft_ms: float, tpot_ms: float) -> bool:
    return values["ttft_p99"] <= ttft_ms and values["tpot_p99"] <= tpot_ms


def decisions(pairs: Sequence[Pair], *, simulated: bool = True) -> tuple[int, float, float]:
    """Return cases of "are both targets kept?", percent right, and percent true of its yes."""
    cases = [
        (_keeps(values, ttft, tpot), _keeps(run.measured, ttft, tpot))
        for run, values in _sides(pairs, simulated=simulated)
        for ttft in TTFT_MS
        for tpot in TPOT_MS
    ]
    right = fmean(100.0 * (told == true) for told, true in cases)
    return len(cases), right, fmean([100.0 * true for told, true in cases if told] or [0.0])


def copies(pairs: Sequence[Pair], *, simulated: bool = True) -> tuple[int, float, float, float]:
    """Return cases of "how many copies", percent too few and equal, and mean spend over the need.

    What a copy takes is the highest measured rate up to which every rate keeps both targets; the
    lowest rate of a sweep is the anchor and counts as measured for both.
    """
    counted = []
    sweeps: dict[object, list[Pair]] = {}
    for pair in sorted(pairs, key=lambda one: one.run.rate):
        sweeps.setdefault(pair.run.sweep, []).append(pair)
    for sweep in sweeps.values():
        anchor = sweep[0].unchanged
        for ttft in TTFT_MS:
            for tpot in TPOT_MS:
                if not _keeps(anchor, ttft, tpot):
                    continue
                true = _highest([(pair.run.rate, pair.run.measured) for pair in sweep], ttft, tpot)
                sides = _sides(sweep, simulated=simulated)
                told = _highest([(run.rate, values) for run, values in sides], ttft, tpot)
                counted += [
                    (math.ceil(demand / told), math.ceil(demand / true)) for demand in _DEMANDS
                ]
    few = fmean(100.0 * (told < true) for told, true in counted)
    equal = fmean(100.0 * (told == true) for told, true in counted)
    return len(counted), few, equal, fmean(told / true for told, true in counted)


def _highest(rates: Sequence[tuple[float, Mapping[str, float]]], ttft: float, tpot: float) -> float:
    best = 1.0
    for rate, values in rates:
        if not _keeps(values, ttft, tpot):
            break
        best = rate
    return best


_MLPERF_LENGTHS = {  # means and shape of the sets, request_lengths.csv
    "llama2-70b": (222.3, 218.9, "chat"),
    "mixtral-8x7b": (427.4, 144.8, "chat"),
    "llama3.1-405b": (9428.6, 684.7, "rag"),
}
_MLPERF_MODELS = {
    "llama2-70b": "meta-llama/Llama-2-70b-chat",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "llama3.1-405b": "meta-llama/Meta-Llama-3.1-405B",
}
_MLPERF_SEQUENCES = 1024  # submitters set their batch; vLLM's own limit is for chats


def _mlperf_copies(model: str, gpu: str, precision: str) -> tuple[Traffic, list[Server]]:
    """Return the set's lengths and the copies that hold the model, by tensor parallel."""
    prompt, output, shape = _MLPERF_LENGTHS[model]
    asked = Traffic(rate=1.0, prompt=prompt, output=output, shape=shape)
    made = (
        server(
            model_named(_MLPERF_MODELS[model]),
            gpus()[gpu],
            tensor_parallel=ranks,
            precision=precision,
            nvlink=True,
            kv_bytes_factor=0.5,
        )
        for ranks in (1, 2, 4, 8)
    )
    fitting = (copy for copy in made if copy is not None and fits(copy, asked))
    return asked, [structs.replace(copy, max_sequences=_MLPERF_SEQUENCES) for copy in fitting]


def _mlperf_rate(
    model: str, gpu: str, precision: str, targets: tuple[Target, ...], offline: float
) -> float:
    """Return tokens/s of a GPU under targets; the measured Offline is the anchor of the steps."""
    asked, law_copies = _mlperf_copies(model, gpu, precision)
    saturated = max(saturated_rate(copy, asked) / copy.tensor_parallel for copy in law_copies)
    factor = saturated * asked.output / offline
    best = max(
        copy_limit(scaled(copy, factor), asked, targets).rate / copy.tensor_parallel
        for copy in law_copies
    )
    return min(best, MOST_OF_SATURATION * saturated / factor) * asked.output


def mlperf(
    folder: Path, scenario: str, models: Sequence[str] = tuple(_MLPERF_MODELS)
) -> list[tuple[str, float, float, float]]:
    """Return model, measured tokens/s of a scenario, predicted from Offline, and Offline x 0.7."""
    with (folder / "mlperf_targets.csv").open(newline="", encoding="utf-8") as file:
        limits = {(row["model"], row["scenario"]): row for row in csv.DictReader(file)}
    with (folder / "mlperf_offline_server_pairs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = []
    for row in rows:
        limit = limits.get((row["model"], scenario))
        measured = row[f"{scenario.lower()}_tok_s_per_gpu"]
        if limit is None or not measured or row["model"] not in models:
            continue
        targets = tuple(
            Target(metric=m, percent=99, limit_s=float(limit[f"{m}_p99_ms"]) / 1000.0)
            for m in ("ttft", "tpot")
        )
        offline = float(row["offline_tok_s_per_gpu"])
        told = _mlperf_rate(row["model"], row["gpu"], row["precision"], targets, offline)
        found.append((row["model"], float(measured), told, offline * 0.7))
    return found


def off_percent(
    rows: Sequence[tuple[str, float, float, float]], *, simulated: bool = True
) -> tuple[float, float]:
    """Return median and mean error of the predicted rates, or of Offline x 0.7, in percent."""
    off = [100.0 * abs((row[2] if simulated else row[3]) / row[1] - 1.0) for row in rows]
    return median(off), fmean(off)


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def main() -> None:
    """Print the table."""
    runs = read_runs(Path(sys.argv[1]))
    _say(f"{'median/mean error %':34}{'n':>4} " + " ".join(f"{m:>13}" for m in METRICS))
    for single in (True, False):
        named = "1 GPU" if single else "tensor parallel"
        one = list(from_one_run(runs, single=single))
        _say(_row(f"one run, {named}", one))
        _say(_row(f"  no change, {named}", one, simulated=False))
        nothing = list(from_nothing(runs, single=single))
        _say(_row(f"nothing measured, {named}", nothing))
        for name, simulated in (("one run", True), ("no change", False)):
            _say(
                f"  {name}: targets kept? n, right %, true of its yes %:",
                decisions(one, simulated=simulated),
            )
            if single:
                _say(
                    f"  {name}: copies n, too few %, equal %, spend:",
                    copies(one, simulated=simulated),
                )
    _say(_row("one run on the other GPU", list(from_other_gpu(runs))))
    _say("inside the printed interval, %:", inside(list(from_one_run(runs)), "measured"))
    for scenario in ("Server", "Interactive"):
        rows = mlperf(Path(sys.argv[1]), scenario)
        _say(
            f"MLPerf {scenario} from Offline, n {len(rows)}: {off_percent(rows)} % "
            f"(Offline x 0.7: {off_percent(rows, simulated=False)} %)"
        )
        for model in _MLPERF_MODELS:
            own = [row for row in rows if row[0] == model]
            if own:
                told = fmean(row[2] / row[1] for row in own)
                _say(f"  {model} n {len(own)}: {off_percent(own)}, x{told:.2f}")


if __name__ == "__main__":
    main()
