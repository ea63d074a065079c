"""What became of the actions of a recipe, from the events of `gpucost run` and of the probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.profile.change import Change
from planner.profile.kinds import LEFT, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_UNSEEN = "the program was never seen to use what it concerns"


def changes(processes: Iterable[Mapping[str, Sequence[Mapping[str, Any]]]]) -> tuple[Change, ...]:
    """Return the last word on each action and place, in the order in which they first came up.

    Where several processes say something of the same place, as ranks do, the first of them is
    heard. An action that was asked for and of which nobody says anything was left.

    Args:
        processes: the events of each, by kind.
    """
    found: dict[tuple[str, str], Change] = {}
    asked: list[str] = []
    for by_kind in processes:
        own: dict[tuple[str, str], Change] = {}
        for event in by_kind.get("change", ()):
            change = _change(event)
            if change.outcome in OUTCOMES:
                own[str(change.action), change.where or ""] = change
        for key, change in own.items():
            found.setdefault(key, change)
        for event in by_kind.get("asked", ()):
            asked += map(str, event.get("actions") or ())
    known = {action for action, _ in found}
    left = [code for code in dict.fromkeys(asked) if code not in known]
    return (*found.values(), *(Change(action=c, outcome=LEFT, what=_UNSEEN) for c in left))


def _change(event: Mapping[str, Any]) -> Change:
    return Change(
        action=str(event.get("action")),
        outcome=str(event.get("outcome")),
        what=str(event.get("what")),
        where=str(event["where"]) if event.get("where") else None,
    )
