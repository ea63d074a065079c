"""What to do first where a plan leaves a job where it is: end it, measure it, or try the cure.

A job that wastes money needs a next step even where it is left alone: its cause may be unknown, its
cure may not surely pay, or no machine may help it because it does nothing.
"""

from dataclasses import dataclass
from typing import Literal

from planner.actions import Action, action
from planner.baseline.requirements import Requirements
from planner.diagnosis.rules.rule import Finding
from planner.options.context import JobContext
from pricing.money import usd, whole_dollars

END = "end-job"
_WORTH = 0.1  # of the bill; less waste needs no first step
_GAINS = 1.1  # on its part of the time; less is not worth a try
_RECORD = "gpucost profile -o profile.json -- COMMAND"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """What to do before anything else.

    Attributes:
        kind: `end` the job, `measure` it, or `try` a cure.
        what: one sentence, without its full stop.
        command: what to type; None where the program itself has to change.
    """

    kind: Literal["end", "measure", "try"]
    what: str
    command: str | None


def must_end(findings: tuple[Finding, ...]) -> bool:
    """Return whether the job does nothing that another machine could do faster or cheaper."""
    return bool(findings) and END in findings[0].actions and findings[0].confidence != "possible"


def first_step(context: JobContext) -> FirstStep | None:
    """Return what to do first about a job that is left where it is; None where nothing is worth it.

    A cure is named only where all of the waste over the horizon would pay for its work.
    """
    if must_end(context.findings):
        return FirstStep(
            kind="end",
            what="end it and start it again from its last checkpoint: it holds the machine and "
            "gets nothing done, and it would do no more elsewhere",
            command=None,
        )
    wasting = [f for f in context.findings if (f.waste_fraction or 0.0) >= _WORTH]
    worst = max(wasting, key=lambda f: f.waste_fraction or 0.0, default=None)
    if worst is None:
        return None
    if worst.code == "unmeasured":
        return FirstStep(
            kind="measure",
            what="find the cause: record the CPU and the steps beside the GPU, one command",
            command=_RECORD,
        )
    if worst.confidence == "possible" or not worst.actions:
        return FirstStep(
            kind="measure",
            what=f"make sure of the cause ({worst.code}): record the job while it works",
            command=_RECORD,
        )
    cure = _cure(worst, context)
    if cure is None:
        return None
    return FirstStep(kind="try", what=_attempt(cure, context.asked), command=_way(cure))


def _cure(cause: Finding, context: JobContext) -> Action | None:
    """Return the first action that gains something, and whose work the waste would pay for.

    Where no gain of any is known, the first that the waste would pay for.
    """
    signals, rate = context.signals, context.asked.engineer_usd_per_hour
    at_stake = None if cause.waste_usd is None else cause.waste_usd * context.periods
    found = [action(code, signals) for code in cause.actions]
    known = [one for one in found if one.effect is not None]
    helping = [one for one in known if one.gain and one.gain[1] >= _GAINS] if known else found
    return next(
        (
            one
            for one in helping
            if at_stake is None or usd(str(one.effort_hours)) * rate < at_stake
        ),
        None,
    )


def _attempt(cure: Action, asked: Requirements) -> str:
    rate, hours = asked.engineer_usd_per_hour, cure.effort_hours
    effort = (
        f"about {hours:g} h, ${whole_dollars(rate * round(hours * 4) / 4)}" if hours else "a switch"
    )
    return f"try on today's machine: {cure.title} ({effort}); measure before and after"


def _way(cure: Action) -> str:
    if cure.kind == "numeric":
        return f"gpucost recipe plan.json --option o0 --numeric {cure.code}"
    return f"gpucost explain {cure.code}"
