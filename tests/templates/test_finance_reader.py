"""A reader of bills finds five answers on the first screen of a report, those of plan.json.

What do we pay, what would we pay, how sure is that, what must we do, when is it paid back. A screen
is 45 lines of 100 columns, drawn by rich's own markdown.
"""

import html
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
from templates.reports.first_screen import first_screen
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
    answers = {
        "what do we pay": [f"You pay ${whole_dollars(found.cost_before)} a month"],
        "what would we pay": [f"${mid}"],
        "how sure": [*([] if low == high else [f"(${low}-{high})"]), "Confidence"],
        "what must we do": [],
        "when is it paid back": [],
    }
    if not found.saves.usd:
        answers["what must we do"] = ["Advice Keep it"]
        return answers
    answers["what would we pay"].append(f"saves {found.saves.fraction:.0%}".replace("%", " %"))
    if len(plan.jobs) == 1:
        option = plan.jobs[0].choice
        assert option is not None
        assert option.benefit is not None
        assert option.benefit.pays_back_periods is not None
        hours, days = option.benefit.effort_hours, option.benefit.pays_back_periods * DAYS_PER_MONTH
        answers["what must we do"] = [f"Next {option.offer.provider}/"]
        answers["how sure"].append("Confidence fair")
    else:
        assert plan.roi.payback_days is not None
        hours, days = plan.roi.effort_hours, plan.roi.payback_days
        answers["what must we do"] = ["At home share "]
        (level,) = {job.confidence.level for job in plan.jobs if job.confidence}
        answers["how sure"].append(f"{level} for {len(plan.jobs)} of {len(plan.jobs)} jobs")
    answers["when is it paid back"] = [f"{hours:g} h, payback {days:.0f} d"]
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
    assert f": {usd}, saves" in render_report(plan).partition("Confidence")[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_leads_with_the_same_lines(name: str) -> None:
    """Each line of the first screen, and how sure it is, is on the page as in markdown."""
    plan = _plan(name)
    sure = re.search(
        r"^> (Confidence of the advice: .*? jobs\.)", render_report(plan), re.MULTILINE
    )
    page = html.unescape(render_report(plan, style="html"))
    screen = first_screen(plan)
    texts = [line.text for line in (*screen.facts, *screen.notes) if line.kind != "pay"]
    texts += [text for action in screen.actions for text in (action.text, *action.figures)]
    assert [text for text in texts if text not in page] == []
    assert (sure[1] if sure else "fair") in page
