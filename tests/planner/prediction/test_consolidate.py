"""How few GPUs are enough: proven from below, within every limit, nobody lost."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.choice.baseline import Baseline, gpu_memory_gib
from planner.choice.requirements import Requirements
from planner.fleet.fleet import Fleet
from planner.fleet.tenant import CONTEXT_GIB
from planner.profile.model import Latency, Profile, Statistics
from pricing.catalog.catalog import load_catalog
from pricing.hardware import gpus
from pricing.money import cents
from tests.planner.factories import TODAY, a_baseline, a_case, a_profile, running, sold
from tests.planner.packing.at_home import consolidate
from tests.pricing.factories import ASKED_ON

BUSY = "util.kernel_time"
CATALOG = load_catalog(ASKED_ON)
DROPLET = CATALOG.find("digitalocean", "gpu-h100x1-80gb")
ROOM = 0.95 * gpu_memory_gib(DROPLET)
EIGHT = sold("eight", "16.00", gpu_count=8)


def server(name: str, busy: float | None = 0.2, gib: float | None = 8.0, **fields: Any) -> Profile:
    """A one-GPU serving job on a DigitalOcean H100."""
    metrics: dict[str, Any] = {BUSY: busy, "mem.used_gib": gib and Statistics(max=gib)}
    known = {k: v for k, v in metrics.items() if v is not None}
    fields = {"kind": "inference_online", "gpu": "H100"} | fields
    return running(a_profile(known, name=name, **fields), DROPLET)


def packed(*profiles: Profile, **asked: Any) -> Fleet:
    """The fleet of jobs on their droplets."""
    pairs = [(p, a_baseline(p, DROPLET)) for p in profiles]
    return consolidate(pairs, Requirements(**asked))


def reasons(fleet: Fleet) -> set[str]:
    """Why jobs were not moved."""
    return {u.reason for u in fleet.unmoved}


def fraction(fleet: Fleet) -> float:
    """Share of the bill that is saved."""
    return float(1 - fleet.cost_after / fleet.cost_before)


def four(**fields: Any) -> list[Profile]:
    """Four alike."""
    return [server(f"j{i}", **fields) for i in range(4)]


def host(cpu: float, ram_gib: float = 10.0) -> dict[str, Any]:
    """A host in use, of 20 cores and 240 GiB."""
    used = {"cpu_util": cpu, "ram_used_gib": Statistics(max=ram_gib)}
    return {"host": used, "cpu_cores": 20, "ram_gib": 240}


@pytest.mark.parametrize(
    ("fields", "after", "why"),
    [
        (host(0.9), 4, {"capability"}),
        (host(0.1), 1, set()),
        (host(0.1, ram_gib=100.0), 2, {"memory"}),
    ],
    ids=["four that fill their hosts", "four that do not", "memory for two"],
)
def test_jobs_share_a_host_as_well(fields: dict[str, Any], after: int, why: set[str]) -> None:
    """Four jobs that keep 90 % of the cores busy do not fit on one machine at full speed."""
    fleet = packed(*four(**fields))
    assert fleet.gpus_after == after
    assert reasons(fleet) == why


def test_busy_cores_add_up_and_leave_a_reserve() -> None:
    """Of 20 cores 18 may be busy: four jobs of 4, or of what may only spin, not of full hosts."""
    assert len(packed(*four(**host(0.2))).placements) == 1
    assert len(packed(*four(**host(0.5))).placements) == 1
    assert len(packed(*four(**host(0.95))).placements) == 4


@pytest.mark.parametrize(
    ("fields", "after", "saves", "why"),
    [
        ({}, 1, 0.75, set()),
        ({"gib": 30.0}, 2, 0.5, {"memory"}),
        ({"gib": 40.0}, 4, 0.0, {"memory"}),
        ({"busy": 0.4}, 2, 0.5, {"slowdown"}),
        ({"busy": 0.5}, 4, 0.0, {"slowdown"}),
        ({"latency_slo_ms": 1.0}, 4, 0.0, {"latency"}),
        ({"latency_slo_ms": 50.0, "latency_ms": Latency(p99=10.0)}, 1, 0.75, set()),
        ({"latency_slo_ms": 50.0, "latency_ms": Latency(p99=20.0)}, 2, 0.5, {"latency"}),
        ({"latency_slo_ms": 50.0, "latency_ms": Latency(p99=36.0)}, 2, 0.5, {"latency"}),
        ({"latency_slo_ms": 50.0, "latency_ms": Latency(p99=40.0)}, 4, 0.0, {"latency"}),
        ({"latency_slo_ms": 50.0, "latency_ms": Latency(p99=49.0)}, 4, 0.0, {"latency"}),
        ({"trust": "isolated"}, 2, 0.5, {"slowdown"}),
        ({"trust": "isolated", "gib": 30.0}, 2, 0.5, {"capability"}),
        ({"trust": "isolated", "busy": 0.6}, 4, 0.0, {"slowdown"}),
        ({"busy": None}, 4, 0.0, {"slowdown"}),
        ({"gib": None}, 4, 0.0, {"memory"}),
    ],
    ids=str,
)
def test_four_alike(fields: dict[str, Any], after: int, saves: float, why: set[str]) -> None:
    """The published pooling case, and each reason that forbids it."""
    fleet = packed(*four(**fields))
    assert (fleet.gpus_before, fleet.gpus_after) == (4, after)
    assert fleet.gpus_lower_bound <= after
    assert fraction(fleet) == pytest.approx(saves)
    assert reasons(fleet) == why


@pytest.mark.parametrize(
    ("busy", "gib"), [(0.97, 8.0), (0.2, 78.0), (1.0, 79.0)], ids=["compute", "memory", "both"]
)
def test_the_bound_never_passes_what_is_there(busy: float, gib: float) -> None:
    """A job that fills its GPU beyond the sharing limits still needs one GPU only."""
    fleet = packed(server("a", busy, gib), server("b", busy, gib))
    assert (fleet.gpus_lower_bound, fleet.gpus_after) == (2, 2)


def test_an_empty_memory_is_measured() -> None:
    """0 GiB held is a reading; it is not called unmeasured."""
    idle = [server(n, 0.0) for n in ("a", "b")]
    free = [a_profile({BUSY: 0.0, "mem.used_gib": 0.0}, name=p.job.name, gpu="H100") for p in idle]
    assert packed(*[running(p, DROPLET) for p in free]).gpus_after == 1


def test_a_job_of_several_gpus_stays() -> None:
    """Only jobs on machines with one GPU are packed; the others are counted as they are."""
    big = a_profile(name="big", gpu_count=8)
    pairs = [(big, a_baseline(big, EIGHT)), *[(p, a_baseline(p, DROPLET)) for p in four()]]
    fleet = consolidate(pairs, Requirements())
    assert (fleet.gpus_before, fleet.gpus_after, fleet.gpus_lower_bound) == (12, 9, 9)
    assert [(u.job, u.reason) for u in fleet.unmoved] == [("big", "gpu-count")]


def test_another_machine_is_another_pool() -> None:
    """Jobs keep the machine type that they have."""
    here, there = server("a"), a_profile({BUSY: 0.2, "mem.used_gib": 8.0}, name="b")
    fleet = consolidate(
        [(here, a_baseline(here, DROPLET)), (there, a_baseline(there))], Requirements()
    )
    assert fleet.gpus_after == 2
    assert {p.offer.name for p in fleet.placements} == {DROPLET.name, TODAY.name}


def test_without_a_price_a_job_stays() -> None:
    """An unknown price is not a free GPU."""
    job = a_profile(name="k80", gpu="Tesla K80")
    baseline = a_case(job, CATALOG, providers=("digitalocean",)).baseline
    unknown = Baseline(offer=None, count=1, hours=baseline.hours, quote=None, assumed=True)
    fleet = consolidate(
        [(job, unknown), *[(p, a_baseline(p, DROPLET)) for p in four()]], Requirements()
    )
    assert (fleet.gpus_before, fleet.gpus_after) == (5, 2)
    assert reasons(fleet) == {"unavailable"}


def test_a_shared_gpu_is_held_for_the_longest_job() -> None:
    """200 h and 100 h share one GPU for 200 h."""
    pair = (server("a", hours=200.0), server("b"))
    fleet = packed(*pair)
    (placement,) = fleet.placements
    assert placement.cost == Decimal("4.41") * 200
    assert fleet.cost_before == Decimal("4.41") * 300
    assert (placement.mode, placement.jobs) == ("mps", ("a", "b"))


def test_the_data_of_every_job_is_still_paid_for() -> None:
    """Sharing a GPU saves machine hours; traffic and storage of each job stay on the bill."""
    month = {"egress_bytes": 30_000 * 2**30}
    pairs = [(p, a_baseline(p, DROPLET, **month)) for p in (server("a"), server("b"))]
    fleet = consolidate(pairs, Requirements())
    assert fleet.gpus_after == 1
    assert cents(fleet.cost_before - fleet.cost_after) <= Decimal("441.00")


def test_slower_is_allowed_where_it_is_asked_for() -> None:
    """`--max-slowdown` bounds the relative speed; the compute limit stays."""
    jobs = [server(f"j{i}", 0.45) for i in range(2)]
    assert packed(*jobs).gpus_after == 1
    assert packed(*jobs, max_slowdown=1.0).gpus_after == 1
    assert packed(server("a", 0.46), server("b", 0.45), max_slowdown=9.0).gpus_after == 2


@pytest.mark.parametrize("shares", [(0.3, 0.3, 0.3), (0.1, 0.2, 0.6), (0.6, 0.2, 0.1)])
def test_exactly_the_limit_is_within_it(shares: tuple[float, ...]) -> None:
    """0.1 + 0.2 + 0.6 is 0.9, whatever binary fractions make of it."""
    jobs = [server(f"j{i}", share) for i, share in enumerate(shares)]
    assert packed(*jobs).gpus_after == 1


SERVERS = st.lists(
    st.builds(
        dict,
        busy=st.none() | st.floats(0, 1),
        gib=st.none() | st.floats(0.1, 79),
        trust=st.sampled_from((None, "shared", "isolated")),
        hours=st.sampled_from((50.0, 100.0, 730.0)),
        latency_slo_ms=st.none() | st.sampled_from((50.0, 100.0)),
        latency_ms=st.none() | st.floats(1, 120).map(lambda ms: Latency(p99=ms)),
    ),
    min_size=1,
    max_size=7,
)


@given(SERVERS)
def test_every_packing_keeps_every_limit(found: list[dict[str, Any]]) -> None:
    """Bound <= after <= before; each job once; memory, compute, latency hold; dollars add up."""
    profiles = {f"j{i}": server(f"j{i}", **fields) for i, fields in enumerate(found)}
    fleet = packed(*profiles.values())
    assert fleet.gpus_lower_bound <= fleet.gpus_after <= fleet.gpus_before == len(profiles)
    placed = [name for placement in fleet.placements for name in placement.jobs]
    assert sorted(placed) == sorted(profiles)
    assert [p.id for p in fleet.placements] == list(range(1, len(fleet.placements) + 1))
    for placement in fleet.placements:
        group = [profiles[name] for name in placement.jobs]
        if placement.mode == "mig":
            _check_slices(group, placement.slices)
        else:
            _check_limits(group)
    assert fleet.cost_after == sum((p.cost for p in fleet.placements), Decimal(0))
    assert fleet.cost_after <= fleet.cost_before


def _check_slices(group: list[Profile], slices: tuple[str, ...]) -> None:
    """The GPU can be cut so, and each job's memory fits into its own slice."""
    gpu = gpus()["H100-SXM-80GB"]
    room = {one.profile: one.memory_gib for one in gpu.mig}
    assert gpu.why_not_sliced(slices) == ""
    for one, piece in zip(group, slices, strict=True):
        assert one.job.trust == "isolated"
        assert (one.peak("mem.used_gib") or 0.0) <= 0.95 * room[piece]


def _check_limits(group: list[Profile]) -> None:
    if len(group) == 1:
        return
    memory = [p.peak("mem.used_gib") for p in group]
    shares = [p.mean(BUSY) for p in group]
    assert all(value is not None for value in (*memory, *shares))
    total = sum(share or 0.0 for share in shares)
    assert sum((gib or 0.0) + CONTEXT_GIB for gib in memory) <= ROOM
    assert total <= 0.9 + 1e-9
    for one, share in zip(group, shares, strict=True):
        if one.job.latency_slo_ms is not None:
            assert one.job.latency_ms is not None
            slowed = (one.job.latency_ms.p99 or 0.0) * (1.0 + total - (share or 0.0))
            assert slowed <= one.job.latency_slo_ms + 1e-6


@given(SERVERS, st.randoms(use_true_random=False))
def test_the_order_of_the_jobs_does_not_matter(found: list[dict[str, Any]], random: Any) -> None:
    """Any order gives the same fleet."""
    profiles = [server(f"j{i}", **fields) for i, fields in enumerate(found)]
    shuffled = list(profiles)
    random.shuffle(shuffled)
    assert packed(*profiles) == packed(*shuffled)
