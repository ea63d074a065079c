"""Copies of a service follow its demand: as few as its limits allow, at every hour."""

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpucost.commands.planning.export import task_text
from planner.choice.option import Option
from planner.documents.task import TaskRequest
from planner.models.copies import Scaling, windows
from planner.models.document import to_text
from planner.models.interruption import CheckpointCosts
from planner.plan.making import to_plan
from planner.plan.read import read_plan
from planner.profile.model import Profile, Statistics, Window
from planner.profile.trials import Latency, Replicas, Serving
from pricing.errors import InputError
from templates.render import render_report
from templates.reports.decision import copies
from templates.reports.first_screen import first_screen
from tests.planner.factories import TODAY, a_profile, plan, running, sold

TENTH = {"util.kernel_time": 0.1, "mem.used_gib": Statistics(max=10.0)}
HALF = {"util.kernel_time": 0.1, "mem.used_gib": Statistics(max=60.0)}
OFFICE = [0.0] * 8 + [30.0] * 10 + [5.0] * 6
"""Nothing at night, busy by day, a little in the evening: requests a second, from 0 h."""


def serving(now: int = 4, busy: float = 0.1, **fields: Any) -> Profile:
    """A service of so many copies, each on a GPU of its own at $2 an hour, all the month."""
    metrics = TENTH | {"util.kernel_time": busy} | fields.pop("metrics", {})
    plain = {"kind": "inference_online", "name": "serve", "replicas": Replicas(now=now)}
    return running(a_profile(metrics, hours=None, **plain | fields))


def by_hour(demand: list[float] | None, **fields: Any) -> Profile:
    """A service of four copies, each measured at 10 requests a second with 20 % of its GPU."""
    return serving(busy=0.2, requests_per_s=10.0, demand_by_hour=demand, **fields)


def scaled(profile: Profile, **asked: Any) -> Option | None:
    """The option on today's machine that follows demand; None where there is none."""
    (job,) = plan(profile, **asked).jobs
    return next((o for o in job.options if o.scaling and o.offer == TODAY), None)


def schedule(profile: Profile, **asked: Any) -> Scaling:
    """Its copies by the hour."""
    found = scaled(profile, **asked)
    assert found is not None
    assert found.scaling
    return found.scaling


def test_four_copies_at_a_tenth_become_one() -> None:
    """The published case: 4 replicas at 10 % are one, at a quarter of the bill, and it is said."""
    (job,) = plan(serving()).jobs
    assert job.recommended == "o1"
    (option,) = job.options
    assert option.actions == ("scale-down",)
    assert (option.count, option.hours.mid) == (1, 730.0)
    assert job.baseline.cost == 4 * option.cost
    assert "1 copies instead of 4" not in option.why
    assert "1 copy instead of 4" in option.why


@pytest.mark.parametrize(
    ("fields", "reason", "says"),
    [
        ({"latency_ms": Latency(p99=49.0), "latency_slo_ms": 50.0}, "latency", "target of 50 ms"),
        ({"latency_ms": Latency(p99=60.0), "latency_slo_ms": 50.0}, "latency", "missed today"),
        ({"latency_slo_ms": 50.0}, "latency", "without a measured latency"),
        ({"serving": Serving(kv_cache_fraction=0.8)}, "memory", "KV cache"),
        ({"metrics": {"util.dram_active": 0.8}}, "slowdown", "memory bandwidth"),
        ({"metrics": {"util.kernel_time": Statistics(mean=0.1, p95=0.9)}}, "slowdown", "95th"),
        ({"host": {"cpu_util": 0.8}, "cpu_cores": 8}, "capability", "cores of its host"),
        ({"busy": 0.85}, "slowdown", "the GPU 90% busy"),
    ],
)
def test_copies_that_are_needed_stay(fields: dict[str, Any], reason: str, says: str) -> None:
    """Latency, cache, bandwidth, peaks, host or load forbid fewer, and the plan says which."""
    host = sold("today", "2.00", vcpus=8)
    (job,) = plan(serving(**fields), offers=(host,)).jobs
    assert job.recommended == "o0"
    assert not [o for o in job.options if o.scaling]
    (said,) = (r for r in job.rejected if r.offer == f"{host.name}, fewer copies")
    assert said.reason == reason
    assert says in said.detail


@pytest.mark.parametrize(
    ("replicas", "peak"),
    [
        (Replicas(now=4), 1),
        (Replicas(now=4, min=2), 2),
        (Replicas(now=4, peak=20), 3),
    ],
)
def test_the_stated_fewest_and_peak_count(replicas: Replicas, peak: int) -> None:
    """No fewer run than are wanted; copies that were once seen were needed."""
    assert schedule(serving(replicas=replicas)).by_hour == (peak,)


@pytest.mark.parametrize(
    ("fields", "copies"),
    [
        ({}, (3, 1)),
        ({"replicas": Replicas(now=3)}, (3, 1)),
        ({"replicas": Replicas(now=3, min=2)}, (3, 2)),
        ({"nodes": None}, (3, 1)),
        ({"parallelism": "none", "requests_per_s": 30.0, "demand_by_hour": [60.0] * 24}, (3, 1)),
        ({"parallelism": "pipeline"}, None),
        ({"mean_s": 1.0, "comm_s": 0.2}, None),
        ({"parameters": 30e9, "precision": "bf16"}, None),
        ({"parameters": 140e9, "precision": "bf16", "metrics": HALF}, None),
        ({"replicas": Replicas(now=2)}, (6, 3)),
        ({"kind": "training"}, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_single_gpus_of_a_service_are_its_copies(
    fields: dict[str, Any], copies: tuple[int, int] | None
) -> None:
    """A job on 3 machines of one GPU is 3 copies at a tenth, and one is enough; no model is cut."""
    plain = {"gpu_count": 3, "nodes": 3, "replicas": None}
    (job,) = plan(serving(**plain | fields), offers=(TODAY,)).jobs
    found = next((option for option in job.options if option.scaling), None)
    assert (found and (job.baseline.count, found.count)) == copies
    if found is not None:
        assert job.baseline.cost == job.baseline.count * 1460
        assert found.cost == 1460 * found.count


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"kind": "training", "parallelism": "none"}, 4),
        ({"parallelism": "none"}, 4),
        ({"parallelism": "none", "replicas": Replicas(now=4)}, 4),
        ({"kind": "training", "parallelism": "ddp"}, None),
        ({"kind": "training", "parallelism": "none", "busy": 3}, 3),
    ],
)
def test_gpus_that_work_apart_may_stand_apart(fields: dict[str, Any], count: int | None) -> None:
    """4 GPUs of one machine at $12 that exchange nothing are as fast on 4 machines at $1."""
    node, single = (
        sold(name, usd, gpu_count=n)
        for name, usd, n in (("node", "12.00", 4), ("single", "1.00", 1))
    )
    ran, idle = (
        {"util.kernel_time": Statistics(mean=0.9, p95=1.0), "mem.used_gib": Statistics(max=40.0)},
        {"util.kernel_time": Statistics(mean=0.0, p95=0.0), "mem.used_gib": Statistics(max=0.5)},
    )
    busy = fields.get("busy", 4)
    profile = a_profile(
        each=[ran] * busy + [idle] * (4 - busy),
        **{"kind": "inference_online", "gpu_count": 4}
        | {k: v for k, v in fields.items() if k != "busy"},
    )
    (job,) = plan(running(profile, node), offers=(node, single)).jobs
    found = next((o for o in job.options if o.offer == single and o.count > 1), None)
    assert (found and found.count) == count
    assert job.baseline.count == 1
    if found is not None:
        assert found.hours.mid == pytest.approx(100.0)
        assert found.cost == 100 * found.count


@pytest.mark.parametrize("rho", [0.1, 0.3])
@pytest.mark.parametrize("target_ms", [25.0, 60.0, 400.0])
def test_latency_is_that_of_a_queue(rho: float, target_ms: float) -> None:
    """The 99th percentile of an M/M/1 queue, ln 100 / (service - arrivals), keeps the target."""
    rate = 100.0
    service = rate / rho
    measured = 1000.0 * math.log(100.0) / (service - rate)
    job = serving(
        now=4,
        busy=rho,
        requests_per_s=rate,
        latency_ms=Latency(p99=measured),
        latency_slo_ms=target_ms,
    )
    least = next(
        n
        for n in range(1, 5)
        if 4 * rho / n <= 0.9
        and (measured if n == 4 else 1000.0 * math.log(100.0) / (service - 4 * rate / n))
        <= target_ms
    )
    found = scaled(job)
    assert (4 if found is None else found.count) == least
    if found is not None and found.scaling:
        then = 1000.0 * math.log(100.0) / (service - 4 * rate / least)
        assert found.scaling.latency_ms == pytest.approx(then, rel=0.001)


def test_copies_follow_the_day() -> None:
    """Each hour has the copies that it needs, none at night, and starts are paid."""
    found = scaled(by_hour(OFFICE))
    assert found is not None
    assert found.scaling == Scaling(
        by_hour=(0,) * 8 + (1,) * 16,
        fewest=0,
        peak=1,
        starts=1,
        start_s=360.0,
        busiest_fraction=pytest.approx(0.6),
        latency_ms=None,
        limit="the GPU 90% busy",
    )
    # A start is billed as an hour there.
    assert found.hours.mid == pytest.approx(730.0 * 17.0 / 24.0)
    assert float(found.cost) == pytest.approx(2.0 * 730.0 * 17.0 / 24.0, abs=2.0)


@given(
    demand=st.lists(  # a tenth of a subnormal number is 0
        st.floats(0.0, 400.0, allow_subnormal=False), min_size=24, max_size=24
    ).filter(any),
    busy=st.floats(0.05, 0.9),
    copies_now=st.integers(1, 12),
)
def test_every_hour_is_answered_by_as_few_as_do(
    demand: list[float], busy: float, copies_now: int
) -> None:
    """No hour has a copy over 90 % busy, none more copies than it needs, and the bill is theirs."""
    job = serving(copies_now, busy, requests_per_s=10.0, demand_by_hour=demand)
    found = scaled(job)
    need = [max(d > 0.0, math.ceil(d / 10.0 * busy / 0.9 - 1e-9)) for d in demand]
    starts = sum(max(0, n - need[at - 1]) for at, n in enumerate(need))
    machine_h = (sum(need) + starts) * 730.0 / 24.0
    if found is None:
        assert machine_h >= copies_now * 730.0 - 1e-6
        return
    assert found.scaling
    shown = found.scaling.by_hour
    assert list(shown if len(shown) == 24 else shown * 24) == need
    assert found.hours.mid * found.count == pytest.approx(machine_h)
    assert float(found.cost) == pytest.approx(2.0 * machine_h, abs=2.0 * found.count)


def test_a_week_is_a_week() -> None:
    """168 numbers are hours of a week from Monday; a weekend without requests has no copy."""
    found = schedule(by_hour([10.0] * 120 + [0.0] * 48))
    assert found.by_hour == (1,) * 120 + (0,) * 48
    assert sum(found.by_hour) + found.starts == 121


@pytest.mark.parametrize(
    ("fields", "asked", "fewest"),
    [
        ({}, {}, 0),
        ({"replicas": Replicas(now=4, min=1)}, {}, 1),
        ({"latency_ms": Latency(p99=20.0), "latency_slo_ms": 900.0}, {}, 0),
        ({"replicas": None}, {}, 0),
        (
            {
                "replicas": Replicas(now=4, min=0),
                "latency_ms": Latency(p99=20.0),
                "latency_slo_ms": 900.0,
            },
            {},
            0,
        ),
    ],
)
def test_none_run_only_where_nobody_waits_too_long(
    fields: dict[str, Any], asked: dict[str, Any], fewest: int
) -> None:
    """Hours stated to have no request have no copy, also of a service of one, unless some must."""
    assert schedule(by_hour(OFFICE, **fields), **asked).fewest == fewest


@pytest.mark.parametrize(
    ("parameters", "asked", "start_s"),
    [
        (8e9, {}, 360.0),  # 7.5 GiB take a minute of the usual six
        (60e9, {}, 457.8),  # 55.9 GiB at 125 MiB/s
        (60e9, {"checkpoints": CheckpointCosts(write_s=120.0, restart_s=90.0)}, 90.0),
    ],
)
def test_a_copy_starts_no_sooner_than_its_weights_are_read(
    parameters: float, asked: dict[str, Any], start_s: float
) -> None:
    """From a volume as it is sold; what the user states for a start counts in its place."""
    held = {"mem.used_gib": 72.0}
    serves = by_hour(OFFICE, parameters=parameters, precision="fp8", metrics=held)
    assert schedule(serves, **asked).start_s == pytest.approx(start_s, rel=1e-3)


def test_a_term_is_paid_at_any_hour() -> None:
    """Machines bought for a year do not follow the day: as many as the peak wants."""
    year = sold("today", "1.00", purchase="reserved_1y")
    (job,) = plan(by_hour(OFFICE), offers=(TODAY, year), purchases=("reserved_1y",)).jobs
    (found,) = (o for o in job.options if o.scaling)
    assert found.scaling
    assert found.scaling.by_hour == (1,)
    assert found.hours.mid == 730.0


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"demand_by_hour": [1.0] * 23}, "23 numbers"),
        ({"demand_by_hour": [1.0] * 24, "requests_per_s": None}, "needs job.requests_per_s"),
        ({"demand_by_hour": [1.0] * 24, "metrics": {"util.kernel_time": Statistics()}}, "use"),
    ],
)
def test_a_demand_that_cannot_be_used_is_refused(fields: dict[str, Any], says: str) -> None:
    """What a plan cannot use ends it; nothing is passed over."""
    with pytest.raises(InputError, match=says):
        plan(serving(**{"requests_per_s": 10.0} | fields))


def test_other_jobs_tell_their_hours_for_sharing() -> None:
    """A job that answers nobody keeps its machine, and the plan says what its hours are for."""
    job = running(a_profile(name="night", demand_by_hour=[1.0] * 6 + [0.0] * 18))
    found = plan(job)
    assert not [o for o in found.jobs[0].options if o.scaling]
    assert any("night: job.demand_by_hour" in note for note in found.assumptions)


def test_the_schedule_is_in_the_plan_and_its_report() -> None:
    """plan.json has it on the option alone, reads back the same, and people see the hours."""
    found = to_plan(plan(by_hour(OFFICE)))
    text = to_text(found)
    options = json.loads(text)["jobs"][0]["options"]
    with_it = [o for o in options if "scaling" in o]
    assert [o["actions"] for o in with_it] == [["scale-down"]]
    assert with_it[0]["scaling"]["by_hour"] == [0] * 8 + [1] * 16
    again = read_plan(text, "plan.json")
    assert again.jobs[0].options == found.jobs[0].options
    assert "0-7 h: 0, 8-23 h: 1" in render_report(again)


def exported(demand: list[float], **asked: Any) -> list[Any]:
    """The documents of the service that follows a demand, as written for Kubernetes."""
    found = to_plan(plan(by_hour(demand)))
    (name,) = (f"serve/{one.id}" for one in found.jobs[0].options if one.scaling)
    request = TaskRequest(**{"command": "serve", "ttl_s": None, "image": "serve:1"} | asked)
    _, text = task_text("kubernetes", found, (name,), request, ())
    return list(yaml.safe_load_all(text))


def test_an_exported_service_follows_its_hours() -> None:
    """KEDA runs one copy from before 8 h to midnight, else none; the Deployment counts none."""
    deployment, scaled_object = exported(OFFICE, zone="Europe/Berlin")
    assert "replicas" not in deployment["spec"]
    spec = scaled_object["spec"]
    assert spec["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (0, 1)
    assert [one["metadata"] for one in spec["triggers"]] == [
        {
            "timezone": "Europe/Berlin",
            "start": "54 7 * * *",
            "end": "0 0 * * *",
            "desiredReplicas": "1",
        }
    ]


def test_an_exported_service_may_follow_the_gpu() -> None:
    """A HorizontalPodAutoscaler keeps as many copies as the plan, by the use of the GPU."""
    _, hpa = exported([100.0] * 12 + [10.0] * 12, autoscaler="hpa")
    assert hpa["kind"] == "HorizontalPodAutoscaler"
    assert 1 <= hpa["spec"]["minReplicas"] < hpa["spec"]["maxReplicas"]
    (metric,) = hpa["spec"]["metrics"]
    assert 1 <= int(metric["pods"]["target"]["averageValue"]) <= 90


@pytest.mark.parametrize(
    ("demand", "asked", "said"),
    [
        (OFFICE, {"autoscaler": "hpa"}, "keeps one"),
        (OFFICE, {"autoscaler": "keda", "ttl_s": 60.0}, "do not follow demand"),
        ([10.0] * 24, {"autoscaler": "keda"}, "do not follow demand"),
        (OFFICE, {"zone": "Mars/Olympus"}, "not a time zone"),
    ],
)
def test_what_cannot_follow_demand_is_refused(
    demand: list[float], asked: dict[str, Any], said: str
) -> None:
    """It is said why, and nothing is written."""
    with pytest.raises(InputError, match=said):
        exported(demand, **asked)


def _minute(cron: str, period: int) -> int:
    """The minute of the day, or of the week from Monday, that a cron text names."""
    minute, hour, _, _, weekday = cron.split()
    day = 0 if weekday == "*" else (int(weekday) - 1) % 7
    return (day * 1440 + int(hour) * 60 + int(minute)) % (period * 60)


@given(
    st.sampled_from((24, 168)).flatmap(
        lambda n: st.lists(st.integers(0, 4), min_size=n, max_size=n)
    ),
    st.sampled_from((0.0, 300.0, 5000.0)),
)
def test_windows_hold_the_copies_of_every_minute(hours: list[int], start_s: float) -> None:
    """As a clock reads them there are never too few copies, and more only while one starts."""
    period, lead = len(hours), min(59, math.ceil(start_s / 60))
    times = [
        (_minute(one.start, period), _minute(one.end, period), one.copies)
        for one in windows(hours, start_s)
    ]
    for minute in range(0, period * 60, 7):
        within = [
            copies
            for start, end, copies in times
            if (minute - start) % (period * 60) < (end - start) % (period * 60)
        ]
        wanted, soon = hours[minute // 60], hours[(minute // 60 + 1) % period]
        starting = 60 - minute % 60 <= lead
        assert max(within, default=min(hours)) == (max(wanted, soon) if starting else wanted)


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        ((3,), "3 at all times"),
        ((1,) * 9 + (4,) + (1,) * 14, "0-8 h: 1, 9 h: 4, 10-23 h: 1"),
        ((2,) * 120 + (0,) * 48, "Mon-Fri 0-23 h: 2; Sat-Sun 0-23 h: 0"),
        ((1,) * 24 + (2,) * 144, "Mon 0-23 h: 1; Tue-Sun 0-23 h: 2"),
    ],
)
def test_a_schedule_reads_in_one_line(hours: tuple[int, ...], said: str) -> None:
    """Hours alike stand together, and days alike."""
    assert copies(hours) == said


def test_the_cores_of_a_copy_are_not_divided_by_the_copies() -> None:
    """Four cores of each of six copies, 35 % busy: today's machine is as fast as measured."""
    small = sold("today", "2.00", vcpus=4.0)
    for cores in (4.0, None):
        service = running(serving(6, cpu_cores=cores, host={"cpu_util": 0.35}), small)
        (job,) = plan(service, offers=(small,)).jobs
        (option,) = (o for o in job.options if o.scaling)
        assert option.speed.mid == 1.0


def test_copies_that_no_request_needs_are_waste_of_any_service() -> None:
    """One copy does the work of four: three quarters of the bill, and the cure is here."""
    (job,) = plan(serving()).jobs
    first = job.findings[0]
    assert (first.code, first.waste_fraction) == ("spare-copies", pytest.approx(0.75))
    assert job.now is not None
    assert job.now.actions == ("scale-down",)


def test_requests_that_wait_in_line_are_given_more_copies() -> None:
    """98 % busy at 0.24 requests a second is 4.1 s of work: four copies answer in 8 s."""
    slow = Latency(mean=14_000.0, p99=31_000.0)
    asked = {"requests_per_s": 0.24, "latency_ms": slow, "latency_slo_ms": 10_000.0}
    (job,) = plan(serving(2, busy=0.98, **asked)).jobs
    assert job.now is not None
    assert job.now.actions == ("more-gpus",)
    assert "run 4 copies instead of 2" in job.now.what
    assert job.now.usd is not None
    assert job.now.usd.mid == 2 * job.baseline.cost


def test_a_machine_that_keeps_the_target_for_less_comes_before_copies() -> None:
    """Four copies at $2 keep it for $8 an hour; two B200 keep it for $5."""
    slow = Latency(mean=14_000.0, p99=31_000.0)
    asked = {"requests_per_s": 0.24, "latency_ms": slow, "latency_slo_ms": 10_000.0}
    fast = sold("fast", "2.50", "B200-SXM", gpu_memory_gib=180)
    (job,) = to_plan(plan(serving(2, busy=0.98, **asked), offers=(TODAY, fast))).jobs
    assert job.answer.now is None
    assert job.answer.next is not None
    assert job.option(job.answer.next.option).offer.gpu == "B200-SXM"


@pytest.mark.parametrize(("framework", "copies"), [("tgi", False), ("vllm", False), (None, True)])
def test_a_server_that_batches_lets_nobody_wait_in_line(framework: str, *, copies: bool) -> None:
    """A p99 of 31 s over one of 30 s at 31 % busy: 22.8 s of it are generation in any copy."""
    slow = Latency(p50=22_800.0, p99=31_000.0)
    asked = {"requests_per_s": 0.02, "latency_ms": slow, "latency_slo_ms": 30_000.0}
    (job,) = plan(serving(1, busy=0.31, framework=framework, **asked)).jobs
    assert (job.now is not None and "copies" in job.now.what) == copies
    assert any(option.scaling for option in job.options) == copies


LATE = {
    "requests_per_s": 30.0,  # 0.7 / 30 = 23.3 ms of the GPU each
    "latency_ms": Latency(p99=1610.0),  # 4.6 x 23.3 ms / (1 - 0.933)
    "latency_slo_ms": 500.0,
    "demand_by_hour": [8.0] * 12 + [100.0] * 6 + [120.0] * 6,
    "window": Window(duration_s=86_400.0),
}
"""Three copies that take 40 requests a second each at the peak: 93 % of their GPUs."""


@pytest.mark.parametrize(
    ("fewest", "by_hour", "paid"),
    [
        (3, (3,) * 18 + (4,) * 6, (18 * 3 + 6 * 4 + 1) / 24),
        (1, (1,) * 12 + (3,) * 6 + (4,) * 6, (12 + 6 * 3 + 6 * 4 + 3) / 24),
    ],
)
def test_a_queue_over_its_target_gets_copies_before_dearer_gpus(
    fewest: int, by_hour: tuple[int, ...], paid: float
) -> None:
    """At the peak three copies answer in 1.6 s, four in 4.6 x 23.3 / 0.3 = 358 of 500 ms.

    Three do up to 33.7 requests a second each: 100 together, in 4.6 x 23.3 / 0.222 = 483 ms. An
    H200 at four times the price is not the answer.
    """
    late = serving(busy=0.7, replicas=Replicas(now=3, min=fewest), **LATE)
    big = sold("big", "8.00", gpu="H200")
    (job,) = plan(late, offers=(TODAY, big)).jobs
    best = job.choice
    assert best is not None
    assert best.offer == TODAY
    assert best.scaling is not None
    assert best.scaling.by_hour == by_hour
    assert best.hours.mid * best.count == pytest.approx(730.0 * paid, rel=1e-3)
    assert best.scaling.latency_ms == pytest.approx(483, rel=0.01)
    assert best.actions == ("more-gpus",)
    assert job.now is not None
    assert "run 4 copies instead of 3" in job.now.what


@pytest.mark.parametrize(("busy", "latency"), [(0.25, 320.0), (0.34, 399.0)])
def test_copies_that_keep_the_target_are_enough_at_the_peak(busy: float, latency: float) -> None:
    """Six that keep 400 ms at 240 requests a second, 71 % or 97 % busy, are no fewer than enough.

    At night 10 requests a second are less than one copy took by day.
    """
    demand = [10.0] * 12 + [240.0] * 12
    asked = {"requests_per_s": 14.0, "latency_ms": Latency(p99=latency), "latency_slo_ms": 400.0}
    fields = asked | {"demand_by_hour": demand, "window": Window(duration_s=86_400.0)}
    found = schedule(serving(6, busy=busy, **fields))
    assert found.by_hour == (1,) * 12 + (6,) * 12


def test_where_nothing_waits_in_line_copies_do_not_help() -> None:
    """A request takes 4 s of the GPU: with a target of 3 s no number of copies keeps it."""
    slow = {"requests_per_s": 0.2, "latency_ms": Latency(p99=5000.0), "latency_slo_ms": 3000.0}
    (job,) = plan(serving(2, busy=0.8, **slow)).jobs
    assert not [option for option in job.options if option.scaling]


def test_where_the_gpu_takes_a_small_part_of_a_request_the_host_is_looked_at() -> None:
    """117 of 480 ms are the GPU's: no GPU, no smaller model and no term is the answer."""
    asked = {"requests_per_s": 3.0, "latency_ms": Latency(mean=480.0, p95=900.0)}
    (job,) = plan(serving(1, busy=0.35, latency_slo_ms=500.0, **asked)).jobs
    assert job.now is not None
    assert "the GPU works 117 ms" in job.now.what
    assert job.now.actions == ()
    assert job.steady is None


@pytest.mark.parametrize(("busy", "now"), [(0.98, "run 4 copies"), (0.35, "look at the host")])
def test_a_target_that_a_step_here_keeps_for_less_needs_no_dearer_machine(
    busy: float, now: str
) -> None:
    """Four copies at $2 keep it for $8 an hour; a B200 at $20 each keeps it, too, and stays listed.

    Where the host is what takes the time, no GPU is bought for it.
    """
    slow = Latency(mean=14_000.0, p99=12_000.0)
    asked = {"requests_per_s": 0.24, "latency_ms": slow, "latency_slo_ms": 10_000.0}
    fast = sold("fast", "20.00", "B200-SXM", gpu_memory_gib=180)
    job_plan = plan(serving(2, busy=busy, **asked), offers=(TODAY, fast))
    (job,) = job_plan.jobs
    assert job.now is not None
    assert job.now.what.startswith(now)
    assert job.choice is None or job.choice.offer == TODAY
    assert job.options[-1].offer.gpu == "B200-SXM"
    screen = first_screen(to_plan(job_plan))
    assert [action.label for action in screen.actions] == ["Now"]
    assert "No option" not in " ".join(line.text for line in screen.lines)


def test_the_gpus_of_a_stated_machine_are_those_of_all_its_nodes() -> None:
    """Two copies on two machines of eight GPUs each, nothing of them read: eight GPUs a copy."""
    eight = sold("today", "16.00", gpu_count=8)
    service = serving(2, gpu=None, gpu_count=None, nodes=2, metrics={}, parallelism="tensor")
    apart = running(replace(service, gpus=(), job=replace(service.job, parallelism=None)), eight)
    (job,) = plan(apart, offers=(eight,)).jobs
    assert (job.profile.gpu_count, job.baseline.count, job.baseline.replicas) == (8, 2, 2)


def test_copies_that_no_request_needs_are_the_same_dollars_among_other_jobs() -> None:
    """Three of four copies are $4,380; beside a busy job that idles for $20 they still are."""
    busy = running(a_profile({"util.kernel_time": 0.9, "util.sm_active": 0.9}, name="busy"))
    alone = first_screen(to_plan(plan(serving())))
    both = first_screen(to_plan(plan(serving(), busy, consolidate=False)))
    assert alone.wasted_usd == pytest.approx(3 * 730 * 2)
    assert both.wasted_usd == pytest.approx(3 * 730 * 2 + 20)
