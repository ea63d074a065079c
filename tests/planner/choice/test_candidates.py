"""Every offer becomes a draft, or is refused for the reason that a person would give."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from planner.choice.option import Option
from planner.choice.search import find_candidates
from planner.profile.kinds import Parallelism
from planner.profile.model import Latency, Profile, Statistics, Step
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from tests.planner.factories import TODAY, a_case, a_catalog, a_profile, plan, running, sold
from tests.pricing.factories import ASKED_ON

SERVING = {"kind": "inference_online"}
SLO = {**SERVING, "latency_slo_ms": 50.0}
BUSY = "util.kernel_time"


def full(gib: float) -> dict[str, Any]:
    """A busy GPU that holds so much memory."""
    return {BUSY: 0.9, "mem.used_gib": Statistics(max=gib)}


def judged(profile: Profile, offer: Offer, **asked: Any) -> tuple[str | None, str]:
    """Why an offer is refused beside today's machine, None where it is drafted; and the detail."""
    candidates, rejected = find_candidates(
        a_case(running(profile), a_catalog(TODAY, offer), **asked)
    )
    why = {r.offer: (r.reason, r.detail) for r in rejected}.get(offer.name)
    assert (why is None) == any(d.offer.name == offer.name for d in candidates)
    return why or (None, "")


L4 = sold("l4", "0.50", "L4", gpu_memory_gib=24)
H100 = sold("h100", "3.00", "H100-SXM-80GB")
EIGHT = sold("eight", "14.00", gpu_count=8, interconnect="nvlink")
PCIE = sold("pcie", "9.00", gpu_count=8, interconnect="pcie")
T4 = sold("t4", "0.30", "T4", gpu_memory_gib=16)

SAME = sold("same", "0.90", TODAY.gpu, region="us-west")
IN_BUCKET = Latency(p99=48.0, bounds=(25.0, 60.0))

TABLE: list[tuple[str, str | None, Profile, Offer, Mapping[str, Any], str]] = [
    ("it fits", None, a_profile(), H100, {}, ""),
    ("too much memory", "memory", a_profile(full(30)), L4, {}, "needs 30.0 GiB"),
    ("no headroom", "memory", a_profile(full(22)), L4, {}, "95%"),
    ("just the headroom", None, a_profile(full(21)), L4, {}, ""),
    ("memory not measured", "memory", a_profile({BUSY: 0.9}), L4, {}, "not measured"),
    ("as much memory, not measured", None, a_profile({BUSY: 0.9}), H100, {}, ""),
    ("no latency measured", "latency", a_profile(**SLO), H100, {}, "no measured latency"),
    (
        "latency missed",
        "latency",
        a_profile(**SLO, latency_ms=Latency(p99=45.0)),
        L4,
        {},
        "the target is 50 ms",
    ),
    ("latency kept", None, a_profile(**SLO, latency_ms=Latency(p99=9.0)), H100, {}, ""),
    (
        "latency missed on the same GPU",
        "latency",
        a_profile(**SLO, latency_ms=Latency(p99=60.0)),
        SAME,
        {},
        "the target is 50 ms",
    ),
    ("a bucket holds the target", None, a_profile(**SLO, latency_ms=IN_BUCKET), SAME, {}, ""),
    (
        "a bucket is no proof on a slower GPU",
        "latency",
        a_profile(**SLO, latency_ms=IN_BUCKET),
        L4,
        {},
        "the target is 50 ms",
    ),
    (
        "latency from the command line",
        "latency",
        a_profile(**SERVING, latency_ms=Latency(p99=45.0)),
        L4,
        {"slo_ms": 50.0},
        "the target is 50 ms",
    ),
    (
        "latency holds in a plan per run too",
        "latency",
        a_profile(**SLO, latency_ms=Latency(p99=45.0), total=1e6, rate_per_s=10.0),
        L4,
        {},
        "the target is 50 ms",
    ),
    ("over the deadline", "deadline", a_profile(), H100, {"deadline_h": 10.0}, "10 h"),
    ("within the deadline", None, a_profile(), H100, {"deadline_h": 120.0}, ""),
    ("more than a month", "deadline", a_profile(hours=700.0), L4, {}, "a month has 730"),
    ("over the budget", "budget", a_profile(), H100, {"budget_usd": Decimal(50)}, "$50"),
    ("within the budget", None, a_profile(), H100, {"budget_usd": Decimal(999)}, ""),
    ("nothing may be spent", "budget", a_profile(), H100, {"budget_usd": Decimal(0)}, "$0"),
    (
        "slower than allowed",
        "slowdown",
        a_profile({BUSY: 0.1, "mem.used_gib": 9.0}, kind="interactive"),
        L4,
        {},
        "--max-slowdown",
    ),
    (
        "slow is allowed",
        None,
        a_profile({BUSY: 0.1, "mem.used_gib": 9.0}, kind="interactive"),
        L4,
        {"max_slowdown": 9.0},
        "",
    ),
    (
        "too busy for it",
        "slowdown",
        a_profile(full(9), kind="inference_online"),
        L4,
        {"max_slowdown": 9.0},
        "90% is the limit",
    ),
    (
        "another vendor",
        "capability",
        a_profile(),
        sold("amd", gpu="MI300X", gpu_memory_gib=192),
        {},
        "--include any-vendor",
    ),
    (
        "another vendor, included",
        None,
        a_profile(),
        sold("amd", gpu="MI300X", gpu_memory_gib=192),
        {"include": frozenset({"any-vendor"})},
        "",
    ),
    (
        "another vendor, named",
        None,
        a_profile(),
        sold("amd", gpu="MI300X", gpu_memory_gib=192),
        {"gpus": ("MI300X",)},
        "",
    ),
    (
        "another architecture",
        "capability",
        a_profile(),
        sold("arm", gpu="GH200", gpu_memory_gib=96),
        {},
        "--include any-arch",
    ),
    (
        "another architecture, included",
        None,
        a_profile(),
        sold("arm", gpu="GH200", gpu_memory_gib=96),
        {"include": frozenset({"any-arch"})},
        "",
    ),
    ("no bf16", "capability", a_profile(), T4, {}, "no bf16"),
    ("no TF32", "capability", a_profile(precision="tf32"), T4, {}, "no TF32"),
    ("no fp8", "capability", a_profile(precision="fp8"), T4, {}, "no fp8"),
    ("half is there", None, a_profile(precision="amp-fp16"), T4, {}, ""),
    ("a slice", "capability", a_profile(), sold("slice", gpu_count=0.5), {}, "slice of 0.5"),
    ("more than needed", "gpu-count", a_profile(), EIGHT, {}, "more only cost more"),
    ("in a hurry", None, a_profile(), EIGHT, {"objective": "time"}, ""),
    ("asked for", None, a_profile(), EIGHT, {"gpu_counts": (8, 8)}, ""),
    ("not asked for", "gpu-count", a_profile(), H100, {"gpu_counts": (2, 8)}, "2 to 8"),
    ("would idle", "gpu-count", a_profile(**SERVING), EIGHT, {}, "7 would idle"),
    (
        "elsewhere",
        "region",
        a_profile(),
        sold("h100", region="mars", gpu="H100-SXM-80GB"),
        {"regions": ("earth",)},
        "earth",
    ),
    ("sold everywhere", "region", a_profile(), H100, {"regions": ("earth",)}, "not known"),
    (
        "spot not asked for",
        "purchase",
        a_profile(),
        sold("s", purchase="spot"),
        {},
        "--purchase spot",
    ),
    (
        "spot asked for",
        None,
        a_profile(),
        sold("s", purchase="spot"),
        {"purchases": ("on_demand", "spot")},
        "",
    ),
    (
        "spot for a server",
        "purchase",
        a_profile(**SERVING),
        sold("s", purchase="spot"),
        {"purchases": ("on_demand", "spot")},
        "interrupted",
    ),
    (
        "a community host",
        "unavailable",
        a_profile(),
        sold("c", host="community"),
        {},
        "--include community",
    ),
    (
        "a community host, included",
        None,
        a_profile(),
        sold("c", host="community"),
        {"include": frozenset({"community"})},
        "",
    ),
    (
        "a community host, provider named",
        None,
        a_profile(),
        sold("c", host="community"),
        {"providers": ("example",)},
        "",
    ),
    ("a GPU without figures", "unknown-gpu", a_profile(), sold("x", gpu="X1"), {}, "X1"),
]
EIGHT_TODAY = sold("today", "18.00", gpu_count=8, interconnect="nvlink")


@pytest.mark.parametrize(
    ("reason", "profile", "offer", "asked", "said"),
    [r[1:] for r in TABLE],
    ids=[r[0] for r in TABLE],
)
def test_an_offer_is_drafted_or_refused_with_its_reason(
    reason: str | None, profile: Profile, offer: Offer, asked: Mapping[str, Any], said: str
) -> None:
    """The reason is the contract's word, and the detail names the figures or the flag to add."""
    got, detail = judged(profile, offer, **asked)
    assert got == reason
    assert said in detail


@pytest.mark.parametrize(
    ("parallelism", "reason"), [("fsdp", "interconnect"), ("tensor", "interconnect"), ("ddp", None)]
)
def test_a_split_model_is_not_moved_to_pcie(parallelism: str, reason: str | None) -> None:
    """What exchanges activations or parameters over NVLink needs it elsewhere too."""
    profile = running(
        a_profile(full(30), gpu_count=8, interconnect="nvlink", parallelism=parallelism),
        EIGHT_TODAY,
    )
    _, rejected = find_candidates(a_case(profile, a_catalog(EIGHT_TODAY, PCIE)))
    assert {r.offer: r.reason for r in rejected}.get(PCIE.name) == reason


@pytest.mark.parametrize(("parallelism", "reason"), [("fsdp", "memory"), ("ddp", None)])
def test_fewer_gpus_hold_more_of_a_split_model(parallelism: str, reason: str | None) -> None:
    """A sharded model needs its memory on fewer GPUs; a copied one needs as much on each."""
    four = sold("four", "9.00", gpu_count=4, interconnect="nvlink")
    profile = running(
        a_profile(full(60), gpu_count=8, interconnect="nvlink", parallelism=parallelism),
        EIGHT_TODAY,
    )
    _, rejected = find_candidates(a_case(profile, a_catalog(EIGHT_TODAY, four)))
    assert {r.offer: r.reason for r in rejected}.get(four.name) == reason


def test_today_is_not_repeated() -> None:
    """`o0` is today's machine; only what changes something is drafted."""
    candidates, _ = find_candidates(a_case(running(a_profile()), a_catalog(TODAY)))
    assert candidates == ()


@pytest.mark.parametrize("stated", [None, "r2"])
def test_today_is_not_repeated_where_regions_cost_the_same(stated: str | None) -> None:
    """One price in two regions and no region stated is still today's machine."""
    both = tuple(sold("today", "2.00", region=region) for region in ("r1", "r2"))
    profile = running(a_profile(), both[0])
    place = {"example/today": None, "example/today/r2": "r2"}
    current = next(k for k, v in place.items() if v == stated)
    candidates, _ = find_candidates(a_case(profile, a_catalog(*both), current=current))
    assert candidates == ()


def test_the_cheapest_region_stands_for_a_size() -> None:
    """One option per size: the cheapest region, today's on a tie."""
    rows = [sold("h", "3.00", "H100-SXM-80GB", region=r) for r in ("a", "b", "c")]
    rows[1] = sold("h", "2.50", "H100-SXM-80GB", region="b")
    candidates, _ = find_candidates(a_case(running(a_profile()), a_catalog(TODAY, *rows)))
    assert [d.offer.region for d in candidates] == ["b"]
    home = sold("today", "2.00", region="c")
    tied = [sold("h", "3.00", "H100-SXM-80GB", region=r) for r in ("a", "c")]
    candidates, _ = find_candidates(a_case(running(a_profile(), home), a_catalog(home, *tied)))
    assert [d.offer.region for d in candidates] == ["c"]


def test_fixes_are_offered_on_todays_machine_too() -> None:
    """A starved job gets today's machine with its pipeline fixed, fewer hours, less money."""
    starved = running(
        a_profile({BUSY: 0.2, "mem.used_gib": 9.0}, host={"cpu_util": 0.97}, unit="image")
    )
    (candidate, quick), _ = find_candidates(a_case(starved, a_catalog(TODAY)))
    assert candidate.actions == ("gpu-preprocessing", "dataloader-workers")
    assert quick.actions == ("dataloader-workers",)
    assert candidate.hours.mid == pytest.approx(50.0)
    assert candidate.quote.exact == Decimal("100.00")


def test_held_time_does_not_shrink_with_speed() -> None:
    """Serving holds its machine all month on any GPU."""
    profile = running(a_profile({BUSY: 0.6, "mem.used_gib": 9.0}, **SERVING))
    (candidate,), _ = find_candidates(a_case(profile, a_catalog(TODAY, H100)))
    assert (candidate.hours.low, candidate.hours.mid, candidate.hours.high) == (100.0, 100.0, 100.0)
    assert candidate.speed.mid > 1.2


def test_ending_an_idle_notebook_saves_from_nothing_to_all_of_the_pauses() -> None:
    """Pauses shorter than the shutdown's own delay save nothing; the ends are of 90 %."""
    quiet = Statistics(mean=0.1, p50=0.0, p75=0.02, p90=0.5)
    profile = running(a_profile({BUSY: quiet, "mem.used_gib": 9.0}, kind="interactive"))
    (candidate,), _ = find_candidates(a_case(profile, a_catalog(TODAY)))
    assert candidate.actions == ("idle-shutdown",)
    ends = (candidate.hours.low, candidate.hours.mid, candidate.hours.high)
    assert ends == pytest.approx((28.75, 62.5, 96.25))


@pytest.mark.parametrize("asked", [{"providers": ("example",)}, {"gpus": ("H100-SXM-80GB",)}])
def test_naming_providers_or_gpus_leaves_the_rest_out(asked: dict[str, Any]) -> None:
    """What was not asked for is neither offered nor listed as refused."""
    other = sold("other", gpu="L4", gpu_memory_gib=24, provider="elsewhere")
    candidates, rejected = find_candidates(
        a_case(running(a_profile()), a_catalog(TODAY, H100, other), **asked)
    )
    assert {d.offer.name for d in candidates} == {H100.name}
    assert rejected == ()


def test_one_machine_of_a_faster_gpu_may_stand_for_two() -> None:
    """Eight B200 train what sixteen A100 do; over a network that nobody published, it is asked."""
    profile = running(a_profile(gpu_count=16, nodes=2, interconnect="nvlink"), EIGHT_TODAY)
    fast = structs.replace(EIGHT, instance_type="fast", gpu="B200-SXM", gpu_memory_gib=180)
    candidates, _ = find_candidates(a_case(profile, a_catalog(EIGHT_TODAY, fast)))
    assert {(c.count, c.speed.weak) for c in candidates} == {(1, False), (2, True)}


SLOW_NODES = {
    "gpu": "V100-16GB",
    "gpu_count": 16,
    "nodes": 2,
    "network_gbps": 25.0,
    "parallelism": Parallelism.DDP,
}
"""Two machines over Ethernet: NVIDIA/nccl#318 took 105 minutes on them, and 36 on one of them."""


@pytest.mark.parametrize(("comm_s", "fewer"), [(8.3, True), (1.0, False)])
def test_where_communication_takes_most_of_a_step_one_machine_is_an_option(
    comm_s: float, *, fewer: bool
) -> None:
    """Of 10 s the GPUs compute 1.7: one machine takes 2 x 1.7 s, 0.34 of the time, as it did."""
    eight = sold("p3", "24.48", "V100-16GB", gpu_memory_gib=16, gpu_count=8, interconnect="nvlink")
    step = Step(count=200, mean_s=10.0, compute_s=10.0 - comm_s, comm_s=comm_s, data_wait_s=0.0)
    busy = {"util.kernel_time": 0.99, "mem.used_gib": Statistics(max=13.0)}
    (job,) = plan(running(a_profile(busy, step=step, **SLOW_NODES), eight), offers=(eight,)).jobs
    hours = [o.hours.mid for o in job.options if (o.offer, o.count) == (eight, 1)]
    assert bool(hours) == fewer
    if fewer:
        assert hours[0] == pytest.approx(100.0 * 36 / 105, rel=0.1)
        assert job.choice is not None
        assert job.choice.count == 1


def test_a_fabric_counts_not_the_public_network() -> None:
    """Eight H100 of Azure, AWS and CoreWeave have 3,200 Gbit/s to the next eight."""
    catalog = load_catalog(ASKED_ON)
    networks = {
        offer.network_gbps
        for offer in catalog.offers
        if offer.instance_type in {"p5.48xlarge", "Standard_ND96isr_H100_v5", "gd-8xh100ib-i128"}
    }
    assert networks == {3200.0}


def test_two_nodes_stay_two_nodes() -> None:
    """A job over two machines is priced on two machines of a like size."""
    profile = running(a_profile(gpu_count=16, nodes=2, interconnect="nvlink"), EIGHT_TODAY)
    wired = structs.replace(EIGHT, network_gbps=400.0)
    context = a_case(profile, a_catalog(EIGHT_TODAY, wired))
    (candidate,), _ = find_candidates(context)
    assert (candidate.count, context.baseline.count) == (2, 2)
    assert candidate.quote.exact == Decimal("2800.00") * Decimal(str(candidate.hours.mid)) / 100


def test_as_many_gpus_over_an_unknown_link_are_as_fast() -> None:
    """Where the profile says nothing of its links, the same GPUs elsewhere gain nothing."""
    seen = a_profile(gpu_count=8)
    other = sold("other", "15.00", gpu_count=8, interconnect="nvlink")
    candidates, _ = find_candidates(a_case(seen, a_catalog(EIGHT, other)))
    assert [d.speed.mid for d in candidates] == [1.0]


FOUR = a_profile(gpu_count=4, interconnect="nvlink")
ONES = sold("one", "1.00", "H100-SXM-80GB", provider="elsewhere", network_gbps=100.0)
EIGHTS = sold(
    "eight", "8.00", "H100-SXM-80GB", gpu_count=8, provider="elsewhere", interconnect="nvlink"
)


def _elsewhere(*offers: Offer) -> dict[str, Option]:
    today = sold("today", "8.00", gpu_count=4, interconnect="nvlink")
    (job,) = plan(running(FOUR, today), offers=(today, *offers), providers=("elsewhere",)).jobs
    return {f"{o.count}x {o.offer.instance_type}": o for o in job.options}


def test_where_only_one_or_eight_are_sold_both_are_options_for_four() -> None:
    """Four single machines over the network, or eight GPUs with four idle; each says so."""
    found = _elsewhere(ONES, EIGHTS)
    assert set(found) == {"4x one", "1x eight"}
    assert "over the network" in found["4x one"].why
    assert "4 of 8 GPUs idle" in found["1x eight"].why
    assert found["1x eight"].speed.mid > found["4x one"].speed.mid


def test_where_four_are_sold_nobody_pays_for_eight() -> None:
    """With the wanted number for sale neither more machines nor idle GPUs are offered."""
    fours = sold("four", "4.00", "H100-SXM-80GB", gpu_count=4, provider="elsewhere")
    assert "1x four" in _elsewhere(ONES, EIGHTS, fours)
    assert not {"4x one", "1x eight"} & set(_elsewhere(ONES, EIGHTS, fours))


@pytest.mark.parametrize(
    ("p99", "bounds", "misses"),
    [
        (48.0, (), False),
        (52.0, (), True),
        (48.0, (25.0, 60.0), None),
        (58.0, (25.0, 60.0), None),
        (48.0, (25.0, 50.0), False),
        (52.0, (50.0, 60.0), True),
    ],
)
def test_a_target_inside_the_bucket_of_a_percentile_is_neither_kept_nor_missed(
    p99: float,
    bounds: tuple[float, ...],
    misses: bool | None,  # noqa: FBT001
) -> None:
    """What is interpolated between two bounds proves nothing about a target between them."""
    profile = a_profile({BUSY: 0.3}, **SLO, latency_ms=Latency(p99=p99, bounds=bounds))
    assert profile.job.misses_target is misses
    (job,) = plan(running(profile)).jobs
    assert ("latency" in {broken.reason for broken in job.baseline.broken}) is (misses is True)
    (cause,) = (finding.cause for finding in job.findings if finding.code == "latency-risk")
    said = {None: "not known. Its p99 lies between 25 and 60 ms", True: "is not kept"}
    assert said.get(misses, "is close to the target") in cause
