"""Labelled profiles come out with their cause first, and no second of the bill is claimed twice."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.diagnose import diagnose
from planner.finding import Finding
from planner.profile.model import KINDS, PRECISIONS, Latency, Profile, Statistics
from planner.remedies import ACTIONS
from planner.signals import SIGNALS
from pricing.money import cents
from tests.planner.factories import a_profile, codes

BUSY, SM, MEM = "util.kernel_time", "util.sm_active", "mem.used_gib"
WATTS, LIMIT = "power.board_w", "power.limit_w"
HIGH_CPU, LOW_CPU = {"cpu_util": 0.95}, {"cpu_util": 0.2}
T4 = {"gpu": "Tesla T4"}


def held(gib: float) -> Statistics:
    """Memory held at most."""
    return Statistics(max=gib)


def one(busy: float, gib: float = 60.0, **more: Any) -> dict[str, Any]:
    """Readings of a GPU: busy time, memory held, and more by short name."""
    names = {"sm": SM, "w": WATTS, "limit": LIMIT, "dram": "util.dram_active"}
    names |= {"tensor": "util.tensor_active", "mc": "util.mem_controller"}
    names |= {"throttle": "throttle.fraction", "temp": "temp.core_c"}
    return {BUSY: busy, MEM: held(gib)} | {names[k]: v for k, v in more.items()}


SERVING = {"kind": "inference_online"}
STEP = {"mean_s": 0.1}

FIRST: list[tuple[str, Profile, str, str]] = [
    (
        "step waits",
        a_profile(one(0.4), **STEP, data_wait_s=0.06),
        "data-loading",
        "measured",
    ),
    ("CPU full, GPU half busy", a_profile(one(0.69), host=HIGH_CPU), "data-loading", "likely"),
    ("CPU full", a_profile(one(0.22), host=HIGH_CPU, cpu_cores=4), "data-loading", "likely"),
    (
        "disk full",
        a_profile(one(0.3), host=LOW_CPU | {"disk_read_mib_s": 210.0}),
        "data-loading",
        "likely",
    ),
    (
        "network full",
        a_profile(one(0.3), host=LOW_CPU | {"net_rx_mib_s": 300.0}),
        "data-loading",
        "possible",
    ),
    ("copies", a_profile(one(0.5), **STEP, h2d_s=0.04), "host-to-device", "measured"),
    ("both low", a_profile(one(0.3), host=LOW_CPU, cpu_cores=32), "host-bound", "likely"),
    ("one core", a_profile(one(0.3), host={"cpu_util": 0.6}, cpu_cores=2), "host-bound", "likely"),
    (
        "one core of many is full",
        a_profile(one(0.3), host=LOW_CPU | {"cpu_busiest_core": 0.97}),
        "host-bound",
        "likely",
    ),
    ("steps do not wait", a_profile(one(0.3), **STEP, data_wait_s=0.001), "host-bound", "likely"),
    (
        "steps written to disk",
        a_profile(one(0.7), **STEP, data_wait_s=0.001, checkpoint_s=0.02),
        "host-bound",
        "measured",
    ),
    (
        "one launch per parameter",
        a_profile(one(0.5), **STEP, data_wait_s=0.001, optimizer_s=0.04),
        "host-bound",
        "measured",
    ),
    (
        "host code between the parts",
        a_profile(one(0.3), **STEP, data_wait_s=0.001, compute_s=0.03),
        "host-bound",
        "measured",
    ),
    (
        "PCIe is full",
        a_profile(one(0.5, 60.0) | {"io.pcie_rx_mib_s": 22000.0}, host=LOW_CPU),
        "host-to-device",
        "likely",
    ),
    (
        "a job that hangs in a collective",
        a_profile(one(1.0, 60.0, sm=0.02), done=0.0, rate_per_s=0.0),
        "idle-held",
        "likely",
    ),
    ("idle by its power", a_profile({MEM: held(0.1), WATTS: 70.0}, gpu="H100"), "idle", "likely"),
    (
        "a video server",
        a_profile(one(0.07) | {"util.encoder": 0.9}, kind="unknown"),
        "well-used",
        "likely",
    ),
    (
        "the network between machines is full",
        a_profile(
            one(0.97, sm=0.3),
            host={"net_tx_mib_s": 1150.0},
            gpu_count=16,
            nodes=2,
            network_gbps=10.0,
        ),
        "communication-bound",
        "likely",
    ),
    (
        "machines on a slow network, SMs not filled",
        a_profile(one(0.97, sm=0.3), gpu_count=16, nodes=2, network_gbps=10.0),
        "slow-interconnect",
        "likely",
    ),
    (
        "memory keeps the batch small",
        a_profile(one(0.9, 79.0, sm=0.4), batch_per_gpu=1),
        "memory-pressure",
        "likely",
    ),
    (
        "bandwidth",
        a_profile(one(0.95, sm=0.7, dram=0.8, tensor=0.05)),
        "memory-bandwidth-bound",
        "measured",
    ),
    ("half busy", a_profile(one(0.3), host={"cpu_util": 0.6}), "host-bound", "possible"),
    (
        "requests prepared on a full CPU",
        a_profile(one(0.3), host=HIGH_CPU, **SERVING),
        "host-bound",
        "likely",
    ),
    ("nothing runs", a_profile(one(0.0, 0.3)), "idle", "measured"),
    ("nothing runs, no memory read", a_profile({BUSY: 0.0}), "idle", "likely"),
    ("memory held", a_profile(one(0.01, 30.0)), "idle-held", "measured"),
    ("notebook", a_profile(one(0.1), kind="interactive"), "bursty-interactive", "likely"),
    (
        "bursts",
        a_profile({BUSY: Statistics(mean=0.2, p50=0.01, p95=0.9)}, kind="unknown"),
        "bursty-interactive",
        "possible",
    ),
    ("thin requests", a_profile(one(0.2, 8.0), **SERVING), "under-used-inference", "likely"),
    (
        "thin batches",
        a_profile(one(0.2, 8.0), kind="inference_offline"),
        "under-used-inference",
        "likely",
    ),
    (
        "one of eight idle",
        a_profile(each=[one(0.95)] * 7 + [one(0.0)], gpu_count=8),
        "imbalanced-gpus",
        "measured",
    ),
    (
        "exposed communication",
        a_profile(one(0.7), gpu_count=8, **STEP, comm_s=0.03),
        "communication-bound",
        "measured",
    ),
    (
        "hot",
        a_profile(one(0.7, throttle=0.4, temp=Statistics(max=91.0))),
        "thermal-throttled",
        "measured",
    ),
    (
        "at the power limit",
        a_profile(one(0.7, sm=0.5, throttle=0.4, w=395.0, limit=400.0)),
        "power-throttled",
        "measured",
    ),
    ("kernels too small", a_profile(one(0.9, 10.0, sm=0.2)), "small-batch", "likely"),
    (
        "T4 in fp32",
        a_profile(one(0.9, 14.0), precision="fp32", **T4),
        "no-mixed-precision",
        "likely",
    ),
    ("A100 in TF32", a_profile(one(0.9), precision="tf32"), "no-mixed-precision", "likely"),
    ("useful work", a_profile(one(0.97, sm=0.9)), "well-used", "measured"),
    ("at the power of work", a_profile(one(0.97, w=300.0, limit=400.0)), "well-used", "likely"),
    ("busy, little else known", a_profile(one(0.97)), "well-used", "possible"),
    ("spinning", a_profile(one(1.0, w=90.0, limit=400.0)), "unmeasured", "possible"),
    ("only memory read", a_profile({MEM: held(20.0)}), "unmeasured", "possible"),
    ("waits, host unknown", a_profile(one(0.3)), "unmeasured", "possible"),
    (
        "too slow",
        a_profile(one(0.6), latency_slo_ms=50.0, latency_ms=Latency(p99=55.0), **SERVING),
        "latency-risk",
        "measured",
    ),
]
ALSO: list[tuple[str, Profile, str]] = [
    ("dram", a_profile(one(0.95, sm=0.7, dram=0.8)), "memory-bandwidth-bound"),
    ("memory controller", a_profile(one(0.95, mc=0.9)), "memory-bandwidth-bound"),
    ("memory full", a_profile(one(0.95, 79.0)), "memory-pressure"),
    ("little memory and few SMs", a_profile(one(0.6, 8.0, sm=0.2)), "over-provisioned-gpu"),
    ("little memory and power", a_profile(one(0.6, 8.0, w=100.0)), "over-provisioned-gpu"),
    (
        "PCIe between GPUs",
        a_profile(one(0.9), gpu_count=4, interconnect="pcie", parallelism="ddp"),
        "slow-interconnect",
    ),
    (
        "machines on 10 Gbit/s",
        a_profile(one(0.9), gpu_count=16, nodes=2, network_gbps=10.0),
        "slow-interconnect",
    ),
    ("target unchecked", a_profile(one(0.6), latency_slo_ms=9.0, **SERVING), "latency-risk"),
    ("spinning, little power", a_profile(one(1.0, 10.0, w=90.0)), "small-batch"),
]
NOT: list[tuple[str, Profile, str]] = [
    ("AMP is on", a_profile(one(0.9)), "no-mixed-precision"),
    (
        "machines on 400 Gbit/s",
        a_profile(one(0.9), gpu_count=16, nodes=2, network_gbps=400.0),
        "slow-interconnect",
    ),
    (
        "tensor cores are busy",
        a_profile(one(0.9, tensor=0.4), precision="fp32"),
        "no-mixed-precision",
    ),
    ("no tensor cores", a_profile(one(0.9), precision="fp32", gpu="K80"), "no-mixed-precision"),
    ("precision unknown", a_profile(one(0.9), precision=None), "no-mixed-precision"),
    ("no reading is no idleness", a_profile({}), "idle"),
    ("drawing power is no idleness", a_profile(one(0.01, 0.2, w=300.0)), "idle"),
    ("a spinning GPU is not well used", a_profile(one(1.0, w=90.0, limit=400.0)), "well-used"),
    (
        "starved is not over-provisioned",
        a_profile(one(0.3, 8.0, sm=0.2), host=HIGH_CPU),
        "over-provisioned-gpu",
    ),
    ("busy enough", a_profile(one(0.71), host=HIGH_CPU), "data-loading"),
    ("CPU not full", a_profile(one(0.6), host={"cpu_util": 0.79}), "data-loading"),
    ("starved is not well used", a_profile(one(0.9), host=HIGH_CPU), "well-used"),
    (
        "no wait in the steps",
        a_profile(one(0.4), host=HIGH_CPU, **STEP, data_wait_s=0.001),
        "data-loading",
    ),
    ("one GPU is never uneven", a_profile(one(0.9)), "imbalanced-gpus"),
]


@pytest.mark.parametrize(
    ("profile", "code", "confidence"), [r[1:] for r in FIRST], ids=[r[0] for r in FIRST]
)
def test_the_verdict_is_the_cause(profile: Profile, code: str, confidence: str) -> None:
    """The first finding of a labelled profile is its label, no surer than its evidence."""
    first = diagnose(profile)[0]
    assert (first.code, first.confidence) == (code, confidence)
    assert first.evidence or code == "unmeasured"
    assert first.cause


@pytest.mark.parametrize(
    ("profile", "code", "against"),
    [
        (a_profile(one(0.3, w=250.0), host=HIGH_CPU), "data-loading", {"power.fraction.mean"}),
        (a_profile(one(0.97, w=300.0), host=HIGH_CPU), "well-used", {"host.cpu_util.mean"}),
        (a_profile(one(0.97, w=300.0), host=LOW_CPU), "well-used", set()),
        (a_profile(one(0.4), precision="fp32"), "no-mixed-precision", {"util.kernel_time.mean"}),
    ],
)
def test_what_speaks_against_a_finding_stands_beside_it(
    profile: Profile, code: str, against: set[str]
) -> None:
    """Readings that contradict a cause are shown with their value and do not hide it."""
    found = next(f for f in diagnose(profile) if f.code == code)
    assert {e.metric for e in found.against} == against
    assert not against & {e.metric for e in found.evidence} or code == "no-mixed-precision"


@pytest.mark.parametrize(
    ("profile", "code", "given", "left_out"),
    [
        (
            a_profile(one(0.9), precision="fp32", **T4),
            "no-mixed-precision",
            "mixed-precision",
            "tf32",
        ),
        (a_profile(one(0.9), precision="fp32"), "no-mixed-precision", "tf32", "quantization"),
        (
            a_profile(one(0.97, sm=0.7, dram=0.8)),
            "memory-bandwidth-bound",
            "compile",
            "quantization",
        ),
        (
            a_profile(one(0.3) | {"io.pcie_rx_mib_s": 22000.0}),
            "host-to-device",
            "async-copy",
            "pinned-memory",
        ),
    ],
)
def test_a_finding_names_what_its_gpu_and_kind_allow(
    profile: Profile, code: str, given: str, left_out: str
) -> None:
    """No TF32 before Ampere, no quantisation of training, no pinning of a full link."""
    found = next(f for f in diagnose(profile) if f.code == code)
    assert given in found.actions
    assert left_out not in found.actions


@pytest.mark.parametrize(("profile", "code"), [r[1:] for r in ALSO], ids=[r[0] for r in ALSO])
def test_it_is_among_the_findings(profile: Profile, code: str) -> None:
    """A cause that need not come first is still named."""
    assert code in codes(diagnose(profile))


@pytest.mark.parametrize(("profile", "code"), [r[1:] for r in NOT], ids=[r[0] for r in NOT])
def test_it_is_not_among_the_findings(profile: Profile, code: str) -> None:
    """What the readings do not show is not said."""
    assert code not in codes(diagnose(profile))


@pytest.mark.parametrize(
    ("readings", "kind", "code"),
    [
        ({SM: 0.0, MEM: held(20.0)}, "training", "idle-held"),
        ({SM: 0.0, MEM: held(0.1)}, "training", "idle"),
        ({SM: 0.2, MEM: held(60.0)}, "inference_online", "under-used-inference"),
        ({SM: 0.2, MEM: held(60.0)}, "interactive", "bursty-interactive"),
    ],
)
def test_sm_activity_stands_in_where_kernel_time_is_not_reported(
    readings: dict[str, Any], kind: str, code: str
) -> None:
    """A MIG slice reports no GPU-Util; its SM activity tells idle from busy as well."""
    assert diagnose(a_profile(readings, kind=kind))[0].code == code


def test_the_published_case_names_its_cures() -> None:
    """A starved T4 on four full cores: GPU preprocessing and loader workers (R11)."""
    profile = a_profile(
        one(0.22, 8.0), host={"cpu_util": 0.96}, cpu_cores=4, precision="fp32", **T4
    )
    first, *others = diagnose(profile, cost=Decimal(1000))
    assert first.code == "data-loading"
    assert {"gpu-preprocessing", "dataloader-workers"} <= set(first.actions)
    assert "host.cpu_util.mean" in {e.metric for e in first.evidence}
    assert first.waste_usd == Decimal("780.00")
    faster = next(f for f in others if f.code == "no-mixed-precision")
    assert faster.waste_usd is None
    assert "until the GPU stops waiting" in faster.cause


def test_without_a_bill_there_are_shares_and_no_dollars() -> None:
    """`gpucost diagnose` knows no prices."""
    (first, *_) = diagnose(a_profile(one(0.22), host=HIGH_CPU))
    assert first.waste_fraction == pytest.approx(0.78)
    assert first.waste_usd is None


FRACTION = st.none() | st.floats(0, 1)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Any profile that a reader may make: everything may be unknown."""
    gib = draw(st.none() | st.floats(0, 80))
    watts = draw(st.none() | st.floats(0, 400))
    slots = {
        name: draw(FRACTION)
        for name in (
            BUSY,
            SM,
            "util.tensor_active",
            "util.dram_active",
            "util.mem_controller",
            "throttle.fraction",
        )
    } | {MEM: gib, WATTS: watts, "temp.core_c": draw(st.none() | st.floats(20, 100))}
    readings = {name: value for name, value in slots.items() if value is not None}
    host = {"cpu_util": draw(FRACTION), "disk_read_mib_s": draw(st.none() | st.floats(0, 500))}
    parts = ("data_wait_s", "h2d_s", "comm_s")
    step = {p: draw(st.none() | st.floats(0, 0.12)) for p in parts} | {"mean_s": 0.1}
    return a_profile(
        readings,
        host={name: value for name, value in host.items() if value is not None},
        kind=draw(st.sampled_from(KINDS)),
        precision=draw(st.none() | st.sampled_from(PRECISIONS)),
        gpu=draw(st.sampled_from(("Tesla T4", "A100-SXM-80GB", "MI300X", "no such GPU", None))),
        cpu_cores=draw(st.none() | st.floats(1, 128)),
        **(step if draw(st.booleans()) else {}),
    )


@given(profiles(), st.decimals("0", "100000", places=2))
def test_waste_never_exceeds_the_bill(profile: Profile, cost: Decimal) -> None:
    """All causes together waste at most the bill; dollars are shares of it to the cent."""
    findings = diagnose(profile, cost=cost)
    wasted = [f.waste_fraction for f in findings if f.waste_fraction is not None]
    assert all(0 <= share <= 1 for share in wasted)
    assert sum(wasted) <= 1.0 + 1e-3
    for found in findings:
        _check_dollars(found, cost)


def _check_dollars(found: Finding, cost: Decimal) -> None:
    if found.waste_fraction is None:
        assert found.waste_usd is None
    else:
        assert found.waste_usd == cents(cost * Decimal(str(found.waste_fraction)))


IDLE_CAUSES = {
    "data-loading",
    "host-to-device",
    "host-bound",
    "idle",
    "idle-held",
    "bursty-interactive",
    "under-used-inference",
    "imbalanced-gpus",
    "unmeasured",
}


@given(profiles())
def test_the_idle_and_the_busy_time_are_each_claimed_once(profile: Profile) -> None:
    """Causes of waiting share the idle time; slow kernels and collectives the busy time."""
    busy = next((b for s in (BUSY, SM) if (b := profile.mean(s)) is not None), None)
    if busy is None:
        return
    claims = {True: 0.0, False: 0.0}
    for found in diagnose(profile):
        claims[found.code in IDLE_CAUSES] += found.waste_fraction or 0.0
    assert claims[True] <= 1.0 - busy + 1e-3
    assert claims[False] <= busy + 1e-3


@given(profiles())
def test_something_is_always_said(profile: Profile) -> None:
    """There is always a verdict, be it that nothing is wrong or that too little is known."""
    assert diagnose(profile)


@given(profiles())
def test_a_diagnosis_is_tidy_and_repeatable(profile: Profile) -> None:
    """Each code comes once, with known names, the same way each time."""
    findings = diagnose(profile)
    assert len(set(codes(findings))) == len(findings)
    assert findings == diagnose(profile)
    for found in findings:
        assert set(found.actions) <= set(ACTIONS)
        assert {e.metric for e in found.evidence} <= set(SIGNALS)


@given(
    profile=profiles(),
    busy=st.floats(0.8, 1.0),
    useful=st.sampled_from(
        ((SM, 0.6), ("util.tensor_active", 0.3), ("util.dram_active", 0.6), (WATTS, 280.0))
    ),
)
def test_a_useful_gpu_is_never_sized_down(
    profile: Profile, busy: float, useful: tuple[str, float]
) -> None:
    """A busy GPU whose SMs, tensor cores, memory or power show work is not idle or too large."""
    (readings,) = (gpu.metrics for gpu in profile.gpus)
    metrics = {**readings, BUSY: Statistics(mean=busy), useful[0]: Statistics(mean=useful[1])}
    working = a_profile(metrics, kind=profile.job.kind, precision=profile.job.precision)
    findings = diagnose(working)
    assert not {"idle", "idle-held", "over-provisioned-gpu"} & set(codes(findings))
    assert not any("smaller-gpu" in found.actions for found in findings)
