"""What can be done: every action with what it gains, what it costs, and what it excludes.

An effect is a range of speed-up of one *mechanism*, which is a share of one *part* of the time:
`input` (the pipeline that feeds the GPU), `host` (launching, waiting, serial code) or `kernels`
(the GPU's own work). `planner.prediction.predict` turns parts into run time, so an effect on a part
that does not limit the job gains nothing. `numeric` actions change results and are never part of an
option unless asked for; `structural` actions are what an option does anyway (another GPU,
provider).
"""

from collections.abc import Mapping

from planner.actions.action import Action, combined, read_actions
from planner.actions.effects import fitted
from planner.signals.condition import Signals
from pricing.errors import InputError

__all__ = ("ACTIONS", "Action", "action", "combined")

ACTIONS: Mapping[str, Action] = {action.code: action for action in read_actions()}


def action(code: str, signals: Signals) -> Action:
    """Return the action with the effect that these signals leave it.

    Raises:
        InputError: there is no such code.
    """
    entry = ACTIONS.get(code)
    if entry is None:
        raise InputError(f"{code!r} is not an action code; known: {', '.join(ACTIONS)}.")
    return fitted(entry, signals)
