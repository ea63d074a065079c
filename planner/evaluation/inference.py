"""Inference on another GPU: specifications alone, on published image-model speeds."""

from pathlib import Path

import numpy as np
import pandas as pd

from planner.evaluation.score import Score, Section, errors
from planner.kernels import serving_speed_up
from pricing.hardware import gpus

_FILE = "benchmark-infer-amp-nchw-pt240-cu124-{}.csv"
_SAME = ["model", "infer_img_size"]


def ratios(folder: Path) -> pd.Series:
    """Return measured speed on the RTX 4090 over the RTX 3090, by model and image size."""
    speed = [
        pd.read_csv(folder / "timm" / _FILE.format(name)).set_index(_SAME).infer_samples_per_sec
        for name in ("rtx3090", "rtx4090")
    ]
    both = pd.concat(speed, axis=1, keys=["before", "after"]).dropna()
    return both.after / both.before


def section(folder: Path) -> Section:
    """Return the score of inference on another GPU."""
    true = ratios(folder)
    before, after = gpus()["RTX-3090"], gpus()["RTX-4090"]
    guess = serving_speed_up(before, after, "amp-fp16")
    peak = (after.fp16_tflops or 0.0) / (before.fp16_tflops or 1.0)
    bandwidth = (after.memory_bandwidth_gb_s or 0.0) / (before.memory_bandwidth_gb_s or 1.0)
    middle = (peak * bandwidth) ** 0.5
    return Section(
        title="Inference on another GPU",
        scores=(
            Score(
                question="image models, RTX 3090 -> RTX 4090",
                cases=len(true),
                ours=errors(np.full(len(true), guess), true.to_numpy()),
                baseline=(
                    "sqrt(peak x bandwidth)",
                    errors(np.full(len(true), middle), true.to_numpy()),
                ),
                note="slopes of the training fit alone: no figure of these was seen",
            ),
        ),
        remarks=("One pair of GPUs of one family: too few to narrow the interval of inference.",),
    )
