"""The page of a plan: one file, small, asking nothing of anyone; its what-if is Python's."""

import json
import random
import re
import shutil
import subprocess
from decimal import Decimal
from typing import Any

import pytest

from planner.plan.making import to_plan
from planner.plan.plan import Plan
from pricing.money import cents
from templates.page.whole_page import steps, tiles
from templates.render import render_report
from templates.reports.first_screen import first_screen
from tests.conftest import ROOT
from tests.gpucost.documents import HOSTILE, training
from tests.page_table import page_table, page_total, usd
from tests.planner.factories import TODAY, plan, sold
from tests.planner.packing.test_one_answer import EIGHT, cheap, four, job
from tests.templates.documents import CASES, planned

MOST_BYTES = 150_000
_RUN = """
const whatIf = require(process.argv[1]);
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.map(([table, settings]) => whatIf(table, settings))));
"""


FLEETS = 12


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    """Return the plan of every case."""
    return {name: planned(*case) for name, case in CASES.items()}


def _fleets() -> list[Plan]:
    """Return plans of fleets drawn at random, the same each time: some share, some move to it."""
    draw = random.Random(15)  # noqa: S311 - a test's fleets
    large = sold("large", "2.60", "H200-SXM-141GB", gpu_memory_gib=141, provider="elsewhere")
    found = []
    for _ in range(FLEETS):
        jobs = [
            job(
                f"j{number}",
                busy=draw.choice((0.05, 0.2, 0.45)),
                gib=draw.choice((4.0, 20.0, 60.0)),
                on=(on := draw.choice((TODAY, EIGHT))),
                hours=draw.choice((100.0, 700.0)),
                machine=draw.choice(("m1", "m2")) if on is EIGHT else None,
            )
            for number in range(draw.randint(3, 8))
        ]
        offers = (TODAY, EIGHT, cheap(draw.choice(("0.10", "0.90", "1.50"))), large)
        rate = Decimal(draw.choice((0, 20, 100)))
        found.append(to_plan(plan(*jobs, offers=offers, engineer_usd_per_hour=rate)))
    return found


def _page(made: Plan) -> str:
    return render_report(made, style="html")


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_small_and_asks_nobody(case: str, plans: dict[str, Plan]) -> None:
    """Under 500 KB, the same twice, and nothing in it that a browser would fetch."""
    page = _page(plans[case])
    assert len(page.encode()) < MOST_BYTES
    assert page == _page(plans[case])
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href|srcset|action)\s*=|url\(|@import", markup)
    assert "default-src 'none'" in page
    assert "sourceMappingURL" not in page


@pytest.mark.parametrize("case", CASES)
def test_each_action_stands_beside_its_own_dollars(case: str, plans: dict[str, Plan]) -> None:
    """A bar shows the expected bill of the action that it belongs to, as the first screen does."""
    screen = first_screen(plans[case])
    for action, bar in zip(screen.actions, steps(screen, plans[case]), strict=True):
        if action.cost is not None:
            assert action.figures[0].removeprefix("at least ").startswith(bar.text)


def test_a_machine_elsewhere_is_no_change_on_todays() -> None:
    """A job that stays, and has no cure here, is not told what another machine would cost."""
    offers = (TODAY, sold("other", "1.50", provider="elsewhere"))
    made = to_plan(plan(job("j", busy=0.99, gib=60.0, on=TODAY), offers=offers))
    assert [action.label for action in first_screen(made).actions] == ["Cheapest"]
    assert [tile.label for tile in tiles(made)] == ["You pay"]


def test_names_are_text() -> None:
    """A hostile name opens no tag and ends no script."""
    plain, hostile = (_page(planned((training(name),), {})) for name in ("plain", HOSTILE))
    tags = re.compile(r"</?[a-z][a-z0-9]*\b")
    assert tags.findall(plain) == tags.findall(hostile)


@pytest.fixture(scope="module")
def every(plans: dict[str, Plan]) -> list[Plan]:
    """Return the plans of all cases, and of fleets drawn at random."""
    return [*plans.values(), *_fleets()]


def test_as_planned_the_figures_are_the_plans(every: list[Plan]) -> None:
    """The pieces of every option sum up to its low end, expected bill and high end, to the cent."""
    for made in every:
        for planned_job, of_job in zip(made.jobs, page_table(made)["jobs"], strict=True):
            today = of_job["today"]
            assert (today and cents(usd(today))) == planned_job.baseline.cost.total
            for option, of_option in zip(planned_job.options, of_job["options"], strict=True):
                cost = option.cost
                assert [cents(usd(end)) for end in of_option["usd"]] == [
                    cost.low,
                    cost.mid,
                    cost.high,
                ]


def test_as_planned_the_total_is_the_plans(every: list[Plan]) -> None:
    """Groups that share and the jobs alone sum up to the one total."""
    for made in every:
        assert made.recommended is not None
        assert page_total(made) == (made.recommended.cost_before, made.recommended.cost.mid)


def test_half_the_hours_halve_what_is_billed_by_time(plans: dict[str, Plan]) -> None:
    """Compute, boot disk and address halve; the volume of the month stays."""
    made = plans["visual-search"]
    (job,) = made.jobs
    lines = {line.what: Decimal(line.usd) for line in job.baseline.cost.lines}
    volume = lines.pop("disk")
    (of_job,) = page_table(made)["jobs"]
    assert cents(usd(of_job["today"], hours=Decimal("0.5"))) == cents(
        volume + sum(lines.values()) / 2
    )


def _what_if(asked: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return what the page's own script says of tables at settings."""
    plain = {"hours": 1, "price": 1, "provider": None, "purchase": None, "cure": None}
    given = [(table, {**plain, "rate": table["rate"], **settings}) for table, settings in asked]
    ran = subprocess.run(
        [str(shutil.which("node")), "-e", _RUN, str(ROOT / "templates/page/page.js")],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def _cents(amount: float) -> Decimal:
    return cents(Decimal(str(round(amount, 6))))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_begins_with_the_plan(every: list[Plan]) -> None:
    """Nothing moved: the script shows the plan's total, who shares, and each job's advice."""
    found = _what_if([(page_table(made), {}) for made in every])
    for made, shown in zip(every, found, strict=True):
        total = made.recommended
        assert total is not None
        assert (_cents(shown["today"]), _cents(shown["mid"])) == (total.cost_before, total.cost.mid)
        assert tuple(sorted(job["name"] for job in shown["jobs"] if job["shares"])) == total.packed
        advice = [job["own"]["id"] if job["own"] else "o0" for job in shown["jobs"]]
        assert advice == [job.recommended for job in made.jobs]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_sliders_and_ticks_move_what_they_say(plans: dict[str, Plan]) -> None:
    """Hours scale by time, the price scales other machines, an unticked seller is out."""
    made = plans["visual-search"]
    table = page_table(made)
    job = made.jobs[0]
    assert job.choice is not None
    seller = job.choice.offer.provider
    sellers = sorted({option.offer.provider for option in job.options} - {seller})
    half, dear, without = _what_if(
        [(table, {"hours": 0.5}), (table, {"price": 100}), (table, {"provider": sellers})]
    )
    assert _cents(half["today"]) == cents(usd(table["jobs"][0]["today"], hours=Decimal("0.5")))
    assert {
        way["id"] for way in dear["jobs"][0]["ways"] if way["leaves"] and way["net"] > 0
    } == set()
    assert {way["id"] for way in without["jobs"][0]["ways"] if way["out"] == "provider"} == {
        option.id for option in job.options if option.offer.provider == seller
    }


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_sharing_ends_where_it_costs_more_or_is_left_out() -> None:
    """Elsewhere the price or the provider may be out: each job goes its own way again."""
    offers = (TODAY, cheap("0.50"))
    made = to_plan(plan(*four(), offers=offers, engineer_usd_per_hour=Decimal(0)))
    table = page_table(made)
    planned, dear, left_out = _what_if(
        [(table, {}), (table, {"price": 100}), (table, {"provider": []})]
    )
    assert [job["shares"] for job in planned["jobs"]] == [True] * 4
    for other in (dear, left_out):
        assert [job["shares"] for job in other["jobs"]] == [False] * 4
        assert _cents(other["mid"]) == _cents(other["today"])
