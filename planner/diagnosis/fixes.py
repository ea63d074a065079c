"""The actions that the findings call for."""

from collections.abc import Iterable

from planner.actions import action
from planner.actions.action import Action
from planner.actions.combine import compatible
from planner.diagnosis.finding import Finding
from planner.profile.model import Profile
from planner.signals.condition import Signals
from planner.signals.signals import idle_share

SWITCH_HOURS = 1.0  # what takes no longer is done beside a better action of the same mechanism


def reclaimable(findings: tuple[Finding, ...], profile: Profile) -> float | None:
    """Return the share of held time that `idle-shutdown` may save; None without a reason."""
    called = any("idle-shutdown" in f.actions and f.confidence != "possible" for f in findings)
    return idle_share(profile) if called else None


def fixes(findings: tuple[Finding, ...], signals: Signals) -> tuple[Action, ...]:
    """Return the safe actions that the findings call for and that gain something, best first.

    Of each mechanism the strongest, and beside it what is only a switch.
    """
    codes = dict.fromkeys(code for finding in findings for code in finding.actions)
    wanted = compatible(
        one
        for one in (action(code, signals) for code in codes)
        if one.kind == "safe" and _gain(one) > 1.0 and one.is_proved(signals)
    )
    return tuple(
        one for one in wanted if one.effort_hours <= SWITCH_HOURS or one is _strongest(one, wanted)
    )


def _gain(one: Action) -> float:
    return one.gain[1] if one.gain else 1.0


def _strongest(one: Action, actions: Iterable[Action]) -> Action:
    return max((a for a in actions if a.mechanism == one.mechanism), key=_gain)
