"""A machine is billed once: split among the jobs on it, and saved only when it goes or shrinks."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from planner.choice.requirements import Requirements
from planner.models.document import encode
from planner.pipeline import draft_plan
from planner.plan.draft import PlanDraft
from planner.plan.making import to_plan
from planner.profile.model import Machine, OtherGpu, Profile, Replicas, Statistics, Window
from pricing.catalog.catalog import load_catalog
from pricing.errors import InputError
from pricing.money import cents
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry
from tests.planner.factories import TODAY, a_profile, plan, running, sold

CATALOG = load_catalog()
DAY = date(2026, 11, 21)
P5 = CATALOG.find("aws", "p5.48xlarge", "us-east-1")
EIGHT = sold("eight", "16.00", gpu_count=8)
ONE = sold("one", "2.50", gpu_count=1)
HALF_USED = {"util.kernel_time": 0.2, "mem.used_gib": Statistics(max=8.0)}


def pod(
    name: str, offer: Any = EIGHT, machine: str | None = "node", busy: float = 0.2, **fields: Any
) -> Profile:
    """A serving job that holds one GPU of a machine."""
    gpu = {"gpu": offer.gpu, "gpu_count": 1, "kind": "inference_online"}
    used = {**HALF_USED, "util.kernel_time": busy}
    one = running(a_profile(used, name=name, **gpu | fields), offer)
    return replace(one, hardware=replace(one.hardware, machine=machine))


def costs(found: PlanDraft) -> list[Decimal]:
    """Today's cost of each job."""
    return [job.baseline.cost for job in found.jobs if job.baseline.cost is not None]


def test_eight_pods_of_one_node_are_one_bill() -> None:
    """8 pods on one p5.48xlarge at 200 h a month cost $11,008 in all, not $88,064."""
    pods = [pod(f"pod-{i}", P5, hours=200.0) for i in range(8)]
    found = plan(*pods, offers=(P5,))
    assert cents(sum(costs(found), Decimal(0))) == Decimal("11008.00")
    assert set(map(cents, costs(found))) == {Decimal("1376.00")}
    assert found.fleet is not None
    assert found.fleet.gpus_before == 8
    assert cents(found.recommended.before) == Decimal("11008.00")


def _scrape(*series: tuple[str, str, float]) -> str:
    lines = (f"{name}{{{labels}}} {value}\n" for name, labels, value in series)
    return "# TYPE HostCoreUtilization gauge\n" + "".join(lines)


_T4 = 'gpu="0",UUID="GPU-t4",modelName="Tesla T4",Hostname="n1",exported_namespace="x"'
_ON_T4 = [f'{_T4},exported_pod="{pod}"' for pod in ("a", "b", "notebook")]
_RTX = 'deviceuuid="GPU-9ef1"'
_RTX_HOST = f'deviceidx="0",devicetype="NVIDIA GeForce RTX 4090",{_RTX}'
_RTX_NEW = f'device_index="0",device_type="NVIDIA-NVIDIA GeForce RTX 4090",device_{_RTX[6:]}'
_A100 = 'modelName="NVIDIA A100 80GB PCIe",Hostname="dgx",namespace="ml"'
_SLICES = [
    (f'gpu="0",UUID="GPU-0",GPU_I_PROFILE="{name}",GPU_I_ID="{i}",pod="{pod}",{_A100}', ran)
    for i, name, pod, ran in ((1, "3g.40gb", "a", 0.91), (2, "4g.40gb", "b", 0.02))
] + [(f'gpu="1",UUID="GPU-1",pod="c",{_A100}', 0.97)]
_SHARED = {
    "copies of the device's own": (
        [("DCGM_FI_DEV_GPU_UTIL", labels, 66) for labels in _ON_T4],
        (1, 0.66),
        {"a": 0.34 / 3, "b": 0.34 / 3, "notebook": 0.34 / 3},
    ),
    "containers of HAMi": (
        [("HostCoreUtilization", _RTX_HOST, 66), ("HostGPUMemoryUsage", _RTX_HOST, 1.8e10)]
        + [
            ("Device_utilization_desc_of_container", f'podname="{pod}",{_RTX}', busy)
            for pod, busy in (("a", 40), ("b", 26), ("notebook", 0))
        ],
        (1, 0.66),
        # a takes 40/100 and bears 1/3: what it takes of the others' 1/3 is not idle there.
        {"a": 0.0, "b": 0.34 * 0.22 / 1.22, "notebook": 0.34 / 1.22},
    ),
    "containers of HAMi that take as much as each other": (
        [("hami_host_gpu_utilization_ratio", _RTX_NEW, 99)]
        + [
            ("hami_container_device_utilization_ratio", f'pod="{pod}",device_{_RTX[6:]}', 33)
            for pod in ("a", "b", "notebook")
        ],
        (1, 0.99),
        {"a": 0.01 / 3, "b": 0.01 / 3, "notebook": 0.01 / 3},
    ),
    "containers of HAMi that say less than the device": (
        [("HostCoreUtilization", _RTX_HOST, 99)]
        + [
            ("Device_utilization_desc_of_container", f'podname="{pod}",{_RTX}', 33)
            for pod in ("a", "b")
        ],
        (1, 0.99),
        {"a": 0.005, "b": 0.005},
    ),
    "containers that HAMi does not watch": (
        [("HostCoreUtilization", _RTX_HOST, 40)]
        + [
            (name, f'podname="{pod}",{_RTX}', value)
            for name, value in (
                ("Device_utilization_desc_of_container", 0),
                ("vGPU_device_memory_usage_in_bytes", 4e9),
            )
            for pod in ("a", "b")
        ],
        (1, 0.4),
        {"a": 0.3, "b": 0.3},
    ),
    "a container of HAMi above 100 %": (
        [("HostCoreUtilization", _RTX_HOST, 99), ("HostGPUMemoryUsage", _RTX_HOST, 1.8e10)]
        + [
            ("Device_utilization_desc_of_container", f'podname="{pod}",{_RTX}', busy)
            for pod, busy in (("a", 130), ("notebook", 0))
        ]
        + [
            ("vGPU_device_memory_usage_in_bytes", f'podname="{pod}",{_RTX}', 4e9)
            for pod in ("a", "notebook")
        ],
        (1, 0.99),  # 130 % is not read: the device's 99 % counts
        {"a": 0.0, "notebook": 0.01},
    ),
    "slices of MIG": (
        [("DCGM_FI_DEV_GPU_UTIL", labels, 97 * (ran == 0.97)) for labels, ran in _SLICES]
        + [("DCGM_FI_PROF_GR_ENGINE_ACTIVE", labels, ran) for labels, ran in _SLICES],
        (2, (0.91 * 3 / 7 + 0.02 * 4 / 7 + 0.97) / 2),
        {"a": 0.09 * 3 / 14, "b": 0.98 * 4 / 14, "c": 0.03 / 2},
    ),
}


@pytest.mark.parametrize("shared", _SHARED)
@pytest.mark.parametrize("backwards", ["", "backwards"])
def test_shared_gpus_are_as_busy_as_the_devices(
    shared: str, backwards: str, tmp_path: Path
) -> None:
    """From what exporters print: GPUs, their busy share, and of whose part how much is idle."""
    series, (gpus, busy), idle = _SHARED[shared]
    (tmp_path / "all.prom").write_text(_scrape(*series[:: -1 if backwards else 1]))
    profiles = read_telemetry([str(tmp_path / "all.prom")], Hints())
    use = to_plan(draft_plan(profiles, load_catalog(DAY), Requirements(), as_of=DAY)).use
    assert use
    assert (use.gpus, use.busy_fraction) == (gpus, pytest.approx(busy, abs=1e-6))
    whole = use.idle_usd + use.work_usd + use.free_usd
    parts = {name: float(usd / whole) for name, usd in use.idle_by_job.items()}
    assert parts == pytest.approx(idle, abs=1e-3)


def test_jobs_in_turns_on_a_gpu_leave_it_as_busy_as_they_were() -> None:
    """80 %, then 60 % for as long: 70 %."""
    first, second = pod("a", ONE, busy=0.8), pod("b", ONE, busy=0.6)
    uuid = replace(first.gpus[0], uuid="GPU-a")
    found = [
        replace(job, gpus=(replace(uuid, metrics=job.gpus[0].metrics),), window=window)
        for job, window in (
            (first, Window(start=datetime(2026, 11, 1, tzinfo=UTC), duration_s=3600.0)),
            (second, Window(start=datetime(2026, 11, 2, tzinfo=UTC), duration_s=3600.0)),
        )
    ]
    use = to_plan(plan(*found, offers=(ONE,))).use
    assert use
    assert (use.gpus, use.busy_fraction) == (1, pytest.approx(0.7))


def test_services_on_a_gpu_make_it_as_busy_as_all_of_them() -> None:
    """12 + 20 + 8 % on one GPU: 1 GPU is 40 % busy, and $150 of $250 are idle, not $217."""
    found = to_plan(plan(*(pod(f"at-{b}", ONE, busy=b) for b in (0.12, 0.2, 0.08)), offers=(ONE,)))
    use = found.use
    assert use
    assert (use.gpus, use.busy_fraction) == (1, pytest.approx(0.4))
    assert (use.idle_usd, use.work_usd) == (Decimal("150.00"), Decimal("100.00"))


@pytest.mark.parametrize(("held", "bears"), [(1, "200.00"), (3, "600.00"), (8, "1600.00")])
def test_a_lone_job_bears_its_part(held: int, bears: str) -> None:
    """K of n GPUs bear k/n of the bill under a stated assumption; --whole-machine all of it."""
    job = pod("alone", gpu_count=held)
    found = plan(job, offers=(EIGHT,))
    assert costs(found) == [Decimal(bears)]
    assert any(f"uses {held} of the 8" in note for note in found.assumptions) == (held < 8)
    assert costs(plan(job, offers=(EIGHT,), whole_machine=True)) == [Decimal("1600.00")]


def test_a_lone_slice_bears_its_part_of_its_gpu() -> None:
    """A 2g.10gb slice of one of eight A100s at $16 an hour bears 2/7 of 1/8: $57.14 of 100 h."""
    job = pod("slice", EIGHT)
    job = replace(job, hardware=replace(job.hardware, gpu="A100-SXM-40GB", slice="2g.10gb"))
    eight = structs.replace(EIGHT, gpu="A100-SXM-40GB", gpu_memory_gib=40.0)
    draft = plan(job, offers=(eight,))
    assert cents(costs(draft)[0]) == Decimal("57.14")
    assert any("uses 2 slices, of 56 that" in note for note in draft.assumptions)
    assert costs(plan(job, offers=(eight,), whole_machine=True)) == [Decimal("1600.00")]


def test_an_assumed_machine_has_no_gpus_that_nobody_saw() -> None:
    """Two GPUs of which only fours are sold pay for two; a region that was asked for is kept to."""
    job = a_profile(HALF_USED, name="two", gpu=EIGHT.gpu, gpu_count=2, kind="inference_online")
    dear = sold("dear", "40.00", gpu_count=8, region="eu-west-1")
    assert costs(plan(job, offers=(EIGHT, dear))) == [Decimal("400.00")]
    assert costs(plan(job, offers=(EIGHT, dear), regions=("eu-west-1",))) == [Decimal("1000.00")]


def test_an_assumed_machine_is_of_the_seller_of_one_gpu() -> None:
    """One and eight GPUs are assumed at one price each; where it sells no such machine, it says so.

    `dear` rents one for $2 and eight for $16, `bulk` eight alone for $12; nobody else rents four.
    """
    sizes = (("dear", "2.00", 1), ("dear", "16.00", 8), ("bulk", "12.00", 8), ("four", "9.00", 4))
    sold_by = tuple(sold(f"{name}-{n}", usd, provider=name, gpu_count=n) for name, usd, n in sizes)
    for n, machine, note in (
        (1, "dear-1", "cheapest on-demand offer of 1x"),
        (8, "dear-8", "of the seller that rents one for least"),
        (4, "four-4", "dear, which rents one for $2.00, has no such machine"),
    ):
        draft = plan(a_profile(HALF_USED, gpu_count=n), offers=sold_by)
        assert draft.jobs[0].baseline.offer.instance_type == machine
        assert any(note in text for text in draft.assumptions)


def test_without_an_id_jobs_are_no_neighbours() -> None:
    """Two jobs on the same size of machine are on two machines unless an id says otherwise."""
    apart = plan(pod("a", machine=None), pod("b", machine=None), offers=(EIGHT,))
    assert costs(apart) == [Decimal("200.00")] * 2
    beside = plan(pod("a"), pod("b"), offers=(EIGHT,))
    assert costs(beside) == [Decimal("800.00")] * 2
    assert any("6 GPUs are held by no job given" in note for note in beside.assumptions)


def test_the_split_is_by_gpus_held() -> None:
    """One GPU and three GPUs of a machine bear a quarter and three quarters of its bill."""
    found = plan(pod("a"), pod("b", gpu_count=3), offers=(EIGHT,))
    assert costs(found) == [Decimal("400.00"), Decimal("1200.00")]


def test_a_slice_bears_its_part_of_a_gpu() -> None:
    """A seventh of a GPU beside a whole one bears an eighth of the bill, not half."""
    machine = CATALOG.find("gcp", "a2-ultragpu-8g", "us-central1")
    part = pod("part", machine, slice="1g.10gb")
    found = plan(pod("whole", machine), part, offers=(machine,))
    whole, seventh = sorted(costs(found), reverse=True)
    assert cents(whole) == cents(7 * seventh)


def test_a_machine_is_paid_for_as_long_as_anyone_holds_it() -> None:
    """200 h beside 100 h: the machine is billed for 200 h, half to each."""
    found = plan(pod("a", hours=200.0), pod("b", hours=100.0), offers=(EIGHT,))
    assert costs(found) == [Decimal("1600.00")] * 2


def test_four_jobs_of_one_large_machine_fit_one_small_one() -> None:
    """4 -> 1 on one machine of eight GPUs: the single GPU of the same provider takes its place."""
    droplet = CATALOG.find("digitalocean", "gpu-h100x8-640gb")
    small = CATALOG.find("digitalocean", "gpu-h100x1-80gb")
    found = plan(*[pod(f"j{i}", droplet) for i in range(4)], offers=(droplet, small))
    fleet = found.fleet
    assert fleet is not None
    assert (fleet.gpus_before, fleet.gpus_after, fleet.gpus_lower_bound) == (4, 1, 1)
    assert fleet.cost_before == droplet.usd_per_hour * 100
    assert fleet.cost_after == small.usd_per_hour * 100 == found.recommended.mid
    assert {place.offer.name for place in fleet.placements} == {small.name}
    assert any(small.name in note for note in found.assumptions)


def test_freed_gpus_save_nothing_while_the_machine_stays() -> None:
    """Without a smaller size the packing saves no cent, and says why."""
    found = plan(*[pod(f"j{i}") for i in range(4)], offers=(EIGHT,))
    assert found.fleet is not None
    assert (found.fleet.gpus_before, found.fleet.gpus_after) == (4, 1)
    assert found.fleet.cost_after == found.fleet.cost_before == found.recommended.mid
    assert any("saves nothing unless others use them" in note for note in found.assumptions)


def test_packed_jobs_let_a_whole_machine_go() -> None:
    """Two half-held machines whose jobs fit one: the other goes."""
    pods = [pod(f"{m}{i}", machine=m, gpu_count=1) for m in ("x", "y") for i in range(4)]
    found = plan(*pods, offers=(EIGHT,))
    assert found.fleet is not None
    assert found.fleet.cost_before == Decimal("3200.00")
    assert found.fleet.cost_after == Decimal("1600.00")
    assert any("1 of 2x" in note for note in found.assumptions)


def test_a_smaller_machine_must_have_the_cores() -> None:
    """A size without the cores that the jobs use takes nobody's place."""
    host = {"cpu_util": Statistics(mean=0.9, max=0.9), "ram_used_gib": Statistics(max=10.0)}
    pods = [pod(f"j{i}", host=host, cpu_cores=10.0) for i in range(4)]
    for vcpus, goes in ((36.0, True), (35.0, False), (None, False)):
        small = sold("one", "2.50", gpu_count=1, vcpus=vcpus, ram_gib=200.0)
        fleet = plan(*pods, offers=(EIGHT, small)).fleet
        assert fleet is not None
        assert (fleet.cost_after < fleet.cost_before) == goes


def test_nobody_leaves_a_shared_machine_alone() -> None:
    """A job that would leave stays where a neighbour stays: the machine is billed all the same."""
    serving = pod("serve", gpu_count=4)  # no other machine has four GPUs
    found = plan(pod("batch", kind="training"), serving, offers=(EIGHT, ONE), consolidate=False)
    assert [job.recommended for job in found.jobs] == ["o0", "o0"]
    assert "leaving saves nothing while serve runs" in (found.jobs[0].reason or "")
    assert found.recommended.mid == Decimal("1600.00")


def test_all_of_a_machine_may_leave() -> None:
    """Where everyone has a better place the machine goes, and its whole bill is saved."""
    pods = [pod(name, kind="training") for name in "ab"]
    found = plan(*pods, offers=(EIGHT, ONE), consolidate=False)
    assert all(job.recommended != "o0" for job in found.jobs)
    assert found.recommended.mid == 2 * 100 * ONE.usd_per_hour


@pytest.mark.slow
@given(held=st.lists(st.integers(1, 3), min_size=2, max_size=8), data=st.booleans())
def test_the_parts_are_the_bill(held: list[int], *, data: bool) -> None:
    """However many GPUs each holds, the parts add up to the machine's bill and each job's data."""
    pods = [pod(f"j{i}", gpu_count=k) for i, k in enumerate(held)]
    asked = {"egress_bytes": 10**12} if data else {}
    found = plan(*pods, offers=(EIGHT,), consolidate=False, **asked)
    machine = sum(
        (
            line.usd
            for job in found.jobs
            if job.baseline.quote
            for line in job.baseline.quote.lines
            if line.what == "compute"
        ),
        Decimal(0),
    )
    assert cents(machine) == Decimal("1600.00")
    for job in encode(to_plan(found))["jobs"]:
        lines = sum(Decimal(line["usd"]) for line in job["baseline"]["cost"]["lines"])
        assert cents(lines) == Decimal(job["baseline"]["cost"]["total"])


@pytest.mark.parametrize("copies", [1, 2, 4])
def test_every_replica_is_paid_for(copies: int) -> None:
    """Cost and work of a service are those of all its replicas, today and in each option."""
    job = running(a_profile(HALF_USED, kind="inference_online", rate_per_s=10.0))
    several = replace(job, job=replace(job.job, replicas=Replicas(now=copies)))
    cheaper = sold("cheaper", "1.00", provider="elsewhere")
    one, all_ = (plan(p, offers=(TODAY, cheaper)).jobs[0] for p in (job, several))
    assert one.baseline.cost is not None
    assert all_.baseline.cost == copies * one.baseline.cost
    assert [o.cost for o in all_.options if not o.scaling] == [copies * o.cost for o in one.options]
    assert (all_.work.units or 0.0) == pytest.approx(copies * (one.work.units or 0.0))
    assert all_.baseline.count == copies
    assert any("replicas" in note for note in all_.baseline.notes) == (copies > 1)


def test_replicas_are_not_packed_as_one_job() -> None:
    """A service of several replicas keeps its GPUs, all of them counted, and says why."""
    jobs = [running(a_profile(HALF_USED, name=n, kind="inference_online")) for n in "ab"]
    jobs[0] = replace(jobs[0], job=replace(jobs[0].job, replicas=Replicas(now=3)))
    fleet = plan(*jobs).fleet
    assert fleet is not None
    assert (fleet.gpus_before, fleet.gpus_after) == (4, 4)
    assert [(u.job, u.reason) for u in fleet.unmoved] == [("a", "gpu-count")]


def test_an_own_price_is_todays_price() -> None:
    """--price replaces the list price of today's machine, also for its fixes, and is assumed."""
    found = plan(running(a_profile()), price_usd_per_hour=Decimal("0.75"))
    (job,) = found.jobs
    assert job.baseline.cost == Decimal("75.00")
    assert not any(option.offer.usd_per_hour > 1 for option in job.options)
    assert any("$0.75 an hour, as --price says" in note for note in found.assumptions)


@pytest.mark.parametrize("gpu", ["A100-SXM-80GB", "Quadro RTX 8000"])
def test_a_machine_without_a_list_price_has_its_own(gpu: str) -> None:
    """An own machine is priced by --price, for all of its GPUs; nothing of it is assumed."""
    job = a_profile(gpu=gpu, gpu_count=2, hours=10.0)
    found = plan(job, price_usd_per_hour=Decimal("1.20"))
    (one,) = found.jobs
    assert (one.baseline.assumed, one.baseline.count, one.baseline.cost) == (False, 1, 12)


@pytest.mark.parametrize("held", [(8, 8), (5, 7, 6), (8, 3)])
def test_jobs_that_take_turns_hold_the_machine_once(held: tuple[int, ...]) -> None:
    """Jobs that hold more GPUs together than their machine has hold it, and pay it, once."""
    jobs = [pod(f"turn-{i}", gpu_count=gpus) for i, gpus in enumerate(held)]
    found = plan(*jobs, offers=(EIGHT,)).fleet
    assert found is not None
    assert (found.gpus_before, found.gpus_after, found.gpus_lower_bound) == (8, 8, 8)
    assert cents(found.cost_before) == cents(found.cost_after) == Decimal("1600.00")


def test_packing_never_costs_more_than_today() -> None:
    """A node of 10 h and one of 700 h stay two bills where one packed node would not do."""
    full = {"util.kernel_time": 0.85, "mem.used_gib": Statistics(max=8.0)}

    def node(name: str, hours: float) -> list[Profile]:
        pods = [pod(f"{name}{i}", machine=name, hours=hours) for i in range(8)]
        return [replace(one, gpus=a_profile(full).gpus) for one in pods]

    fleet = plan(*node("short", 10.0), *node("long", 700.0), offers=(EIGHT,)).fleet
    assert fleet is not None
    assert fleet.cost_after == fleet.cost_before
    assert (fleet.gpus_before, fleet.gpus_after, fleet.gpus_lower_bound) == (16, 16, 16)
    assert any("would cost $11,040 more" in note for note in fleet.notes)


def test_a_machine_with_fewer_gpus_than_its_host_showed_is_refused() -> None:
    """Jobs on GPU 0 and GPU 1 of a host do not run on a machine of one GPU: nothing is divided."""
    first, second = pod("api", ONE), pod("batch", ONE)
    other = replace(second, gpus=(replace(second.gpus[0], index=1),))
    with pytest.raises(InputError, match="shows 2 GPUs on one host, but example/one has 1"):
        plan(first, other, offers=(ONE,))
    assert len(plan(first, second, offers=(ONE,)).jobs) == 2


BUSY_FOUR = {"util.kernel_time": 0.9, "mem.used_gib": 30.0}
RESTING = tuple(OtherGpu(index=index, kernel_time=0.0, used_gib=0.4) for index in range(4, 8))
USED = OtherGpu(index=7, kernel_time=0.0, used_gib=0.4, users=("ann",))
COMPUTING = OtherGpu(index=7, kernel_time=0.3, used_gib=0.4)


def four_of_eight(others: tuple[OtherGpu, ...], machine: str | None = None) -> Profile:
    """A training on 4 GPUs of a machine with 8."""
    job = running(a_profile(BUSY_FOUR, gpu_count=4, parallelism="ddp", machine=machine), EIGHT)
    rest = Machine(gpu_count=8, others=others)
    return replace(job, hardware=replace(job.hardware, machine=machine), machine=rest)


@pytest.mark.parametrize(
    ("others", "cost"),
    [
        (RESTING, "1600.00"),
        ((*RESTING[:3], USED), "800.00"),
        ((*RESTING[:3], COMPUTING), "800.00"),
        (RESTING[:3], "800.00"),
        ((), "800.00"),
    ],
)
def test_a_job_alone_on_its_machine_pays_all_of_it(others: tuple[OtherGpu, ...], cost: str) -> None:
    """Four GPUs that nobody used cost $800 of $1,600; with one unseen or used, others may pay."""
    found = plan(four_of_eight(others), offers=(EIGHT,))
    (job,) = found.jobs
    assert cents(costs(found)[0]) == Decimal(cost)
    alone = cost == "1600.00"
    assert any("charged for all of the machine" in note for note in job.baseline.notes) == alone
    wasted = [f.waste_usd for f in job.findings if f.code == "imbalanced-gpus"]
    assert wasted == ([Decimal("800.00")] if alone else [])
    if alone:
        assert job.now is not None
        assert job.now.actions == ("use-every-gpu",)


def test_jobs_that_ran_on_one_machine_in_turns_pay_it_together() -> None:
    """Each was recorded while the other was not there, and names the same machine."""
    first, second = four_of_eight(RESTING, "i-1"), four_of_eight(RESTING, "i-1")
    there = tuple(replace(gpu, index=(gpu.index or 0) + 4) for gpu in second.gpus)
    second = replace(second, job=replace(second.job, name="second"), gpus=there)
    assert sum(costs(plan(first, second, offers=(EIGHT,))), Decimal(0)) == Decimal(1600)
