"""Ranges that actions call measured come out of the published data again; skipped without it."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

from planner.actions import ACTIONS, action
from planner.profile.model import Statistics
from planner.signals.signals import read_signals
from planner.signals.thresholds import FEW_ITEMS
from tests.planner.factories import a_profile

# Tasks whose rows the data's own notes call unreliable, and one whose AMP had no effect.
LEFT_OUT = {"ncf", "tacotron2", "waveglow"}
NOT_TASKS = {"name_gpu", "num_gpu", "watt", "price"}
OLD = ("V100", "RTX 8000")  # Volta and Turing: FP32 without tensor cores
RTX_4090 = "benchmark-infer-amp-{}-pt240-cu124-rtx4090{}.csv"


def table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ends(values: list[float]) -> tuple[float, float, float]:
    """The 5 % quantile, the median and the 95 % quantile."""
    cuts = quantiles(values, n=20)
    return cuts[0], median(values), cuts[-1]


def half_over_single(shared: Path, what: str) -> Iterator[tuple[str, str, float]]:
    """GPU, task and the ratio of half to single precision, for GPUs alone and together."""
    folder = shared / "datasets" / "lambda"
    half, single = (
        {(r["name_gpu"], r["num_gpu"]): r for r in table(folder / f"pytorch-train-{what}-{p}.csv")}
        for p in ("fp16", "fp32")
    )
    for key in half.keys() & single.keys():
        for task in half[key].keys() - NOT_TASKS - LEFT_OUT:
            one, other = float(half[key][task] or 0), float(single[key][task] or 0)
            if one and other:
                yield key[0], task, one / other


def test_half_precision_gains_what_lambda_measured(shared: Path) -> None:
    """The range of the action holds nine in ten GPU and task pairs, on both kinds of GPU."""
    found = list(half_over_single(shared, "throughput"))
    for gpu, is_old in (("Tesla T4", True), ("A100-SXM-80GB", False)):
        ratios = [r for name, _, r in found if any(word in name for word in OLD) == is_old]
        effect = action(
            "mixed-precision", read_signals(a_profile(gpu=gpu, precision="fp32"))
        ).effect
        assert effect is not None
        low, mid, high = effect
        assert sum(low <= r <= high for r in ratios) >= 0.9 * len(ratios)
        assert low < median(ratios) < high
        assert mid == pytest.approx(median(ratios), rel=0.25)


def test_half_precision_frees_what_lambda_measured(shared: Path) -> None:
    """The largest batch grows by the inverse of the memory factor: x1.5 to x2.0, median 2.0."""
    ratios = [ratio for _, _, ratio in half_over_single(shared, "bs")]
    low, mid, high = ACTIONS["mixed-precision"].memory or (0, 0, 0)
    assert median(ratios) == pytest.approx(1 / mid)
    assert sum(1 / high - 0.01 <= r <= 1 / low + 0.01 for r in ratios) >= 0.9 * len(ratios)


@pytest.mark.parametrize(
    ("code", "layout", "mode"), [("compile", "nchw", "-dynamo"), ("channels-last", "nhwc", "")]
)
def test_compiling_and_layout_gain_what_timm_measured(
    shared: Path, code: str, layout: str, mode: str
) -> None:
    """For inference the three figures are the 5 % quantile, the median and the 95 % quantile."""
    folder = shared / "datasets" / "timm"
    base, changed = (
        {r["model"]: float(r["infer_samples_per_sec"]) for r in table(folder / RTX_4090.format(*v))}
        for v in (("nchw", ""), (layout, mode))
    )
    ratios = [changed[model] / base[model] for model in base.keys() & changed.keys()]
    serving = read_signals(a_profile({"util.kernel_time": 0.95}, kind="inference_offline"))
    assert len(ratios) > 1000
    assert action(code, serving).effect == pytest.approx(ends(ratios), rel=0.02)


def test_doubling_a_batch_gains_what_zeus_measured(shared: Path) -> None:
    """The three figures are near the 5 % quantile, median and 95 % quantile of two GPUs' pairs."""
    gains = []
    for name in ("a40", "v100"):
        times: dict[tuple[str, ...], float] = {}
        for row in table(shared / "datasets" / "power" / f"summary_power_{name}.csv"):
            key = tuple(row[k] for k in ("dataset", "network", "optimizer", "power_limit"))
            times[*key, row["batch_size"]] = float(row["time_per_epoch"])
        for (*key, batch), time_s in times.items():
            doubled = times.get((*key, str(2 * int(batch))))
            if doubled:
                gains.append(time_s / doubled)
    assert len(gains) > 600
    low, mid, high = ACTIONS["larger-batch"].effect or (0, 0, 0)
    assert (low, mid, high) == pytest.approx(ends(gains), rel=0.06)


def test_eight_times_a_few_items_gain_what_zeus_measured(shared: Path) -> None:
    """From up to 8 items on a step hardly grows: at best not at all, and by half at the median."""
    gains = []
    for name in ("a40", "v100"):
        times = {}
        for row in table(shared / "datasets" / "power" / f"summary_power_{name}.csv"):
            key = tuple(row[k] for k in ("dataset", "network", "optimizer", "power_limit"))
            times[*key, int(row["batch_size"])] = float(row["time_per_epoch"])
        gains += [
            time_s / times[*key, 8 * batch]
            for (*key, batch), time_s in times.items()
            if batch <= FEW_ITEMS and (*key, 8 * batch) in times
        ]
    assert len(gains) > 100
    assert ends(gains) == pytest.approx((1.33, 4.84, 8.0), rel=0.06)
    empty = {"util.kernel_time": 0.9, "util.sm_active": 0.2, "mem.used_gib": Statistics(max=8.0)}
    few = a_profile(empty, batch_per_gpu=4)
    low, mid, high = action("larger-batch", read_signals(few)).effect or (0, 0, 0)
    assert low < ends(gains)[0]
    assert mid < ends(gains)[1]
    assert high == pytest.approx(ends(gains)[2], rel=0.06)


def test_more_prompts_gain_what_argonne_measured(shared: Path) -> None:
    """The powers are the 5 % quantile, median and 95 % quantile of 1 -> 16 prompts on one GPU."""
    rates: dict[tuple[str, ...], float] = {}
    for row in table(shared / "datasets" / "argonne_llm" / "runs.csv"):
        if row["gpus"] == "1" and row["framework"] not in {"llama.cpp", "sambaflow"}:
            key = tuple(row[k] for k in ("gpu", "framework", "model", "in_out_tokens", "batch"))
            rates[key] = float(row["tokens_per_s"])
    gains = [
        rates[*key, "16"] / rate
        for (*key, batch), rate in rates.items()
        if batch == "1" and (*key, "16") in rates
    ]
    assert len(gains) >= 140
    powers = [math.log(gain, 16) for gain in ends(gains)]
    writer = a_profile(
        {"util.kernel_time": 0.8, "mem.used_gib": Statistics(max=8.0)},
        kind="inference_offline",
        parameters=1e9,
        unit="token",
        batch_per_gpu=1,
    )
    effect = action("larger-batch", read_signals(writer)).effect or (0, 0, 0)
    assert [math.log(gain, 8) for gain in effect] == pytest.approx(powers, abs=0.02)


def test_more_cores_gain_what_synergy_measured(shared: Path) -> None:
    """No job gained more than x2.9 from 3 to 12 cores a GPU; starved ones gained by the law."""
    with (shared / "datasets" / "dataloading" / "cpu_sensitivity.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    three, twelve = header.index("3", 1), header.index("12")
    gains = [float(row[twelve]) / float(row[three]) for row in rows]
    most = (ACTIONS["dataloader-workers"].effect or (0, 0, 0))[2]
    assert max(gains) == pytest.approx(most, rel=0.05)
    starved = [gain for gain in gains if gain > 2.5]
    quarter_busy = read_signals(a_profile({"util.kernel_time": 0.2}, host={"cpu_util": 0.25}))
    assert starved
    low, _, high = action("dataloader-workers", quarter_busy).effect or (0, 0, 0)
    assert all(low <= gain <= high * 1.05 for gain in starved)


def test_nothing_else_is_called_measured() -> None:
    """Every action called measured is tested here."""
    measured = {code for code, one in ACTIONS.items() if one.grade == "measured"}
    assert measured == {"mixed-precision", "channels-last"}
