"""One measured run as the anchor of the law: a factor on its steps, a constant on first tokens."""

from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean

from msgspec import Struct, structs

from planner.serving.load import saturated_rate
from planner.serving.server import Server
from planner.serving.simulation import Latencies, simulate
from planner.serving.traffic import Requests, Traffic, requests

_TRIES = 6
_DRAWN = 200  # requests of a simulation without a trace
_CLOSE = 0.002
_NOT_COMPUTED = ("weight_s", "kv_s", "fixed_s", "sequence_s", "prompt_s", "link_s", "link_token_s")
_SCALED = (*_NOT_COMPUTED, "token_s", "pair_s")
_FURTHEST = 20.0
"""A factor beyond that says that the model or the GPU is another one."""


class MeasuredRun(Struct, frozen=True, kw_only=True):
    """What one run of a server measured.

    Attributes:
        traffic: that it answered.
        first_token_s: median to the first token, s; None where not measured.
        token_s: median from token to token, s.
        means: metrics, ttft or tpot, whose time is a mean instead.
        requests: how many it rests on; None where not known.
        saturated: whether all came at once: its rate is what a full copy answers, and its first
            tokens are those of a queue.
    """

    traffic: Traffic
    first_token_s: float | None
    token_s: float
    requests: int | None = None
    means: frozenset[str] = frozenset()
    saturated: bool = False

    def seen_s(self, metric: str, latencies: Latencies) -> float:
        """Return what a simulation has in place of the run's time of a metric."""
        if metric in self.means:
            values = latencies.first_token_s if metric == "ttft" else latencies.token_s
            return fmean(values)
        return latencies.percentile(metric, 50.0)


def scaled(server: Server, factor: float, names: Sequence[str] = _SCALED) -> Server:
    """Return a copy whose steps take so many times as long, in the parts that are named."""
    return structs.replace(server, **{name: getattr(server, name) * factor for name in names})


def transferred(copy: Server, law: Server, anchor: Server) -> Server:
    """Return a copy elsewhere, each part of its steps off the law as the anchor's is."""
    ratios = {n: getattr(anchor, n) / getattr(law, n) for n in _SCALED if getattr(law, n)}
    parts = {name: getattr(copy, name) * ratio for name, ratio in ratios.items()}
    return structs.replace(copy, first_token_s=anchor.first_token_s, **parts)


@lru_cache(maxsize=256)
def anchored(server: Server, run: MeasuredRun, seed: int = 0) -> tuple[Server, float]:
    """Return the copy with the run's times at the run's rate, and the factor on its steps.

    The factor is searched through the simulation, for it also changes how many requests a step has.
    First tokens that come sooner than the scaled prompts could be computed say that computing is as
    fast as the law has it: then the factor is of memory and the engine's own work alone.
    """
    if run.saturated:
        factor = saturated_rate(server, run.traffic) / run.traffic.rate
        return scaled(server, factor), factor
    drawn = requests(run.traffic, run.traffic.rate, len(run.traffic.trace) or _DRAWN, seed)
    for names in (_SCALED, _NOT_COMPUTED):
        copy, factor = _slowed(server, run, drawn, names)
        if run.first_token_s is None:
            break
        simulated = run.seen_s("ttft", simulate(copy, drawn))
        constant = copy.first_token_s + run.first_token_s - simulated
        copy = structs.replace(copy, first_token_s=constant)
        if constant >= 0.0:
            break
    return copy, factor


def _slowed(
    server: Server, run: MeasuredRun, drawn: Requests, names: Sequence[str]
) -> tuple[Server, float]:
    factor, copy = 1.0, server
    for _ in range(_TRIES):
        copy = scaled(server, factor, names)
        ratio = run.token_s / run.seen_s("tpot", simulate(copy, drawn))
        if abs(ratio - 1.0) < _CLOSE:
            break
        factor = min(_FURTHEST, max(1.0 / _FURTHEST, factor * ratio))
    return scaled(server, factor, names), factor
