"""How much one copy can take under targets, and how many copies a rate needs."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from planner.serving.server import Server
from planner.serving.simulation import Latencies, simulate
from planner.serving.traffic import Requests, Traffic, requests
from pricing.message import Message

_COUNT = 1000  # requests of a run: a p99 of 200 differs by 8 % from seed to seed, of 1,000 by 5 %
_RANGE = 100.0  # of the rates that are tried
_NEAR = 1.8  # below a rate that breaks a target is tried first: most limits are near saturation
_CLOSE = 1.01  # from the limit to a rate that breaks a target
_SEED = 1
MOST_OF_SATURATION = 0.9
"""Of the rate at which the queue never ends: what tuned submissions of MLPerf Inference v5.1
reach with their p99 kept (Server over Offline, 97 systems)."""
LEAST_SEQUENCES = 4
"""Requests that must fit beside the weights, each at its mean length."""
METRICS: Mapping[str, str] = {
    "ttft": "time to first token",
    "tpot": "time per output token",
    "e2e": "time of a request",
}


class Target(Struct, frozen=True, kw_only=True):
    """A limit of a percentile.

    Attributes:
        metric: ttft, tpot or e2e.
        percent: of the requests that keep it.
        limit_s: seconds.
        stated_ms: what was stated, where `limit_s` is derived of it.
    """

    metric: str
    percent: float
    limit_s: float
    stated_ms: float | None = None

    @property
    def words(self) -> str:
        """The target as people write it: "TTFT p99 500 ms"."""
        if self.stated_ms is not None:
            return f"the latency target of {self.stated_ms:g} ms"
        figure = f"{1000.0 * self.limit_s:.3g}"
        if "e" in figure:
            figure = f"{1000.0 * self.limit_s:,.0f}"
        return f"{self.metric.upper()} p{self.percent:g} {figure} ms"


class CopyLimit(Struct, frozen=True, kw_only=True):
    """What one copy can take.

    Attributes:
        rate: requests a second, at most; 0 where no rate keeps the targets.
        saturated_rate: that it answers with a queue that never ends.
        stopped_by: what sets `rate`, in words.
        lowest_s: of the first target that no rate keeps: its metric at almost no load, s.
    """

    rate: float
    saturated_rate: float
    stopped_by: str
    lowest_s: float | None = None


def fits(server: Server, traffic: Traffic) -> bool:
    """Return whether the weights and a few requests fit the memory."""
    return server.kv_tokens >= LEAST_SEQUENCES * traffic.context


def served(server: Server, traffic: Traffic, rate: float, count: int = _COUNT) -> Latencies:
    """Return what the requests of one copy see at a rate."""
    return simulate(server, requests(traffic, rate, count, _SEED))


def lone_prompt(server: Server, traffic: Traffic, percent: float) -> tuple[int, float]:
    """Return the tokens of the prompt at a percentile, and its time to first token by itself, s."""
    drawn = requests(traffic, 1.0, _COUNT, _SEED)
    lengths = sorted(zip(drawn.prompts, drawn.computed, strict=True))
    tokens, computed = lengths[round(percent / 100.0 * (len(lengths) - 1))]
    single = Requests(arrivals_s=(0.0,), prompts=(tokens,), computed=(computed,), outputs=(1,))
    return tokens, simulate(server, single).first_token_s[0]


def saturated_rate(server: Server, traffic: Traffic) -> float:
    """Return the requests a second that one copy answers when its batch is always full.

    The batch is as large as memory and engine allow; prompts are computed beside the answers at the
    rate at which requests end. (Throughput has no queue, so no simulation is needed.)
    """
    return _steady_rate(server, traffic, max(1, _full_batch(server, traffic)))


def _full_batch(server: Server, traffic: Traffic) -> int:
    """Return the requests that memory and engine take at once, each halfway through its answer."""
    return min(server.max_sequences, int(server.kv_tokens / (traffic.prompt + traffic.output / 2)))


def _steady_rate(server: Server, traffic: Traffic, batch: int) -> float:
    """Return the requests a second that end where so many are always in the batch."""
    joining = batch / traffic.output
    prompt = joining * traffic.prompt * (1.0 - traffic.cached_fraction)
    context = batch * (traffic.prompt + traffic.output / 2.0)
    # A step has a prompt in it in that share of cases: the launches of prompts count so often.
    step_s = (
        server.step_s(batch, context)
        if prompt <= 0
        else (
            server.step_s(batch, context, prompt, prompt * traffic.prompt / 2.0)
            - server.prompt_s * max(0.0, 1.0 - joining)
        )
    )
    return joining / step_s


def fluid_rate(server: Server, traffic: Traffic, targets: Sequence[Target]) -> float:
    """Return the most requests a second by mean values: what `copy_limit` is at the best."""
    limit_s = min((t.limit_s for t in targets if t.metric == "tpot"), default=math.inf)

    def token_s(batch: int) -> float:
        return batch / (_steady_rate(server, traffic, batch) * traffic.output)

    batches = range(1, max(1, _full_batch(server, traffic)))
    return _steady_rate(server, traffic, 1 + bisect_right(batches, limit_s, key=token_s))


def broken(latencies: Latencies, targets: Sequence[Target]) -> Target | None:
    """Return the first target that a run breaks; None where it keeps all."""
    return next((t for t in targets if latencies.percentile(t.metric, t.percent) > t.limit_s), None)


@lru_cache(maxsize=512)
def copy_limit(
    server: Server, traffic: Traffic, targets: tuple[Target, ...], count: int = _COUNT
) -> CopyLimit:
    """Return the most that one copy can take under the targets, by runs of so many requests."""
    saturated = saturated_rate(server, traffic)
    high = MOST_OF_SATURATION * saturated
    first = broken(served(server, traffic, high, count), targets)
    if first is None:
        is_engine = _full_batch(server, traffic) == server.max_sequences
        reason = Message("serving.batch-saturated" if is_engine else "serving.kv-saturated")
        return CopyLimit(rate=high, saturated_rate=saturated, stopped_by=reason)
    low = high / _RANGE
    latencies = served(server, traffic, low, min(count, 300))
    never = broken(latencies, targets)
    if never is not None:
        latency = latencies.percentile(never.metric, never.percent)
        return CopyLimit(
            rate=0.0, saturated_rate=saturated, stopped_by=never.words, lowest_s=latency
        )
    while high / low > _CLOSE:
        middle = max(math.sqrt(low * high), high / _NEAR)
        stopped = broken(served(server, traffic, middle, count), targets)
        if stopped is None:
            low = middle
        else:
            high, first = middle, stopped
    return CopyLimit(rate=low, saturated_rate=saturated, stopped_by=first.words)


def copies_for(rate: float, capacity: float) -> int:
    """Return the fewest copies of which each takes at most so many requests a second."""
    return max(1, math.ceil(rate / capacity - 1e-9))
