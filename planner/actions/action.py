"""What an action is: what it changes, what that gains, what it costs, and how sure that is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from planner.models.estimate import Estimate, exactly
from planner.signals.condition import Signals, Test

Part = Literal["input", "host", "kernels"]
Class = Literal["safe", "numeric", "structural"]
Mechanism = Literal["loading", "copying", "launching", "checkpointing", "arithmetic", "exchange"]
# `measured`: on published data that we evaluated; `published`: by others; `computed`: from the
# profile by a law; `estimate`: ours, in part at least; `planned`: the plan works it out offer by
# offer; `unknown`: no source that we would pass on.
Grade = Literal["measured", "published", "computed", "estimate", "planned", "unknown"]
Range = tuple[float, float, float]

PART_OF: dict[Mechanism, Part] = {
    "loading": "input",
    "copying": "input",
    "launching": "host",
    "checkpointing": "host",
    "arithmetic": "kernels",
    "exchange": "kernels",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to change.

    Attributes:
        code: the action code.
        title: what to do, in a few words.
        kind: `safe` leaves results unchanged, `numeric` may change them, `structural` chooses a
            machine.
        mechanism: what it makes faster; actions on one mechanism overlap. None where its gain is
            not modelled.
        effect: speed-up of that mechanism (low, mid, high); None where unknown.
        share: share of its part of the time that the mechanism takes, 0-1.
        grade: what the effect rests on.
        source: where the effect comes from, or who works it out.
        memory: factor on GPU memory (least, typical, most); None where it changes none or is
            unknown.
        effort_hours: engineering time, our own estimate; 0 for a switch.
        when: what must hold for it to apply; a reading that is missing does not stop it.
        needs: what must be known before an option counts on it; without it, it is only listed.
        excludes: actions that make no sense beside it.
        remark: what to watch.
    """

    code: str
    title: str
    kind: Class = "safe"
    mechanism: Mechanism | None = None
    effect: Range | None = None
    share: float = 1.0
    grade: Grade = "unknown"
    source: str = ""
    memory: Range | None = None
    effort_hours: float = 0.0
    when: tuple[Test, ...] = ()
    needs: tuple[Test, ...] = ()
    excludes: tuple[str, ...] = ()
    remark: str = ""

    @property
    def part(self) -> Part | None:
        """The part of the time that it speeds up; None where its gain is not modelled."""
        return None if self.mechanism is None else PART_OF[self.mechanism]

    @property
    def estimate(self) -> Estimate | None:
        """The effect as an estimate of the speed-up of its mechanism."""
        if self.effect is None:
            return None
        low, mid, high = self.effect
        return Estimate(low=low, mid=mid, high=high, basis=f"{self.code}: {self.source}")

    @property
    def gain(self) -> Range | None:
        """The speed-up of its part of the time (low, mid, high), by Amdahl's law."""
        if self.effect is None:
            return None
        low, mid, high = (1.0 / (1.0 - self.share + self.share / f) for f in self.effect)
        return (low, mid, high)

    def is_proved(self, signals: Signals) -> bool:
        """Return whether all that an option must know of the job to count on it is known."""
        return all(test.holds(signals) for test in self.needs)

    def applies(self, signals: Signals) -> bool:
        """Return whether nothing that was measured stands against it."""
        for test in self.when:  # noqa: SIM110 - asked very often, and half as fast with `all`
            if not test.holds(signals):
                return False
        return True


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
