"""The first screen of a job says why what it names is not the least, and nothing twice."""

from datetime import date
from decimal import Decimal
from pathlib import Path

from msgspec.structs import replace

from planner.choice.requirements import Rejected, Requirements
from planner.pipeline import draft_plan
from planner.plan.bill import CostRange
from planner.plan.job import Now
from planner.plan.making import to_plan
from planner.profile.codec import parse_profiles
from planner.profile.model import Provenance
from pricing.catalog.catalog import load_catalog
from pricing.message import Message
from templates.report_text import own_changes
from templates.reports.first_screen import first_screen
from templates.reports.job_screen import job_screen
from tests.planner.factories import TODAY, a_profile, plan, running, sold

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DAY = date(2026, 11, 22)

_BUSY = {"util.kernel_time": 0.95, "util.sm_active": 0.9, "mem.used_gib": 60.0}
_NOTHING = {"util.kernel_time": 0.0, "mem.used_gib": 0.0, "power.board_w": 50.0}


def test_the_cheapest_says_why_a_lower_price_is_not_it() -> None:
    """o1 is listed for $40, 200 h at $0.20; its price has no date, so o2 is the cheapest."""
    offers = (
        TODAY,
        sold("same", "1.20"),
        sold("less", "1.15", provider="elsewhere"),
        sold("undated", "0.20", provider="third", dated=False),
    )
    screen = first_screen(to_plan(plan(running(a_profile(_BUSY, hours=200.0)), offers=offers)))
    cheapest = screen.actions[-1]
    assert (cheapest.label, cheapest.id) == ("Cheapest", "o2")
    said = "third/undated (o1) is listed at $40 but its price has no date"
    assert said in [line.text for line in screen.notes]


def test_an_option_names_its_own_changes() -> None:
    """A step elsewhere is no part of another option: only the step here is named by its number."""
    jobs = parse_profiles((EXAMPLES / "hard" / "vit-jpeg.json").read_bytes(), "vit-jpeg.json")
    made = to_plan(draft_plan(jobs, load_catalog(DAY), Requirements(), as_of=DAY))
    screen = first_screen(made)
    assert [action.label for action in screen.actions] == ["Now", "Next", "Cheapest"]
    assert [name for name in ("step 2", "step 3") if name in str(screen.actions)] == []
    done = made.jobs[0].answer.now.actions
    for action in screen.actions[1:]:
        changes = own_changes(made.jobs[0].option(action.id))
        named = 1 + len(changes) - len(done) if set(done) <= set(changes) else len(changes)
        assert action.text.count(" + ") + 1 == named


def test_nothing_is_said_to_be_asked_for_that_was_not() -> None:
    """Next costs more than the step here, is no surer and takes as much work: nobody asked."""
    made = to_plan(plan(running(a_profile(_BUSY)), offers=(TODAY, sold("same", "1.20"))))
    (job,) = made.jobs
    usd = CostRange(low=Decimal(1), mid=Decimal(1), high=Decimal(1))
    now = Now(kind="try", what="x", actions=(), usd=usd, effort_hours=0.0)
    job = replace(job, answer=replace(job.answer, now=now))
    assert job.answer.next is not None
    assert "asked for" not in str(job_screen(job, made).actions)
    wish = Rejected(reason="unavailable", detail="today's seller was not asked for")
    job = replace(job, baseline=replace(job.baseline, breaks=(wish,)))
    assert "as asked for" in str(job_screen(job, made).actions)


def test_running_out_of_memory_is_said_once() -> None:
    """The line of what it cost says why; the verdict below it would say the same again."""
    again = Message("read.out-of-memory-again", last=79.2, n=4, share=0.13, minutes=24.0)
    job = replace(a_profile(_BUSY), provenance=Provenance(notes=(again,)))
    job = replace(job, job=replace(job.job, ended="gpu-out-of-memory-likely"))
    texts = [line.text for line in first_screen(to_plan(plan(running(job)))).lines]
    assert len([text for text in texts if "ran out of" in text]) == 1


def test_a_job_of_unknown_kind_and_use_is_asked_whether_it_ends() -> None:
    """The line stands where use was not measured, too; of what does nothing there is none."""
    for metrics, asks in (({"mem.used_gib": 8.0}, True), (_BUSY, True), (_NOTHING, False)):
        made = to_plan(plan(running(a_profile(metrics, kind="unknown"))))
        texts = [line.text for line in first_screen(made).notes]
        assert any("--kind training, simulation" in text for text in texts) is asks, metrics


def test_a_gpu_held_for_few_requests_says_what_each_costs_and_what_sharing_saves_at_most() -> None:
    """$2.00 an hour, 36 requests in it: $0.06 each; it saves no more than what is wasted."""
    job = a_profile(_NOTHING | {"mem.used_gib": 60.0}, kind="inference_online", hours=200.0)
    job = replace(job, job=replace(job.job, requests_per_s=0.01))
    offers = (TODAY, sold("dearer", "3.00", provider="elsewhere"))
    screen = first_screen(to_plan(plan(running(job), offers=offers)))
    assert any("Each request costs $0.06 here" in line.text for line in screen.notes)
    assert screen.wasted_usd is not None
    assert screen.actions[0].figures[0] == f"saves up to ${screen.wasted_usd:,.0f}"
