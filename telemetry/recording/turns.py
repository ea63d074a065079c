"""Settings that were tried in turns, from the events of the probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.profile.experiment import Trial, TurnsSeen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def trials(processes: Iterable[Mapping[str, Sequence[Mapping[str, Any]]]]) -> tuple[Trial, ...]:
    """Return the values that the first process tried that tried any.

    Args:
        processes: the events of each, by kind.
    """
    found = next((tried for one in processes if (tried := one.get("trial"))), ())
    return tuple(
        Trial(
            setting=str(each["setting"]),
            value=int(each["value"]),
            step_s=each.get("step_s") or None,
            data_wait_s=each.get("wait_s"),
            chosen="yes" if each.get("chosen") else "no",
            where=str(each["where"]) if each.get("where") else None,
        )
        for each in found
    )


def turns(processes: Iterable[Mapping[str, Sequence[Mapping[str, Any]]]]) -> TurnsSeen | None:
    """Return the experiment of the process that made the most blocks; None where there is none.

    Ranks of a job switch at the same steps, so each of them tells the same.

    Args:
        processes: the events of each, by kind.
    """
    found = [one for one in processes if one.get("turns")]
    if not found:
        return None
    best = max(found, key=lambda one: len(one.get("block", ())))
    told = best["turns"][0]
    over = best.get("turns-over") or ({},)
    blocks = sorted(best.get("block", ()), key=lambda each: int(each["block"]))
    return TurnsSeen(
        actions=tuple(map(str, told["actions"])),
        block_steps=int(told["block_steps"]),
        settle_steps=int(told["settle_steps"]),
        first_step=int(told["first_step"]),
        pilot_fours=int(told["pilot_fours"]),
        most_fours=int(told["most_fours"]),
        blocks=tuple((bool(b["on"]), int(b["n"]), float(b["s"])) for b in blocks),
        kept=over[0].get("kept"),
        lost=over[0].get("lost"),
    )
