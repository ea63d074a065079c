"""One measured run as the anchor of the law: a factor on its steps, a constant on first tokens."""

from functools import lru_cache

from msgspec import Struct, structs

from planner.serving.server import Server
from planner.serving.simulation import simulate
from planner.serving.traffic import Traffic, requests

_TRIES = 6
_CLOSE = 0.002
_SCALED = ("weight_s", "kv_s", "token_s", "pair_s", "fixed_s", "sequence_s", "prompt_s")
_SCALED_LINKS = ("link_s", "link_token_s")
_FURTHEST = 20.0
"""A factor beyond that says that the model or the GPU is another one."""


class MeasuredRun(Struct, frozen=True, kw_only=True):
    """What one run of a server measured.

    Attributes:
        traffic: that it answered.
        first_token_s: median to the first token, s; None where not measured.
        token_s: median from token to token, s.
        requests: how many it rests on.
    """

    traffic: Traffic
    first_token_s: float | None
    token_s: float
    requests: int = 200


def scaled(server: Server, factor: float) -> Server:
    """Return a copy whose steps take so many times as long."""
    names = (*_SCALED, *_SCALED_LINKS)
    return structs.replace(server, **{name: getattr(server, name) * factor for name in names})


@lru_cache(maxsize=256)
def anchored(server: Server, run: MeasuredRun, seed: int = 0) -> tuple[Server, float]:
    """Return the copy with the run's median times at the run's rate, and the factor on its steps.

    The factor is searched through the simulation, for it also changes how many requests a step has.
    """
    drawn = requests(run.traffic, run.traffic.rate, run.requests, seed)
    factor, copy = 1.0, server
    for _ in range(_TRIES):
        copy = scaled(server, factor)
        ratio = run.token_s / simulate(copy, drawn).percentile("tpot", 50.0)
        if abs(ratio - 1.0) < _CLOSE:
            break
        factor = min(_FURTHEST, max(1.0 / _FURTHEST, factor * ratio))
    copy = scaled(server, factor)
    if run.first_token_s is not None:
        simulated = simulate(copy, drawn).percentile("ttft", 50.0)
        constant = copy.first_token_s + run.first_token_s - simulated
        copy = structs.replace(copy, first_token_s=constant)
    return copy, factor
