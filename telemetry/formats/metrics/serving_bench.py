"""Reads the result of `vllm bench` (serve, throughput, latency) or SGLang's `bench_serving`, JSON.

Names are those of vLLM 0.6 to 0.11 and SGLang 0.5. The load is the benchmark's: what users will ask
for is another matter, and said so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.profile.kinds import JobKind
from planner.profile.serving import Latency, Serving
from pricing.errors import InputError
from telemetry.readers.recording_builder import RecordingBuilder
from telemetry.readers.records import documents
from telemetry.recording.recording import GPU, TIME, Served

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from telemetry.readers.hints import Hints
    from telemetry.readers.payload import Payload
    from telemetry.recording.recording import Recording

FORMAT = "serving-bench"
_LOAD = "the load is a benchmark's ({load}): what it takes to serve your users may differ."
_P = {"mean": ("mean", "avg"), "p50": ("median", "p50"), "p95": ("p95",), "p99": ("p99",)}
_MS_A_S, _DIGITS = 1000.0, 6


def read(payload: Payload, hints: Hints) -> Recording:
    """Return what the last result in the file says; vLLM appends results to one file.

    Raises:
        InputError: no result of a benchmark is in it, or its length is missing.
    """
    del hints
    builder = RecordingBuilder(payload, FORMAT)
    found, damaged = documents(payload.text, payload.name)
    builder.rows_read = len(found) + damaged
    if damaged:
        builder.dropped["cut line"] += damaged
    if len(found) > 1:
        builder.dropped["result before the last one"] += len(found) - 1
        builder.notes.append(f"{len(found)} results are in it; the last one is read.")
    result = found[-1]
    told = _latency_run(result) or _throughput_run(result) or _serve_run(result)
    if told is None:
        raise InputError(
            f"{payload.name}: no result of a benchmark of a server with its duration and requests. "
            "Give the file of `vllm bench serve --save-result`."
        )
    samples = pd.DataFrame({TIME: np.empty(0), GPU: pd.Series(dtype=object)})
    return builder.recording(samples, (), served=(told,), absolute=False)


def _serve_run(result: Mapping[str, object]) -> Served | None:
    length, answered = _number(result, "duration"), _number(result, "completed")
    if length is None or answered is None or length <= 0:
        return None
    generated = _number(result, "total_output_tokens")
    rate, together = result.get("request_rate"), _number(result, "max_concurrency")
    load = f"{rate} requests a second" if rate not in (None, "inf") else "all requests at once"
    load += "" if together is None else f", at most {together:g} at a time"
    failed = _number(result, "failed")
    return Served(
        framework=_framework(result),
        kind=JobKind.INFERENCE_ONLINE,
        serving=Serving(
            prompt_tokens_per_s=_per(_number(result, "total_input_tokens"), length),
            generated_tokens_per_s=_per(generated, length),
            failures_per_s=_per(failed, length),
            first_token_ms=_latency(result, "ttft_ms") or _measured(_numbers(result, "ttfts")),
            token_ms=_latency(result, "itl_ms") or _latency(result, "tpot_ms"),
        ),
        requests_per_s=_per(answered, length),
        latency_ms=_latency(result, "e2el_ms", "e2e_latency_ms") or _measured(_whole(result)),
        unit="request" if generated is None else "token",
        done=answered if generated is None else generated,
        length_s=length,
        interval_s=length,
        points=1,
        notes=(_LOAD.format(load=load),),
    )


def _throughput_run(result: Mapping[str, object]) -> Served | None:
    length, tokens = _number(result, "elapsed_time"), _number(result, "total_num_tokens")
    if length is None or tokens is None or length <= 0:
        return None
    return Served(
        framework=_framework(result),
        kind=JobKind.INFERENCE_OFFLINE,
        requests_per_s=_per(_number(result, "num_requests"), length),
        done=tokens,
        length_s=length,
        interval_s=length,
        points=1,
        notes=("tokens are those of prompts and answers together.",),
    )


def _latency_run(result: Mapping[str, object]) -> Served | None:
    each = _numbers(result, "latencies")
    if not each or _number(result, "avg_latency") is None:
        return None
    return Served(
        framework=_framework(result),
        kind=JobKind.INFERENCE_ONLINE,
        latency_ms=_measured(each),
        unit="request",
        length_s=sum(each),
        interval_s=sum(each),
        points=1,
        notes=("latency is of a whole batch, one batch at a time (`vllm bench latency`).",),
    )


def _framework(result: Mapping[str, object]) -> str:
    said = f"{result.get('backend') or ''} {result.get('endpoint_type') or ''}"
    return next((name for name in ("sglang", "tgi", "lmdeploy") if name in said), "vllm")


def _latency(result: Mapping[str, object], *endings: str) -> Latency | None:
    """Return the percentiles that are told under a name such as `p99_ttft_ms`."""
    for ending in endings:
        told = {
            part: value
            for part, words in _P.items()
            for word in words
            if (value := _number(result, f"{word}_{ending}")) is not None
        }
        if any(told.values()):
            return Latency(**told)
    return None


def _whole(result: Mapping[str, object]) -> list[float]:
    """Return how long each request took: its first token, and the pauses between the others."""
    pauses, firsts = result.get("itls"), _numbers(result, "ttfts")
    if not isinstance(pauses, list) or len(pauses) != len(firsts):
        return []
    each = [_sum(one) for one in pauses]
    return [first + rest for first, rest in zip(firsts, each, strict=True) if first + rest > 0]


def _sum(values: object) -> float:
    return sum(_plain(values)) if isinstance(values, list) else 0.0


def _measured(seconds: Iterable[float]) -> Latency | None:
    values = np.array([one for one in seconds if one > 0]) * _MS_A_S
    if not len(values):
        return None
    told = {"mean": values.mean(), **{f"p{p}": np.percentile(values, p) for p in (50, 95, 99)}}
    return Latency(**{part: round(float(value), _DIGITS) for part, value in told.items()})


def _numbers(result: Mapping[str, object], name: str) -> list[float]:
    values = result.get(name)
    return _plain(values) if isinstance(values, list) else []


def _plain(values: Iterable[object]) -> list[float]:
    return [float(one) for one in values if isinstance(one, int | float) and np.isfinite(one)]


def _number(result: Mapping[str, object], name: str) -> float | None:
    value = result.get(name)
    known = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    return float(value) if known and value >= 0 else None  # type: ignore[arg-type,operator]


def _per(count: float | None, length_s: float) -> float | None:
    return None if count is None else round(count / length_s, _DIGITS)
