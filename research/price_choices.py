"""What a price that is chosen today costs later: rules of choice, scored on the same decisions.

One decision is made for each week and GPU model with prices of at least two providers; rules that
are fitted are fitted without the provider that they judge.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import mean, median

from pricing.catalog.price_age import Key, SeenPrice, Sellers, sellers_of
from research.price_moves import HORIZONS, Moves, Ratio, price_on, spans

# Points of the first table of moves: (days, factor), 95 % of the rises that had been counted.
BEFORE: Mapping[Sellers, Sequence[tuple[int, float]]] = {
    "hyperscaler": ((0, 1.0), (270, 1.0)),
    "specialist": ((0, 1.0), (30, 1.13), (90, 1.22), (180, 1.30)),
    "auction": ((0, 1.0), (30, 1.14), (60, 1.67), (90, 2.17), (180, 2.53)),
    "spot": ((0, 1.0), (30, 1.95), (60, 2.00)),
}
_WEEK = timedelta(7)
_SHRUNK = 0.1  # weight of the market's median at 90 days; more of it is worse at every age
_FULL_D = 90


@dataclass(frozen=True, slots=True)
class Choice:
    """A price that can be chosen on a day: as last read, its age, and what it is later."""

    kind: Sellers
    provider: str
    usd: float
    age: int
    later: float
    is_low: bool


Rule = Callable[[Choice, Sequence[Choice]], float]
"""What a choice is ranked by, among which; the least is taken."""


def factor_at(points: Iterable[tuple[int, float]], days: int) -> float:
    """Return the factor of an age, straight between its points, kept beyond the last."""
    before = (0, 1.0)
    for point in points:
        if days < point[0]:
            part = (days - before[0]) / (point[0] - before[0])
            return before[1] + part * (point[1] - before[1])
        before = point
    return before[1]


def decisions(
    seen: Mapping[Key, Sequence[SeenPrice]], days: int, model: str
) -> Iterator[tuple[Choice, ...]]:
    """Yield, week by week, the prices of a GPU-hour that could be compared, as read by then."""
    own = {k: v for k, v in seen.items() if v[0].gpu == model and v[0].gpu_count >= 1}
    known = {key: spans(series) for key, series in own.items()}
    if not own:
        return
    day = min(v[0].seen_on for v in own.values())
    last = max(v[-1].seen_on for v in own.values())
    while day + timedelta(days) <= last:
        found = []
        for key, series in own.items():
            read = [one for one in series if one.seen_on <= day]
            later = price_on(known[key], day + timedelta(days))
            if read and later is not None:
                newest = read[-1]
                found.append(
                    Choice(
                        kind=sellers_of(key[0], key[4]),
                        provider=key[0],
                        usd=float(newest.usd_per_hour) / newest.gpu_count,
                        age=(day - newest.seen_on).days,
                        later=later / newest.gpu_count,
                        is_low=newest.confidence == "low",
                    )
                )
        if len({one.provider for one in found}) > 1:
            yield tuple(found)
        day += _WEEK


def all_decisions(moves: Moves, days: int) -> list[tuple[Choice, ...]]:
    """Return the decisions about every GPU model."""
    models = sorted({series[0].gpu for series in moves.seen.values()})
    return [one for model in models for one in decisions(moves.seen, days, model)]


def regrets(found: Iterable[Sequence[Choice]], rule: Rule) -> list[float]:
    """Return by what share more than the best of the later day each chosen price then costs."""
    costs = []
    for choices in found:
        taken = min(choices, key=lambda one: (rule(one, choices), one.provider, one.usd))
        costs.append(taken.later / min(one.later for one in choices) - 1.0)
    return costs


@dataclass(frozen=True)
class Rules:
    """The rules by their names, the two-line one first and the one that plans use second."""

    moves: Moves
    _drifts: dict[tuple[Sellers, str], list[tuple[int, float]]] = field(default_factory=dict)

    @property
    def by_name(self) -> Mapping[str, Rule]:
        """Rule by name."""
        return {
            "cheapest as read": lambda one, _: one.usd,
            "as read, low trust at the high end (plans)": lambda one, _: (
                self.high(one) if one.is_low else one.usd
            ),
            "high end of this law": lambda one, _: self.high(one),
            "high end of the first table": lambda one, _: (
                one.usd * factor_at(BEFORE[one.kind], one.age)
            ),
            "expected move of its kind": lambda one, _: (
                one.usd * factor_at(self._drift(one), one.age)
            ),
            "shrunk towards the market's median": _shrunk,
        }

    def high(self, one: Choice) -> float:
        """Return the price at the high end of what it may have moved by."""
        factors = self.moves.law_without(one.kind, one.provider)
        return one.usd * factor_at(((d, high) for d, (_, high) in factors.items()), one.age)

    def _drift(self, one: Choice) -> list[tuple[int, float]]:
        key = (one.kind, one.provider)
        if key not in self._drifts:
            found = self.moves.found[one.kind]
            self._drifts[key] = [(d, _mean_move(found[d], one.provider)) for d in HORIZONS]
        return self._drifts[key]


def _mean_move(many: Sequence[Ratio], without: str) -> float:
    """Return the geometric mean of the moves of the other providers, each counted alike."""
    logs: dict[str, list[float]] = defaultdict(list)
    for one in many:
        if one.provider != without:
            logs[one.provider].append(math.log(one.factor))
    return math.exp(mean(mean(each) for each in logs.values())) if logs else 1.0


def _shrunk(one: Choice, choices: Sequence[Choice]) -> float:
    """Return the price with a share of the market's median in it, the more the older it is."""
    share = _SHRUNK * min(1.0, one.age / _FULL_D)
    return float(one.usd ** (1.0 - share) * median(other.usd for other in choices) ** share)
