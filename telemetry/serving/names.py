"""The names under which servers of models count.

Names are those of the documentation of vLLM 0.3 to 0.32, SGLang 0.5, Triton 2.60 and TGI 3. A
prefix in front of them (`ray_`, `kserve_`) and `_` in place of `:` are known, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FRAMEWORKS = {"vllm": "vllm", "sglang": "sglang", "nv_inference": "triton", "tgi": "tgi"}
_SERVER = re.compile(rf"(?:^|[_:])({'|'.join(FRAMEWORKS)})[:_](\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricName:
    """What a name holds: a part of what is served, and the factor to milliseconds of a time."""

    part: str
    to_ms: float = 1.0


_S, _US = 1e3, 1e-3
ENDS = ("_bucket", "_sum", "_count")


def _gauges(**parts: str) -> dict[str, MetricName]:
    """Return rows for parts and their names, words."""
    return {name: MetricName(part=part) for part, names in parts.items() for name in names.split()}


def _times(to_ms: float, **parts: str) -> dict[str, MetricName]:
    """Return rows for histograms and summaries, with the endings that their series have."""
    return {
        name + end: MetricName(part=part, to_ms=to_ms)
        for part, names in parts.items()
        for name in names.split()
        for end in ("", *ENDS)
    }


# A share of the cache counts to 1 though its name ends in `perc`. Of names that mean one part, as
# those of older versions, the first that is there counts.
NAMES: Mapping[str, Mapping[str, MetricName]] = {
    "vllm": {
        **_gauges(
            running="num_requests_running",
            waiting="num_requests_waiting",
            cache="kv_cache_usage_perc gpu_cache_usage_perc",
            preempted="num_preemptions_total num_preemptions",
            answered="request_success_total request_success",
            prompt="prompt_tokens_total prompt_tokens",
            generated="generation_tokens_total generation_tokens",
        ),
        **_times(
            _S,
            latency="e2e_request_latency_seconds",
            queue="request_queue_time_seconds",
            first="time_to_first_token_seconds",
            each="inter_token_latency_seconds time_per_output_token_seconds",
        ),
    },
    "sglang": {
        **_gauges(
            running="num_running_reqs",
            waiting="num_queue_reqs",
            cache="token_usage",
            preempted="num_retracted_requests_total",
            answered="num_requests_total",
            failed="num_aborted_requests_total",
            prompt="prompt_tokens_total",
            generated="generation_tokens_total",
        ),
        **_times(
            _S,
            latency="e2e_request_latency_seconds",
            queue="queue_time_seconds",
            first="time_to_first_token_seconds",
            each="inter_token_latency_seconds time_per_output_token_seconds",
        ),
    },
    "nv_inference": {
        **_gauges(
            waiting="pending_request_count", answered="request_success", failed="request_failure"
        ),
        **_times(_US, latency="request_summary_us", queue="queue_summary_us"),
        "request_duration_us": MetricName(part="latency_total", to_ms=_US),
        "queue_duration_us": MetricName(part="queue_total", to_ms=_US),
    },
    "tgi": {
        **_gauges(
            running="batch_current_size",
            waiting="queue_size",
            answered="request_success_total request_success",
            failed="request_failure_total request_failure",
            generated="request_generated_tokens_sum",
            prompt="request_input_length_sum",
        ),
        **_times(
            _S,
            latency="request_duration",
            queue="request_queue_duration",
            each="request_mean_time_per_token_duration",
        ),
    },
}
# What stands at the moment; all else counts up, but for the quantiles of a summary.
GAUGES = frozenset(("running", "waiting", "cache"))
QUANTILE = "quantile"
# Requests that ended otherwise than answered: what they are instead, None for nothing that is told.
_REASON = "finished_reason"
_ENDED: Mapping[str, str | None] = {"error": "failed", "abort": None}
# Ranks of one engine tell the same figure; copies of a server add up.
RANKS = ("tp_rank", "pp_rank", "moe_ep_rank")


def server_of(name: str) -> tuple[str, str] | None:
    """Return the server and the name that a metric has there, None for a metric of no server."""
    found = _SERVER.search(name.lower())
    if found is None or found[2] not in NAMES[found[1]]:
        return None
    return found[1], found[2]


def metric_of(name: str, labels: Mapping[str, str]) -> tuple[str, str, MetricName] | None:
    """Return the server, the name there and what the sample is, by its labels, too."""
    found = server_of(name)
    if found is None:
        return None
    server, own = found
    known = NAMES[server][own]
    part = _ENDED.get(labels.get(_REASON, ""), known.part)
    return None if part is None else (server, own, replace(known, part=part))


def stem(name: str) -> str:
    """Return the name of the histogram or summary that a series is of, or the name itself."""
    end = next((end for end in ENDS if name.endswith(end)), "")
    return name.removesuffix(end)
