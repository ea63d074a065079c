"""Writes a series beside a copy of a profile, so that a page has something to draw over time.

`python -m tests.page_series PROFILE FOLDER`; `make page-test` draws it. The figures are drawn at
random, the same each time: two hours of four GPUs with a start, steps, a pause and an evaluation.
"""

import json
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

SECONDS, GPUS, START = 7_200, 4, 1.7e9
STEPS = range(600, 5_040)
EVALUATION_S = 1_300.0
_PAUSE = slice(5_040, 5_760)


def main(profile: str, folder: str) -> None:
    """Write NAME.json, NAME.samples.parquet and NAME.steps.jsonl into a folder."""
    target, stem = Path(folder), Path(profile).stem
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{stem}.json").write_bytes(Path(profile).read_bytes())
    frame = pd.concat([_gpu(number) for number in range(GPUS)])
    duckdb.from_df(frame).order("t_s, gpu").write_parquet(str(target / f"{stem}.samples.parquet"))
    lines = [{"t_s": START + t + 0.9, "step": t, "n": 1, "step_s": 0.9} for t in STEPS]
    last = {"t_s": START + SECONDS - 1, "n": 1, "step_s": 0.9, "evaluation_s": EVALUATION_S}
    text = "".join(f"{json.dumps(line)}\n" for line in [*lines, last])
    (target / f"{stem}.steps.jsonl").write_text(text, encoding="utf-8")


def _gpu(number: int) -> pd.DataFrame:
    drawn = np.random.default_rng(number)
    busy = drawn.normal(0.4 + 0.1 * number, 0.12, SECONDS).clip(0, 1)
    busy[: STEPS.start], busy[_PAUSE] = 0.0, 0.01
    host = drawn.normal(0.6, 0.1, SECONDS).clip(0, 1)
    t_s = START + np.arange(SECONDS)
    return pd.DataFrame(
        {"t_s": t_s, "gpu": str(number), "util.kernel_time": busy, "host.cpu_util": host}
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
