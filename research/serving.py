"""How well the serving engine predicts published open-arrival runs: the bars, beside baselines.

    python -m research.serving ../shared/datasets/serving

Runs are 200 requests; lengths are ShareGPT's, which the runs drew from, scaled to each run's means;
median of 3 seeds.
Each sweep ran from 32 to 1 request a second on one server with the same prompts and prefix caching,
so that every rate but 32 found its prompts cached where they all fit.
"""

import csv
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from msgspec import structs

from planner.serving.anchor import MeasuredRun, anchored, scaled, transferred
from planner.serving.language_model import LanguageModel, model_like, model_named
from planner.serving.load import Target, copy_limit, fits, saturated_rate
from planner.serving.search import SPREAD
from planner.serving.server import Server, server
from planner.serving.simulation import simulate
from planner.serving.traffic import Traffic, requests
from pricing.errors import InputError
from pricing.hardware import gpus
from research import cpu_server
from research.score import Coverage, Errors, Score, Section

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
    reached: float
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
            reached=float(row["req_s"]),
            measured={metric: float(row[metric]) for metric in METRICS},
        )
        for row in rows
    ]


def traffic(run: Run, copy: Server, top_rate: float) -> Traffic:
    """Return what a run answered; prompts of all but the first rate are cached where they fit."""
    fits = 200 * (run.prompt + run.output) < copy.kv_tokens
    cached = 1.0 - _ALL_CACHED_TOKENS / run.prompt if fits and run.rate < top_rate else 0.0
    return Traffic(
        rate=run.rate,
        prompt=run.prompt,
        output=run.output,
        shape="sharegpt",
        cached_fraction=cached,
    )


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
        anchor, _ = anchored(law, run)
        others = (o for key, o in sweeps.items() if key[0] == model and key[1] != gpu)
        for other in (one for found in others for one in found):
            copy = transferred(law_copy(other), law, anchor)
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


TTFT_MS, TPOT_MS = (100.0, 200.0, 500.0, 2000.0), (15.0, 25.0, 50.0)
_DEMANDS = (30.0, 100.0, 300.0)


def _keeps(values: Mapping[str, float], ttft_ms: float, tpot_ms: float) -> bool:
    return values["ttft_p99"] <= ttft_ms and values["tpot_p99"] <= tpot_ms


def always_yes(pairs: Sequence[Pair]) -> float:
    """Return the percent of "are both targets kept?" that a constant yes has right."""
    cases = [_keeps(p.run.measured, t, o) for p in pairs for t in TTFT_MS for o in TPOT_MS]
    return fmean(100.0 * kept for kept in cases)


def seven_tenths(pairs: Sequence[Pair]) -> float:
    """Return the percent right where a copy takes 0.7 of what it reached at the highest rate."""
    top: dict[object, float] = {}
    for pair in pairs:
        top[pair.run.sweep] = max(top.get(pair.run.sweep, 0.0), pair.run.reached)
    return fmean(
        100.0 * (_keeps(run.measured, ttft, tpot) == (run.rate <= 0.7 * top[run.sweep]))
        for run, _, _ in pairs
        for ttft in TTFT_MS
        for tpot in TPOT_MS
    )


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
    """Return tokens/s of a GPU under targets, over Offline; Offline anchors each layout.

    A submitter picks the layout of each scenario, and nothing says which one Offline ran on.
    """
    asked, law_copies = _mlperf_copies(model, gpu, precision)
    best = 0.0
    for copy in law_copies:
        factor = saturated_rate(copy, asked) * asked.output / (offline * copy.tensor_parallel)
        limit = copy_limit(scaled(copy, factor), asked, targets)
        best = max(best, limit.rate / limit.saturated_rate)
    return best


def mlperf(
    folder: Path, scenario: str, models: Sequence[str] = tuple(_MLPERF_MODELS)
) -> list[tuple[str, float, float, float]]:
    """Return model, measured tokens/s of a scenario, predicted from Offline, and Offline."""
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
        told = offline * _mlperf_rate(row["model"], row["gpu"], row["precision"], targets, offline)
        found.append((row["model"], float(measured), told, offline))
    return found


def interactive(folder: Path) -> list[tuple[str, float, float, float]]:
    """Return the Interactive rows; what Offline promises too much is learned on other models."""
    rows = mlperf(folder, "Interactive")
    told = []
    for model, measured, predicted_rate, simple in rows:
        others = [row[2] / row[1] for row in rows if row[0] != model]
        told.append((model, measured, predicted_rate / median(others), simple))
    return told


def off_percent(
    rows: Sequence[tuple[str, float, float, float]], share: float | None = None
) -> tuple[float, float]:
    """Return median and mean error of the predicted rates, or of a share of Offline, in percent."""
    told = [row[2] if share is None else row[3] * share for row in rows]
    off = [100.0 * abs(rate / row[1] - 1.0) for rate, row in zip(told, rows, strict=True)]
    return median(off), fmean(off)


def scores(folder: Path) -> list[Score]:
    """Return the bars that are errors, each beside its simple baseline."""
    runs = read_runs(folder)
    one, nothing = list(from_one_run(runs)), list(from_nothing(runs))
    other, split = list(from_other_gpu(runs)), list(from_nothing(runs, single=False))
    whole = "fitted on these runs: nothing was left out"

    def row(bar: str, pairs: Sequence[Pair], metric: str, most: float, note: str = "") -> Score:
        ours, unchanged = (errors(pairs, simulated=told)[metric] for told in (True, False))
        same = unchanged == ours  # nothing measured: there is nothing to leave unchanged
        name = metric.replace("_", " ").upper().replace("P", "p").replace("TpOT", "TPOT")
        return Score(
            question=f"{bar}: {name}",
            cases=len(pairs),
            ours=Errors(median=ours[0], mean=ours[1]),
            baseline=None
            if same
            else ("no change", Errors(median=unchanged[0], mean=unchanged[1])),
            bar=(most, None),
            note=note,
        )

    table = [
        row("one run, another rate", one, metric, most)
        for metric, most in zip(METRICS, (11, 8, 12, 5, 10), strict=True)
    ]
    table += [
        row("nothing measured", nothing, metric, most, whole)
        for metric, most in (("tpot_p50", 8), ("ttft_p50", 14), ("ttft_p99", 18))
    ]
    table += [
        row("one run on another GPU", other, metric, most)
        for metric, most in (("tpot_p50", 6), ("ttft_p50", 18), ("ttft_p99", 22))
    ]
    table.append(row("split over PCIe, nothing measured", split, "tpot_p50", 15, whole))
    for scenario, rows, bar, share in (
        ("Server", mlperf(folder, "Server"), (5, 7), 0.9),
        ("Interactive", interactive(folder), (10, None), 0.7),
    ):
        ours, simple = off_percent(rows), off_percent(rows, share=share)
        table.append(
            Score(
                question=f"MLPerf v5.1, {scenario} tokens/s from Offline",
                cases=len(rows),
                ours=Errors(median=ours[0], mean=ours[1]),
                baseline=(f"Offline x {share}", Errors(median=simple[0], mean=simple[1])),
                bar=bar,
                note="one factor for short time limits, learned on the other models"
                if scenario == "Interactive"
                else "no factor is fitted",
            )
        )
    return table


def section(folder: Path) -> Section:
    """Return what is published of servers: times at other rates, copies, and what is not known."""
    folder = folder / "serving"
    runs = read_runs(folder)
    one, split = list(from_one_run(runs)), list(from_nothing(runs, single=False))
    held = inside(one, "measured")
    cases, right, true = decisions(one)
    counted, few, equal, spend = copies(one)
    lost = errors(split)["ttft_p50"]
    return Section(
        title="Servers of language models (`gpucost serve`)",
        scores=tuple(scores(folder)),
        coverages=tuple(
            Coverage(
                question=f"one run, another rate: {metric.replace('_', ' ')}",
                share=held[metric] / 100.0,
                factor=SPREAD["measured"][metric[:4]][place],
            )
            for metric, place in zip(METRICS, (0, 1, 2, 0, 2), strict=True)
        ),
        notes=(
            (
                f"Are a limit of TTFT p99 and one of TPOT p99 both kept (12 pairs of limits, "
                f"{cases} cases)? Right in {right:.1f}%, and {true:.1f}% of its yes is true; no "
                f"change {decisions(one, simulated=False)[1]:.1f}%, 0.7 of the highest rate "
                f"reached {seven_tenths(one):.1f}%, always yes {always_yes(one):.1f}%. Copies for "
                f"30, 100 and 300 requests/s ({counted} cases): too few in {few:.1f}%, equal in "
                f"{equal:.1f}%, spend x{spend:.2f} of the need; no change: too few in "
                f"{copies(one, simulated=False)[1]:.1f}%."
            ),
            (
                "The runs drew ShareGPT's prompts; until 2026-11-27 they were scored with those of "
                "OpenOrca (TTFT p95 9.4% instead of 6.7%), which was changed with that score in "
                "sight. So was, for MLPerf, that Offline anchors each layout of its own. Two terms "
                "were named before their score and left, for neither helps: runs of 600 s, as "
                "MLPerf's last, from an empty server (Server 7.3 / 9.2%, median of 3 seeds), and "
                "rates up to saturation in place of 90% of it (8.8 / 9.7%)."
            ),
            (
                f"No skill: the time to the first token of a model that is split over PCIe "
                f"(off by {lost[0]:.0f}% in the median: it falls from seconds at 1 request/s to "
                "90 ms at 8 on the same boards, which no law here explains), and its tail where "
                "the memory of keys and values is nearly full. Such answers are marked weak. "
                "Server of llama3.1-405b (prompts of 9,400 tokens) comes out a fifth too high."
            ),
            _cpu_note(),
        ),
    )


def _cpu_note() -> str:
    off = {metric: list[float]() for metric in METRICS}
    for path in sorted(cpu_server.RUNS.parent.glob("*.json")):
        for _, load, told, true in cpu_server.predictions(cpu_server.read(path)):
            for metric in METRICS:
                if load < 1.0:
                    off[metric].append(100.0 * abs(told[metric] / true[metric] - 1.0))
    figures = ", ".join(f"{name.replace('_', ' ')} {median(off[name]):.0f}%" for name in METRICS)
    return (
        "A server of another's that we ran (transformers' continuous batching, a tiny model with "
        f"random weights, one CPU core), from its lowest rate, n {len(off['ttft_p50'])} rates "
        f"below saturation, medians: {figures}. Above it the queue is foretold to half."
    )


def _fast_enough() -> str:
    """Return seconds of 10,000 requests, best of 3."""
    drawn = requests(Traffic(rate=20.0, prompt=500, output=300), 20.0, 10_000, 0)
    copy = server(model_named("llama-3.1-8b"), gpus()["H100-SXM-80GB"])
    took = []
    for _ in range(3):
        begin = time.process_time()
        if copy is not None:
            simulate(copy, drawn)
        took.append(time.process_time() - begin)
    return f"{min(took):.2f} s"


def _held_by_tests(word: str) -> str:
    """Return the last line of the tests that hold a bar."""
    arguments = (
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "tests/gpucost/planning/test_serve.py",
        "-k",
        word,
    )
    ran = subprocess.run(  # noqa: S603 - our own tests
        (sys.executable, *arguments), capture_output=True, text=True, check=False
    )
    return ran.stdout.strip().splitlines()[-1]


def main() -> None:
    """Print every bar: what, cases, ours, the simple baseline, what was asked, and the verdict."""
    folder = Path(sys.argv[1])
    say, part = sys.stdout.write, section(folder)
    say(f"{'median / mean error %':58}{'n':>4}  ours          baseline                     bar\n")
    for score in part.scores:
        simple = " ".join(map(str, score.baseline)) if score.baseline else "-"
        cells = f"{score.ours!s:13} {simple:28} {score.bar_text:7}"
        say(f"{score.question:58}{score.cases:4}  {cells} {score.verdict}\n")
    for cover in part.coverages:
        say(f"inside x/÷ {cover.factor:g}: {cover.question} {cover.share:.1%} (85 to 97 %)\n")
    for note in part.notes:
        say(f"{note}\n")
    say(f"10,000 requests: {_fast_enough()} (at most 0.2 s)\n")
    for name, word in (("money", "money"), ("refusals", "refus"), ("threads", "thread")):
        say(f"{name}: {_held_by_tests(word)}\n")


if __name__ == "__main__":
    main()
