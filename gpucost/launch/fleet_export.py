"""The jobs that share GPUs as one file for a cluster."""

from planner.documents.shared_gpus import BY, CLUSTERS, FleetRequest, shared_gpus
from planner.plan_document.document import PlanDocument
from pricing.errors import InputError
from pricing.listing import counted
from templates.report_text import period_words
from templates.task_files import render_fleet


def fleet_text(tool: str, plan: PlanDocument, asked: FleetRequest) -> tuple[str, tuple[str, ...]]:
    """Return the file, and what to say beside it.

    Raises:
        InputError: another tool, nothing is shared, or something was not said.
    """
    if tool not in CLUSTERS:
        raise InputError(f"--fleet is for --to {' and --to '.join(CLUSTERS)}, not for {tool}.")
    found = shared_gpus(plan, tool, asked)
    ttl_s = None if asked.ttl_s is None else round(asked.ttl_s)
    way = tool if tool != "kubernetes" else asked.by or BY[0]
    text = render_fleet(way, found, period_words(plan), ttl_s, asked.queue)
    jobs = sum(len(gpu.jobs) for gpu in found)
    there = f"{counted(jobs, 'job')} on {counted(len(found), 'GPU')}"
    return text, (
        f"{there}; jobs that keep a GPU of their own are not in it.",
        "note: gpucost does not watch what other tools start: no cap, no `gpucost down`.",
    )
