"""Small batches: launches set the pace, so a faster GPU gains less than its specifications say."""

import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from planner.prediction.kernels import log_ratio
from pricing.hardware import gpus
from research.class_fits import quantile
from research.score import Array, Score, Section, errors
from research.several_gpus import placements

# The clusters whose GPU is known; the models were trained in half precision.
CLUSTER_GPU = {
    "aws": "T4",
    "rtx": "RTX-2080Ti",
    "dgx-ext": "A100-SXM-40GB",
    "quad": "Quadro-RTX-6000",
}
SMALL = 0.15  # of the largest batch that its cluster ran
_EXPONENTS = tuple(round(0.3 + 0.05 * step, 2) for step in range(15))


@cache
def small_pairs(folder: Path) -> pd.DataFrame:
    """Return ln of predicted and true speed-ups at the same small batch: model, before, after."""
    table = placements(folder)
    alone = table[(table.placement == "1") & table.cluster.isin(list(CLUSTER_GPU))]
    rows = []
    for model, mine in alone.groupby("model"):
        steps = {
            str(name): one.set_index("local_bsz").step_s for name, one in mine.groupby("cluster")
        }
        for before, after in itertools.permutations(steps, 2):
            for batch in steps[before].index.intersection(steps[after].index):
                if batch <= SMALL * steps[before].index.max():
                    gpu, other = gpus()[CLUSTER_GPU[before]], gpus()[CLUSTER_GPU[after]]
                    guess = log_ratio(gpu, other, "amp-fp16")
                    true = np.log(steps[before][batch] / steps[after][batch])
                    rows.append((model, before, after, guess, true))
    return pd.DataFrame(rows, columns=["model", "before", "after", "guess", "true"])


def fitted_exponent(pairs: pd.DataFrame) -> float:
    """Return the power of the speed ratio with the least mean |ln error|."""
    return min(_EXPONENTS, key=lambda a: float((a * pairs.guess - pairs.true).abs().mean()))


def _left_out(pairs: pd.DataFrame) -> Array:
    """Return ln of predictions, each pair by an exponent fitted without its target."""
    guess = np.zeros(len(pairs))
    for after in pairs.after.unique():
        apart = (pairs.after != after) & (pairs.before != after)
        mine = (pairs.after == after).to_numpy()
        guess[mine] = fitted_exponent(pairs[apart]) * pairs.guess[mine]
    return guess


def small_factor(pairs: pd.DataFrame) -> float:
    """Return the factor of the 90 % interval, targets left out."""
    return float(np.exp(quantile(np.abs(_left_out(pairs) - pairs.true.to_numpy()))))


def section(folder: Path) -> Section:
    """Return the score of small work."""
    pairs = small_pairs(folder)
    true = np.exp(pairs.true)
    unchanged = errors(np.ones(len(true)), true)
    return Section(
        title="Small work",
        scores=(
            Score(
                question="training at a small batch on another GPU, GPU unseen",
                cases=len(pairs),
                ours=errors(np.exp(_left_out(pairs)), true),
                baseline=("as at a full batch", errors(np.exp(pairs.guess), true)),
                note=f"at most {SMALL:.0%} of the largest batch; no change: {unchanged}",
            ),
        ),
        notes=("BERT and CIFAR-10 on a T4, a 2080 Ti, an RTX 6000 and an A100, the same batch.",),
    )
