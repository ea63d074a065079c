"""The advice in plan.json: what is named beside the recommended option, how sure, what first."""

from decimal import Decimal
from typing import Any

from planner.options.option import Benefit
from planner.plan.confidence import Part
from planner.plan.plan import JobPlan
from planner.ranking.first_step import FirstStep
from pricing.money import cents, plain

_Json = dict[str, Any]


def advice_json(job: JobPlan) -> _Json:
    """Return the named options, the confidence of the advice and the first step of a job."""
    named, sure = job.named, job.assurance
    return {
        "smallest_change": named.smallest_change,
        "cheapest": named.cheapest,
        "first_launchable": named.first_launchable,
        "confidence": {
            "level": sure.level,
            "diagnosis": _part(sure.diagnosis),
            "speed": _part(sure.speed),
            "price": _part(sure.price),
        },
        "first_step": _step(job.first_step),
    }


def benefit_json(benefit: Benefit) -> _Json:
    """Return what a change is worth over the horizon."""
    return {
        "net_usd": _usd(benefit.net_usd),
        "periods": plain(benefit.periods),
        "saves_usd": _usd(benefit.saves_usd),
        "effort_hours": benefit.effort_hours,
        "effort_usd": _usd(benefit.effort_usd),
        "moving_usd": _usd(benefit.moving_usd),
    }


def _part(part: Part | None) -> _Json | None:
    return None if part is None else {"level": part.level, "why": part.why}


def _step(step: FirstStep | None) -> _Json | None:
    return None if step is None else {"kind": step.kind, "what": step.what, "command": step.command}


def _usd(amount: Decimal | None) -> str | None:
    return None if amount is None else str(cents(amount))
