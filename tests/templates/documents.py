"""Plans of known jobs as values of plan.json, all as of one day."""

import json
from datetime import date
from typing import Any

from planner.choice.requirements import Requirements
from planner.pipeline import draft_plan
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from planner.profile.codec import parse_profiles
from pricing.catalog.catalog import load_catalog
from tests.gpucost.documents import AS_OF, Document, example, training, unpriced

FLEET = ("captions", "embeddings", "moderation", "ranking")

# Name of the golden file -> the jobs, and what is asked of the plan.
CASES: dict[str, tuple[tuple[Document, ...], dict[str, Any]]] = {
    "visual-search": ((example("visual-search.json"),), {}),
    "fleet": (tuple(example(f"fleet/infer-{name}.json") for name in FLEET), {}),
    "leave-it": ((example("well-used.json"),), {}),
    "unknown-price": ((unpriced(),), {}),
    "barely-measured": ((example("barely-measured.json"),), {}),
    "nothing-fits": ((training(),), {"gpu_counts": (7, 7)}),
    "per-run": ((training(),), {"work_total": 9_000_000.0, "purchases": ("on_demand", "spot")}),
}
GOLDEN = ("visual-search", "fleet", "leave-it", "unknown-price", "barely-measured")


def planned(jobs: tuple[Document, ...], asked: dict[str, Any]) -> Plan:
    """Return the plan of profile documents, made now."""
    day = date.fromisoformat(AS_OF)
    profiles = tuple(
        profile
        for job in jobs
        for profile in parse_profiles(json.dumps(job).encode(), "document.json")
    )
    plan = draft_plan(profiles, load_catalog(day), Requirements(**asked), as_of=day)
    return to_plan(plan)
