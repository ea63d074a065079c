"""Writes a plan as `gpucost.plan/v1`: money as strings, keys in a fixed order."""

from typing import Any

from planner.plan.plan import Plan
from planner.plan_document.encode import encode, to_text
from planner.plan_document.from_plan import plan_document


def to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON values."""
    document: dict[str, Any] = encode(plan_document(plan))
    return document


def dump(plan: Plan) -> str:
    """Return the text of plan.json."""
    return to_text(plan_document(plan))
