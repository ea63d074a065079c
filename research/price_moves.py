"""How far prices move with age: the fit of pricing/data/price_moves.csv, and its backtest.

Readings are the bundled price history and the dated rows of the catalog; what price lists of third
parties print as medians is left out. Between two readings of one price that differ the change is
taken to lie in the middle; gaps of over 250 days are left out. One pair counts for each week.
Prices of one provider move together, so a provider has the weight of the root of how many of its
prices are known. What a choice by these prices costs later: research/price_choices.py.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from statistics import mean

from pricing.catalog.offer import bundled_offers, read_from
from pricing.catalog.price_age import Key, SeenPrice, Sellers, bundled_history, by_price, sellers_of

HORIZONS = (30, 90, 180)
LEVELS = (0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995)
"""Upper quantiles that are tried; the lower one is as far from 0. Beyond them lie the extremes."""
WANTED = 0.9
"""Share of a new provider's prices that is to lie in the interval."""
_ALONE = 0.98  # of one provider, which nothing can be calibrated on

_GAP_D, _WEEK, SAME, _SURE = 250, timedelta(7), 0.005, 1e-9
KINDS: tuple[Sellers, ...] = ("hyperscaler", "specialist", "auction", "spot")
_LIST = "getdeploying.com"


@dataclass(frozen=True, slots=True)
class Span:
    """Days, both inclusive, on which a price is known."""

    start: date
    end: date
    usd: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """How far a price had moved after some days."""

    sellers: Sellers
    key: Key
    factor: float

    @property
    def provider(self) -> str:
        """Who sells it."""
        return self.key[0]


Factors = Mapping[int, tuple[float, float]]
"""Days -> lowest and highest factor."""


def readings() -> Mapping[Key, Sequence[SeenPrice]]:
    """Return the readings that the fit rests on, by price."""
    seen = (*bundled_history(), *read_from(bundled_offers()))
    return by_price(one for one in seen if _LIST not in one.source)


def spans(series: Sequence[SeenPrice]) -> list[Span]:
    """Return when which price held, changes in the middle of their gaps."""
    runs: list[list[SeenPrice]] = []
    for one in series:
        last = float(runs[-1][-1].usd_per_hour) if runs else 0.0
        if runs and abs(last / float(one.usd_per_hour) - 1.0) < SAME:
            runs[-1].append(one)
        else:
            runs.append([one])
    ends = [(run[0].seen_on, run[-1].seen_on, float(run[-1].usd_per_hour)) for run in runs]
    found: list[Span] = []
    start = ends[0][0]
    for (_, end, usd), (after, _, _) in pairwise(ends):
        gap = (after - end).days
        middle = end + timedelta(gap // 2)
        joined = gap <= _GAP_D
        found.append(Span(start, middle - timedelta(1) if joined and gap > 1 else end, usd))
        start = middle if joined and gap > 1 else after
    return [*found, Span(start, ends[-1][1], ends[-1][2])]


def price_on(known: Sequence[Span], day: date) -> float | None:
    """Return the price of a day; None where it is not known."""
    return next((one.usd for one in known if one.start <= day <= one.end), None)


def ratios(priced: Mapping[Key, Sequence[Span]], days: int) -> list[Ratio]:
    """Return how far each price had moved `days` later, week by week."""
    found = []
    for key, known in priced.items():
        for one in known:
            day = one.start
            while day <= one.end:
                later = price_on(known, day + timedelta(days))
                if later is not None:
                    found.append(Ratio(sellers_of(key[0], key[4]), key, later / one.usd))
                day += _WEEK
    return found


def quantile(found: Sequence[Ratio], share: float) -> float:
    """Return the factor below which a share of the ratios lies.

    The ratios of a provider share a weight, the root of how many of its prices are known.
    """
    counts: dict[str, int] = defaultdict(int)
    prices: dict[str, set[Key]] = defaultdict(set)
    for one in found:
        counts[one.provider] += 1
        prices[one.provider].add(one.key)
    weights = {provider: math.sqrt(len(prices[provider])) for provider in counts}
    total, below = sum(weights.values()), 0.0
    for one in sorted(found, key=_factor):
        below += weights[one.provider] / counts[one.provider]
        if below >= share * total - _SURE:
            return one.factor
    return max(one.factor for one in found)


def fit(found: Mapping[int, Sequence[Ratio]]) -> Factors:
    """Return the factors of one kind of seller by age; older is never surer.

    The quantiles of an age are the narrowest that held for providers left out in turn (`level`), a
    conformal calibration by groups: prices of one provider move together, so a new provider is one
    draw, however many prices it has.
    """
    low = high = 1.0
    factors = {}
    for days in sorted(found):
        if found[days]:
            share = level(found[days])
            low = min(low, quantile(found[days], 1.0 - share))
            high = max(high, quantile(found[days], share))
            factors[days] = (low, high)
    return factors


def level(many: Sequence[Ratio]) -> float:
    """Return the least upper quantile whose interval held WANTED of the prices left out.

    Both of all pairs and on average over providers; 1 where none of LEVELS did. A provider without
    another of its kind has a level of its own, which nothing proves.
    """
    by_provider: dict[str, list[Ratio]] = defaultdict(list)
    for one in many:
        by_provider[one.provider].append(one)
    if len(by_provider) == 1:
        return _ALONE
    rests = {p: sorted((r for r in many if r.provider != p), key=_factor) for p in by_provider}
    for share in LEVELS:
        held = [
            _inside(own, (quantile(rests[p], 1.0 - share), quantile(rests[p], share)))
            for p, own in by_provider.items()
        ]
        pairs = sum(h * len(own) for h, own in zip(held, by_provider.values(), strict=True))
        if min(mean(held), pairs / len(many)) >= WANTED:
            return share
    return 1.0


def _factor(one: Ratio) -> float:
    return one.factor


def _inside(many: Sequence[Ratio], ends: tuple[float, float]) -> float:
    """Return the share of prices that lie in an interval; what did not move always does."""
    low, high = min(1.0, ends[0]) - _SURE, max(1.0, ends[1]) + _SURE
    return sum(low <= one.factor <= high for one in many) / len(many)


def without(found: Mapping[int, Sequence[Ratio]], provider: str) -> dict[int, list[Ratio]]:
    """Return the ratios of the other providers."""
    return {d: [one for one in many if one.provider != provider] for d, many in found.items()}


def covered(
    found: Mapping[int, Sequence[Ratio]], law: Callable[[str], Factors]
) -> Iterator[tuple[int, str, int, float]]:
    """Yield days, provider, pairs and the share of them inside the interval fitted without it."""
    for days, many in found.items():
        for provider in sorted({one.provider for one in many}):
            factors = law(provider).get(days)
            if factors is None:
                continue
            own = [one for one in many if one.provider == provider]
            yield days, provider, len(own), _inside(own, factors)


@dataclass(frozen=True)
class Moves:
    """How far prices moved, by kind of seller and days, and the readings behind it."""

    seen: Mapping[Key, Sequence[SeenPrice]]
    found: Mapping[Sellers, Mapping[int, Sequence[Ratio]]]

    def law(self, kind: Sellers) -> Factors:
        """Return the factors of a kind of seller."""
        return fit(self.found[kind])

    @cached_property
    def _left_out(self) -> dict[tuple[Sellers, str], Factors]:
        return {}

    def law_without(self, kind: Sellers, provider: str) -> Factors:
        """Return the factors fitted without one provider."""
        key = (kind, provider)
        if key not in self._left_out:
            self._left_out[key] = fit(without(self.found[kind], provider))
        return self._left_out[key]


def measure() -> Moves:
    """Return how far prices moved over each of HORIZONS."""
    seen = readings()
    priced = {key: spans(series) for key, series in seen.items()}
    found: dict[Sellers, dict[int, list[Ratio]]] = {kind: {} for kind in KINDS}
    for days in HORIZONS:
        many = ratios(priced, days)
        for kind in KINDS:
            found[kind][days] = [one for one in many if one.sellers == kind]
    return Moves(seen=seen, found=found)


def share_moved(many: Sequence[Ratio]) -> float:
    """Return the share of prices that had moved at all, providers counted alike."""
    shares: dict[str, list[bool]] = defaultdict(list)
    for one in many:
        shares[one.provider].append(abs(one.factor - 1.0) > SAME)
    return mean(mean(moves) for moves in shares.values())
