# mypy: ignore-errors
# Runs in an environment of its own, with torch and transformers.
"""Serves a tiny model with transformers' continuous batching on a CPU under Poisson load.

    python research/serving_server.py OUT.json RATE...

It needs torch and transformers (5.24 was used) and nothing of ours, so that what it measures is
another's server. The weights are random: times do not depend on what the tokens say. Each rate runs
in turn on one server; one request warms it up.
"""

import collections
import itertools
import json
import random
import statistics
import sys
import time
from pathlib import Path

import torch
import transformers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers.generation.configuration_utils import ContinuousBatchingConfig

PROMPT, OUTPUT, REQUESTS = 64, 24, 100
SHAPE = {
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 8000,
    "max_position_embeddings": 1024,
}


def _percentiles(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {f"p{p}": round(1000.0 * cuts[p - 1], 3) for p in (50, 95, 99)}


def _run(manager, rate: float, count: int, seed: int) -> dict[str, object]:  # noqa: ANN001 - transformers'
    chance = random.Random(seed)  # noqa: S311 - a load
    arrivals, finished, sent = {}, {}, []
    start = time.perf_counter()
    due = start
    for number in range(count):
        due += chance.expovariate(rate)
        prompt = max(4, round(chance.expovariate(1.0 / PROMPT)))
        output = max(2, round(chance.expovariate(1.0 / OUTPUT)))
        prompt, output = min(prompt, 400), min(output, 200)
        while (wait := due - time.perf_counter()) > 0:
            result = manager.get_result(timeout=min(wait, 0.05))
            if result is not None and result.is_finished():
                finished[result.request_id] = result
        name = f"{rate:g}-{number}"
        arrivals[name] = time.perf_counter()
        sent.append((prompt, output))
        tokens = [chance.randrange(5, 7000) for _ in range(prompt)]
        manager.add_request(
            tokens, request_id=name, max_new_tokens=output, record_timestamps=True, eos_token_id=-1
        )
    while len(finished) < count:
        result = manager.get_result(timeout=5.0)
        if result is not None and result.is_finished():
            finished[result.request_id] = result
    firsts, tokens_s, ends, steps = [], [], [], []
    for name, begin in arrivals.items():
        stamps = finished[name].timestamps
        firsts.append(stamps[0] - begin)
        ends.append(stamps[-1])
        steps += itertools.pairwise(stamps)
        if len(stamps) > 1:
            tokens_s.append((stamps[-1] - stamps[0]) / (len(stamps) - 1))
    return {
        "rate": rate,
        "requests": count,
        "span_s": round(max(ends) - start, 3),
        "prompt_mean": statistics.fmean(p for p, _ in sent),
        "output_mean": statistics.fmean(o for _, o in sent),
        "lengths": sent,
        "arrivals_s": [round(moment - start, 4) for moment in arrivals.values()],
        "ttft_ms": _percentiles(firsts),
        "tpot_ms": _percentiles(tokens_s),
        "token_ms_by_running": _by_running(steps),
    }


def _by_running(steps: list[tuple[float, float]]) -> dict[str, float]:
    """Return the median time between tokens [ms] by how many requests got one in that step."""
    running = collections.Counter(round(end, 3) for _, end in steps)
    grouped = collections.defaultdict(list)
    for begin, end in steps:
        grouped[running[round(end, 3)]].append(1000.0 * (end - begin))
    return {str(n): round(statistics.median(grouped[n]), 2) for n in sorted(grouped)}


def _host() -> dict[str, float]:
    """Return what one thread reaches: GFLOP/s of a matrix product, GB/s of reading memory."""
    left, right, long = torch.rand(512, 512), torch.rand(512, 512), torch.rand(50_000_000)
    products, reads = [], []
    for _ in range(5):
        begin = time.perf_counter()
        left @ right
        products.append(2.0 * 512**3 / (time.perf_counter() - begin) / 1e9)
        begin = time.perf_counter()
        long.sum()
        reads.append(4.0 * len(long) / (time.perf_counter() - begin) / 1e9)
    return {"gflop_s": round(max(products), 1), "read_gb_s": round(max(reads), 1)}


def main() -> None:
    """Write what each rate took to serve."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SHAPE)).eval()
    manager = model.init_continuous_batching(
        generation_config=GenerationConfig(max_new_tokens=64, do_sample=False, eos_token_id=-1),
        continuous_batching_config=ContinuousBatchingConfig(
            page_size=32, num_blocks=400, max_batch_tokens=512, allow_block_sharing=False
        ),
    )
    manager.start()
    _run(manager, 20.0, 5, 1)  # warms it up
    runs = [_run(manager, float(rate), REQUESTS, 7) for rate in sys.argv[2:]]
    manager.stop(block=True)
    document = {
        "server": f"transformers {transformers.__version__} continuous batching, CPU, 1 thread",
        "torch": torch.__version__,
        "shape": SHAPE,
        "host": _host(),
        "runs": runs,
    }
    Path(sys.argv[1]).write_text(json.dumps(document) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
