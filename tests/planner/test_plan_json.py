"""plan.json has the contract's keys, money as text with cents, and no NaN."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest

from planner.models.document import encode, to_text
from planner.plan.draft import PlanDraft
from planner.plan.making import to_plan
from planner.profile.model import Replicas, Statistics
from pricing.money import cents
from tests.plan_keys import KEYS, at
from tests.planner.factories import TODAY, a_profile, plan, running, sold

THIN = {"util.kernel_time": 0.2, "mem.used_gib": Statistics(max=8.0)}
PACKED_KEYS = {
    "fleet.placements[].relative_speed.a": "low mid high",
    "fleet.unmoved[]": "job reason detail",
}
MONEY = re.compile(r"-?\d+\.\d\d")


def a_plan() -> PlanDraft:
    """Two thin jobs and one that cannot move, with options, refusals and a move."""
    fields: dict[str, Any] = {"unit": "image", "rate_per_s": 250.0, "dataset_gib": 10.0}
    jobs = [running(a_profile(THIN, name=n, kind="inference_offline", **fields)) for n in "ab"]
    jobs.append(running(a_profile(name="c", replicas=Replicas(now=2), **fields)))
    away = sold("away", "1.00", provider="elsewhere")
    return plan(*jobs, offers=(TODAY, away, sold("strangers", "0.50", host="community")))


@pytest.mark.parametrize(("path", "keys"), (KEYS | PACKED_KEYS).items())
def test_the_contracts_keys_are_there(path: str, keys: str) -> None:
    """Every object of plan.json has at least the keys that scripts rely on."""
    found = at(encode(to_plan(a_plan())), path)
    assert found
    for one in found:
        assert set(keys.split()) <= set(one)


def test_money_is_text_with_two_decimals() -> None:
    """Dollars never become floats."""
    document = json.loads(to_text(to_plan(a_plan())))
    paths = (
        "jobs[].baseline.cost.total",
        "jobs[].options[].cost.low",
        "jobs[].options[].cost.mid",
        "jobs[].options[].cost.high",
        "jobs[].options[].saves.usd",
        "jobs[].options[].move.once_usd",
        "jobs[].findings[].waste_usd",
        "fleet.cost_before",
        "fleet.cost_after",
        "fleet.saves.usd",
        "roi.saves_usd",
    )
    for path in paths:
        amounts = at(document, path)
        assert amounts or path.endswith("once_usd")
        assert all(MONEY.fullmatch(amount) for amount in amounts)


def test_it_is_strict_json_in_a_fixed_order() -> None:
    """No NaN, no infinity; the text reads back to the same values."""
    text = to_text(to_plan(a_plan()))

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(text, parse_constant=refuse) == encode(to_plan(a_plan()))
    contract = KEYS[""].split()
    assert list(json.loads(text))[: len(contract)] == contract
    assert text == to_text(to_plan(a_plan()))


def test_sums_hold() -> None:
    """Savings are differences, shares are quotients, lines make the total."""
    document = encode(to_plan(a_plan()))
    for job in document["jobs"]:
        today = Decimal(job["baseline"]["cost"]["total"])
        for option in job["options"]:
            cost, saves = Decimal(option["cost"]["mid"]), Decimal(option["saves"]["usd"])
            assert abs(today - cost - saves) <= Decimal("0.01")
            assert option["saves"]["fraction"] == pytest.approx(float(saves / today), abs=1e-3)
            lines = sum(Decimal(line["usd"]) for line in option["cost"]["lines"])
            assert abs(lines - cost) <= Decimal("0.01") * len(option["cost"]["lines"])
    fleet = document["fleet"]
    placed = sum(Decimal(p["cost"]) for p in fleet["placements"])
    apart = Decimal(document["jobs"][2]["baseline"]["cost"]["total"])
    assert Decimal(fleet["cost_after"]) == placed + apart


def test_without_a_price_and_a_fleet_there_is_null() -> None:
    """Unknown is null, never 0."""
    document = encode(to_plan(plan(a_profile(gpu="Tesla K80", precision="fp32"))))
    (job,) = document["jobs"]
    assert document["fleet"] is None
    assert job["baseline"]["offer"] is None
    assert job["baseline"]["cost"]["total"] is None
    assert job["options"][0]["saves"] == {"usd": None, "fraction": None}
    assert job["options"][0]["cost_per_work"] is None


@pytest.mark.parametrize(
    ("rate", "unit"), [(250.0, "1M image"), (0.01, "1k image"), (0.0001, "image")]
)
def test_cost_per_work_is_for_a_readable_amount(rate: float, unit: str) -> None:
    """A million, a thousand or one unit: whichever the period holds; plain digits."""
    document = encode(to_plan(plan(running(a_profile(unit="image", rate_per_s=rate)))))
    per = document["jobs"][0]["baseline"]["cost_per_work"]
    assert per["unit"] == unit
    units = Decimal({"1M image": 1_000_000, "1k image": 1000, "image": 1}[unit])
    exact = Decimal(200) * units / Decimal(str(rate * 360_000))
    assert Decimal(per["mid"]) == pytest.approx(exact, rel=Decimal("0.001"))


def test_a_tiny_price_of_work_is_written_in_digits() -> None:
    """Money has no exponent: 0.0000006 and not 6E-7."""
    job = running(a_profile(unit="token", rate_per_s=1e12), sold("today", "2.00"))
    per = encode(to_plan(plan(job)))["jobs"][0]["baseline"]["cost_per_work"]
    assert re.fullmatch(r"[\d.]+", per["mid"])
    assert cents(Decimal(per["mid"])) == 0


def test_an_option_without_a_saving_says_so_in_signs() -> None:
    """Dearer options are listed with what they cost more."""
    document = encode(to_plan(plan(running(a_profile()), offers=(TODAY, sold("dear", "3.00")))))
    (option,) = document["jobs"][0]["options"]
    assert option["saves"] == {"usd": "-100.00", "fraction": -0.5}
