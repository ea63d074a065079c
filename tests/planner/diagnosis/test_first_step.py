"""A job that is left where it is hears what to do first, and how sure the advice is."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from planner.diagnosis.diagnose import diagnose
from planner.plan.draft import JobDraft
from planner.plan.making import to_plan
from planner.profile.model import (
    Column,
    Profile,
    Provenance,
    Serving,
    Source,
    Statistics,
    Step,
    Window,
)
from pricing.message import Message
from tests.planner.factories import TODAY, a_profile, plan, running, sold
from tests.pricing.factories import ASKED_ON

BUSY, POWER, HELD = "util.kernel_time", "power.board_w", "mem.used_gib"
CHEAP = sold("cheap", "0.20", provider="elsewhere")


def planned(profile: Profile, *offers: object) -> JobDraft:
    """The plan of a running job over today's machine and these."""
    (job,) = plan(running(profile), offers=(TODAY, *offers)).jobs  # type: ignore[arg-type]
    return job


def recorded(profile: Profile, samples: int) -> Profile:
    """The profile as if read from a recording of so many samples, a second apart."""
    column = Column(source="gpu", slot=BUSY, n=samples)
    source = Source(path="smi.csv", format="nvidia-smi-csv", columns=(column,))
    window = Window(duration_s=float(max(samples, 1)), interval_s=1.0)
    parts = {n: getattr(profile, n) for n in profile.__struct_fields__}
    return Profile(**parts | {"provenance": Provenance(sources=(source,)), "window": window})


SPINS = {BUSY: Statistics(mean=1.0, p05=1.0), POWER: 85.0, HELD: Statistics(max=60.0)}
STILL = {"util.dram_active": 0.001, "io.pcie_rx_mib_s": 0.1}  # nothing is sent or computed
ASLEEP = {BUSY: Statistics(mean=0.0, p95=0.0), POWER: 60.0, HELD: Statistics(max=60.0)}


@pytest.mark.parametrize(
    "profile",
    [
        a_profile(SPINS, gpu_count=1, rate_per_s=0.0),
        a_profile(SPINS | STILL, gpu_count=8, interconnect="nvlink"),
        a_profile(ASLEEP, host={"cpu_util": 0.003}),
        a_profile(ASLEEP, kind="inference_offline", host={"cpu_util": 0.003}),
    ],
    ids=[
        "no work done",
        "eight GPUs spin and move nothing",
        "memory held, no kernel",
        "batch job asleep",
    ],
)
def test_a_job_that_hangs_is_ended_not_moved(profile: Profile) -> None:
    """However cheap another provider is: it would do nothing there, too."""
    job = planned(profile, CHEAP, sold("eight", "1.00", gpu_count=8, provider="elsewhere"))
    assert job.findings[0].code == "idle-held"
    assert job.recommended == "o0"
    assert job.now is not None
    assert job.now.kind == "end"
    assert job.named.smallest_change == "o0"


@pytest.mark.parametrize("watts", [85.0, 110.0, 125.0])
def test_gpus_that_may_hang_or_wait_are_looked_at_first(watts: float) -> None:
    """Busy at little power is a slow exchange, too: no certain waste, restart or other machine."""
    waiting = a_profile(SPINS | {POWER: watts}, gpu_count=8, interconnect="nvlink")
    job = planned(waiting, CHEAP, sold("eight", "1.00", gpu_count=8, provider="elsewhere"))
    assert job.findings[0].waste_fraction is None
    assert job.recommended == "o0"
    assert job.now is not None
    assert (job.now.actions, job.now.saves) == (("read-step-log",), None)
    assert "idle-held" not in {finding.code for finding in job.findings}


@pytest.mark.parametrize(("hours", "wasted"), [(2.0, False), (23.0, False), (24.0, True)])
def test_a_service_at_rest_for_part_of_a_day_wastes_nothing_surely(
    hours: float,
    wasted: bool,  # noqa: FBT001 - of a table
) -> None:
    """Two hours of a night say nothing of the day: a whole day is to be recorded first."""
    service = a_profile(ASLEEP, kind="inference_online", host={"cpu_util": 0.003})
    job = planned(_recorded_for(service, hours), CHEAP)
    assert (job.findings[0].waste_fraction is not None) is wasted
    assert (job.now is not None) is wasted
    assert wasted or job.reason is not None
    assert wasted or job.named.cheapest == "o0"


def _recorded_for(profile: Profile, hours: float) -> Profile:
    fields = {name: getattr(profile, name) for name in profile.__struct_fields__}
    window = Window(duration_s=3600.0 * hours, interval_s=60.0)
    log = Provenance(sources=(Source(path="smi.csv", format="nvidia-smi-csv"),))
    return Profile(**fields | {"window": window, "provenance": log})


def test_eight_gpus_at_work_do_not_hang() -> None:
    """The same readings with work getting done, or at the power of work, are not a hang."""
    for changed in ({"rate_per_s": 900.0}, {"metrics": SPINS | {POWER: 350.0}}):
        fields = {"metrics": SPINS, "gpu_count": 8, "interconnect": "nvlink"} | changed
        assert "idle-held" not in {f.code for f in planned(a_profile(**fields)).findings}


def test_a_waste_of_unknown_cause_is_measured_first() -> None:
    """The GPU waits and nothing shows why: one command records the CPU beside it."""
    job = planned(a_profile({BUSY: 0.22, HELD: Statistics(max=8.0)}))
    assert job.recommended == "o0"
    assert job.findings[0].code == "unmeasured"
    assert job.findings[0].waste_usd
    assert job.now is None
    assert job.proof is not None
    assert job.proof.command is not None
    assert job.proof.command.startswith("gpucost profile")
    assert "CPU" in job.proof.what


def test_a_cure_that_does_not_surely_pay_is_tried_first() -> None:
    """The effort is named; what is left alone without waste hears nothing."""
    starved = a_profile({BUSY: 0.3, HELD: 9.0}, host={"cpu_util": 0.95}, unit="image", hours=90.0)
    step = planned(starved).now
    assert step is not None
    assert step.kind == "try"
    assert step.effort_hours == 4
    assert step.saves is not None
    assert step.saves.low * 6 < 400 < step.saves.mid * 6
    cheap = a_profile({BUSY: 0.3, HELD: 9.0}, host={"cpu_util": 0.95}, unit="image", hours=9.0)
    assert planned(cheap).now is None  # all of the waste is $76 over the horizon
    assert planned(a_profile({BUSY: 0.97, "util.sm_active": 0.9, HELD: 60.0})).now is None


@pytest.mark.parametrize(
    ("samples", "words"),
    [(9, "based on 9 s"), (0, "single instant"), (600, None), (None, "you entered")],
)
def test_thin_ground_is_said(samples: int | None, words: str | None) -> None:
    """A few seconds, an instant or declared figures: in the confidence and among the warnings."""
    profile = a_profile({BUSY: 0.97, HELD: 60.0})
    if samples is not None:
        profile = recorded(profile, samples)
    if samples == 0:
        parts = {n: getattr(profile, n) for n in profile.__struct_fields__}
        profile = Profile(**parts | {"window": None})
    made = plan(running(profile))
    why = made.jobs[0].confidence.diagnosis.why
    said = [line for line in made.warnings if ": based on" in line]
    assert bool(said) == (words is not None)
    assert words is None or (words in why and words in said[0])


@pytest.mark.parametrize(("samples", "is_ground"), [(2, False), (11, False), (12, True)])
def test_a_few_seconds_are_no_ground_for_dollars_or_a_machine(
    samples: int, *, is_ground: bool
) -> None:
    """Fewer readings than a mean needs: the length is said; no waste, machine or cure is firm."""
    job = planned(recorded(a_profile(ASLEEP, hours=700.0), samples), CHEAP)
    wastes = any(finding.waste_usd for finding in job.findings)
    is_short = any(f"Only {samples} s were recorded" in one.cause for one in job.findings)
    acts = job.now is not None or (job.recommended, job.named.cheapest) != ("o0", "o0")
    assert (wastes, is_short, acts) == (is_ground, not is_ground, is_ground)


def test_the_advice_is_as_sure_as_its_weakest_part() -> None:
    """An old price of a marketplace makes a well-measured advice weak, and says so."""
    old = sold("old", "0.20", provider="elsewhere", as_of=ASKED_ON - timedelta(days=200))
    job = planned(recorded(a_profile({BUSY: 0.9, HELD: 9.0}, hours=700.0), 600), old)
    assert job.choice is not None
    assert job.confidence.speed is not None
    assert (job.confidence.speed.level, job.confidence.price.level) == ("good", "low")
    assert "may have risen by" in job.confidence.price.why
    assert job.confidence.level == "low"


SERVES = {BUSY: 0.95, HELD: Statistics(mean=72.0, min=72.0, max=72.0)}
VLLM = {"kind": "inference_online", "framework": "vllm", "requests_per_s": 8.0}


@pytest.mark.parametrize(
    ("serving", "words"),
    [
        (Serving(kv_cache_fraction=0.99, requests_waiting=12.0), "while requests wait"),
        (Serving(kv_cache_fraction=0.98, preemptions_per_s=0.4), "thrown out of the batch"),
        (Serving(kv_cache_fraction=0.4, requests_waiting=12.0), None),
        (Serving(kv_cache_fraction=0.99), None),
        (None, None),
    ],
)
def test_a_full_kv_cache_is_a_finding(serving: Serving | None, words: str | None) -> None:
    """Full and somebody waits for it: memory limits the server, and its own cures are named."""
    found = {f.code: f for f in planned(a_profile(SERVES, **VLLM, serving=serving)).findings}
    assert ("memory-pressure" in found) == (words is not None)
    if words:
        first = found["memory-pressure"]
        assert words in first.cause
        assert first.actions[0] == "kv-cache-room"


def test_memory_taken_in_advance_is_no_need() -> None:
    """What vLLM holds says nothing: less memory is refused with the reason, the plan says so."""
    small = sold("small", "0.10", "L40S", gpu_memory_gib=48)
    made = plan(running(a_profile(SERVES, **VLLM)), offers=(TODAY, small))
    (refused,) = (r for r in made.jobs[0].rejected if r.offer == small.name)
    assert refused.reason == "memory"
    assert "took in advance" in refused.detail
    assert any("how much it needs is unknown" in line for line in made.warnings)


def test_fewer_gpus_must_hold_a_model_that_is_split_over_more() -> None:
    """Eight GPUs' tables do not fit one of twice the memory, whatever TensorFlow needs of them."""
    fields = {"framework": "tensorflow", "parallelism": "mixed", "interconnect": "nvlink"}
    job = a_profile({BUSY: 0.9, HELD: 70.0}, gpu_count=8, **fields)
    eight = sold("eight", "20.00", gpu_count=8, interconnect="nvlink")
    one = sold("one", "0.10", "B200-SXM", gpu_memory_gib=180)
    (found,) = plan(running(job, eight), offers=(eight, one)).jobs
    assert "memory" in {r.reason for r in found.rejected if r.offer == one.name}
    assert one.name not in {o.offer.name for o in found.options}


def test_a_cure_is_priced_on_the_machine_of_today() -> None:
    """What it saves there stands beside what to do first, and beside the action itself."""
    starved = a_profile({BUSY: 0.3, HELD: 9.0}, host={"cpu_util": 0.5}, hours=700.0, cpu_cores=16)
    starved = replace(starved, step=Step(count=500, mean_s=0.1, data_wait_s=0.06))
    job = planned(starved)
    step = job.now
    assert step is not None
    assert step.saves is not None
    assert step.saves.low <= step.saves.mid <= step.saves.high
    assert job.recommended != "o0"  # it is the cures here, together
    assert step.saves.mid >= max(job.priced[code].mid for code in step.actions)
    assert step.saves.mid <= (job.baseline.cost or 0)


@pytest.mark.parametrize(
    ("fields", "cores", "ram_gib", "held_gib", "machine", "saves"),
    [
        ({"kind": "data_preparation"}, 16, 40, 0.4, "aws/m5.4xlarge (16 vCPUs)", "123.20"),
        ({"kind": "unknown"}, 32, 40, 0.4, "aws/m5.8xlarge (32 vCPUs)", "46.40"),
        ({"kind": "training"}, 8, 40, 9.0, "aws/m5.4xlarge (16 vCPUs)", "123.20"),
        ({"kind": "data_preparation"}, 96, 40, 0.4, None, None),
        ({"kind": "data_preparation"}, 16, 500, 0.4, None, None),
    ],
)
def test_work_of_the_cpu_alone_gets_a_machine_without_a_gpu(  # noqa: PLR0913, PLR0917 - a table
    fields: dict[str, Any],
    cores: int,
    ram_gib: float,
    held_gib: float,
    machine: str | None,
    saves: str | None,
) -> None:
    """100 h at $2 less 100 h of the least size with its cores and memory; it is never ended."""
    host = {"cpu_util": Statistics(mean=0.97, p95=1.0), "ram_used_gib": Statistics(max=ram_gib)}
    silent = {BUSY: Statistics(mean=0.0, p95=0.0), HELD: Statistics(max=held_gib)}
    job = planned(a_profile(silent, host=host, cpu_cores=cores, **fields))
    assert job.findings[0].actions == ("use-gpu",)
    assert job.now is not None
    assert job.now.kind == "try"
    assert (machine or "make the program use the GPU") in job.now.what
    assert (job.now.saves and job.now.saves.mid) == (saves and Decimal(saves))


def test_an_instant_says_neither_how_busy_nor_how_to_pay() -> None:
    """One table between two requests: what is held is shown, no bar and no way to pay."""
    asleep = a_profile(ASLEEP, kind="inference_online", host={"cpu_util": 0.003})
    instant = recorded(asleep, 0)
    instant = replace(instant, window=Window())
    (job,) = to_plan(plan(running(instant), offers=(TODAY,))).jobs
    assert job.busy_fraction is UNSET
    assert not any("paying by request" in finding.cause for finding in job.findings)
    (job,) = to_plan(plan(running(recorded(asleep, 600)), offers=(TODAY,))).jobs
    assert job.busy_fraction == 0
    assert any("paying by request" in finding.cause for finding in job.findings)


def test_a_slice_is_not_asked_for_what_its_driver_never_reports() -> None:
    """MIG is on: DCGM reads an instance, `utilization.gpu` does not."""
    note = Message("doubt.no-load", cause=Message("doubt.no-load-mig"))
    held = a_profile({HELD: 6.0})
    split = replace(held, provenance=Provenance(notes=(note,)))
    causes = [f.cause for f in diagnose(split)]
    assert any("GR_ENGINE_ACTIVE" in cause for cause in causes)
    assert not any("utilization.gpu" in cause for cause in causes)
    assert any("utilization.gpu" in f.cause for f in diagnose(held))
