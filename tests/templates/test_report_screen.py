"""The report of one job decides on its first screen; that of many stays within GitHub's length."""

import re
from decimal import Decimal

import msgspec
import pytest

from planner.plan.plan import Plan
from templates.markdown import unbroken
from templates.render import glossed, render_report
from templates.reports.fleet_rows import group_alike
from templates.reports.fleet_screen import fleet_screen, wasted_by_all
from templates.reports.job_screen import saved_words
from tests.gpucost.documents import changed, example
from tests.templates.documents import CASES, planned

GITHUB = 65_536  # characters of a comment or a body
NAME = ("job", "name")


def _breaking(text: str) -> str:
    return text.replace("\N{NON-BREAKING HYPHEN}", "-").replace("\N{NO-BREAK SPACE}", " ")


def _first_table(report: str) -> list[list[str]]:
    lines = _breaking(report).split("\n\n")
    table = next(part for part in lines if part.startswith("|")).splitlines()
    return [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in table]


@pytest.mark.parametrize("case", ["visual-search", "leave-it", "unknown-price", "per-run"])
def test_the_first_table_decides(case: str) -> None:
    """Today and each named option: range, saving, effort, payback, price's day, confidence."""
    plan = planned(*CASES[case])
    (job,) = plan.jobs
    heads, _, *rows = _first_table(render_report(plan))
    assert [re.sub(r" a (month|year|run)", "", head) for head in heads] == [
        "",
        "what",
        "cost (90 % interval)",
        "saves",
        "work (our estimate); payback",
        "price read; confidence",
    ]
    titles = " / ".join(row[0] for row in rows)
    assert rows[0][0].startswith("today")
    for word, id_ in (
        ("recommended", job.recommended),
        ("least effort that pays", job.smallest_change),
        ("cheapest", job.cheapest),
        ("launchable with gpucost", job.first_launchable),
    ):
        option = job.option(id_)
        assert option is None or re.search(rf"{word}[^/]*\({id_}\)", titles), (word, titles)
    shown = {row[0].rpartition("(")[2].rstrip(")"): row for row in rows}
    for option in job.options:
        if option.id in shown:
            cells = shown[option.id]
            assert str(option.offer.as_of) in cells[5]
            assert cells[5].endswith(f"; {option.confidence}")
            assert option.benefit is not None
            assert cells[4].startswith(f"{option.benefit.effort_hours:g} h")


def test_a_year_is_twelve_months_and_payback_is_work_by_saving() -> None:
    """The figures of the recommended row follow from the plan's own: 12 x, and effort / saving."""
    plan = planned(*CASES["visual-search"])
    (job,) = plan.jobs
    best = job.choice
    assert best is not None
    assert best.benefit is not None
    assert best.saves.usd is not None
    row = next(r for r in _first_table(render_report(plan)) if r[0].startswith("recommended"))
    assert row[3] == f"${best.saves.usd * 12:,.0f}"
    days = float(best.benefit.effort_usd / best.saves.usd) * 30.4
    assert row[4].endswith(f"; {days:.0f} days")
    assert plan.roi.payback_days == pytest.approx(days, rel=1e-4)


def test_equal_jobs_are_one_row() -> None:
    """Four jobs of which the same is said are one row and one fold; each is named once there."""
    report = render_report(planned(*CASES["fleet"]))
    assert report.count("| 4 jobs like infer-captions |") == 1
    assert report.count("<summary>4 jobs like infer-captions</summary>") == 1
    assert "Similar jobs: infer-embeddings, infer-moderation, infer-ranking." in report
    assert len(report) < 20_000


def test_runs_of_a_job_are_one_row_whatever_each_costs() -> None:
    """Ten runs of `job` with ten bills are a row of their sum; in months they are ten jobs."""
    monthly = _many(10, 10)
    runs = msgspec.structs.replace(monthly, period="run")
    (row,) = group_alike(runs)
    usd = [job.baseline.cost.total for job in monthly.jobs]
    assert (row.title, row.before) == ("10 runs like job", sum(filter(None, usd)))
    assert fleet_screen(runs).title == "10 runs of job"
    assert "for all 10 runs" in fleet_screen(runs).facts[0].text
    assert len(group_alike(monthly)) == 10


def _many(n: int, kinds: int, name: str = "job") -> Plan:
    """Return a plan of n jobs of so many kinds, by copying that of one job."""
    one = planned((changed(example("visual-search.json"), NAME, "one"),), {})
    (job,) = one.jobs
    jobs = []
    for number in range(n):
        usd = job.baseline.cost.total
        assert usd is not None
        cost = msgspec.structs.replace(job.baseline.cost, total=usd + number % kinds)
        today = msgspec.structs.replace(job.baseline, cost=cost)
        jobs.append(msgspec.structs.replace(job, name=f"{name}-{number}", baseline=today))
    return msgspec.structs.replace(
        one, jobs=tuple(jobs), assumptions=tuple("note " * 90 for _ in range(n))
    )


@pytest.mark.parametrize(("n", "kinds"), [(7, 7), (40, 40), (40, 3), (64, 64), (400, 400)])
@pytest.mark.parametrize("name", ["job", "x" * 300, "|<a>" * 40], ids=["short", "long", "markup"])
def test_many_jobs_fit_into_a_comment(n: int, kinds: int, name: str) -> None:
    """However many and however called: under GitHub's limit, every table whole, the end there."""
    report = render_report(_many(n, kinds, name))
    assert len(report) < GITHUB
    assert len(report.encode()) < 2 * GITHUB
    assert report.count("<details") == report.count("</details>")
    assert report.rstrip().endswith("</details>")
    assert "Assumptions, sources, method" in report
    assert f"GPU cost report: {n} jobs" in report
    if kinds > 60:
        assert re.search(r"\d+ more jobs with smaller savings are in plan.json", report)


def test_words_are_explained_where_they_first_stand() -> None:
    """Each strange word has its meaning at its first use and never again; commands keep theirs."""
    report = render_report(planned(*CASES["visual-search"]))
    assert report.count("*90 % interval*: nine times in ten") == 1
    assert report.index("90 % interval") < report.index("*90 % interval*") < report.index("## Why")
    text = "# a probe\n\nUse `--probe FILE`, a probe, or a probe.\n"
    assert glossed(text) == (
        "# a probe\n\nUse `--probe FILE`, a probe (a short measured run of the job elsewhere), "
        "or a probe.\n"
    )


def test_why_not_names_what_is_asked() -> None:
    """No machine with more GPUs than the job uses, and a reason at most twice."""
    plan = planned(*CASES["visual-search"])
    report = render_report(plan)
    table = report.partition("<summary>Why not another machine</summary>")[2]
    reasons = [line.split("|")[2].strip() for line in table.splitlines() if line.startswith("| ")]
    reasons = reasons[1:]
    assert reasons
    assert "gpu-count" not in reasons
    assert max(map(reasons.count, reasons)) <= 2
    assert f"{len(plan.jobs[0].rejected)} offers were ruled out in total" in table


@pytest.mark.parametrize(
    ("figure", "parts"),
    [
        ("2026-07-20 126 days old; fair", ["2026-07-20", "126 days", "old;", "fair"]),
        ("at least $109 ($40-274)", ["at", "least $109", "($40-274)"]),
        ("5.5 h; 71 days", ["5.5 h;", "71 days"]),
        ("us-east-1, under-used", ["us-", "east-", "1,", "under-", "used"]),
    ],
)
def test_a_narrow_cell_breaks_between_figures_only(figure: str, parts: list[str]) -> None:
    """Where a browser may break a line, at a space or after a hyphen, no figure is in two."""
    found = re.split(r" |(?<=-)", unbroken(figure))
    assert [_breaking(part) for part in found] == parts


def test_the_largest_cause_of_the_waste_says_its_part() -> None:
    """Of $6,379 the first cause has $4,715: both are said; one cause of all of it says no part."""
    causes = {"The GPU is idle.": Decimal(4715), "Requests are few.": Decimal(1664)}
    (line,) = wasted_by_all(causes, Decimal(6379), Decimal(8952))
    assert line.text == "$6,379 (71 %); the largest part, $4,715: The GPU is idle."
    (line,) = wasted_by_all({"The GPU is idle.": Decimal(6379)}, Decimal(6379), Decimal(8952))
    assert line.text == "$6,379 (71 %): The GPU is idle."


def test_a_saving_of_a_bill_with_an_open_part_is_said_in_words() -> None:
    """No sign stands for "at most" on a screen."""
    assert saved_words(0.55, at_most=True) == "saves max 55 %"
    assert saved_words(0.55) == "saves 55 %"
