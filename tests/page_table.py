"""The what-if table of a page, read in Python: what a plan costs in it as planned."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from planner.plan.plan import Plan
from pricing.money import cents
from templates.page.pieces import what_if_table

_ONE = Decimal(1)


def page_table(plan: Plan) -> dict[str, Any]:
    """Return the table of a page that shows every option of every job."""
    return what_if_table(plan, {job.name for job in plan.jobs})


def usd(pieces: Sequence[str], hours: Decimal = _ONE, price: Decimal = _ONE) -> Decimal:
    """Return a bill of its three pieces."""
    fixed, timed, priced = map(Decimal, pieces)
    return fixed + hours * (timed + price * priced)


def page_total(plan: Plan) -> tuple[Decimal, Decimal]:
    """Return what all jobs cost today, and as advised: those of a group together."""
    table = page_table(plan)
    shared = {at for group in table["groups"] for at in group["jobs"]}
    before = sum((usd(job["today"]) for job in table["jobs"] if job["today"]), Decimal(0))
    after = sum((usd(group["usd"][1]) for group in table["groups"]), Decimal(0))
    alone = (_own(job) for at, job in enumerate(table["jobs"]) if at not in shared)
    return cents(before), cents(sum(alone, after))


def _own(job: Mapping[str, Any]) -> Decimal:
    if job["advice"] is None:
        return usd(job["today"]) if job["today"] else Decimal(0)
    return next(usd(option["usd"][1]) for option in job["options"] if option["id"] == job["advice"])
