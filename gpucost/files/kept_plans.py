"""Finds this week's plan and last week's among the plans in a folder."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from gpucost.files.plan_file import load_plan
from planner.plan_document.document import PlanDocument
from pricing.errors import InputError

_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan and the name of its file."""

    name: str
    plan: PlanDocument


def two_to_compare(folder: str) -> tuple[KeptPlan, KeptPlan]:
    """Return the latest plan that is a week older than the newest, and the newest.

    Files that are not plans are passed over.

    Raises:
        InputError: there is no such folder, no plan in it, or none that is a week older; says so.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{folder}: no such folder; --weekly compares the plans in a folder.")
    plans = []
    for path in sorted(place.glob("*.json")):
        try:
            plans.append(KeptPlan(path.name, load_plan(path)))
        except InputError:
            continue
    if not plans:
        raise InputError(
            f"{folder}: holds no plan; `gpucost plan -o {folder}/DAY.json` writes one."
        )
    plans.sort(key=lambda one: (one.plan.as_of, one.name))
    newest = plans[-1]
    before = [one for one in plans if newest.plan.as_of - one.plan.as_of >= _WEEK]
    if not before:
        raise InputError(
            f"{folder}: no plan is a week older than {newest.name} ({newest.plan.as_of}); "
            "compare two by hand: gpucost diff OLD NEW."
        )
    return before[-1], newest
