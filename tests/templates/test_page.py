"""The page of a plan: one file, small, asking nothing of anyone; its what-if is Python's."""

import json
import random
import re
import shutil
import subprocess
from fractions import Fraction

import pytest

from planner.documents.what_if import WhatIf, what_if, what_if_table
from planner.plan_document.document import PlanDocument
from templates.render import render_report
from tests.conftest import ROOT
from tests.gpucost.documents import HOSTILE, training
from tests.templates.documents import CASES, planned

SETTINGS = 1_000
MOST_BYTES = 500_000
_RUN = """
const whatIf = require(process.argv[1]);
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.settings.map(([at, one]) => whatIf(asked.tables[at], one))));
"""


@pytest.fixture(scope="module")
def plans() -> dict[str, PlanDocument]:
    """Return the plan of every case."""
    return {name: planned(*case) for name, case in CASES.items()}


def _page(plan: PlanDocument) -> str:
    return render_report(plan, style="html", table=what_if_table(plan))


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_small_and_asks_nobody(case: str, plans: dict[str, PlanDocument]) -> None:
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


def test_as_planned_the_figures_are_the_plans(plans: dict[str, PlanDocument]) -> None:
    """With nothing changed: today, low, mid, high and net benefit are those of plan.json."""
    plan = plans["visual-search"]
    (job,) = plan.jobs
    rate = 10_000
    (found,) = what_if(what_if_table(plan), WhatIf(rate_cents=rate))["jobs"]
    assert found["today"] == job.baseline.cost.total * 100
    for option, one in zip(job.options, found["options"], strict=True):
        cost, worth = option.cost, option.benefit
        assert (one["low"], one["mid"], one["high"]) == (
            cost.low * 100,
            cost.mid * 100,
            cost.high * 100,
        )
        assert worth is not None
        assert worth.net_usd is not None
        assert abs(one["net"] - worth.net_usd * 100) <= 6  # of ends rounded before six months


def test_half_the_hours_halve_what_is_billed_by_time(plans: dict[str, PlanDocument]) -> None:
    """Compute, boot disk and address halve; the volume of the month stays."""
    plan = plans["visual-search"]
    (job,) = plan.jobs
    (found,) = what_if(what_if_table(plan), WhatIf(hours_percent=50))["jobs"]
    lines = {line.what: Fraction(line.usd) for line in job.baseline.cost.lines}
    kept = lines.pop("disk")
    assert found["today"] == round((kept + sum(lines.values()) / 2) * 100)


def _drawn(plans: list[PlanDocument]) -> list[tuple[int, WhatIf]]:
    """Return settings drawn at random, the same each time."""
    draw = random.Random(16)  # noqa: S311 - a test's settings

    def some(values: set[str]) -> frozenset[str] | None:
        kept = frozenset(value for value in sorted(values) if draw.random() < 0.7)
        return kept if draw.random() < 0.5 else None

    found = []
    for _ in range(SETTINGS):
        at = draw.randrange(len(plans))
        options = [option for job in plans[at].jobs for option in job.options]
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


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_works_out_what_python_works_out(plans: dict[str, PlanDocument]) -> None:
    """1,000 random settings over all cases: every cent, best option and reason is the same."""
    every = list(plans.values())
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
    assert json.loads(ran.stdout) == [what_if(tables[at], one) for at, one in drawn]


def test_the_library_is_the_published_one_with_its_licence() -> None:
    """Chart.js lies beside its licence, and says its version."""
    folder = ROOT / "templates/page"
    assert "MIT" in (folder / "chart-licence.md").read_text(encoding="utf-8")
    assert "Chart.js v4.6.1" in (folder / "chart.umd.min.js").read_text(encoding="utf-8")[:200]
