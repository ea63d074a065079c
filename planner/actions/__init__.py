"""What can be done: every action with what it gains, what it costs, and what it excludes.

An effect is a range of speed-up of one *mechanism*, which is a share of one *part* of the time:
`input` (the pipeline that feeds the GPU), `host` (launching, waiting, serial code) or `kernels`
(the GPU's own work). `planner.prediction.predict` turns parts into run time, so an effect on a part
that does not limit the job gains nothing. `numeric` actions change results and are never part of an
option unless asked for; `structural` actions are what an option does anyway (another GPU,
provider).
"""

from collections.abc import Iterable, Mapping

from planner.actions.action import Action
from planner.actions.combine import combined, compatible
from planner.actions.compute import KERNELS
from planner.actions.effects import fitted
from planner.actions.families import for_its_families
from planner.actions.input import FEEDING
from planner.actions.machines import STRUCTURAL, TOGETHER
from planner.diagnosis.finding import Finding
from planner.profile.model import Profile
from planner.signals.condition import Signals
from planner.signals.signals import idle_share
from pricing.errors import InputError

__all__ = ("ACTIONS", "SWITCH_HOURS", "Action", "action", "combined", "fixes", "reclaimable")

ACTIONS: Mapping[str, Action] = {
    one.code: for_its_families(one) for one in (*FEEDING, *KERNELS, *TOGETHER, *STRUCTURAL)
}
SWITCH_HOURS = 1.0  # what takes no longer is done beside a better action of the same mechanism


def action(code: str, signals: Signals) -> Action:
    """Return the action with the effect that these signals leave it.

    Raises:
        InputError: there is no such code.
    """
    found = ACTIONS.get(code)
    if found is None:
        raise InputError(f"{code!r} is no action code; known: {', '.join(ACTIONS)}.")
    return fitted(found, signals)


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
