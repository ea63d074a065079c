"""All-reduce times: piecewise fits of published nccl measurements, scored on sizes left out."""

from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

from planner.models.communication import interpolate
from research.score import Array, Score, Section, errors

# Every power of two from 2 KiB to 512 MiB, where measured: algorithms switch between sizes.
_KNOTS = tuple(float(2**power) for power in range(11, 30))
_DGX = {"a100": "A100-SXM-80GB", "h100": "H100-SXM-80GB"}
_NCCL = {"b200_sxm": "B200-SXM", "l40s": "L40S"}
_HEAD = """\
# Time of one all-reduce, our own piecewise fit; written by `make fit`, do not edit.
# Sources: microsoft/vidur profiles (MIT): A100 and H100 DGX; ai-dynamo/aiconfigurator (Apache-2.0):
# B200, L40S. Ranks over `nodes` machines; bytes of the message in the buffer of one rank.
"""


def measured(folder: Path) -> pd.DataFrame:
    """Return gpu, ranks, nodes, bytes, time_us of every published measurement."""
    parts = []
    for name, gpu in _DGX.items():
        rows = pd.read_csv(folder / "allreduce" / f"{name}_dgx_all_reduce.csv.gz")
        parts.append(
            pd.DataFrame(
                {
                    "gpu": gpu,
                    "ranks": rows.num_workers,
                    "nodes": rows.num_workers // rows.devices_per_node,
                    "bytes": rows["size"].astype(float),
                    "time_us": rows["time_stats.all_reduce.median"] * 1000.0,
                }
            )
        )
    for stem, gpu in _NCCL.items():
        rows = _parquet(folder / "allreduce" / f"nccl_{stem}.parquet")
        rows = rows[(rows.op_name == "all_reduce") & (rows.nccl_dtype == "half")]
        columns = {"num_gpus": "ranks", "message_size": "bytes"}
        kept = rows.rename(columns=columns)[["ranks", "bytes"]]
        parts.append(kept.assign(gpu=gpu, nodes=1, time_us=rows.latency * 1000.0))
    return (
        pd.concat(parts).groupby(["gpu", "ranks", "nodes", "bytes"]).time_us.median().reset_index()
    )


def _parquet(path: Path) -> pd.DataFrame:
    path.stat()  # a missing file is a FileNotFoundError, as it is of pandas
    rows: pd.DataFrame = duckdb.read_parquet(str(path)).df()
    return rows


def knots(sizes: Array, times: Array) -> tuple[tuple[float, float], ...]:
    """Return the (bytes, time) knots of the piecewise line in log-log that is nearest."""
    places = np.log([size for size in _KNOTS if size <= 2.0 * sizes.max()])
    at = np.log(np.clip(sizes, np.exp(places[0]), np.exp(places[-1])))
    hats = np.array([np.interp(at, places, unit) for unit in np.eye(len(places))]).T
    seen = hats.sum(axis=0) > 0
    logs = np.linalg.lstsq(hats[:, seen], np.log(times), rcond=None)[0]
    kept = np.exp(places[seen])
    return tuple((float(size), float(np.exp(log))) for size, log in zip(kept, logs, strict=True))


def table(folder: Path, day: date) -> str:
    """Return allreduce.csv."""
    lines = [f"{_HEAD}# Fitted {day.isoformat()}.", "gpu,ranks,nodes,bytes,time_us"]
    for (gpu, ranks, nodes), rows in measured(folder).groupby(["gpu", "ranks", "nodes"]):
        found = knots(rows.bytes.to_numpy(float), rows.time_us.to_numpy(float))
        lines += [f"{gpu},{ranks},{nodes},{size:.0f},{time:.4g}" for size, time in found]
    return "\n".join(lines) + "\n"


def _halves(rows: pd.DataFrame) -> tuple[list[float], list[float], list[float]]:
    """Return piecewise and alpha-beta guesses and truth, each half by the other."""
    guesses: list[float] = []
    straight: list[float] = []
    truth: list[float] = []
    ordered = rows.sort_values("bytes")
    for half in (0, 1):
        known, asked = ordered.iloc[half::2], ordered.iloc[1 - half :: 2]
        found = knots(known.bytes.to_numpy(float), known.time_us.to_numpy(float))
        guesses += [interpolate(found, size) for size in asked.bytes]
        x = np.column_stack([np.ones(len(known)), known.bytes]) / known[["time_us"]].to_numpy()
        alpha, beta = np.linalg.lstsq(x, np.ones(len(known)), rcond=None)[0]
        straight += list(alpha + beta * asked.bytes)
        truth += list(asked.time_us)
    return guesses, straight, truth


def section(folder: Path) -> Section:
    """Return the score of all-reduce times."""
    found = [_halves(rows) for _, rows in measured(folder).groupby(["gpu", "ranks", "nodes"])]
    guesses, straight, truth = (
        [value for values in column for value in values] for column in zip(*found, strict=True)
    )
    return Section(
        title="All-reduce",
        scores=(
            Score(
                question="time of an all-reduce, 2 KiB and up, every other size left out",
                cases=len(truth),
                ours=errors(guesses, truth),
                baseline=("alpha + beta x bytes", errors(straight, truth)),
                bar=(None, 5.0),
            ),
        ),
    )
