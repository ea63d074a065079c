"""The values of a profile that an inference service has: latencies, copies, its server's own."""

from dataclasses import dataclass

from planner.profile.fields import fraction, integer, number, record


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """A measured latency: of requests, of first tokens, of the tokens that follow."""

    mean: float | None = number("milliseconds")
    p50: float | None = number("milliseconds")
    p95: float | None = number("milliseconds")
    p99: float | None = number("milliseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """How many copies of an inference job run."""

    now: int | None = integer("copies running now", low=0, default=1)
    min: int | None = integer("fewest copies wanted")
    peak: int | None = integer("most copies seen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What an inference server reports of its queue, cache and tokens, means over the window."""

    kv_cache_fraction: float | None = fraction("share of the KV cache in use")
    requests_running: float | None = number("requests in the batch")
    requests_waiting: float | None = number("requests that wait for the batch")
    preemptions_per_s: float | None = number("requests thrown out of the batch for memory")
    prompt_tokens_per_s: float | None = number("tokens of prompts taken in")
    generated_tokens_per_s: float | None = number("tokens given out")
    failures_per_s: float | None = number("requests that failed")
    queue_ms: Latency | None = record(Latency, "how long a request waits for the batch")
    first_token_ms: Latency | None = record(Latency, "from a request to its first token")
    token_ms: Latency | None = record(Latency, "from one token to the next")
