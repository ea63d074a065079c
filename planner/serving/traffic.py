"""Requests of a service: when they come, and how many tokens each takes and gives."""

import bisect
import math
import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from msgspec import Struct, structs

from pricing.errors import InputError
from pricing.message import Message

_PARTS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
Quantiles = tuple[float, ...]
# github.com/openshift-psap/performance-dashboard @71007029 (Apache-2.0), quantiles at _PARTS of
# the prompts and answers of MLPerf's sets; retrieved 2026-11-27.
_OPEN_ORCA = (
    (56, 73, 85, 109, 152, 266, 519, 614, 791, 1021),
    (4, 15, 31, 84, 190, 303, 449, 563, 779, 1016),
)
_SHAREGPT = ((1, 7, 12, 29, 72, 162, 323, 432, 570, 614), _OPEN_ORCA[1])  # its prompts
_CNN = (
    (236, 327, 391, 544, 784, 1109, 1479, 1750, 2118, 2540),
    (31, 43, 50, 57, 74, 96, 123, 140, 180, 2135),
)
_LONG = (
    (1598, 2783, 3678, 5996, 10112, 12281, 14156, 15831, 18955, 19988),
    (192, 210, 217, 436, 753, 855, 974, 1048, 1174, 1830),
)
SHAPES: Mapping[str, tuple[Quantiles, Quantiles]] = {
    "chat": _OPEN_ORCA,
    "sharegpt": _SHAREGPT,
    "summarise": _CNN,
    "rag": _LONG,
    "agent": _LONG,
    "code": _LONG,
    "fixed": ((1,) * len(_PARTS),) * 2,
}
"""Prompts and answers by kind of use; scaled to the means that are stated."""
_CUTS = 20  # of the longest, after each of which the others grow: the mean is met to 0.1 %
NEED_A_TRACE = frozenset({"agent", "code"})
"""Kinds whose requests come in bursts: Azure's trace of a code assistant (2023) takes under 9 % of
the rate that requests at random would, so that a mean rate says nothing of them."""


class Traffic(Struct, frozen=True, kw_only=True):
    """What a service is asked.

    Attributes:
        rate: requests a second, mean, of all copies together.
        prompt: tokens of a prompt, mean.
        output: tokens of an answer, mean.
        shape: how lengths spread around the means.
        cached_fraction: of the prompt tokens that a prefix cache answers.
        longest: tokens of a prompt, at most: what the model's window leaves; None: not known.
        trace: seconds, prompt and output tokens of real requests, in order; empty: at random.
    """

    rate: float
    prompt: float
    output: float
    shape: str = "chat"
    cached_fraction: float = 0.0
    longest: int | None = None
    trace: tuple[tuple[float, int, int], ...] = ()

    @property
    def context(self) -> float:
        """Tokens that a request holds when it ends, mean."""
        return self.prompt + self.output


class Requests(Struct, frozen=True, kw_only=True):
    """Requests in order: arrival [s], and tokens of prompt, of it to compute, and of answer."""

    arrivals_s: Sequence[float]
    prompts: Sequence[int]
    computed: Sequence[int]
    outputs: Sequence[int]


def requests(traffic: Traffic, rate: float, count: int, seed: int) -> Requests:
    """Return so many requests at a rate: of the trace, made faster or slower, else at random.

    Args:
        traffic: lengths and trace; its own rate is not used.
        rate: requests a second; infinite: all at once.
        count: how many; a trace is taken whole up to that.
        seed: the same draws the same.
    """
    drawn = _unit_requests(traffic, count, seed)
    arrivals = [second / rate for second in drawn.arrivals_s]
    return structs.replace(drawn, arrivals_s=arrivals)


@lru_cache(maxsize=4)  # a search asks for the same lengths at a hundred rates
def _unit_requests(traffic: Traffic, count: int, seed: int) -> Requests:
    """Return so many requests at one a second."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, the same each time
    if traffic.trace:
        rows = traffic.trace[:count]
        stretch = len(rows) / max(rows[-1][0] - rows[0][0], 1e-9)
        arrivals = [(second - rows[0][0]) * stretch for second, _, _ in rows]
        prompts, outputs = [row[1] for row in rows], [max(1, row[2]) for row in rows]
    else:
        arrivals = list(accumulate(chance.expovariate(1.0) for _ in range(count)))
        prompt_shape, output_shape = SHAPES[traffic.shape]
        prompts = _lengths(prompt_shape, traffic.prompt, count, chance, traffic.longest)
        outputs = _lengths(output_shape, traffic.output, count, chance)
    fresh = 1.0 - traffic.cached_fraction
    return Requests(
        arrivals_s=arrivals,
        prompts=prompts,
        computed=[max(1, round(prompt * fresh)) for prompt in prompts],
        outputs=outputs,
    )


def _lengths(
    shape: Quantiles, mean: float, count: int, chance: random.Random, longest: int | None = None
) -> list[int]:
    """Return lengths by the inverse of their distribution, straight between its quantiles.

    None is over the longest: what is cut off is given to the others, so that the mean stays.
    """
    drawn = []
    shortest = shape[0] if shape[0] == shape[-1] else 0.0
    for _ in range(count):
        part = chance.random()
        index = bisect.bisect_left(_PARTS, part)
        low_part, low = (_PARTS[index - 1], shape[index - 1]) if index else (0.0, shortest)
        share = (part - low_part) / (_PARTS[index] - low_part)
        drawn.append(low + (shape[index] - low) * share)
    at_most = longest or math.inf
    for _ in range(_CUTS):
        scale = mean * count / sum(drawn)
        drawn = [min(length * scale, at_most) for length in drawn]
        if max(drawn) < at_most:
            break
    return [max(1, round(length)) for length in drawn]


def check_traffic(traffic: Traffic) -> None:
    """Refuse traffic whose rate says nothing.

    Raises:
        InputError: requests of that kind come in bursts, and there is no trace of them.
    """
    if traffic.shape in NEED_A_TRACE and not traffic.trace:
        raise InputError(Message("serving.in-bursts", shape=traffic.shape))
