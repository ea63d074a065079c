"""A machine of one job on which nothing ran for days is ended, and all outputs say so."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from gpucost.views.plan import brief
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from planner.profile.model import MonthlyUse, Profile, Statistics, Window
from templates.language.translate import use_language
from templates.render import render_report
from templates.reports.first_screen import first_screen
from tests.planner.factories import TODAY, a_profile, plan, running, sold

DAY_S = 86_400.0
NOTHING = {"util.kernel_time": Statistics(mean=0.0, p95=0.0, max=0.0), "mem.used_gib": 0.0}
HELD = NOTHING | {"mem.used_gib": Statistics(mean=20.0, max=20.0)}


def planned(metrics: Any = NOTHING, days: float = 7.0, **fields: Any) -> Plan:
    """Its plan, where half the price is asked elsewhere."""
    asked = {name: fields.pop(name) for name in ("owned", "paid_until") if name in fields}
    gib = fields.pop("storage_gib", None)
    usage = MonthlyUse(hours_per_month=730.0, storage_gib=gib)
    made: Profile = a_profile(metrics, **{"kind": "unknown", "usage": usage} | fields)
    profile = replace(running(made), window=Window(duration_s=days * DAY_S))
    cheap = sold("cheap", "0.50", provider="elsewhere")
    return to_plan(plan(profile, offers=(TODAY, cheap), **asked))


def remains(made: Plan) -> Decimal:
    """What the plan says is paid afterwards."""
    assert made.recommended is not None
    return made.recommended.cost.mid


@pytest.mark.parametrize("metrics", [NOTHING, HELD], ids=["empty", "memory held"])
def test_a_machine_on_which_nothing_ran_for_a_week_is_ended(metrics: Any) -> None:
    """Nothing is paid afterwards, and no option or move is offered for what does nothing."""
    made = planned(metrics)
    (job,) = made.jobs
    assert remains(made) == 0
    assert made.roi.saves_usd == job.baseline.cost.total
    assert job.answer.now is not None
    assert job.answer.now.kind == "end"
    assert (job.answer.next, job.answer.cheapest, job.options) == (None, None, ())


@pytest.mark.parametrize(
    "changed",
    [
        {"days": 5.0},
        {"host": {"cpu_util": 0.3}, "cpu_cores": 4},
        {"host": {"cpu_util": 0.02}, "cpu_cores": 96},
        {"kind": "inference_online"},
        {"owned": True},
        {"metrics": NOTHING | {"util.kernel_time": Statistics(mean=0.01, p95=0.0, max=0.9)}},
        {"metrics": HELD, "kind": "training", "host": {"cpu_util": 0.003}},
    ],
    ids=["a few days", "its cores", "two of many cores", "service", "owned", "an hour", "hangs"],
)
def test_what_may_be_at_work_or_saves_nothing_is_not_ended(changed: dict[str, Any]) -> None:
    """Less than six days, work on cores, a service, what is owed anyway, a hang: other answers."""
    assert remains(planned(**changed)) > 0


def test_what_works_by_itself_is_ended_after_a_day() -> None:
    """A training job waits for nobody: a day without a kernel is enough, half a day is not."""
    assert remains(planned(days=1.0, kind="training")) == 0
    assert remains(planned(days=0.5, kind="training")) > 0


def test_no_machine_is_compared_for_what_does_nothing() -> None:
    """Two days say nothing of the machine that it would need: it ends when idle, here."""
    (job,) = planned(days=2.0).jobs
    assert (job.answer.next, job.answer.cheapest) == (None, None)
    assert job.answer.now is not None
    assert job.answer.now.actions == ("idle-shutdown",)
    assert "nothing ran" in (job.answer.reason or "")


def test_screen_row_page_brief_and_chinese_agree() -> None:
    """Each says to end it, with $0 afterwards, and to copy the data that are known of."""
    made = planned(storage_gib=500.0, host={"cpu_util": 0.001}, cpu_cores=4)
    screen = first_screen(made)
    (action,) = screen.actions
    words = "end the machine: no kernel ran in 7 days; copy its 500 GiB of data first"
    assert action.text == words
    assert action.figures == ("$0.00", "saves 100 %")
    assert screen.commands == ()
    assert f"| {words} | **$0.00** |" in render_report(made)
    assert words in render_report(made, style="html")
    short = brief(made, screen)
    assert (short.mid, short.actions[0].what, short.actions[0].usd) == (0, words, action.cost)
    with use_language("zh"):
        (in_chinese,) = first_screen(made).actions
    assert "释放这台机器" in in_chinese.text
    assert "500 GiB" in in_chinese.text
    assert "$0" in in_chinese.figures[0]


def test_preparation_by_the_cores_leaves_the_gpu() -> None:
    """2 % on the GPU and full cores: a machine without a GPU for less, and none with one."""
    busy = {"util.kernel_time": Statistics(mean=0.02, p95=0.03, max=0.05), "mem.used_gib": 1.0}
    (job,) = planned(busy, kind="data_preparation", host={"cpu_util": 0.96}, cpu_cores=4).jobs
    now = job.answer.now
    assert now is not None
    assert now.usd is not None
    assert "without a GPU" in now.what
    assert now.usd.mid < job.baseline.cost.total
    assert (job.answer.next, job.answer.cheapest) == (None, None)


def test_in_a_fleet_nobody_rents_a_machine_for_what_may_run_no_more() -> None:
    """By hand: a node of 4 GPUs costs 8 x 730 = $5,840, two single machines elsewhere $1,460."""
    node, single = sold("node", "8.00", gpu_count=4), sold("single", "1.00", provider="elsewhere")
    at_work = {"util.kernel_time": Statistics(mean=0.95, p95=1.0), "util.sm_active": 0.7}
    usage, host = MonthlyUse(hours_per_month=730.0), {"cpu_util": 0.1}
    cases = {"train-1": at_work, "train-2": at_work, "silent": HELD}
    kinds = {"silent": "unknown"}

    def fleet(**machines: str | None) -> Plan:
        profiles = [
            a_profile(
                m, name=n, kind=kinds.get(n, "training"), usage=usage, host=host, cpu_cores=24
            )
            for n, m in cases.items()
        ]
        jobs = [
            replace(p, hardware=replace(p.hardware, machine=machines.get(p.job.name, "node-1")))
            for p in (running(profile, node) for profile in profiles)
        ]
        return to_plan(plan(*jobs, offers=(node, single)))

    made = fleet()
    silent, *_ = (job for job in made.jobs if job.name == "silent")
    assert (silent.choice, silent.answer.next, silent.is_looked_at) == (None, None, True)
    assert remains(made) == 1460
    screen = first_screen(made)
    first, total = screen.actions
    assert [row[2].partition(": ")[0] for row in screen.rows] == ["unchanged"]  # before the place
    assert "see whether anything still runs on it" in first.text
    assert "($5,840 a month) ends only once all 3 jobs there have left" in first.text
    assert total.text.endswith("once what is looked at has ended")

    apart = fleet(silent="node-2")  # nobody waits for it to leave: it stays, and is paid
    silent, *_ = (job for job in apart.jobs if job.name == "silent")
    assert (silent.choice, silent.is_looked_at, silent.answer.next) == (None, False, None)
    assert remains(apart) == 1460 + (silent.baseline.cost.total or 0)


def test_a_fleet_says_what_shutting_down_when_idle_saves() -> None:
    """Two notebooks pay $1,460 each; the step of each single plan is the first of the fleet."""
    rests = {"util.kernel_time": Statistics(mean=0.04, p95=0.1, max=1.0, p50=0.0)}
    usage = MonthlyUse(hours_per_month=730.0)
    fields: dict[str, Any] = {"kind": "interactive", "usage": usage}
    jobs = [running(a_profile(rests, name=name, **fields)) for name in ("ana", "bo")]
    made = to_plan(plan(*jobs))
    (alone, _) = (job.answer.now for job in made.jobs)
    assert alone is not None
    assert alone.saves is not None
    step = first_screen(made).actions[0]
    assert step.text == "2 jobs like ana: shut the machine down when it is idle"
    assert step.cost is not None
    assert step.cost.mid == 2920 - 2 * alone.saves.mid
