"""What is to be applied, and what became of it."""

from __future__ import annotations

import json
import os
import sys

from ..process import APPLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..process import Probe
    from .turns import Turns

APPLIED, LEFT = "applied", "left"
MOST_TOLD = 200  # a program that makes a loader for each step is not told for ever


class Asked:
    """The actions of a recipe that the probe may apply.

    Attributes:
        probe: of this process.
        turns: where they are tried on and off in turns; None where they stay on.
        finds_workers: whether the number of workers is to be found.
    """

    def __init__(
        self, probe: Probe, actions: dict[str, dict[str, Any]], turns: Turns | None = None
    ) -> None:
        self.probe = probe
        self.turns = turns
        self.finds_workers = False
        self._actions = actions
        self._told: dict[tuple[str, str], tuple[str, str]] = {}

    def settings(self, code: str) -> dict[str, Any] | None:
        """Return the settings of an action, None where it is not asked for."""
        return self._actions.get(code)

    def number(self, code: str, name: str, default: int) -> int:
        """Return a whole number that an action sets."""
        value = (self._actions.get(code) or {}).get(name)
        return int(value) if isinstance(value, (int, float)) and value >= 1 else default

    def tell(self, code: str, outcome: str, what: str, where: str = "") -> None:
        """Write what became of an action; the same is not said twice.

        Args:
            code: of the action.
            outcome: APPLIED or LEFT.
            what: what is set now, or why it is not.
            where: the loader, model or optimizer that it is about.
        """
        if self._told.get((code, where)) == (outcome, what) or len(self._told) >= MOST_TOLD:
            return
        self._told[code, where] = (outcome, what)
        events = self.probe.events
        if not events.greeted:
            torch: Any = sys.modules.get("torch")
            events.hello("pytorch", str(getattr(torch, "__version__", "")))
        events.write("change", action=code, outcome=outcome, what=what, where=where)

    def forget(self) -> None:
        """Forget what the parent of a forked process has told and tried."""
        self._told.clear()
        if self.turns is not None:
            self.turns.forget()


def told_in(folder: str) -> dict[str, Any]:
    """Return what lies in the folder of events to be applied; its `actions` may be none."""
    try:
        with open(os.path.join(folder, APPLY), encoding="utf-8") as stream:
            told = json.load(stream)
        return told if isinstance(told["actions"], dict) else {"actions": {}}
    except (OSError, ValueError, KeyError, TypeError):
        return {"actions": {}}
