"""What a job costs today: stated, assumed or unknown, and which flags it breaks."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from planner.choice.baseline import Baseline
from planner.models.estimate import exactly
from planner.profile.model import GpuReadings, Latency, Profile, Statistics
from pricing.catalog.offer import Offer, parse_place
from pricing.errors import InputError
from tests.planner.factories import TODAY, a_case, a_catalog, a_profile, running, sold


def found(profile: Profile, *offers: Offer, **asked: Any) -> Baseline:
    """The baseline over these offers."""
    return a_case(profile, a_catalog(*offers), **asked).baseline


def test_a_stated_machine_is_priced_for_its_hours() -> None:
    """100 h at $2."""
    baseline = found(running(a_profile()), TODAY, sold("cheaper", "0.10"))
    assert (baseline.offer, baseline.count, baseline.assumed) == (TODAY, 1, False)
    assert baseline.cost == Decimal("200.00")
    assert baseline.broken == baseline.notes == ()


def test_the_command_line_says_where_it_runs() -> None:
    """`--current` beats the profile."""
    other = sold("other", "3.00")
    baseline = found(running(a_profile()), TODAY, other, current="example/other")
    assert baseline.offer == other


def test_without_a_machine_the_cheapest_of_that_gpu_is_assumed() -> None:
    """On demand, same model and count, no community host; and the plan says so."""
    cheap = sold("cheap", "1.50")
    baseline = found(
        a_profile(),
        TODAY,
        cheap,
        sold("spot", "0.10", purchase="spot"),
        sold("strangers", "0.20", host="community"),
        sold("other", "0.30", "H100-SXM-80GB"),
        sold("slice", "0.40", gpu_count=0.5),
        sold("two", "0.50", gpu_count=2),
    )
    assert baseline.offer == cheap
    assert baseline.assumed
    assert "is assumed" in baseline.notes[0]


@pytest.mark.parametrize(
    ("wanted", "sizes", "chosen", "count"),
    [
        (8, (1, 4, 8), 8, 1),
        (2, (1, 4, 8), 4, 1),
        (16, (1, 4, 8), 8, 2),
        (3, (8,), 8, 1),
        (8, (1,), 1, 8),
    ],
)
def test_an_assumed_machine_holds_the_gpus(
    wanted: int, sizes: tuple[int, ...], chosen: int, count: int
) -> None:
    """The same count if sold, else the next larger, else several machines."""
    offers = [sold(f"x{n}", str(2 * n), gpu_count=n) for n in sizes]
    baseline = found(a_profile(gpu_count=wanted), *offers)
    assert baseline.offer is not None
    assert (baseline.offer.gpu_count, baseline.count) == (chosen, count)


def test_an_unknown_price_is_unknown() -> None:
    """Nobody sells it: no cost, no zero, and a way to say what it costs."""
    baseline = found(a_profile(gpu="Tesla K80"), TODAY)
    assert baseline.offer is baseline.quote is baseline.cost is None
    assert "--machine" in baseline.notes[0]
    assert baseline.hours.mid == 100.0


def test_one_provider_may_be_named_without_a_type() -> None:
    """The cheapest there, community hosts too."""
    theirs = sold("theirs", "5.00", provider="elsewhere", host="community")
    baseline = found(a_profile(provider="elsewhere"), TODAY, theirs)
    assert (baseline.offer, baseline.assumed) == (theirs, True)


def test_a_region_left_out_takes_the_cheapest_and_says_so() -> None:
    """Where regions differ in price and none is stated."""
    rows = [sold("today", p, region=r) for p, r in (("2.00", "a"), ("1.00", "b"))]
    baseline = found(running(a_profile(), structs.replace(rows[0], region="*")), *rows)
    assert baseline.offer == rows[1]
    assert "region not given" in baseline.notes[0]


@pytest.mark.parametrize(
    ("current", "said"),
    [
        ("exmaple/today", "Did you mean 'example'"),
        ("example/todai", "today"),
        ("example/today/mars", "not sold in region"),
        ("example", "PROVIDER/TYPE"),
        ("a/b/c/d", "PROVIDER/TYPE"),
        ("example//r", "PROVIDER/TYPE"),
    ],
)
def test_a_wrong_place_is_answered_with_what_there_is(current: str, said: str) -> None:
    """The message names the nearest or the form."""
    with pytest.raises(InputError, match=said):
        found(a_profile(), sold("today", region="here"), current=current)


def test_a_place_is_read() -> None:
    """Provider, type and perhaps a region."""
    assert parse_place("aws/p5.48xlarge") == ("aws", "p5.48xlarge", None)
    assert parse_place("aws/p5.48xlarge/us-east-1") == ("aws", "p5.48xlarge", "us-east-1")


@pytest.mark.parametrize(
    ("gpu", "gib", "said"),
    [
        ("Tesla T4", 8.0, r"names T4, but example/today has A100-SXM-80GB.*--machine"),
        (None, 90.0, r"shows 90 GiB of memory in use.*example/today has A100-SXM-80GB"),
        ("NVIDIA A100-SXM4-40GB", 8.0, "names A100-SXM-40GB"),
    ],
)
def test_a_machine_that_cannot_be_the_measured_one_is_refused(
    gpu: str | None, gib: float, said: str
) -> None:
    """Both are named and a machine to type; the wrong machine is never priced."""
    reading = GpuReadings(metrics={"mem.used_gib": Statistics(p50=gib, max=gib)})
    profile = replace(running(a_profile(gpu=gpu)), gpus=(reading,))
    with pytest.raises(InputError, match=said):
        found(profile, TODAY)


def test_the_measured_gpu_in_another_form_is_said() -> None:
    """Price lists mix up PCIe and SXM: both are kept, and the reader is told."""
    baseline = found(running(a_profile(gpu="A100-PCIe-80GB")), TODAY)
    assert "measured on A100-PCIe-80GB" in baseline.warnings[0]


@pytest.mark.parametrize(
    ("asked", "reasons"),
    [
        ({}, []),
        ({"providers": ("example",), "gpus": ("A100-SXM-80GB",), "gpu_counts": (1, 1)}, []),
        ({"providers": ("elsewhere",)}, ["unavailable"]),
        ({"regions": ("mars",)}, ["region"]),
        ({"gpus": ("L4",)}, ["capability"]),
        ({"gpu_counts": (2, 8)}, ["gpu-count"]),
        ({"deadline_h": 99.0}, ["deadline"]),
        ({"deadline_h": 100.0}, []),
        ({"budget_usd": Decimal("199.99")}, ["budget"]),
        ({"budget_usd": Decimal("200.00")}, []),
        ({"slo_ms": 50.0}, ["latency"]),
        ({"slo_ms": 60.0}, []),
        ({"deadline_h": 1.0, "budget_usd": Decimal(1)}, ["deadline", "budget"]),
    ],
    ids=str,
)
def test_today_breaks_the_flags_that_it_breaks(asked: dict[str, Any], reasons: list[str]) -> None:
    """`o0` is feasible unless a flag of the command line says otherwise."""
    today = sold("today", "2.00", region="here")
    profile = a_profile(kind="inference_online", latency_ms=Latency(p99=55.0))
    baseline = found(running(profile, today), today, **asked)
    assert [r.reason for r in baseline.broken] == reasons


@pytest.mark.parametrize(
    ("changes", "answers"),
    [
        ({}, (True, True, True, True, True)),
        ({"region": "*"}, (True, True, True, True, False)),
        ({"region": "far"}, (True, True, False, False, False)),
        ({"purchase": "spot"}, (True, False, True, True, False)),
        ({"price": "9.00"}, (True, True, True, True, False)),
        ({"type_": "other"}, (False, False, False, True, False)),
        ({"provider": "else"}, (False, False, False, False, False)),
    ],
)
def test_whether_an_offer_is_todays_machine_is_asked_of_the_baseline(
    changes: dict[str, Any], answers: tuple[bool, ...]
) -> None:
    """The size, bought alike, in its place; where data stay; the very machine that is paid."""
    here = {"type_": "here", "price": "2.00", "region": "near", "provider": "some"}
    today, other = sold(**here), sold(**here | changes)
    baseline = Baseline(offer=today, count=2, hours=exactly(1.0, ""), quote=None, assumed=False)
    assert answers == (
        baseline.has_size(other),
        baseline.has_size_bought_alike(other),
        baseline.has_size_there(other),
        baseline.keeps_data(other),
        baseline.is_paid(other, 2),
    )
    assert not baseline.is_paid(today, 1)


def test_a_price_for_everywhere_is_todays_wherever_it_is_asked() -> None:
    """Where one price holds in all regions, the offer of one region is the machine that is paid."""
    today = sold("here", "2.00", region="*")
    baseline = Baseline(offer=today, count=1, hours=exactly(1.0, ""), quote=None, assumed=False)
    assert baseline.is_paid(sold("here", "2.00", region="near"), 1)
    assert baseline.has_size_there(sold("here", "2.00", region="near"))
