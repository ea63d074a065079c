"""A measured service of a language model: copies by its load, never by kernel time."""

import json
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from gpucost import predict
from planner.choice.option import Option
from planner.profile.kinds import Parallelism
from planner.profile.model import Profile, Statistics, Work
from planner.profile.trials import Latency, Replicas, Serving
from planner.serving.measured_service import measured_service, overload
from planner.serving.search import Layout
from tests.planner.factories import a_profile, plan, running, sold

H100 = sold("h100", "3.00", gpu="H100-SXM-80GB", gpu_memory_gib=80)
BUSY = {"util.kernel_time": 0.92, "mem.used_gib": Statistics(max=72.0, min=72.0)}
IDLE = Serving(
    kv_cache_fraction=0.03,
    requests_running=2.4,
    requests_waiting=0.0,
    prompt_tokens_per_s=500.0,
    generated_tokens_per_s=300.0,
    token_ms=Latency(p50=8.0, p99=9.5),
    first_token_ms=Latency(p50=35.0, p99=80.0),
)


def chat(**fields: Any) -> Profile:
    """Eight copies of an 8B model, each with two requests in it."""
    job = {
        "name": "chat",
        "kind": "inference_online",
        "framework": "vllm",
        "precision": "bf16",
        "parameters": 8.03e9,
        "requests_per_s": 1.0,
        "replicas": Replicas(now=8),
        "serving": IDLE,
    }
    return running(a_profile(BUSY, hours=None, gpu="H100-SXM-80GB", **job | fields), H100)


def scaled(profile: Profile, **asked: Any) -> Option | None:
    """The option on today's machine with fewer copies."""
    (job,) = plan(profile, offers=(H100,), **asked).jobs
    return next((o for o in job.options if o.scaling and o.offer == H100), None)


def test_eight_idle_copies_become_one() -> None:
    """Busy kernels are no load: one copy takes all 8 requests a second, for an eighth."""
    option = scaled(chat())
    assert option is not None
    assert option.count == 1
    assert option.cost == pytest.approx(Decimal(3 * 730), abs=Decimal("0.01"))


def test_a_server_without_framework_and_size_is_known_by_its_tokens() -> None:
    """Four copies of 1.4 requests/s and 6 running, of which a copy takes about 6: one is enough."""
    serving = Serving(
        model="meta-llama/Llama-3.1-8B-Instruct",
        kv_cache_fraction=0.06,
        requests_running=6.0,
        requests_waiting=0.0,
        prompt_tokens_per_s=840.0,
        generated_tokens_per_s=350.0,
        first_token_ms=Latency(mean=80.0, p50=70.0, p95=150.0, p99=220.0),
        token_ms=Latency(mean=17.0, p50=16.0, p95=22.0, p99=28.0),
    )
    unnamed = {"framework": None, "parameters": None, "requests_per_s": 1.4, "serving": serving}
    option = scaled(chat(**unnamed, replicas=Replicas(now=4)))
    assert option is not None
    assert option.count == 1
    assert option.cost == pytest.approx(Decimal(3 * 730), abs=Decimal("0.01"))


@pytest.mark.parametrize(("running", "copies"), [(6.0, 1), (30.0, 2), (60.0, 4)])
def test_without_a_rate_the_batch_decides_not_kernel_time(running: float, copies: int) -> None:
    """Four copies' requests in batches of 70: 24 need one copy, 120 two, 240 all four."""
    serving = Serving(kv_cache_fraction=0.06, requests_running=running, requests_waiting=0.0)
    option = scaled(chat(requests_per_s=None, serving=serving, replicas=Replicas(now=4)))
    assert (option.count if option else 4) == copies


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": None},
        {"parameters": None, "serving": replace(IDLE, model="meta-llama/Llama-3.1-8B-Instruct")},
        {"requests_per_s": None, "latency_ms": Latency(p50=2400.0)},
        {"serving": replace(IDLE, prompt_tokens_per_s=None, generated_tokens_per_s=None)},
        {"serving": Serving(requests_running=2.0, requests_waiting=0.0, kv_cache_fraction=0.03)},
    ],
)
def test_what_is_not_measured_is_assumed_and_said(fields: dict[str, Any]) -> None:
    """With less known the answer stays one or two copies, and says what it assumes."""
    option = scaled(chat(**fields))
    assert option is not None
    assert option.count <= 2


def test_a_queue_in_the_window_means_all_copies_are_needed() -> None:
    """Requests that wait for the batch all the time show a saturated copy."""
    assert scaled(chat(serving=replace(IDLE, requests_waiting=3.0))) is None


@pytest.mark.parametrize(
    ("waiting", "running", "p95", "overloaded"),
    [
        (1.0, 8.0, 2400.0, False),
        (12.0, 8.0, 2400.0, False),
        (1.0, 8.0, 6000.0, False),
        (12.0, 8.0, 6000.0, True),
        (12.0, 8.0, None, True),
        (0.9, 0.1, 6000.0, False),
    ],
)
def test_overload_is_what_the_target_and_the_queue_say(
    waiting: float, running: float, p95: float | None, *, overloaded: bool
) -> None:
    """A target of 5 s kept at 2.4 s is no overload; one of nine requests that waits makes none."""
    served = replace(IDLE, requests_waiting=waiting, requests_running=running)
    latency = None if p95 is None else Latency(p95=p95)
    profile = chat(serving=served, latency_ms=latency, latency_slo_ms=5000.0)
    assert (overload(profile) is not None) == overloaded
    (job,) = plan(profile, offers=(H100,)).jobs
    now = "" if job.now is None else str(job.now.what)
    assert ("requests wait all the time" in now) == overloaded


def test_the_queue_of_a_batch_is_the_work_that_is_left() -> None:
    """Two copies take half the time for the same dollars: no copy is added, no target is missed."""
    queue = replace(IDLE, requests_waiting=20_000.0, requests_running=256.0)
    batch = chat(kind="inference_offline", serving=queue, replicas=None, requests_per_s=None)
    assert overload(batch) is None
    work = Work(unit="token", total=5e9, rate_per_s=9e3)
    (job,) = plan(replace(batch, work=work), offers=(H100,)).jobs
    assert job.now is None or "more-gpus" not in job.now.actions


@pytest.mark.parametrize("framework", ["vllm", None])
def test_a_small_model_split_over_a_machine_is_told_to_run_copies(framework: str | None) -> None:
    """8B on eight GPUs that rest while requests wait: a copy each, whatever the server's name."""
    queue = Serving(kv_cache_fraction=0.59, requests_running=600.0, requests_waiting=4475.0)
    eight = sold("eight", "24.00", gpu_count=8, interconnect="nvlink")
    job_ = {"kind": "inference_offline", "parallelism": Parallelism.TENSOR, "parameters": 8e9}
    job_ |= {"precision": "bf16", "work": Work(unit="token", rate_per_s=3210.0)}
    held = {"util.kernel_time": 0.2, "mem.used_gib": Statistics(max=73.0)}
    profile = a_profile(held, gpu_count=8, framework=framework, serving=queue, **job_)
    (job,) = plan(running(profile, eight), offers=(eight,)).jobs
    assert job.now is not None
    assert job.now.actions == ("copies-not-shards",)


@pytest.mark.parametrize("target_ms", [2000.0, 8000.0])
def test_a_split_server_may_stand_on_fewer_gpus(target_ms: float) -> None:
    """16 GB of weights on 4 L4 answer in 5 s; two H100 with ten times the bandwidth hold them.

    They cost less than four copies here, so those are not the step to take. That the target is kept
    today makes the four no more needed.
    """
    four = sold("four", "4.00", gpu="L4", gpu_count=4, gpu_memory_gib=24)
    two = sold("two", "3.50", gpu="H100-SXM-80GB", gpu_count=2, interconnect="nvlink")
    profile = a_profile(
        {"util.kernel_time": 0.95, "mem.used_gib": Statistics(max=20.0, min=20.0)},
        hours=None,
        kind="inference_online",
        framework="vllm",
        precision="bf16",
        gpu="L4",
        gpu_count=4,
        parallelism="tensor",
        parameters=8.03e9,
        requests_per_s=1.0,
        serving=replace(IDLE, requests_running=4.8, token_ms=Latency(p50=16.0, p99=19.0)),
        latency_ms=Latency(p50=4800.0, p99=5000.0),
        latency_slo_ms=target_ms,
    )
    (job,) = plan(running(profile, four), offers=(four, two)).jobs
    assert job.choice is not None
    assert job.choice.offer == two
    assert "resplit" in job.choice.actions
    assert job.now is None or job.now.actions != ("more-gpus",)


@pytest.mark.parametrize(("rate", "gpus"), [(1.0, {1, 2}), (400.0, set[int]())])
def test_a_light_server_stands_on_as_few_gpus_as_hold_its_rate(rate: float, gpus: set[int]) -> None:
    """100 tokens a second are next to nothing for an H100, 40,000 are more than two of them make.

    A token of an 8B model takes one H100 four times the 6 ms of four: 2.4 s for 100, of 5 s.
    """
    serving = Serving(
        kv_cache_fraction=0.03,
        requests_running=0.65 * rate,
        requests_waiting=0.0,
        prompt_tokens_per_s=200.0 * rate,
        generated_tokens_per_s=100.0 * rate,
        token_ms=Latency(p50=6.0, p99=8.0),
        first_token_ms=Latency(p50=35.0, p99=80.0),
    )
    offers = [
        sold(f"of-{n}", f"{2 * n}.00", gpu="H100-SXM-80GB", gpu_count=n, interconnect="nvlink")
        for n in (1, 2, 4)
    ]
    profile = a_profile(
        {"util.kernel_time": 0.8, "mem.used_gib": Statistics(max=72.0, min=72.0)},
        hours=None,
        kind="inference_online",
        framework="vllm",
        precision="bf16",
        gpu="H100-SXM-80GB",
        gpu_count=4,
        parallelism="tensor",
        parameters=8.03e9,
        requests_per_s=rate,
        serving=serving,
        latency_ms=Latency(p50=650.0, p99=900.0),
        latency_slo_ms=5000.0,
    )
    (job,) = plan(running(profile, offers[-1]), offers=tuple(offers)).jobs
    assert {round(option.offer.gpu_count) for option in job.options} - {4} == gpus


def test_a_target_by_flag_and_in_the_file_is_one_number() -> None:
    """The same plan, to the byte, but for where the target was written."""
    latency = Latency(p50=2400.0, p99=6000.0)
    for target in (200.0, 7000.0, 30_000.0):
        by_flag = plan(chat(latency_ms=latency), offers=(H100,), slo_ms=target)
        in_file = plan(chat(latency_ms=latency, latency_slo_ms=target), offers=(H100,))
        flagged, filed = by_flag.jobs[0], in_file.jobs[0]
        assert flagged.recommended == filed.recommended
        assert flagged.options == filed.options
        assert flagged.baseline.broken == filed.baseline.broken


def test_a_target_that_only_first_tokens_can_keep_is_theirs() -> None:
    """200 ms and answers of 2.4 s: what was measured says which of the two is meant."""
    stated = chat(latency_ms=None, latency_slo_ms=200.0)
    (job,) = plan(stated, offers=(H100,)).jobs
    assert any("taken for the first token" in note for note in job.baseline.notes)
    assert any(option.count == 1 for option in job.options)
    service = measured_service(stated, [])
    assert service is not None
    assert next(target.words for target in service.question.targets) == "TTFT p99 200 ms"


def test_spare_copies_are_what_is_wasted_and_what_is_cured_now() -> None:
    """Seven of eight copies answer nobody: 7/8 of the bill, and the cure is here."""
    cheap = sold("elsewhere", "1.50", gpu="H100-SXM-80GB", gpu_memory_gib=80)
    (job,) = plan(chat(), offers=(H100, cheap)).jobs
    first = job.findings[0]
    assert (first.code, first.actions) == ("spare-copies", ("scale-down",))
    assert first.waste_fraction == pytest.approx(7 / 8)
    assert job.now is not None
    assert job.now.actions == ("scale-down",)
    assert job.now.usd is not None
    assert job.now.usd.mid == pytest.approx(Decimal(3 * 730), abs=Decimal("0.01"))
    (busy,) = plan(chat(replicas=Replicas(now=1)), offers=(H100,)).jobs
    assert all(finding.code != "spare-copies" for finding in busy.findings)


def test_an_impossible_target_is_not_answered_with_more_copies() -> None:
    """200 ms for an answer of 300 tokens: no copy of any number keeps it."""
    latency = Latency(p50=2400.0, p99=6000.0)
    (job,) = plan(chat(latency_ms=latency), offers=(H100,), slo_ms=200.0).jobs
    assert not job.options


def test_tokens_are_those_that_are_asked() -> None:
    """Scaled by the hour, a million tokens cost the bill over the tokens of the demand."""
    demand = [8.0] * 12 + [2.0] * 12
    profile = chat(demand_by_hour=demand, work=Work(unit="token", rate_per_s=300.0))
    option = scaled(profile)
    assert option is not None
    tokens = 300.0 * 5.0 * 730 * 3600
    assert option.work_cost is not None
    assert float(option.work_cost.mid) == pytest.approx(float(option.cost) / tokens * 1e6, abs=0.01)


def test_a_batch_takes_as_long_as_full_batches_do() -> None:
    """An 8B batch of 200 h on an H100 takes 528 h on an L40S, by the best published systems."""
    batch = a_profile(
        BUSY,
        hours=None,
        gpu="H100-SXM-80GB",
        kind="inference_offline",
        framework="vllm",
        precision="bf16",
        parameters=8.03e9,
    )
    speed = predict(batch, gpu="L40S")
    assert 200 / speed.high < 528 < 200 / speed.low
    assert 200 / speed.mid == pytest.approx(528, rel=0.15)


def test_another_gpu_has_a_load_of_its_own() -> None:
    """An L40S reads its memory at a quarter of the speed, so it takes less."""
    service = measured_service(chat(), [])
    assert service is not None
    here = service.limit_on(Layout("H100-SXM-80GB", 1, "bf16", nvlink=False))
    there = service.limit_on(Layout("L40S", 1, "bf16", nvlink=False))
    assert here is not None
    assert there is not None
    assert there.rate < here.rate / 2
    assert json.dumps(here.stopped_by)


@pytest.mark.parametrize("precision", [None, "bf16", "fp16"])
def test_a_gpu_without_bf16_is_refused_unless_the_weights_are_of_another_format(
    precision: str | None,
) -> None:
    """Engines serve as published, in bf16, which no V100 has; weights of fp16 run on it."""
    v100 = sold("v100", "0.50", gpu="V100-32GB", gpu_memory_gib=32)
    job = chat(precision=precision, serving=None)
    (drafted,) = plan(job, offers=(H100, v100)).jobs
    refused = {r.offer for r in drafted.rejected if "has no bf16" in str(r.detail)}
    assert (v100.name in refused) is (precision != "fp16")
