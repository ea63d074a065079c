"""The page of a plan: one file, small, asking nothing of anyone; its what-if is Python's."""

import json
import random
import re
import shutil
import subprocess
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from planner.documents.what_if import WhatIf, exact, what_if, what_if_table
from planner.plan.making import to_plan
from planner.plan.plan import Plan
from templates.render import render_report
from tests.conftest import ROOT
from tests.gpucost.documents import HOSTILE, training
from tests.planner.factories import TODAY, plan, sold
from tests.planner.packing.test_one_answer import EIGHT, cheap, four, job
from tests.templates.documents import CASES, planned

SETTINGS = 1_000
MOST_BYTES = 500_000
_RUN = """
const whatIf = require(process.argv[1]);
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.settings.map(([at, one]) => whatIf(asked.tables[at], one))));
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
    return render_report(made, style="html", table=what_if_table(made))


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


def test_names_are_text() -> None:
    """A hostile name opens no tag and ends no script."""
    plain, hostile = (_page(planned((training(name),), {})) for name in ("plain", HOSTILE))
    tags = re.compile(r"</?[a-z][a-z0-9]*\b")
    assert tags.findall(plain) == tags.findall(hostile)


def test_as_planned_the_figures_are_the_plans(plans: dict[str, Plan]) -> None:
    """With nothing changed: today, low, mid, high and net benefit are those of plan.json."""
    made = plans["visual-search"]
    (known,) = made.jobs
    rate = 10_000
    (found,) = what_if(what_if_table(made), WhatIf(rate_cents=rate))["jobs"]
    assert found["today"] == known.baseline.cost.total * 100
    for option, one in zip(known.options, found["options"], strict=True):
        cost, worth = option.cost, option.benefit
        assert (one["low"], one["mid"], one["high"]) == (
            cost.low * 100,
            cost.mid * 100,
            cost.high * 100,
        )
        assert worth is not None
        assert worth.net_usd is not None
        assert abs(one["net"] - worth.net_usd * 100) <= 6  # of ends rounded before six months


def test_half_the_hours_halve_what_is_billed_by_time(plans: dict[str, Plan]) -> None:
    """Compute, boot disk and address halve; the volume of the month stays."""
    made = plans["visual-search"]
    (known,) = made.jobs
    (found,) = what_if(what_if_table(made), WhatIf(hours_percent=50))["jobs"]
    lines = {line.what: Fraction(line.usd) for line in known.baseline.cost.lines}
    kept = lines.pop("disk")
    assert found["today"] == round((kept + sum(lines.values()) / 2) * 100)


def _drawn(plans: list[Plan]) -> list[tuple[int, WhatIf]]:
    """Return settings drawn at random, the same each time."""
    draw = random.Random(16)  # noqa: S311 - a test's settings

    def some(values: set[str]) -> frozenset[str] | None:
        kept = frozenset(value for value in sorted(values) if draw.random() < 0.7)
        return kept if draw.random() < 0.5 else None

    found = []
    for _ in range(SETTINGS):
        at = draw.randrange(len(plans))
        options = [option for one in plans[at].jobs for option in one.options]
        one = WhatIf(
            hours_percent=draw.randint(1, 200),
            price_percent=draw.randint(-60, 150),
            rate_cents=draw.randint(0, 40_000),
            providers=some({option.offer.provider for option in options}),
            purchases=some({option.offer.purchase for option in options}),
            cures=some({code for option in options for code in option.actions}),
        )
        found.append((at, one))
    return found


def other_way(table: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Return whether some job is told something else than in the plan."""
    jobs = zip(table["jobs"], found["jobs"], strict=True)
    return any(told["advice"] != job["recommended"] for job, told in jobs)


def test_as_planned_the_total_is_the_plans(plans: dict[str, Plan]) -> None:
    """With nothing changed: the one total, who shares, and what each job is told."""
    for plan_made in [*plans.values(), *_fleets()]:
        table = what_if_table(plan_made)
        found = what_if(table, WhatIf(rate_cents=table["rate_cents"]))
        total = plan_made.recommended
        assert total is not None
        assert found["total"] == total.cost.mid * 100
        assert found["today"] == total.cost_before * 100
        assert tuple(found["packed"]) == total.packed
        assert [job["advice"] for job in found["jobs"]] == [j.recommended for j in plan_made.jobs]


def test_sharing_ends_where_it_costs_more_or_is_left_out() -> None:
    """At home a job's own way may get cheaper; elsewhere the price or the provider may be out."""
    offers = (TODAY, cheap("0.50"))
    made = plan(*four(), offers=offers, engineer_usd_per_hour=Decimal(0))
    table = what_if_table(to_plan(made))
    assert made.recommended.alternative is not None
    moved = what_if(table, WhatIf(rate_cents=0))
    assert (moved["packing"], moved["packed"]) == (1, ["j0", "j1", "j2", "j3"])
    dear = what_if(table, WhatIf(rate_cents=0, price_percent=400))
    assert (dear["packing"], dear["total"]) == (0, made.fleet.cost_after * 100 if made.fleet else 0)
    here = what_if(table, WhatIf(rate_cents=0, providers=frozenset()))
    assert (here["packing"], here["total"]) == (0, dear["total"])
    assert [one["out"] for one in here["groups"][1]] == ["provider"]


def test_amounts_are_written_exactly() -> None:
    """A sum of amounts keeps every digit, whatever its size and sign."""
    for text in ("0", "0.1", "-12.345678901234567890123456789012", "1000000", "-0.05"):
        assert exact(Decimal(text)) == text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_works_out_what_python_works_out(plans: dict[str, Plan]) -> None:
    """1,000 random settings over all cases: every cent, best option and reason is the same."""
    every = [*plans.values(), *_fleets()]
    tables = [what_if_table(plan) for plan in every]
    drawn = _drawn(every)
    names = WhatIf.__slots__
    asked = [
        (at, {n: sorted(v) if isinstance(v := getattr(one, n), frozenset) else v for n in names})
        for at, one in drawn
    ]
    script = str(ROOT / "templates/page/what_if.js")
    ran = subprocess.run(
        [str(shutil.which("node")), "-e", _RUN, script],
        input=json.dumps({"tables": tables, "settings": asked}),
        capture_output=True,
        text=True,
        check=True,
    )
    own = [what_if(tables[at], one) for at, one in drawn]
    assert json.loads(ran.stdout) == own
    assert {one["packing"] for one in own} == {None, 0, 1}
    assert any(group["out"] for one in own for groups in one["groups"] for group in groups)
    assert any(job["advice"] not in {"o0", job["best"]} for one in own for job in one["jobs"])
    assert any(other_way(tables[at], found) for (at, _), found in zip(drawn, own, strict=True))


def test_the_library_is_the_published_one_with_its_licence() -> None:
    """Chart.js lies beside its licence, and says its version."""
    folder = ROOT / "templates/page"
    assert "MIT" in (folder / "chart-licence.md").read_text(encoding="utf-8")
    assert "Chart.js v4.6.1" in (folder / "chart.umd.min.js").read_text(encoding="utf-8")[:200]
