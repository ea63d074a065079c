"""The bill by team, owner and cost centre adds up to the cent."""

import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from planner.choice.requirements import Requirements
from planner.models.costs import BillUse, TeamShare
from planner.pipeline import draft_plan
from planner.plan.making import to_plan
from planner.plan.use import apportioned, job_uses, teams
from planner.profile.codec import parse_profiles
from pricing.catalog.catalog import load_catalog
from pricing.money import cents
from tests.gpucost.documents import changed, inference, training
from tests.planner.factories import a_profile, running, sold
from tests.planner.factories import plan as planned

DAY = date(2026, 11, 22)
AMOUNTS = st.lists(st.decimals(0, 10_000, places=6), min_size=1, max_size=9)


@given(AMOUNTS)
def test_cents_sum_to_the_rounded_total(amounts: list[Decimal]) -> None:
    """Each amount is off by a cent at most, and together they are the total as it is rounded."""
    found = apportioned(amounts, sum(amounts, Decimal(0)))
    assert sum(found) == cents(sum(amounts, Decimal(0)))
    assert all(
        abs(one - exact) <= Decimal("0.01") for one, exact in zip(found, amounts, strict=True)
    )
    assert all(one >= 0 for one in found)


def _teams(*labels: dict[str, str]) -> tuple[TeamShare, ...]:
    """Return the rows of a fleet: an inference job for each label, and a training job."""
    documents = [inference(f"serve-{n}") for n in range(len(labels))]
    for n, given_labels in enumerate(labels):
        for label, name in given_labels.items():
            documents[n] = changed(documents[n], ("job", label), name)
    profiles = parse_profiles(json.dumps([*documents, training()]).encode(), "fleet.json")
    plan = draft_plan(
        profiles, load_catalog(DAY), Requirements(providers=("digitalocean", "aws")), as_of=DAY
    )
    rows = teams(plan, job_uses(plan.jobs))
    for label in {row.by for row in rows}:
        of = [row for row in rows if row.by == label]
        assert sum(row.usd for row in of) == cents(plan.recommended.before)
        assert sum(row.recommended_usd for row in of) == cents(plan.recommended.mid)
        assert sorted(job for row in of for job in row.jobs) == [job.name for job in plan.jobs]
        use = to_plan(plan).use
        assert isinstance(use, BillUse)
        assert sum(row.idle_usd for row in of) == use.wasted_usd
    for row in rows:
        parts = row.work_usd + row.idle_usd + row.unmeasured_usd + row.data_usd
        assert parts == row.usd
    assert bool(to_plan(plan).teams) == bool(rows)
    return rows


def test_rows_sum_to_the_bill() -> None:
    """Today and recommended, by each label, with jobs that share a GPU and jobs without a label."""
    rows = _teams({"team": "search", "owner": "ann"}, {"team": "vision"}, {"team": "search"})
    assert [(row.by, row.name) for row in rows] == [
        ("team", "search"),
        ("team", "vision"),
        ("team", None),
        ("owner", "ann"),
        ("owner", None),
    ]
    search = rows[0]
    assert search.jobs == ("serve-0", "serve-2")
    assert search.idle_gpu_hours == pytest.approx(0.8 * search.gpu_hours)  # a fifth is busy
    assert search.recommended_usd < search.usd  # they share one GPU


def test_what_no_job_holds_is_a_row_of_its_own() -> None:
    """GPUs that nobody holds and hours after a job's end are idle, and no team's."""
    eight = sold("eight", "16.00", gpu_count=8)
    jobs = []
    for name, held, hours in (("a", 2, 100.0), ("b", 4, 200.0)):
        one = running(a_profile(name=name, gpu_count=held, hours=hours, team=name), eight)
        jobs.append(replace(one, hardware=replace(one.hardware, machine="node")))
    draft = planned(*jobs, offers=(eight,))
    rows = {row.name: row for row in teams(draft, job_uses(draft.jobs))}
    free = rows[None]
    assert (free.usd, free.idle_usd, free.held) == (Decimal(1200), Decimal(1200), False)
    assert free.gpu_hours == pytest.approx(600)  # of 8 x 200, 1,000 are held
    assert sum(row.usd for row in rows.values()) == Decimal("3200.00")  # 200 h of the machine
    # a: 2 of 8 GPUs for 100 h is its own; b: 4 of 8 for 200 h; each is busy for 60 % of it.
    for name, own in (("a", Decimal(400)), ("b", Decimal(1600))):
        row = rows[name]
        assert row.usd == row.work_usd + row.idle_usd == own
        assert row.work_usd == own * Decimal("0.6")


def test_no_label_no_rows() -> None:
    """Without labels plan.json has no teams."""
    assert _teams({}) == ()
