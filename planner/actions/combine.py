"""What several actions gain together: no second is saved twice.

Actions on one mechanism overlap, so the best of them counts. Mechanisms of one part add by their
shares: speed = 1 / (1 - sum s + sum s / f), s the share of the part, f the speed-up (Amdahl).
"""

from collections.abc import Iterable

from planner.actions.action import Action, Mechanism, Part
from planner.models.estimate import Estimate, exactly


def combined(actions: Iterable[Action], part: Part) -> Estimate:
    """Return the speed-up of one part of the time by all actions on it, whatever their order."""
    best: dict[Mechanism, Action] = {}
    for one in actions:
        if one.mechanism is None or one.effect is None or one.part != part or not one.share:
            continue
        held = best.get(one.mechanism)
        if held is None or _strength(one) > _strength(held):
            best[one.mechanism] = one
    if not best:
        return exactly(1.0, "unchanged")
    chosen = sorted(best.values(), key=lambda one: one.code)
    low, mid, high = (
        _speed([(a.share, a.effect[i]) for a in chosen if a.effect]) for i in range(3)
    )
    basis = "; ".join(a.estimate.basis for a in chosen if a.estimate)
    return Estimate(low=low, mid=mid, high=high, basis=basis)


def compatible(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the actions without those that an earlier one excludes."""
    kept: list[Action] = []
    for one in actions:
        if not any(one.code in k.excludes or k.code in one.excludes for k in kept):
            kept.append(one)
    return tuple(kept)


def _strength(one: Action) -> tuple[float, float, float, str]:
    low, mid, high = one.gain or (1.0, 1.0, 1.0)
    return (mid, high, low, one.code)


def _speed(parts: list[tuple[float, float]]) -> float:
    untouched = 1.0 - sum(share for share, _ in parts)
    return 1.0 / (untouched + sum(share / factor for share, factor in parts))
