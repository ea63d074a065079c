"""The other machine must carry the job: its host, its network, its load, what its chip has."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from planner.choice.search import find_candidates
from planner.profile.model import Latency, Profile, Statistics
from pricing.catalog.offer import Offer
from tests.planner.choice.test_candidates import BUSY, EIGHT, H100, SERVING, T4, full
from tests.planner.factories import TODAY, a_case, a_catalog, a_profile, plan, running, sold

L40S = sold("l40s", "0.90", "L40S", gpu_memory_gib=48)
DOUBLE = {"gpu": "V100-16GB", "precision": "fp64"}
HOST = {"cpu_util": Statistics(mean=0.6, p95=0.84375), "ram_used_gib": Statistics(max=110.0)}
SERVED = a_profile(full(9), **SERVING, host=HOST, cpu_cores=32, ram_gib=240)
BUSY_SERVICE = a_profile({BUSY: 0.92, "mem.used_gib": 9.0}, **SERVING, precision="amp-fp16")

CARRIED: list[tuple[str, str | None, Profile, Offer, Mapping[str, Any], str]] = [
    (
        "27 busy cores on 4 vCPUs",
        "capability",
        SERVED,
        sold("small", gpu="H100-SXM-80GB", vcpus=4, ram_gib=240),
        {},
        "4 vCPUs; 27.0 cores are busy",
    ),
    (
        "110 GiB on 16",
        "memory",
        SERVED,
        sold("small", gpu="H100-SXM-80GB", vcpus=64, ram_gib=16),
        {},
        "16 GiB; 110 GiB are in use",
    ),
    (
        "a host that carries it",
        None,
        SERVED,
        sold("large", gpu="H100-SXM-80GB", vcpus=32, ram_gib=120),
        {},
        "",
    ),
    ("a host of which nothing is known", None, SERVED, H100, {}, ""),
    ("92 % of an A100 on a T4", "slowdown", BUSY_SERVICE, T4, {"max_slowdown": 9.0}, "% busy"),
    (
        "its latency target does not help",
        "slowdown",
        a_profile(
            {BUSY: 0.92, "mem.used_gib": 9.0},
            **SERVING,
            precision="amp-fp16",
            latency_slo_ms=5000.0,
            latency_ms=Latency(p99=20.0),
        ),
        T4,
        {"max_slowdown": 9.0},
        "% busy",
    ),
    ("FP64 on a card without", "capability", a_profile(full(9), **DOUBLE), L40S, {}, "1/64"),
    (
        "FP64 seen by its pipe",
        "capability",
        a_profile({**full(9), "util.fp64_active": 0.4}, gpu="V100-16GB", precision=None),
        L40S,
        {},
        "1/64",
    ),
    ("FP64 at a full rate", None, a_profile(full(9), **DOUBLE), H100, {}, ""),
    (
        "FP64 where it was slow, too",
        None,
        a_profile(full(9), gpu="RTX-A6000", precision="fp64"),
        L40S,
        {},
        "",
    ),
    (
        "encoding where nothing encodes",
        "capability",
        a_profile({**full(9), "util.encoder": 0.6}, gpu="L4", **SERVING),
        sold("h200", gpu="H200-SXM-141GB", gpu_memory_gib=141),
        {},
        "NVENC",
    ),
    (
        "encoding elsewhere",
        None,
        a_profile({**full(9), "util.encoder": 0.6}, gpu="L4", **SERVING),
        L40S,
        {},
        "",
    ),
    (
        "an Arm host",
        "capability",
        a_profile(),
        sold("gh", gpu="GH200", gpu_memory_gib=96),
        {},
        "arm64 host, today x86_64",
    ),
    (
        "an Arm host today, too",
        None,
        a_profile(gpu="GH200"),
        sold("gb", gpu="GB200", gpu_memory_gib=186),
        {},
        "",
    ),
    (
        "an Arm job on x86",
        "capability",
        a_profile(gpu="GH200"),
        sold("h200", gpu="H200-SXM-141GB", gpu_memory_gib=141),
        {},
        "x86_64 host, today arm64",
    ),
]


@pytest.mark.parametrize(
    ("reason", "profile", "offer", "asked", "said"),
    [r[1:] for r in CARRIED],
    ids=[r[0] for r in CARRIED],
)
def test_the_other_machine_carries_the_job(
    reason: str | None, profile: Profile, offer: Offer, asked: Mapping[str, Any], said: str
) -> None:
    """Host, load and what the chip has: an offer that lacks what was measured is refused."""
    today = sold("today", "5.00", profile.hardware.gpu or "", gpu_memory_gib=80)
    candidates, rejected = find_candidates(
        a_case(running(profile, today), a_catalog(today, offer), **asked)
    )
    why = {r.offer: (r.reason, r.detail) for r in rejected}.get(offer.name, (None, ""))
    assert why[0] == reason
    assert said in why[1]
    assert (reason is None) == any(d.offer.name == offer.name for d in candidates)


def test_a_host_that_is_not_stated_is_no_ground_to_move() -> None:
    """Kept and said, but never recommended, unless the least host sold with that GPU would do."""
    large = sold("large", "9.00", "H100-SXM-80GB", vcpus=32, ram_gib=240)
    least = sold("least", "9.00", "H100-SXM-80GB", vcpus=8, ram_gib=60)

    silent = structs.replace(H100, vcpus=None, ram_gib=None)

    def seen(*others: Offer) -> tuple[bool, str]:
        candidates, _ = find_candidates(a_case(running(SERVED), a_catalog(TODAY, silent, *others)))
        speed = next(d.speed for d in candidates if d.offer.name == H100.name)
        return speed.weak, speed.basis

    for others in ((), (large, least)):
        weak, basis = seen(*others)
        assert weak
        assert "27.0 cores are busy" in basis
    assert not seen(large)[0]


def test_another_architecture_is_no_unchanged_job() -> None:
    """GH200 where it was asked for: the option says that images must be built for Arm."""
    offer = sold("gh", "0.10", gpu="GH200", gpu_memory_gib=96)
    found = plan(
        running(a_profile()), offers=(TODAY, offer), include=frozenset({"any-arch"})
    ).jobs[0].options  # fmt: skip
    assert ["arm64 hosts" in option.why for option in found] == [True]


WIRED = structs.replace(EIGHT, instance_type="wired", network_gbps=10.0)


@pytest.mark.parametrize(
    ("offer", "parallelism", "reason"),
    [
        (EIGHT, "ddp", None),
        (WIRED, "ddp", None),
        (WIRED, "fsdp", "interconnect"),
        (structs.replace(WIRED, network_gbps=400.0), "fsdp", None),
    ],
)
def test_what_is_split_needs_a_fast_network(
    offer: Offer, parallelism: str, reason: str | None
) -> None:
    """Two nodes go to two nodes; of a network that nobody published the seller is asked."""
    today = sold("p5", "55.00", gpu_count=8, interconnect="nvlink", network_gbps=3200.0)
    profile = a_profile(
        full(9), gpu_count=16, nodes=2, parallelism=parallelism, interconnect="nvlink"
    )
    candidates, rejected = find_candidates(a_case(running(profile, today), a_catalog(today, offer)))
    assert {r.offer: r.reason for r in rejected}.get(offer.name) == reason
    for candidate in candidates:
        assert candidate.count == 2
        is_asked = "ask the seller: the network" in candidate.speed.basis
        assert is_asked == candidate.speed.weak == (offer.network_gbps is None)
        if offer.network_gbps == WIRED.network_gbps:
            assert candidate.speed.mid < 0.95  # 3,200 Gbit/s today
