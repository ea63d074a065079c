"""Another's server on a CPU, predicted at other rates from one: `python -m research.cpu_server`.

`serving_server.py` served a tiny model with transformers' continuous batching and wrote
`measured/cpu_server/runs.json`. The law takes the CPU as a GPU: what one thread reaches is its
peak, what it reads its bandwidth. The run at the lowest rate is the anchor; the requests of each
run (arrival, prompt, answer) are those that were sent.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from planner.serving.anchor import MeasuredRun, anchored
from planner.serving.language_model import model_of_config
from planner.serving.load import saturated_rate
from planner.serving.server import Server, server
from planner.serving.simulation import simulate
from planner.serving.traffic import Traffic, requests
from pricing.errors import InputError
from pricing.hardware import gpus

RUNS = Path(__file__).parent / "measured" / "cpu_server" / "runs.json"
METRICS = ("ttft_p50", "ttft_p95", "ttft_p99", "tpot_p50", "tpot_p99")
_TOKEN_BUDGET, _KV_TOKENS = 512, 400 * 32.0  # as `serving_server.py` sets them
_FLOAT32_OVER_16BIT = 2.0


def law_copy(document: Mapping[str, Any]) -> Server:
    """Return the server by the law, on what one thread of its host reaches."""
    host = document["host"]
    cpu = replace(
        gpus()["L4"],
        name="CPU",
        bf16_tflops=host["gflop_s"] / 1000.0,
        memory_bandwidth_gb_s=host["read_gb_s"] / _FLOAT32_OVER_16BIT,
    )
    copy = server(model_of_config(document["shape"], "tiny"), cpu, precision="bf16")
    if copy is None:
        raise InputError("the host's figures are not known.")
    return structs.replace(copy, token_budget=_TOKEN_BUDGET, kv_tokens=_KV_TOKENS)


def traffic(run: Mapping[str, Any]) -> Traffic:
    """Return what a run was sent, request by request."""
    sent = zip(run["arrivals_s"], run["lengths"], strict=True)
    rows = tuple((second, prompt, output) for second, (prompt, output) in sent)
    return Traffic(
        rate=len(rows) / (rows[-1][0] - rows[0][0]),
        prompt=run["prompt_mean"],
        output=run["output_mean"],
        trace=rows,
    )


def predictions(
    document: Mapping[str, Any], anchor: int = 0
) -> Iterator[tuple[float, float, dict[str, float], dict[str, float]]]:
    """Yield rate, its part of saturation, and each time in ms, predicted and measured.

    Args:
        document: runs.json.
        anchor: the run that is fitted; it is left out.
    """
    base = document["runs"][anchor]
    run = MeasuredRun(
        traffic=traffic(base),
        first_token_s=base["ttft_ms"]["p50"] / 1000.0,
        token_s=base["tpot_ms"]["p50"] / 1000.0,
        requests=base["requests"],
    )
    copy, _ = anchored(law_copy(document), run)
    for other in document["runs"]:
        if other is not base:
            asked = traffic(other)
            seen = simulate(copy, requests(asked, asked.rate, len(asked.trace), 0))
            told = {m: 1000.0 * seen.percentile(m[:4], float(m[6:])) for m in METRICS}
            true = {m: other[f"{m[:4]}_ms"][m[5:]] for m in METRICS}
            yield other["rate"], asked.rate / saturated_rate(copy, asked), told, true


def read(path: Path) -> Mapping[str, Any]:
    """Return what `serving_server.py` wrote."""
    document: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def main() -> None:
    """Print each rate: predicted, measured."""
    document = read(RUNS)
    say = sys.stdout.write
    say(f"{document['server']}; anchor {document['runs'][0]['rate']:g}/s; ms, predicted/measured\n")
    for rate, load, told, true in predictions(document):
        cells = "  ".join(f"{m} {told[m]:.0f}/{true[m]:.0f}" for m in METRICS)
        say(f"{rate:4g}/s, {load:4.0%} of saturation: {cells}\n")


if __name__ == "__main__":
    main()
