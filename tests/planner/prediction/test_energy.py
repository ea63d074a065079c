"""Energy and carbon: measured power or unknown, never the nameplate; the user's site or nothing."""

from typing import Any

import pytest
from msgspec import structs

from planner.choice.option import energy_today
from planner.choice.requirements import Site
from planner.models.document import encode
from planner.models.estimate import exactly
from planner.models.power import EnergyUse, idle_fraction, other_gpu_factor
from planner.plan.making import to_plan
from planner.profile.model import Profile, Statistics, Window
from pricing.errors import InputError
from pricing.hardware import gpus
from tests.planner.factories import a_profile, plan, running, sold

HOURS = exactly(100.0, "declared")
H100 = sold("h100", "4.00", gpu="H100-SXM-80GB")
H200 = sold("h200", "3.00", gpu="H200-SXM-141GB", gpu_memory_gib=141)
QUIET = {"util.kernel_time": 0.6, "mem.used_gib": Statistics(max=10.0)}


def drawing(power_w: float | None, **fields: Any) -> Profile:
    """A job on an H100 (68 W idle, 700 W at most) whose board draws so much on average."""
    metrics = QUIET if power_w is None else {**QUIET, "power.board_w": power_w}
    return a_profile(metrics, gpu="H100-SXM-80GB", **fields)


def today(profile: Profile, **site: float) -> EnergyUse:
    """The energy of 100 h on the measured hardware."""
    return energy_today(profile, HOURS, Site(**site))


def options(profile: Profile, *offers: Any, **asked: Any) -> dict[str, Any]:
    """The `energy` of every option in plan.json, by machine type."""
    document = encode(to_plan(plan(running(profile, H100), offers=(H100, *offers), **asked)))
    return {o["offer"]["instance_type"]: o["energy"] for o in document["jobs"][0]["options"]}


def test_energy_is_mean_power_times_gpus_times_hours() -> None:
    """Two boards at 400 W for 100 h are 80 kWh, and without a grid no carbon is known."""
    energy = today(drawing(400.0, gpu_count=2))
    assert energy.kwh is not None
    assert (energy.kwh.low, energy.kwh.mid, energy.kwh.high) == pytest.approx((80.0,) * 3)
    assert "GPU boards alone" in energy.kwh.basis
    assert energy.kgco2e is None


def test_counters_come_before_readings() -> None:
    """1.8 MJ in an hour are 500 W, whatever the power readings say."""
    window = Window(duration_s=3600.0)
    metrics = {**QUIET, "power.board_w": 400.0, "energy.total_j": 1.8e6}
    energy = today(a_profile(metrics, gpu="H100-SXM-80GB", window=window))
    assert energy.kwh is not None
    assert energy.kwh.mid == pytest.approx(50.0)
    assert "counters" in energy.kwh.basis
    without = today(a_profile(metrics, gpu="H100-SXM-80GB"))
    assert without.kwh is not None
    assert without.kwh.mid == pytest.approx(40.0)


def test_without_a_reading_nothing_is_known() -> None:
    """No power, no energy, no carbon, whatever the grid: unknown is null, never TDP or 0."""
    assert today(drawing(None), grid_g_per_kwh=400.0) == EnergyUse()
    assert set(map(str, options(drawing(None), H200).values())) == {"{'kwh': None, 'kgco2e': None}"}


@pytest.mark.parametrize(
    ("site", "kwh", "kg"),
    [
        ({"grid_g_per_kwh": 0.0}, 40.0, 0.0),
        ({"grid_g_per_kwh": 400.0}, 40.0, 16.0),
        ({"grid_g_per_kwh": 400.0, "pue": 1.2}, 48.0, 19.2),
        ({"grid_g_per_kwh": 400.0, "host_fraction": 0.2}, 50.0, 20.0),
        ({"grid_g_per_kwh": 400.0, "host_fraction": 0.2, "pue": 1.2}, 60.0, 24.0),
    ],
)
def test_the_site_is_what_the_user_says(site: dict[str, float], kwh: float, kg: float) -> None:
    """PUE multiplies, the host's share is of the whole node, the grid turns kWh into kg."""
    energy = today(drawing(400.0), **site)
    assert energy.kwh is not None
    assert energy.kgco2e is not None
    assert (energy.kwh.mid, energy.kgco2e.mid) == pytest.approx((kwh, kg))


@pytest.mark.parametrize(
    "site",
    [{"pue": 0.9}, {"host_fraction": 1.0}, {"grid_g_per_kwh": -1.0}, {"pue": float("nan")}],
    ids=str,
)
def test_a_site_that_cannot_be_is_refused(site: dict[str, float]) -> None:
    """A PUE below 1, a host that takes all, a negative grid: an input error."""
    with pytest.raises(InputError):
        Site(**site)


def test_another_gpu_draws_the_same_fraction_of_its_range() -> None:
    """Half of (TDP - idle) stays half; the error of that, as fitted, is in the interval."""
    here, there = gpus()["H100-SXM-80GB"], gpus()["H200-SXM-141GB"]
    assert here.idle_w is not None
    assert here.tdp_w is not None
    assert there.idle_w is not None
    assert there.tdp_w is not None
    half_w = here.idle_w + 0.5 * (here.tdp_w - here.idle_w)
    document = encode(to_plan(plan(running(drawing(half_w), H100), offers=(H100, H200))))
    (option,) = (o for o in document["jobs"][0]["options"] if o["offer"]["gpu"] == "H200-SXM-141GB")
    hours, kwh = option["hours"], option["energy"]["kwh"]
    power_w = there.idle_w + 0.5 * (there.tdp_w - there.idle_w)
    assert kwh["mid"] == pytest.approx(power_w * hours["mid"] / 1000, rel=1e-4)
    factor = other_gpu_factor()
    assert 1.2 < factor < 1.6
    assert kwh["low"] == pytest.approx(power_w / factor * hours["low"] / 1000, rel=1e-4)
    assert kwh["high"] == pytest.approx(power_w * factor * hours["high"] / 1000, rel=1e-4)
    assert "same fraction of (TDP - idle)" in kwh["basis"]


def test_power_stays_between_idle_and_the_limit() -> None:
    """A board at its limit is at the other's limit, and no interval goes beyond it."""
    there = gpus()["H200-SXM-141GB"]
    assert there.tdp_w is not None
    document = encode(to_plan(plan(running(drawing(700.0), H100), offers=(H100, H200))))
    (option,) = (o for o in document["jobs"][0]["options"] if o["offer"]["gpu"] == "H200-SXM-141GB")
    most = there.tdp_w * option["hours"]["high"] / 1000
    assert option["energy"]["kwh"]["high"] == pytest.approx(most, rel=1e-4)


def test_idle_power_that_nobody_measured_is_that_of_like_boards() -> None:
    """The table has no idle power of the A100: the share of TDP of boards of its kind stands in."""
    a100 = gpus()["A100-SXM-80GB"]
    assert a100.idle_w is None
    assert 0.05 < idle_fraction(a100.name) < 0.15 < idle_fraction("A40") < 0.3
    assert options(drawing(300.0), sold("a100", "1.00", gpu=a100.name))["a100"]["kwh"] is not None


def test_gpus_that_are_paid_and_not_used_draw_idle_power() -> None:
    """Four of eight GPUs at work: four at the measured power, four idle; not eight at work."""
    today_ = sold("today", "16.00", gpu="H100-SXM-80GB", gpu_count=4, interconnect="nvlink")
    eight = sold(
        "eight",
        "8.00",
        gpu="H100-SXM-80GB",
        gpu_count=8,
        interconnect="nvlink",
        provider="elsewhere",
    )
    profile = running(drawing(400.0, gpu_count=4, interconnect="nvlink"), today_)
    document = encode(to_plan(plan(profile, offers=(today_, eight))))
    (option,) = (
        o for o in document["jobs"][0]["options"] if o["offer"]["instance_type"] == "eight"
    )
    idle_w = gpus()["H100-SXM-80GB"].idle_w
    assert idle_w is not None
    kw = (4 * 400.0 + 4 * idle_w) / 1000
    assert option["energy"]["kwh"]["mid"] == pytest.approx(kw * option["hours"]["mid"], rel=1e-4)


def test_the_same_machine_elsewhere_draws_what_was_measured() -> None:
    """The same GPU at another price takes exactly today's energy, to the width of its hours."""
    same = sold("same", "1.00", gpu="H100-SXM-80GB", provider="elsewhere")
    document = encode(to_plan(plan(running(drawing(400.0), H100), offers=(H100, same))))
    (option,) = (o for o in document["jobs"][0]["options"] if o["offer"]["instance_type"] == "same")
    assert option["energy"]["kwh"]["mid"] == pytest.approx(0.4 * option["hours"]["mid"])


def test_software_that_feeds_the_gpu_widens_the_range() -> None:
    """With its input mended the GPU is busier by what was not measured: low is today's power."""
    starved = {**QUIET, "util.kernel_time": 0.2, "power.board_w": 200.0}
    job = a_profile(starved, gpu="H100-SXM-80GB", host={"cpu_util": 0.95}, cpu_cores=8.0)
    document = encode(to_plan(plan(running(job, H100), offers=(H100,))))
    busier = [o for o in document["jobs"][0]["options"] if o["speed"]["mid"] > 1.0]
    assert busier
    for option in busier:
        hours, kwh = option["hours"], option["energy"]["kwh"]
        assert kwh["low"] == pytest.approx(0.2 * hours["low"], rel=1e-4)
        assert kwh["mid"] > 0.2 * hours["mid"]
        assert "busier" in kwh["basis"]


def test_a_plan_carries_the_site() -> None:
    """The carbon of the baseline and of every option is of the site that was given."""
    asked = {"site": Site(grid_g_per_kwh=500.0)}
    document = encode(to_plan(plan(running(drawing(400.0), H100), offers=(H100, H200), **asked)))
    (job,) = document["jobs"]
    for record in (job["baseline"], *job["options"]):
        kwh, carbon = record["energy"]["kwh"], record["energy"]["kgco2e"]
        assert carbon["mid"] == pytest.approx(0.5 * kwh["mid"], rel=1e-4)
        assert "as given" in carbon["basis"]


def test_a_slice_of_a_gpu_is_unknown() -> None:
    """Nobody knows what a slice draws."""
    slice_ = structs.replace(
        sold("slice", "0.50", gpu="H100-SXM-80GB"), gpu_count=0.5, gpu_memory_gib=40
    )
    found = options(drawing(400.0), slice_)
    assert found.get("slice", {"kwh": None})["kwh"] is None
