"""The keys of plan.json that scripts rely on, by place, and how to get there."""

from typing import Any

KEYS = {
    "": "schema as_of currency objective period catalog jobs fleet roi assumptions warnings",
    "catalog": "offers newest oldest",
    "jobs[]": "name kind baseline findings options rejected recommended",
    "jobs[].baseline": "assumed offer hours cost",
    "jobs[].baseline.hours": "low mid high",
    "jobs[].baseline.cost": "total lines",
    "jobs[].findings[]": "code severity confidence cause evidence actions waste_usd",
    "jobs[].findings[].evidence[]": "metric value test",
    "jobs[].options[]": "id offer count provisionable actions sharing hours cost cost_per_work "
    "saves move why",
    "jobs[].options[].offer": "provider region instance_type gpu gpu_count purchase usd_per_hour "
    "as_of source",
    "jobs[].options[].hours": "low mid high basis",
    "jobs[].options[].cost": "low mid high lines",
    "jobs[].options[].cost.lines[]": "what usd how",
    "jobs[].options[].cost_per_work": "unit mid",
    "jobs[].options[].saves": "usd fraction",
    "jobs[].options[].move": "once_usd hours pays_back_days",
    "jobs[].rejected[]": "offer reason detail",
    "fleet": "gpus_before gpus_after gpus_lower_bound cost_before cost_after saves placements "
    "unmoved alternatives gap_fraction search_ended_early",
    "fleet.saves": "usd fraction",
    "fleet.placements[]": "id offer gpu mode slice jobs relative_speed",
    "roi": "saves_usd effort_hours payback_days",
}


def at(document: Any, path: str) -> list[Any]:
    """Everything at a path such as `jobs[].options[]`, that is not null."""
    found = [document]
    for step in (s for s in path.split(".") if s):
        name = step.removesuffix("[]")
        found = [one[name] for one in found if one[name] is not None]
        if step.endswith("[]"):
            found = [item for one in found for item in one]
    return found
