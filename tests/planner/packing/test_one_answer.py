"""Packing and moving are one answer: its total, its parts and its document agree to the cent."""

from decimal import Decimal
from itertools import starmap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.documents.selection import recommended_usd, select
from planner.models.document import to_text
from planner.plan.draft import PlanDraft
from planner.plan.making import to_plan
from planner.plan.read import read_plan
from planner.plan.use import job_uses, teams
from planner.profile.model import Profile, Statistics
from pricing.money import cents
from templates.language.translate import use_language
from templates.reports.first_screen import first_screen
from tests.page_table import page_total
from tests.planner.factories import TODAY, a_profile, plan, running, sold

HOURS = Decimal(100)
EIGHT = sold("eight", "16.00", gpu_count=8)


def job(
    name: str, *, busy: float = 0.2, gib: float = 8.0, on: Any = TODAY, **fields: Any
) -> Profile:
    """A job that takes a fifth of an A100 for 100 h of a month, held time."""
    metrics: dict[str, Any] = {"util.kernel_time": busy, "mem.used_gib": Statistics(max=gib)}
    asked: dict[str, Any] = {
        "kind": "interactive",
        "precision": "amp-bf16",
        "hours": float(HOURS),
    } | fields
    return running(a_profile(metrics, name=name, **asked), on)


def four(**fields: Any) -> tuple[Profile, ...]:
    """Four jobs alike."""
    return tuple(job(f"j{number}", **fields) for number in range(4))


def cheap(price: str = "0.50", **changes: Any) -> Any:
    """A machine of one GPU at another provider."""
    return sold("cheap", price, **{"provider": "elsewhere", **changes})


def moved(found: PlanDraft) -> frozenset[str]:
    """The jobs that are to share on another machine than the one they run on."""
    there = found.recommended.alternative
    return found.recommended.packed_jobs.intersection(there.jobs if there else ())


def agrees(found: PlanDraft) -> None:
    """Check that every output of a plan says one total, and that its parts make it up."""
    total = cents(found.recommended.mid)
    document = to_plan(found)
    assert read_plan(to_text(to_plan(found)), "plan.json") == document
    assert document.recommended is not None
    assert document.recommended.cost.mid == total
    assert document.recommended.cost.low <= total <= document.recommended.cost.high
    assert document.roi.saves_usd == cents(found.recommended.before - found.recommended.mid)
    assert page_total(document) == (document.recommended.cost_before, total)
    rows = teams(found, job_uses(found.jobs))
    for label in {row.by for row in rows}:
        assert sum(row.recommended_usd for row in rows if row.by == label) == total
    if document.recommended.unknown:
        return
    assert recommended_usd(document) == total
    chosen, _ = select(document)
    off = sum((one.mid for one in chosen), Decimal(0)) - total
    assert abs(off) <= Decimal("0.01") * len(chosen)
    named = [name for one in chosen for name in one.job.split("+")]
    assert sorted(named) == sorted(one.name for one in document.jobs)
    for one in found.jobs:
        beside = one.baseline.tenancy.beside if one.baseline.tenancy else ()
        assert not {one.name, *beside} & moved(found) or {one.name, *beside} <= moved(found)


def test_jobs_of_one_machine_leave_it_together_or_stay() -> None:
    """Where one of them cannot go, none goes: who stays would pay for the whole machine."""
    here: dict[str, Any] = {"on": EIGHT, "machine": "m1"}
    jobs = [job(f"j{i}", **here) for i in range(8)]
    offers = (EIGHT, cheap())
    gone = plan(*jobs, offers=offers, engineer_usd_per_hour=Decimal(0))
    assert moved(gone) == {one.job.name for one in jobs}
    (group,) = gone.recommended.packed
    assert len(group.jobs) == 8
    agrees(gone)
    stays = plan(
        *jobs[:-1],
        job("j7", trust="isolated", **here),
        offers=offers,
        engineer_usd_per_hour=Decimal(0),
    )
    assert not moved(stays)
    agrees(stays)


@pytest.mark.parametrize(("gib", "said"), [(None, True), (0.0, False)])
def test_an_unknown_move_is_said(gib: float | None, said: bool) -> None:  # noqa: FBT001
    """Where it is not stated what data move, a warning names the jobs."""
    jobs = four(dataset_gib=gib)
    found = plan(*jobs, offers=(TODAY, cheap()), engineer_usd_per_hour=Decimal(0))
    assert moved(found)
    told = [one for one in found.warnings if "share another machine" in one]
    assert [one.endswith("j0, j1, j2, j3.") for one in told] == [True] * said


def test_the_packing_that_is_taken_is_searched_for() -> None:
    """Jobs that first fit puts on five GPUs fill four: the recommended packing has four."""
    sizes = (31, 15, 26, 15, 28, 20, 31, 33, 24, 33, 20, 15)
    jobs = [job(f"j{n:02}", busy=0.02, gib=float(gib), team="a") for n, gib in enumerate(sizes)]
    offers = (TODAY, cheap(gpu_memory_gib=80))
    found = plan(*jobs, offers=offers, engineer_usd_per_hour=Decimal(0))
    there = found.recommended.alternative
    assert there is not None
    assert there.fleet.gpus_after == there.fleet.gpus_lower_bound == 4
    agrees(found)


JOBS = st.lists(
    st.tuples(
        st.sampled_from((0.05, 0.2, 0.45, 0.8)),
        st.sampled_from((4.0, 20.0, 60.0)),
        st.sampled_from(("interactive", "training", "inference_online")),
        st.sampled_from((TODAY, EIGHT, sold("small", "0.80", "L4", gpu_memory_gib=24))),
        st.sampled_from((None, "m1", "m2")),
        st.sampled_from(("a", "b", None)),
        st.sampled_from((10.0, 100.0, 700.0)),
    ),
    min_size=2,
    max_size=6,
)


def _drawn(number: int, fields: tuple[Any, ...]) -> Profile:
    busy, gib, kind, on, machine, team, hours = fields
    held: dict[str, Any] = (
        {"machine": f"{machine}-{on.instance_type}"} if machine and on is EIGHT else {}
    )
    small: dict[str, Any] = (
        {"gpu": on.gpu, "gib": min(gib, 20.0)} if on.gpu == "L4" else {"gib": gib}
    )
    return job(f"j{number}", busy=busy, on=on, kind=kind, team=team, hours=hours, **held, **small)


@given(JOBS, st.sampled_from(("0.10", "0.50", "1.50")), st.sampled_from((0, 20)))
def test_all_outputs_agree(jobs: list[tuple[Any, ...]], price: str, rate: int) -> None:
    """Of drawn fleets the parts make up the total, and the one total is in every output."""
    large = sold("large", "2.60", "H200-SXM-141GB", gpu_memory_gib=141, provider="elsewhere")
    small = sold("small", "0.80", "L4", gpu_memory_gib=24)
    agrees(
        plan(
            *starmap(_drawn, enumerate(jobs)),
            offers=(TODAY, EIGHT, small, cheap(price), large),
            engineer_usd_per_hour=Decimal(rate),
        )
    )


@pytest.mark.parametrize(("hours", "shares"), [(100.0, True), (1.0, False)])
def test_sharing_is_advised_where_it_pays_for_its_work(hours: float, shares: bool) -> None:  # noqa: FBT001
    """Four jobs on one GPU save $600 a month, or $6: the work takes 16 h, $1,600 of half a year."""
    found = plan(*four(hours=hours, kind="training"), offers=(TODAY,))
    agrees(found)
    assert bool(found.recommended.packed) is shares
    with use_language("en"):
        (action,) = first_screen(to_plan(found)).actions
    words = "share today's GPUs" if shares else "4 jobs like j0: find the cause"
    assert action.text.startswith(words)
    assert ("sharing saves $6" in action.text) is not shares
    assert ("does not pay for its 16 h of work" in action.text) is not shares


def test_the_screen_counts_the_gpus_that_jobs_move_to() -> None:
    """Four jobs that share one cheap GPU go to 1, however many the fleet keeps for the others."""
    stays = job("big", busy=0.9, gib=79.0, trust="isolated", precision="fp64")
    found = plan(*four(), stays, offers=(TODAY, cheap()), engineer_usd_per_hour=Decimal(0))
    assert moved(found) == {"j0", "j1", "j2", "j3"}
    there = found.recommended.alternative
    assert there is not None
    with use_language("en"):
        texts = [action.text for action in first_screen(to_plan(found)).actions]
    gpus = {place.id for place in there.fleet.placements if moved(found) & set(place.jobs)}
    assert any(f"4 of the jobs to {len(gpus)}x " in text for text in texts), texts
