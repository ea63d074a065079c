"""Labelled profiles come out with their cause first, and no second of the bill is claimed twice."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.actions import ACTIONS
from planner.diagnosis.diagnose import diagnose
from planner.profile.kinds import KINDS, PRECISIONS
from planner.profile.model import Profile, Statistics
from planner.signals.finding import Finding
from planner.signals.signals import SIGNALS
from pricing.money import cents
from tests.planner.diagnosis.diagnosed import (
    ALSO,
    BUSY,
    FIRST,
    HIGH_CPU,
    LOW_CPU,
    MEM,
    NOT,
    SM,
    T4,
    WATTS,
    held,
    one,
)
from tests.planner.factories import a_profile, codes


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


@pytest.mark.parametrize(
    ("gpu", "slow"),
    [("P40", True), ("GTX-1080Ti", True), ("M60", True), ("P100-SXM-16GB", False), ("T4", False)],
)
@pytest.mark.parametrize("precision", ["fp16", "amp-fp16"])
def test_fp16_saves_no_time_on_a_gpu_without_its_arithmetic(
    gpu: str, precision: str, *, slow: bool
) -> None:
    """CUDA C++ Programming Guide: 1/64 of fp32 at 6.1, none at 5.2, twice fp32 at 6.0."""
    job = a_profile({"util.kernel_time": 0.97, "power.fraction": 0.7}, gpu=gpu, precision=precision)
    first = diagnose(job)[0]
    assert (first.code == "no-mixed-precision") == slow
    assert "mixed-precision" not in {code for f in diagnose(job) for code in f.actions}
