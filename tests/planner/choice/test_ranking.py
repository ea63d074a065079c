"""What is recommended is never a gamble, and better offers never make the answer worse."""

from datetime import timedelta
from decimal import Decimal
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from planner.actions import ACTIONS
from planner.choice.option import Option
from planner.choice.requirements import Requirements
from planner.models.interruption import CHECKPOINTS, Availability, CheckpointCosts
from planner.pipeline import draft_plan
from planner.plan.draft import JobDraft
from planner.prediction.predict import predict
from planner.profile.codec import parse_profiles
from planner.profile.model import (
    Latency,
    Profile,
    Provenance,
    Source,
    Statistics,
    Step,
    Window,
    Work,
)
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from pricing.hardware import gpus
from tests.planner.factories import TODAY, a_profile, plan, running, sold
from tests.pricing.factories import ASKED_ON

MODELS = (
    ("A100-SXM-80GB", 80),
    ("H100-SXM-80GB", 80),
    ("H200-SXM-141GB", 141),
    ("L40S", 48),
    ("L4", 24),
    ("B200-SXM", 180),
)
BUSY = "util.kernel_time"


def job(offers: tuple[Offer, ...], **fields: Any) -> JobDraft:
    """The plan of one running job over these offers and today's."""
    asked = {k: fields.pop(k) for k in ("objective", "providers", "gpus") if k in fields}
    (planned,) = plan(running(a_profile(**fields)), offers=(TODAY, *offers), **asked).jobs
    return planned


@st.composite
def offers(draw: st.DrawFn) -> tuple[Offer, ...]:
    """Up to six offers of other GPUs at any price, some with no full date."""
    found = []
    for number in range(draw(st.integers(0, 6))):
        gpu, memory = draw(st.sampled_from(MODELS))
        price = draw(st.integers(1, 2000))
        dated = draw(st.booleans())
        found.append(
            sold(f"s{number}", str(Decimal(price) / 100), gpu, gpu_memory_gib=memory, dated=dated)
        )
    return tuple(found)


KINDS = st.sampled_from(("training", "inference_offline", "inference_online", "interactive"))


def test_steps_timed_beside_no_gpu_recommend_no_other_gpu() -> None:
    """`--no-gpu` may have watched a CPU: another GPU, however cheap, is listed, not recommended."""
    cheap = sold("cheap", "0.01", "H100-SXM-80GB", gpu_memory_gib=80)
    blind = running(a_profile(metrics={}, kind="training"))
    seen = Provenance(sources=(Source(path="p.samples.parquet", format="gpucost-capture"),))
    blind = replace(
        blind,
        gpus=(),
        step=Step(count=9, mean_s=0.1, data_wait_s=0.05),
        window=Window(duration_s=60.0, interval_s=1.0),
        provenance=seen,
    )
    (planned,) = plan(blind, offers=(TODAY, cheap)).jobs
    assert "H100-SXM-80GB" in {option.offer.gpu for option in planned.options}
    assert planned.recommended == "o0"


@given(offers(), KINDS, st.floats(0, 1), st.none() | st.floats(0, 1))
def test_the_recommended_never_costs_more_than_today(
    found: tuple[Offer, ...], kind: str, busy: float, cpu: float | None
) -> None:
    """Even at the dear end of its interval a recommended option is no dearer than leaving it."""
    planned = job(
        found,
        metrics={BUSY: busy, "mem.used_gib": Statistics(max=9.0)},
        kind=kind,
        host=None if cpu is None else {"cpu_util": cpu},
    )
    today = planned.baseline.cost
    assert today is not None
    if planned.choice is None:
        assert planned.recommended == "o0"
        return
    assert planned.choice.cost < today
    assert planned.choice.usd_range.high < today
    assert planned.choice.usd_range.low <= planned.choice.cost <= planned.choice.usd_range.high
    assert planned.choice.offer.dated
    now, then = gpus()[planned.baseline.offer.gpu], gpus()[planned.choice.offer.gpu]  # type: ignore[union-attr]
    has_more = all((f(then) or 0) >= (f(now) or 0) for f in PEAKS)
    assert not planned.choice.speed.weak or (has_more and planned.choice.speed.low >= 1)


PEAKS = tuple(map(attrgetter, ("fp32_tflops", "fp16_tflops", "memory_bandwidth_gb_s")))


def net(option: Option) -> Decimal:
    """What the change is worth."""
    assert option.benefit.net_usd is not None
    return option.benefit.net_usd


def _spends(option: Option, rate: int, months: int) -> Decimal:
    """What is spent over the horizon: bill, work and move."""
    effort = rate * Decimal(str(option.benefit.effort_hours))
    return option.compared * months + effort + (option.benefit.moving_usd or 0)


@given(offers(), st.integers(0, 300), st.integers(1, 24))
def test_only_what_pays_is_recommended(found: tuple[Offer, ...], rate: int, months: int) -> None:
    """Saving at the high end over the horizon, less work and move, is above 0; else leave it."""
    asked = {"engineer_usd_per_hour": Decimal(rate), "horizon_months": Decimal(months)}
    (planned,) = plan(running(a_profile()), offers=(TODAY, *found), **asked).jobs
    today = planned.baseline.cost
    assert today is not None
    for option in planned.options:
        expected = (today - option.usd_range.high) * months - rate * Decimal(
            str(option.benefit.effort_hours)
        )
        assert net(option) == expected - (option.benefit.moving_usd or 0)
    sure = [
        option
        for option in planned.options
        if option.offer.dated and not option.speed.weak and option.hours.mid <= 1.2 * 100.0
    ]
    paying = [option for option in sure if net(option) > 0]
    assert (planned.choice is None) == (not paying)
    if planned.choice is not None:
        assert planned.choice in paying
        assert _spends(planned.choice, rate, months) == min(
            _spends(o, rate, months) for o in paying
        )


def test_where_today_breaks_a_limit_the_cheapest_is_not_today() -> None:
    """Also where no price that keeps it is dated: something has to be taken, and is named."""
    faster = sold("other", "1.00", "H100-SXM-80GB", dated=False)
    (planned,) = plan(running(a_profile()), offers=(TODAY, faster), budget_usd=Decimal(150)).jobs
    assert planned.recommended != "o0"
    assert planned.named.cheapest == planned.recommended


@given(offers())
def test_named_options_are_what_they_are_called(found: tuple[Offer, ...]) -> None:
    """Cheapest: surely below today, nothing sure wholly below it; first launchable as listed."""
    launchable = frozenset(("example",))
    (planned,) = plan(running(a_profile()), offers=(TODAY, *found), launchable=launchable).jobs
    today = planned.baseline.cost
    assert today is not None
    known = [o for o in planned.options if o.offer.dated and not o.speed.weak]
    saving = [o for o in known if o.usd_range.high < today and o.cost < today * Decimal("0.99")]
    cheapest = planned.option(planned.named.cheapest)
    assert (cheapest is None) == (not saving)
    if cheapest is not None:
        assert cheapest in saving
        assert cheapest.usd_range.low <= min(o.usd_range.high for o in saving)
        if planned.choice is not None:
            assert cheapest.cost <= planned.choice.cost
    first = next((o.id for o in planned.options if o.provisionable), None)
    assert planned.named.first_launchable == first
    assert (planned.named.smallest_change == "o0") == (planned.recommended == "o0")


@pytest.mark.parametrize(("elsewhere", "expected"), [("0.99", "today's"), ("0.50", "elsewhere")])
def test_a_change_earns_its_work(elsewhere: str, expected: str) -> None:
    """What the other provider saves over the horizon must be more than the work of moving there."""
    near = sold("near", "1.00", "H100-SXM-80GB")
    far = sold("far", elsewhere, "H100-SXM-80GB", provider="elsewhere")
    job_ = running(a_profile(hours=700.0))
    (planned,) = plan(job_, offers=(TODAY, near, far)).jobs
    assert planned.choice is not None
    where = "today's" if planned.choice.offer.provider == TODAY.provider else "elsewhere"
    assert where == expected


def test_the_published_case_stays_where_it_is() -> None:
    """Six dollars a month are not worth a move: the fix, at today's provider."""
    path = Path(__file__).parents[3] / "examples" / "visual-search.json"
    profiles = parse_profiles(path.read_bytes(), path.name)
    made = draft_plan(profiles, load_catalog(ASKED_ON), Requirements(), as_of=ASKED_ON)
    (planned,) = made.jobs
    assert planned.choice is not None
    assert planned.choice.offer.provider == "aws"
    assert "gpu-preprocessing" in planned.choice.actions
    elsewhere = [o for o in planned.options if o.offer.provider != "aws"]
    assert min(o.cost for o in elsewhere) < planned.choice.cost


@given(offers(), st.sampled_from(("cost", "time", "cost-per-work")))
def test_options_come_in_order_of_the_objective(found: tuple[Offer, ...], objective: str) -> None:
    """Ids count up, costs or hours rise, and a list fits on a screen."""
    options = job(found, objective=objective).options
    assert [o.id for o in options] == [f"o{i}" for i in range(1, len(options) + 1)]
    assert len(options) <= 15

    def key(option: Option) -> float | Decimal:
        return option.hours.mid if objective == "time" else option.cost

    keys = [key(option) for option in options]
    assert keys == sorted(keys)


def test_a_clear_saving_is_recommended() -> None:
    """The same GPU for half the money."""
    planned = job((sold("half", "1.00"),))
    assert planned.recommended == "o1"
    assert planned.choice is not None
    assert planned.choice.actions == ()
    assert "50 % of today's hourly price" in planned.choice.why


@pytest.mark.parametrize(
    "offer",
    [
        sold("as-dear", "2.00"),
        sold("within the spread", "1.95"),
        sold("undated", "0.50", dated=False),
        sold("beyond the fit", "0.50", "K80", gpu_memory_gib=96),
        sold("faster but dear", "4.00", "H100-SXM-80GB"),
    ],
    ids=lambda o: o.instance_type,
)
def test_leave_it(offer: Offer) -> None:
    """No gain within the interval, a price without a day, a guess beyond the fit: o0."""
    planned = job((offer,))
    assert planned.recommended == "o0"
    assert planned.choice is None


def test_faster_is_chosen_for_time_whatever_it_costs() -> None:
    """`--objective time` takes hours, not dollars."""
    dear = sold("h200", "99.00", "H200-SXM-141GB", gpu_memory_gib=141)
    planned = job((dear, sold("half", "1.00")), objective="time")
    assert planned.choice is not None
    assert planned.choice.offer == dear


WISHES: tuple[dict[str, Any], ...] = (
    {"providers": ("elsewhere",)},
    {"gpus": ("H100-SXM-80GB",)},
    {"purchases": ("reserved_1y",)},
)


@pytest.mark.parametrize("asked", WISHES, ids=str)
@pytest.mark.parametrize("price", ["9.00", "0.05"])
def test_a_filter_asks_for_the_best_of_these_and_never_to_pay_more(
    asked: dict[str, Any], price: str
) -> None:
    """Where nothing that was asked for is cheaper, today's machine stays, and the plan says so."""
    wanted = sold("wanted", price, "H100-SXM-80GB", provider="elsewhere", purchase="reserved_1y")
    asked = {
        "purchases": ("on_demand", "reserved_1y"),
        "engineer_usd_per_hour": Decimal(10),
    } | asked
    offers_ = (TODAY, wanted, sold("dear", "9.00", "H100-SXM-80GB", provider="elsewhere"))
    (planned,) = plan(running(a_profile()), offers=offers_, **asked).jobs
    assert planned.baseline.broken
    assert (planned.choice and planned.choice.offer) == (wanted if price == "0.05" else None)


def test_a_limit_that_today_breaks_is_kept_even_where_that_is_dearer() -> None:
    """A service that misses its latency target moves to what keeps it."""
    late = a_profile(
        {"util.kernel_time": 0.5, "mem.used_gib": 8.0},
        kind="inference_online",
        latency_ms=Latency(p95=300.0),
        latency_slo_ms=290.0,
    )
    faster = sold("faster", "3.00", "H100-SXM-80GB")
    (planned,) = plan(running(late), offers=(TODAY, faster)).jobs
    assert [broken.reason for broken in planned.baseline.broken] == ["latency"]
    assert planned.choice is not None
    assert planned.choice.offer == faster


@pytest.mark.parametrize(
    ("gpu", "memory", "taken"),
    [
        ("A10G", 24, True),  # 31 TFLOPS in single precision for 4.1, 600 GB/s for 240
        ("A16", 16, False),  # of its four GPUs each 4.3 TFLOPS, but 200 GB/s
    ],
)
def test_more_of_everything_needs_no_law_that_was_fitted_there(
    gpu: str, memory: int, *, taken: bool
) -> None:
    """From a chip outside of the fit a job moves to one that beats it in every figure."""
    old = sold("today", "2.00", "K80", gpu_memory_gib=12)
    new = sold("new", "0.50", gpu, gpu_memory_gib=memory)
    profile = a_profile(
        {"util.kernel_time": 0.95, "mem.used_gib": 6.0}, gpu="K80", precision="fp32"
    )
    (planned,) = plan(running(profile, old), offers=(old, new)).jobs
    assert bool(planned.choice) == taken
    if planned.choice:
        assert planned.choice.speed.weak
        assert planned.choice.usd_range.high < (planned.baseline.cost or 0)


def _out_of_memory(**fields: Any) -> JobDraft:
    """A training job that 80 GB were too little for; half the price for the same, and 141 GB."""
    profile = a_profile(
        {"util.kernel_time": 0.5, "mem.used_gib": 79.0}, ended="gpu-out-of-memory", **fields
    )
    half, larger = sold("half", "0.75"), sold("larger", "6.00", "H200-SXM-141GB")
    larger = structs.replace(larger, gpu_memory_gib=141)
    (planned,) = plan(running(profile), offers=(TODAY, half, larger)).jobs
    return planned


def test_what_may_well_cost_more_is_not_the_cheapest() -> None:
    """Of a job that ran out of memory: a middle just below another's, and a far wider range."""
    wide = structs.replace(sold("b200", "3.50", "B200-SXM"), gpu_memory_gib=180)
    near = structs.replace(sold("h200", "2.60", "H200-SXM-141GB"), gpu_memory_gib=141)
    profile = a_profile({BUSY: 0.3, "mem.used_gib": 79.0}, ended="gpu-out-of-memory")
    (planned,) = plan(running(profile), offers=(TODAY, wide, near)).jobs
    by_type = {o.offer.instance_type: o for o in planned.options}
    assert by_type["b200"].cost < by_type["h200"].cost
    assert by_type["b200"].usd_range.high > by_type["h200"].usd_range.high
    assert planned.option(planned.named.cheapest) is by_type["h200"]


def test_a_job_that_ran_out_of_gpu_memory_is_not_kept_where_it_dies() -> None:
    """Today's machine breaks "memory": more of it, dearer too, or what frees some, nothing else."""
    planned = _out_of_memory()
    assert [broken.reason for broken in planned.baseline.broken] == ["memory"]
    assert planned.choice is not None
    assert planned.choice.offer.gpu == "H200-SXM-141GB"
    for option in planned.options:
        frees = {code for code in option.actions if ACTIONS[code].memory}
        assert option.offer.gpu_memory_gib > 80 or frees


def test_more_memory_is_more_than_todays_card_is_sold_with() -> None:
    """The driver tells 22 of an A10G's 24 GiB: an RTX 4090 of 24 has no more."""
    today = sold("today", "2.00", "A10G", gpu_memory_gib=24)
    same = sold("same", "0.50", "RTX-4090", gpu_memory_gib=24)
    profile = a_profile(
        {BUSY: 0.7, "mem.used_gib": 21.9}, ended="gpu-out-of-memory", gpu="A10G", gpu_memory_gib=22
    )
    (planned,) = plan(running(profile, today), offers=(today, same)).jobs
    assert same not in [option.offer for option in planned.options]


@pytest.mark.parametrize(
    ("parameters", "frees"),
    [(20e9, True), (60e9, False)],  # in bf16: 37 and 112 GiB of the 80 that there are
)
def test_what_frees_memory_cannot_make_room_for_the_weights(
    parameters: float, *, frees: bool
) -> None:
    """Recomputing activations helps where the weights fit; else 4-bit weights are named first."""
    planned = _out_of_memory(parameters=parameters, precision="bf16", framework="pytorch")
    now = planned.now
    assert now is not None
    assert ("gradient-checkpointing" in now.actions) == frees
    assert frees or now.actions == ("low-rank-adapters",)


@pytest.mark.parametrize(
    ("asked", "taken"),
    [({}, None), ({"accepts_slower": True}, "slow"), ({"max_slowdown": 9.0}, "slow")],
    ids=str,
)
def test_work_that_takes_much_longer_is_for_those_who_ask(
    asked: dict[str, Any], taken: str | None
) -> None:
    """Over 1.2 times today's hours a cheaper machine is listed, and not recommended unasked."""
    slow = sold("slow", "0.10", "L4")
    (planned,) = plan(running(a_profile()), offers=(TODAY, slow), **asked).jobs
    assert [option.offer for option in planned.options] == [slow]
    assert (planned.choice.offer.instance_type if planned.choice else None) == taken


@pytest.mark.parametrize(
    ("offer", "fields", "expected"),
    [
        (sold("h", "1.00", "H100-SXM-80GB"), {}, ("newer-gpu",)),
        (sold("l", "0.10", "L4", gpu_memory_gib=24), {}, ("smaller-gpu",)),
        (sold("m", "1.00", provider="elsewhere"), {}, ("move-provider",)),
    ],
)
def test_an_option_names_what_it_changes(
    offer: Offer, fields: dict[str, Any], expected: tuple[str, ...]
) -> None:
    """Structural changes are actions too."""
    assert job((offer,), **fields).options[0].actions == expected


@pytest.mark.parametrize(
    ("purchase", "code"), [("spot", "spot"), ("reserved_180d", "commit"), ("reserved_1y", "commit")]
)
def test_another_way_of_buying_is_an_action(purchase: str, code: str) -> None:
    """Spot and terms are named as what they are."""
    other = sold("other", "1.00", purchase=purchase)
    purchases = ("on_demand", purchase)
    (planned,) = plan(running(a_profile()), offers=(TODAY, other), purchases=purchases).jobs
    assert planned.options[0].actions == (code,)


def test_more_and_fewer_gpus_are_actions() -> None:
    """One GPU to eight becomes data-parallel; eight to one is fewer."""
    eight = sold("eight", "14.00", gpu_count=8, interconnect="nvlink")
    assert job((eight,), objective="time").options[0].actions == ("more-gpus", "data-parallel")
    back = running(a_profile(gpu_count=8, interconnect="nvlink", hours=10.0), eight)
    (planned,) = plan(back, offers=(eight, TODAY)).jobs
    assert planned.options[0].actions == ("fewer-gpus",)


def test_a_sharded_training_is_not_told_what_a_server_is_started_with() -> None:
    """`resplit` is --tensor-parallel-size of a server; a training on half of its GPUs has fewer."""
    eight = sold("eight", "14.00", gpu_count=8, interconnect="nvlink")
    four = sold("four", "5.00", gpu_count=4, interconnect="nvlink")
    sharded = a_profile(gpu_count=8, interconnect="nvlink", hours=10.0, parallelism="fsdp")
    (planned,) = plan(running(sharded, eight), offers=(eight, four)).jobs
    assert {option.actions for option in planned.options} == {("fewer-gpus",)}


@pytest.mark.parametrize(("price", "recommended"), [("0.50", "o1"), ("1.20", "o0")])
def test_unrated_spot_that_was_asked_for_must_save_at_twice_its_hours(
    price: str, recommended: str
) -> None:
    """How often it is taken back is unknown: $0.50 of $2 pay anyway, $1.20 do not surely."""
    spot = sold("spot", price, purchase="spot")
    asked = {"purchases": ("on_demand", "spot")}
    (planned,) = plan(running(a_profile()), offers=(TODAY, spot), **asked).jobs
    assert not planned.options[0].interruptions_known
    assert planned.recommended == recommended


@pytest.mark.parametrize("restart_s", [None, 1800.0])
@pytest.mark.parametrize("slow_price", [None, "0.20"])
def test_a_cheaper_but_slower_spot_offer_hides_no_good_one(
    restart_s: float | None, slow_price: str | None
) -> None:
    """An L4 takes many times as long; the A100 at a quarter of the price is the answer beside it.

    It is with a longer restart, and where it alone is sold.
    """
    good = sold("good", "0.50", purchase="spot")
    slow = () if slow_price is None else (sold("slow", slow_price, "L4", purchase="spot"),)
    asked: dict[str, Any] = {"purchases": ("spot",)}
    if restart_s is not None:
        asked["checkpoints"] = CheckpointCosts(write_s=120.0, restart_s=restart_s)
    busy = {"util.kernel_time": 0.98, "mem.used_gib": Statistics(max=10.0)}
    (planned,) = plan(running(a_profile(busy)), offers=(TODAY, good, *slow), **asked).jobs
    assert planned.choice is not None
    assert planned.choice.offer == good


def test_what_keeps_a_job_here_is_said_of_an_option_that_is_fast_enough() -> None:
    """Of an undated offer as fast as today's, not of a cheaper one that nobody would wait for."""
    undated = sold("undated", "1.00", dated=False)
    slow = sold("slow", "0.20", "L4", gpu_memory_gib=24)
    busy = {"util.kernel_time": 0.98, "mem.used_gib": Statistics(max=10.0)}
    (planned,) = plan(running(a_profile(busy)), offers=(TODAY, undated, slow)).jobs
    assert planned.recommended == "o0"
    assert planned.reason is not None
    assert undated.name in planned.reason
    assert "3.5 times as long" in planned.reason, "the cheapest stands on the screen, too"


def test_a_trace_puts_lost_work_on_the_bill() -> None:
    """With a trace lost work and checkpoints are lines of their own, and hours include them."""
    spot = sold("spot", "0.10", purchase="spot")
    trace = Availability(tick_s=600.0, up=(True, True, True, True, True, False) * 400)
    (planned,) = plan(
        running(a_profile()),
        offers=(TODAY, spot),
        purchases=("on_demand", "spot"),
        spot_trace=trace,
    ).jobs
    option = planned.choice
    assert option is not None
    lines = {line.what: line.usd for line in option.quote.lines}
    assert lines["lost-work"] > 0
    assert lines["checkpoint"] > 0
    assert option.hours.mid > 100.0
    assert option.hours.low <= option.hours.mid <= option.hours.high


@pytest.mark.parametrize(("confidence", "chosen"), [("high", "old"), ("low", "fresh")])
def test_prices_are_compared_as_they_were_read(confidence: str, chosen: str) -> None:
    """An old price wins while it is cheaper and pays; of low trust it must at its high end, too."""
    read_on = ASKED_ON - timedelta(days=60)
    offers = (
        sold("old", provider="runpod", as_of=read_on, confidence=confidence, vcpus=8, ram_gib=64),
        sold("fresh", "1.10", provider="lambda", as_of=ASKED_ON),
    )
    today = sold("today", "9.00")
    (planned,) = plan(running(a_profile(), today), offers=(today, *offers)).jobs
    old = next(o for o in planned.options if o.offer.instance_type == "old")
    fresh = next(o for o in planned.options if o.offer.instance_type == "fresh")
    assert old.cost < fresh.cost < fresh.usd_range.high < old.usd_range.high
    assert planned.choice is not None
    assert planned.choice.offer.instance_type == chosen


def test_a_wide_range_does_not_win_by_its_middle_alone() -> None:
    """A dollar less in the middle of a GPU of unsure speed is more in the mean of all draws."""
    faster = predict(a_profile(), gpu="H100-SXM-80GB")
    other = sold("other", f"{0.99 * faster.mid:.4f}", "H100-SXM-80GB", provider="lambda")
    same = sold("same", provider="lambda")
    offers = (TODAY, same, other)
    (planned,) = plan(running(a_profile()), offers=offers, engineer_usd_per_hour=Decimal(0)).jobs
    wide, narrow = (next(o for o in planned.options if o.offer == offer) for offer in (other, same))
    assert wide.cost < narrow.cost < narrow.compared < wide.compared
    assert planned.choice is narrow


def test_an_old_price_must_still_pay_at_its_high_end() -> None:
    """A saving that the age of its price takes away is none."""
    old_read = ASKED_ON - timedelta(days=60)
    old = sold("old", "8.00", provider="runpod", as_of=old_read, vcpus=8, ram_gib=64)
    today = sold("today", "9.00")
    (planned,) = plan(running(a_profile(), today), offers=(today, old)).jobs
    assert planned.recommended == "o0"


def test_spot_on_several_machines_bills_what_several_lose() -> None:
    """A job on two spot machines loses work, and stops, as often as either of them is taken."""
    trace = Availability(tick_s=3600.0, up=(*(True,) * 50, False) * 40)
    lost = {}
    size: dict[str, Any] = {"gpu_count": 8, "interconnect": "nvlink", "network_gbps": 100}
    for nodes in (1, 2):
        today, spot = sold("today", "20.00", **size), sold("spot", purchase="spot", **size)
        profile = running(a_profile(gpu_count=8 * nodes, nodes=nodes), today)
        asked: dict[str, Any] = {"purchases": ("on_demand", "spot"), "spot_trace": trace}
        (planned,) = plan(profile, offers=(today, spot), **asked).jobs
        option = next(o for o in planned.options if o.offer.purchase == "spot")
        assert option.count == nodes
        lost[nodes] = float(option.quote.usage.lost_work_s)
        late = {**asked, "deadline_h": 1000.0, "work_total": 1.0}
        (held,) = plan(_measured(profile), offers=(today, spot), **late).jobs
        assert any("stand at once" in r.detail for r in held.rejected) == (nodes > 1)
    assert lost[2] == pytest.approx(2 * lost[1], rel=0.1)  # of each machine


def _measured(profile: Profile) -> Profile:
    return replace(profile, work=Work(unit="image", rate_per_s=1.0))


@pytest.mark.parametrize("ups", [5, 50, 5000], ids=lambda ups: f"{ups * 10} minutes up")
def test_what_writes_checkpoints_on_spot_is_what_is_billed(ups: int) -> None:
    """The interval that the machine is set to is the one whose time the bill holds."""
    spot = sold("spot", "0.10", purchase="spot")
    trace = Availability(tick_s=600.0, up=(*(True,) * ups, False) * 400)
    (planned,) = plan(
        running(a_profile()),
        offers=(TODAY, spot),
        purchases=("on_demand", "spot"),
        spot_trace=trace,
    ).jobs
    option = planned.choice
    assert option is not None
    every_s = option.machine.checkpoint_every_s
    assert every_s is not None
    usage, write_s = option.quote.usage, CHECKPOINTS.write_s
    assert float(usage.checkpoint_s) == pytest.approx(
        float(usage.duration_s) / every_s * write_s, rel=1e-3
    )


def test_instances_of_a_gpu_are_neither_ranks_nor_the_gpu() -> None:
    """Two instances at 90 and 10 % share no work and say nothing of the whole GPU elsewhere."""
    profile = a_profile({"util.kernel_time": 0.9, "mem.used_gib": 7.8}, gpu_count=1)
    (gpu,) = profile.gpus
    idle = {**gpu.metrics, "util.kernel_time": Statistics(mean=0.1)}
    profile = replace(profile, gpus=(gpu, replace(gpu, metrics=idle)))
    now, cheap = sold("now", "4.00"), sold("cheap", "1.00", gpu="H100-SXM-80GB")
    (job,) = plan(running(profile, now), offers=(now, cheap)).jobs
    assert "imbalanced-gpus" not in {finding.code for finding in job.findings}
    assert job.choice is None
    assert str(job.reason).startswith("2 instances were measured")
