"""How far serving pods go beyond the hours that were recorded: windows of a day, the rest judged.

Fitted on `duty-cycles` (alibaba/clusterdata v2026): GPU use and memory of 72 pods over 23 hours.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

TICK_S = 57  # between two readings of a pod
FEW = 50  # readings of a window, or of the rest, from which a pod is looked at
_WINDOWS_H: Mapping[str, tuple[float, ...]] = {"few": (3.0,), "half": (6.0, 11.4), "most": (16.0,)}
_IDLE = 5.0  # percent of use, up to which a pod tells nothing of its growth
_PODS, _PAIRS = 0.95, 0.999  # memory that is full ends a job: one shared GPU in a thousand


def read(folder: Path) -> pd.DataFrame:
    """Return the pods' readings: pod, t_s, util_percent, mem_gib."""
    return pd.read_csv(folder / "duty-cycles" / "pods.csv.gz")


def fitted(pods: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the growth of use and memory by the hours recorded, each at least 1."""
    return {
        name: {
            "hours": hours[0],
            "use": max(_at_least_one(_use(pods, h)) for h in hours),
            "memory": max(_at_least_one(_memory(pods, h)) for h in hours),
        }
        for name, hours in _WINDOWS_H.items()
    }


def _at_least_one(growth: float) -> float:
    return max(1.0, round(growth, 2))


def _windows(pods: pd.DataFrame, hours: float) -> "Iterator[pd.Series[bool]]":
    """Yield which readings are in a window, for windows side by side from both ends of the day."""
    last, length = float(pods.t_s.max()), hours * 3600.0
    starts = [i * length for i in range(int((last + TICK_S) / length))]
    for start in starts if len(starts) > 1 else [0.0, last - length]:
        yield (pods.t_s >= start) & (pods.t_s < start + length)


def _use(pods: pd.DataFrame, hours: float) -> float:
    """Return the 95th percentile of the other hours over the 99th of the window, over pods."""
    ratios: list[float] = []
    known = pods.dropna()
    for inside in _windows(known, hours):
        seen, rest = (known[part].groupby("pod").util_percent for part in (inside, ~inside))
        both = pd.DataFrame({"seen": seen.quantile(0.99), "rest": rest.quantile(0.95)})[
            (seen.size() >= FEW) & (rest.size() >= FEW)
        ]
        both = both[both.seen >= _IDLE]
        ratios.extend(both.rest / both.seen)
    return float(np.quantile(ratios, _PODS))


def _memory(pods: pd.DataFrame, hours: float) -> float:
    """Return the most that two pods held at once in the other hours over their two peaks before."""
    ratios: list[float] = []
    known = pods.dropna()
    for inside in _windows(known, hours):
        seen, rest = (
            known[part]
            .assign(tick=known[part].t_s // TICK_S)
            .pivot_table(index="tick", columns="pod", values="mem_gib")
            for part in (inside, ~inside)
        )
        names = [n for n in seen if n in rest and min(seen[n].count(), rest[n].count()) >= FEW]
        peaks, later = seen[names].max().to_numpy(), rest[names].fillna(0.0).to_numpy()
        ratios.extend(
            float((later[:, i] + later[:, j]).max() / (peaks[i] + peaks[j]))
            for i, j in combinations(range(len(names)), 2)
        )
    return float(np.quantile(ratios, _PAIRS))
