"""A reader of bills finds five answers on the first screen of a report, those of plan.json.

What do we pay, what would we pay, how sure is that, what must we do, when is it paid back. A screen
is 45 lines of 100 columns, drawn by rich's own markdown.
"""

import io
import re
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console
from rich.markdown import Markdown

from planner.plan.plan import Plan
from pricing.money import whole_dollars
from templates.render import render_report
from tests.gpucost.documents import example
from tests.templates.documents import CASES, planned

LINES, COLUMNS = 45, 100
DAYS_PER_MONTH = 365 / 12
EXAMPLES = Path(__file__).parents[2] / "examples"
PODS = sorted(path.name for path in (EXAMPLES / "hard" / "pods-one-machine").glob("*.json"))
NAMES = ("visual-search", "fleet", "leave-it", "pods-one-machine")


@cache
def _plan(name: str) -> Plan:
    if name in CASES:
        return planned(*CASES[name])
    return planned(tuple(example(f"hard/{name}/{pod}") for pod in PODS), {})


def _screen(plan: Plan, lang: str) -> str:
    """Return the first screen as one line, so that a sentence is found wherever it was wrapped."""
    drawn = Console(width=COLUMNS, file=io.StringIO(), color_system=None, legacy_windows=False)
    with drawn.capture() as captured:
        drawn.print(Markdown(render_report(plan, lang=lang)))
    lines = captured.get().splitlines()[:LINES]
    return re.sub(r"\s+", " ", " ".join(line.strip("▌ ") for line in lines))


def _answers(plan: Plan) -> dict[str, list[str]]:
    """Return the words that answer each question, of the values of plan.json."""
    found = plan.recommended
    assert found is not None
    low, mid, high = (whole_dollars(x) for x in (found.cost.low, found.cost.mid, found.cost.high))
    ends = [] if low == high else [f"${low}-{high}"]
    answers = {
        "what do we pay": [f"You pay ${whole_dollars(found.cost_before)} a month"],
        "what would we pay": [f"${mid}"],
        "how sure": [*ends, "Confidence"],
        "what must we do": [],
        "when is it paid back": [],
    }
    if not found.saves.usd:
        answers["what must we do"] = ["Keep it", "Nothing needs to be done"]
        answers["when is it paid back"] = ["there is nothing to pay back"]
        return answers
    bound = "at least " if found.at_least else ""
    answers["what would we pay"] = [f"Expected: {bound}${mid} a month"]
    if not ends:
        answers["how sure"].append("no range: fewer of today's machines at today's price")
    if len(plan.jobs) == 1:
        option = plan.jobs[0].choice
        assert option is not None
        assert option.benefit is not None
        assert option.benefit.pays_back_periods is not None
        hours, days = option.benefit.effort_hours, option.benefit.pays_back_periods * DAYS_PER_MONTH
        answers["what must we do"] = [f"Run it on {option.offer.provider}/"]
        answers["how sure"].append("Confidence fair")
    else:
        assert plan.roi.payback_days is not None
        hours, days = plan.roi.effort_hours, plan.roi.payback_days
        answers["what must we do"] = [f"{', '.join(found.packed)} share"]
        (level,) = {job.confidence.level for job in plan.jobs if job.confidence}
        answers["how sure"].append(f"{level} for {len(plan.jobs)} of {len(plan.jobs)} jobs")
    answers["what must we do"].append(f"Work: {hours:g} h (our estimate)")
    answers["when is it paid back"] = [f"Payback: {days:.0f} days"]
    return answers


@pytest.mark.parametrize("name", NAMES)
def test_a_finance_reader_finds_five_answers_on_the_first_screen(name: str) -> None:
    """Dollars, range, action and days are within 45 lines of 100 columns, equal to plan.json."""
    plan = _plan(name)
    screen = _screen(plan, "en")
    missing = {
        question: words
        for question, each in _answers(plan).items()
        if (words := [word for word in each if word not in screen])
    }
    assert not missing, screen


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_of_the_answers_are_the_same_in_chinese(name: str) -> None:
    """Dollars, ranges, hours and days that answer in English stand on the Chinese screen, too."""
    plan = _plan(name)
    screen = _screen(plan, "zh")
    wanted = " ".join(word for words in _answers(plan).values() for word in words)
    figures = re.findall(r"\$[\d,]+(?:-[\d,]+)?|[\d.]+(?= h\b)|\d+(?= days)", wanted)
    assert len(figures) >= 2
    assert not [figure for figure in figures if figure not in screen], screen


def test_a_range_of_one_dollar_is_one_figure() -> None:
    """A bill whose ends are the same dollar is told once, not as `$746-746`."""
    plan = planned((example("hard/embeddings-low-load.json"),), {})
    option = plan.jobs[0].choice
    assert option is not None
    usd = f"${whole_dollars(option.cost.mid)}"
    assert whole_dollars(option.cost.low) == whole_dollars(option.cost.high)
    first, advice, *_ = render_report(plan).split("\n> ")[1:]
    assert f": {usd} a month" in advice, first


@pytest.mark.parametrize("name", NAMES)
def test_the_page_leads_with_the_same_line(name: str) -> None:
    """What is to be expected, and how sure, stand on the page before "What if" as in markdown."""
    plan = _plan(name)
    report = render_report(plan)
    line = re.search(r"^> ((?:Expected|Nothing needs).*)$", report, re.MULTILINE)
    sure = re.search(r"^> (Confidence of the advice: .*? jobs\.)", report, re.MULTILINE)
    assert line is not None
    page = render_report(plan, style="html").replace("&#39;", "'")
    top = page[page.index("<main>") : page.index("<h2>What if")]
    assert f'<p class="lead">{line[1]}</p>' in top
    assert (sure[1] if sure else "<td>fair</td>") in top
