"""What today's machine cannot do is said, and answered with a machine that can."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from planner.actions import ACTIONS
from planner.plan.making import to_plan
from planner.profile.model import Latency, Profile, Statistics
from pricing.errors import InputError
from templates.language.translate import use_language
from templates.reports.first_screen import FirstScreen, first_screen
from tests.planner.factories import TODAY, a_profile, plan, running, sold

_BUSY = {"util.kernel_time": 0.9, "util.sm_active": 0.8, "mem.used_gib": 60.0}
SMALL = sold("small", "1.00", ram_gib=32.0)
SAME = sold("same", "0.50", ram_gib=32.0, provider="elsewhere")
LARGE = sold("large", "1.50", ram_gib=64.0)


def out_of_ram(growth: float | None) -> Profile:
    """A training whose host of 32 GiB ran out, at 30 GiB when last read."""
    host = {"ram_used_gib": Statistics(mean=20.0, max=30.0)}
    if growth is not None:
        host |= {"ram_growth_gib_per_h": Statistics(mean=growth)}
    job = a_profile(_BUSY, host=host, ram_gib=32.0, ended="host-out-of-memory", hours=200.0)
    return running(job, SMALL)


def screen_of(job: Profile, *offers: object, **asked: object) -> FirstScreen:
    """The first screen of a job over these offers."""
    return first_screen(to_plan(plan(job, offers=offers, **asked)))  # type: ignore[arg-type]


@pytest.mark.parametrize("growth", [3.0, None])
def test_a_job_that_ran_out_of_host_memory_gets_a_machine_with_more(growth: float | None) -> None:
    """200 h at $1.50 are $300: half as dear, but no larger, is no answer, nor is to keep it."""
    made = to_plan(plan(out_of_ram(growth), offers=(SMALL, SAME, LARGE)))
    (job,) = made.jobs
    assert [option.offer.instance_type for option in job.options] == ["large"]
    assert job.choice is not None
    assert str(job.choice.cost.mid) == "300.00"
    assert {r.offer: r.reason for r in job.rejected}["elsewhere/same"] == "memory"
    screen = first_screen(made)
    assert not [line for line in screen.lines if line.text.startswith("Keep it")]
    wanted = ["ran out of host memory"], ["fix-leak" if growth else "less-host-memory"]
    assert [b.detail for b in job.baseline.breaks] == wanted[0]
    assert list(job.answer.now.actions if job.answer.now else ()) == wanted[1]
    if growth:
        assert job.findings[0].cause.startswith("The program's memory grew until")
        assert "memory-leak" in {finding.code for finding in job.findings}


@pytest.mark.parametrize(
    ("host", "ended", "first"),
    [
        ({"ram_growth_gib_per_h": Statistics(mean=400.0)}, None, "fix-leak"),
        ({"ram_used_gib": Statistics(mean=29.0, max=31.0)}, None, "less-host-memory"),
        ({}, "host-out-of-memory", "less-host-memory"),
    ],
)
def test_where_host_memory_runs_out_nothing_that_takes_more_of_it_is_a_step(
    host: dict[str, Statistics], ended: str | None, first: str
) -> None:
    """Full cores call for loader workers, which end such a job sooner: memory comes first."""
    starved = {"util.kernel_time": 0.3, "mem.used_gib": 9.0}
    cpu = {"cpu_util": Statistics(mean=0.95)}
    kept, doomed = (
        running(a_profile(starved, host=read, ram_gib=32.0, ended=end, unit="image", hours=90.0))
        for read, end in ((cpu, None), (cpu | host, ended))
    )
    (well,) = plan(kept, offers=(TODAY, LARGE)).jobs
    (job,) = plan(doomed, offers=(TODAY, LARGE)).jobs
    assert "dataloader-workers" in {code for f in well.findings for code in f.actions}
    called = {code for finding in job.findings for code in finding.actions}
    assert not {code for code in called if ACTIONS[code].host_memory}
    assert job.findings[0].code in {"memory-leak", "memory-pressure"}
    assert job.now is not None
    assert job.now.actions == (first,)
    assert not {c for o in job.options for c in o.actions if ACTIONS[c].host_memory}


def test_a_missed_deadline_is_said_of_today() -> None:
    """A run of 50 h is to end within 24: the machine that is twice as fast keeps that."""
    work = {"unit": "image", "rate_per_s": 10.0, "total": 50 * 3600 * 10.0}
    job = running(a_profile(_BUSY, hours=None, **work))
    fast = sold("fast", "3.00", gpu="B200-SXM", gpu_memory_gib=180)
    made = to_plan(plan(job, offers=(TODAY, fast), deadline_h=40.0))
    screen = first_screen(made)
    said = [line.text for line in screen.notes if "Today's machine breaks" in line.text]
    assert len(said) == 1
    assert "50.0 h" in said[0]
    assert "40 h" in said[0]
    with use_language("zh", made):
        assert any("现有机器不满足约束" in line.text for line in first_screen(made).notes)


def test_four_of_eight_idle_gpus_are_priced_on_the_machine_of_four() -> None:
    """Half of $16 an hour for 100 h: $800 saved, as the other four never ran a kernel."""
    busy = {"util.kernel_time": 0.96, "mem.used_gib": 40.0, "util.sm_active": 0.8}
    idle = {"util.kernel_time": 0.0, "mem.used_gib": 0.0, "util.sm_active": 0.0}
    eight, four = sold("eight", "16.00", gpu_count=8), sold("four", "8.00", gpu_count=4)
    each = [busy] * 4 + [idle] * 4
    job = running(
        a_profile(each=each, gpu_count=8, parallelism="ddp", interconnect="nvlink"), eight
    )
    (planned,) = plan(
        job, offers=(eight, four, sold("away", "2.00", gpu_count=4, provider="x"))
    ).jobs
    now = planned.now
    assert now is not None
    assert now.actions == ("fewer-gpus",)
    assert now.saves is not None
    assert str(now.saves.mid) == "800.00"


def test_the_percentile_that_is_held_against_the_target_is_named() -> None:
    """Of a 99th and a 95th percentile the stricter is compared, and told by its name."""
    job = a_profile(_BUSY, kind="inference_online", latency_slo_ms=400.0)
    for latency, name in (
        ({"p95": 500.0, "p99": 700.0}, "p99 is 700"),
        ({"p95": 500.0}, "p95 is 500"),
    ):
        slow = replace(job, job=replace(job.job, latency_ms=Latency(**latency)))
        (planned,) = plan(running(slow)).jobs
        assert f"Its {name} ms, the target 400 ms." in planned.findings[0].cause


def test_a_step_here_stands_without_a_word_to_keep_it() -> None:
    """What saves on today's machine is advice enough; why nothing moves is said after it."""
    starved = a_profile(
        {"util.kernel_time": 0.3, "mem.used_gib": 9.0},
        host={"cpu_util": 0.95},
        unit="image",
        hours=90.0,
    )
    screen = screen_of(running(starved), TODAY)
    assert [action.label for action in screen.actions] == ["Now"]
    assert "Advice" not in {line.label for line in screen.facts}
    (why,) = (line.text for line in screen.notes if line.label == "Why stay")
    assert not why.startswith("Keep it")
    alone = screen_of(running(a_profile(_BUSY)), TODAY)
    assert "Advice" in {line.label for line in alone.facts}


def test_accumulation_is_no_cure_of_an_exchange_in_every_micro_batch() -> None:
    """Embeddings that are spread over GPUs are sent for each micro-batch."""
    step = {"mean_s": 0.3, "comm_s": 0.12, "compute_s": 0.17, "count": 5000}
    fields = {"gpu_count": 8, "interconnect": "nvlink", "unit": "sample", **step}
    for way, applies in (("mixed", False), ("ddp", True)):
        eight = sold("eight", "16.00", gpu_count=8)
        job = running(a_profile(_BUSY, parallelism=way, **fields), eight)
        (planned,) = plan(job, offers=(eight,)).jobs
        finding = next(f for f in planned.findings if f.code == "communication-bound")
        assert ("gradient-accumulation" in finding.actions) is applies


def test_a_data_set_that_nobody_bills_is_said_with_what_is_paid() -> None:
    """60 TB read over the network: $200 for the machine, and no move of $5,000 that saves $600."""
    here = sold("here", "2.00", provider="aws", region="us-east-1")
    away = sold("away", "1.00", provider="x")
    profile = a_profile(_BUSY, dataset_gib=60_000.0, host={"net_rx_mib_s": 110.0})
    made = to_plan(plan(running(profile, here), offers=(here, away)))
    screen = first_screen(made)
    assert screen.paid_usd == Decimal("200.00")
    assert screen.notes[0].text == "Storage of 60,000 GiB is not included."
    assert screen.actions == ()
    (job,) = made.jobs
    assert job.answer.cheapest is not None
    assert (job.answer.cheapest.move_usd or 0) > 6 * (job.answer.cheapest.saves.usd or 0) > 0


def test_a_job_that_stays_is_sent_to_its_cause_or_to_the_sellers_of_its_gpu() -> None:
    """A busy GPU has no cause to read on; its own model at others' prices is what is left."""
    (offer,) = (sold("here", "2.00"),)
    made = to_plan(plan(running(a_profile(_BUSY), offer), offers=(offer,)))
    assert first_screen(made).commands == (f"gpucost prices --gpu {offer.gpu} --sort gpu-price",)


def test_an_unknown_chip_is_refused_by_its_name_before_its_machine() -> None:
    """A TPU's machine has no price; a machine with a GPU is no near name of it."""
    tpu = a_profile(gpu="TPU v6e", provider="gcp", instance_type="ct6e-standard-4t")
    with pytest.raises(InputError, match="'TPU v6e'") as refused:
        plan(tpu, offers=(sold("g2-standard-4", "1.00", provider="gcp"),))
    assert "Nearest" not in str(refused.value)


@pytest.mark.parametrize(("cores", "idle"), [(8, True), (40, False)])
def test_cores_that_the_job_leaves_idle_gain_here_first(cores: int, *, idle: bool) -> None:
    """Of 64 threads 8 are full (40 may be the same, counted as cores): the rest cost nothing.

    Elsewhere the job would leave them idle, too: the same GPU there is no faster.
    """
    starved = a_profile(
        {"util.kernel_time": 0.4, "mem.used_gib": 9.0},
        host={"cpu_util": 1.0},
        cpu_cores=cores,
        hours=100.0,
    )
    away = sold("away", "1.50", provider="elsewhere")
    (job,) = plan(running(starved), offers=(TODAY, away)).jobs
    there = next(o for o in job.options if o.offer == away)
    assert there.hours.mid == pytest.approx(100.0)  # 40 feed the GPU as fast as 64
    step = job.now
    assert (getattr(step and step.what, "code", "") == "first.idle-cores") is idle
    if idle:
        assert step is not None
        assert step.saves is not None
        # Fed in full, the GPU does in 40 h what takes 100: $120 of $200 at most.
        assert step.saves.high <= Decimal("120.00")
        assert step.saves.mid > Decimal("50.00")  # what a quarter off the price saves
        assert job.choice is None
        assert job.proof is None


def test_a_session_that_was_left_open_is_ended_when_idle() -> None:
    """48 h of a session at 1 %, one run of it counted: its hours are no fixed work to prefetch."""
    once = {"unit": "run", "done": 1.0, "total": 1.0, "rate_per_s": 1 / 172_800}
    readings = {"util.kernel_time": Statistics(mean=0.01, p95=0.01, p99=0.01)}
    session = a_profile({**readings, "mem.used_gib": 1.0}, kind="interactive", hours=None, **once)
    (job,) = plan(running(session)).jobs
    assert job.now is not None
    assert job.now.actions == ("idle-shutdown",)
