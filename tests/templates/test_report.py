"""The markdown report: reviewed as golden files, whole as markdown, safe with any name."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.document import to_text
from planner.plan.job import Answer
from planner.plan.plan import Plan
from planner.plan.read import read_plan
from pricing.errors import NotBuiltYetError
from pricing.money import show
from templates.markdown import cell
from templates.render import render_report
from tests.gpucost.documents import HOSTILE, changed, inference, training
from tests.planner.plan.kept import PLANS, text_of
from tests.templates.documents import CASES, GOLDEN, planned

FOLDER = Path(__file__).with_name("golden")


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    """Return the plan of every case."""
    return {name: planned(*case) for name, case in CASES.items()}


@pytest.mark.parametrize("case", GOLDEN)
def test_the_report_reads_as_reviewed(
    case: str, plans: dict[str, Plan], *, update_golden: bool
) -> None:
    """The report is the reviewed one to the byte; --update-golden rewrites it."""
    report = render_report(plans[case])
    path = FOLDER / f"{case}.md"
    if update_golden:
        path.write_text(report, encoding="utf-8")
    assert report == path.read_text(encoding="utf-8")


def test_every_golden_file_is_compared() -> None:
    """The folder holds the reviewed reports and nothing that is no longer made."""
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(GOLDEN)


@pytest.mark.parametrize("case", CASES)
def test_the_same_plan_gives_the_same_bytes(case: str, plans: dict[str, Plan]) -> None:
    """Rendering twice gives the same text."""
    assert render_report(plans[case]) == render_report(plans[case])


def _rows(report: str) -> Iterator[list[str]]:
    """Yield each table of a report as its lines."""
    table: list[str] = []
    for line in [*report.splitlines(), ""]:
        if line.startswith("|"):
            table.append(line)
        elif table:
            yield table
            table = []


def _width(line: str) -> int:
    return len(re.sub(r"\\.", "", line).strip("|").split("|"))


@pytest.mark.parametrize("case", CASES)
def test_tables_are_whole(case: str, plans: dict[str, Plan]) -> None:
    """Every table has a heading, a rule, and rows of the same number of cells."""
    tables = list(_rows(render_report(plans[case])))
    assert tables
    for lines in tables:
        assert re.fullmatch(r"\|(:?-+:?\|)+", lines[1]), lines[:2]
        assert {_width(line) for line in lines} == {_width(lines[0])}, lines[0]


def _html(report: str) -> str:
    markdown = pytest.importorskip("markdown_it", reason="no Markdown reader is installed")
    html: str = markdown.MarkdownIt("gfm-like", {"linkify": False}).render(report)
    return html


@pytest.mark.parametrize("case", CASES)
def test_markdown_readers_see_every_table(case: str, plans: dict[str, Plan]) -> None:
    """A GitHub-flavoured reader finds as many tables as were written, and no stray pipe."""
    report = render_report(plans[case])
    html = _html(report)
    assert html.count("<table>") == len(list(_rows(report)))
    assert "|--" not in html


@pytest.mark.parametrize("case", CASES)
def test_folds_are_closed(case: str, plans: dict[str, Plan]) -> None:
    """Every fold that opens closes, with an empty line before what it holds."""
    report = render_report(plans[case])
    assert report.count("<details") == report.count("</details>") > 0
    assert re.search(r"</summary>\n(?!\n)", report) is None


@pytest.mark.parametrize("case", CASES)
def test_nothing_internal_shows(case: str, plans: dict[str, Plan]) -> None:
    """No Python value, no unfilled place and no run of empty lines reaches a reader."""
    report = render_report(plans[case])
    for word in ("None", "Undefined", "{{", "{%", "nan", "Decimal(", "\\n", "\n\n\n"):
        assert word not in report, word
    assert report.endswith("\n")
    assert not any(line != line.rstrip() for line in report.splitlines())


def test_the_first_screen_answers(plans: dict[str, Plan]) -> None:
    """What, how much, how sure and as of when stand in the first twenty lines."""
    top = "\n".join(render_report(plans["visual-search"]).splitlines()[:20])
    assert re.search(r"\*\*You pay\*\* \$[\d,]+ a month", top)
    assert re.search(r"\*\*2 Next\*\* .*: \$\d+ \(\$\d+-\d+\), saves \d+ %", top)
    assert "Confidence" in top
    assert "2026-11-21" in top
    assert "The CPU cannot keep up with the GPU" in top


def test_leave_it_says_so(plans: dict[str, Plan]) -> None:
    """A job that should stay is told to stay, without a return on effort."""
    report = render_report(plans["leave-it"])
    assert "Keep it" in report
    assert "**Return:**" not in report


def test_the_unknown_stays_unknown(plans: dict[str, Plan]) -> None:
    """Where today's price is unknown no saving is claimed, and the way to know it is shown."""
    report = render_report(plans["unknown-price"])
    assert "unknown: --machine sets today's machine" in report
    assert "% less" not in report


def test_what_was_not_measured_is_said(plans: dict[str, Plan]) -> None:
    """With little measured, the report says what to measure and claims no cause."""
    report = render_report(plans["barely-measured"])
    assert "not measured" in report
    assert "## Narrow it down" in report


def test_what_nothing_keeps_is_not_recommended(plans: dict[str, Plan]) -> None:
    """Where even today's machine breaks a limit, "keep it" is not the advice."""
    report = render_report(plans["nothing-fits"])
    assert "eep it" not in report
    assert "no option meets every limit" in report.lower()


def test_a_plan_per_run_speaks_of_runs(plans: dict[str, Plan]) -> None:
    """With a total of work every figure is per run, and none is per month."""
    report = render_report(plans["per-run"])
    assert "a run" in report
    assert "a month" not in report


def test_the_fleet_is_on_top(plans: dict[str, Plan]) -> None:
    """For several jobs the first lines say how few GPUs are enough and who shares one."""
    report = render_report(plans["fleet"])
    assert "**GPUs** 4 -&gt; 1" in report.split("## ")[0]
    assert all(f"infer-{name}" in report for name in ("captions", "ranking"))


def test_the_lines_are_those_of_the_plan(plans: dict[str, Plan]) -> None:
    """Every line of the recommended bill is in the report with its dollars and its source's day."""
    plan = plans["visual-search"]
    (job,) = plan.jobs
    assert job.choice is not None
    report = render_report(plan)
    for line in job.choice.cost.lines:
        assert f"| {line.what} | {show(line.usd)} |" in report
        assert line.as_of in report


NAMES = {
    "markup": HOSTILE,
    "a link": "[click](https://example.org/)",
    "an image": "![x](https://example.org/pixel.png)",
    "a comment": "<!-- -->",
    "a table": "|---|---|\n| a | b |",
    "a fence": "```\nx\n```",
    "the end of a fold": "</details>",
    "backslashes": "a\\|b\\\\|c",
    "a command": "x`; rm -rf ~; `",
    "control characters": "a\x1b[31mb\x07\x00c",
    "a form feed": "a\x0cb\x0b| c |\x85# d\u2028# e",
}
# Where a profile carries free text into a report.
PLACES = {
    "job": ("job", "name"),
    "unit": ("work", "unit"),
    "note": ("provenance", "notes"),
}


@cache
def _plain_report() -> str:
    return render_report(planned((training("plain"),), {}))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_no_text_of_a_profile_is_markup(name: str, place: str) -> None:
    """Free text of a profile breaks no table, opens no HTML, link, image or code, ends no fold."""
    text = NAMES[name]
    value: object = {"note": [text], "unit": f"image {text}"}.get(place, text)
    plain = _plain_report()
    report = render_report(planned((changed(training("plain"), PLACES[place], value),), {}))
    shape = re.compile(r"<(/?(?:table|tr|td|th|details|script|a|img|h1|h2|pre|em|strong))\b")
    added = shape.findall(_html(report))
    wanted = shape.findall(_html(plain))
    if place == "note":  # a note is one more entry of a list
        assert [tag for tag in added if tag in ("script", "a", "img", "table")] == [
            tag for tag in wanted if tag in ("script", "a", "img", "table")
        ]
    else:
        assert added == wanted
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", report)
    assert [len(table) for table in _rows(report)] == [len(table) for table in _rows(plain)]


def test_a_fleet_of_hostile_names_is_whole() -> None:
    """The fleet's tables hold with such names, too."""
    jobs = tuple(inference(f"{HOSTILE}{i}") for i in range(3))
    for lines in _rows(render_report(planned(jobs, {}))):
        assert {_width(line) for line in lines} == {_width(lines[0])}, lines


@pytest.mark.parametrize("name", ["two words", "a;b", "$(x)", "it's", "-f", "über"])
def test_the_next_command_can_be_pasted(name: str) -> None:
    """A command under "Next" names the option as one shell word."""
    import shlex  # noqa: PLC0415 - only here

    plan = planned((training(name),), {})
    *_, line = re.findall(r"`(gpucost quote [^`]*)`", render_report(plan))
    words = shlex.split(line)
    assert words[-1] == f"{name}/{plan.jobs[0].recommended}"
    assert words[-2].startswith("--option")


@given(text=st.text())
def test_a_cell_is_one_cell_of_one_line(text: str) -> None:
    """Any text becomes one line without a bare pipe, a backquote or the start of a tag."""
    shown = cell(text)
    assert len(shown.splitlines()) <= 1
    assert "|" not in re.sub(r"\\.", "", shown)
    assert not set("`<>") & set(shown)


@pytest.mark.parametrize("asked", [{"style": "pdf"}, {"lang": "fr"}], ids=str)
def test_what_is_not_built_is_named(asked: dict[str, str], plans: dict[str, Plan]) -> None:
    """Another style or language of the contract is refused by name."""
    ((option, value),) = asked.items()
    with pytest.raises(NotBuiltYetError, match=f"--{option} {value}"):
        render_report(plans["leave-it"], **asked)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_plan_of_an_earlier_version_still_reads(path: Path) -> None:
    """What an earlier version planned is reported; what it did not say is unknown."""
    plan = read_plan(text_of(path), path.name)
    report = render_report(plan)
    for job in plan.jobs:
        assert job.name in report
        assert (job.confidence is None) == ("Confidence unknown" in report)
        assert ("| net benefit | - | unknown |" in report) == (job.options[0].benefit is None)


@pytest.mark.parametrize("case", CASES)
def test_a_report_is_the_same_made_now_and_read_back(case: str, plans: dict[str, Plan]) -> None:
    """Byte for byte: the report of a plan and the report of its file."""
    back = read_plan(to_text(plans[case]), "plan.json")
    assert render_report(back) == render_report(plans[case])


def test_a_plan_of_an_earlier_version_still_says_what_it_recommends() -> None:
    """Without an answer in the file the first lines name the recommended option and its command."""
    made = planned(*CASES["visual-search"])
    (job,) = made.jobs
    earlier = msgspec.structs.replace(job, answer=Answer())
    report = render_report(msgspec.structs.replace(made, jobs=(earlier,)))
    assert job.choice is not None
    first = report[: report.index("\n|")]
    assert job.choice.offer.instance_type in first
    assert f"--option {job.choice.id}" in first
