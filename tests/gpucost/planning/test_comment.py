"""A comment on GitHub: found again by its marker, what changed apart by cause, gates that speak."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, changed, inference, training

GITHUB = 65_536


@pytest.fixture
def old(call: Call, write: Write) -> dict[str, Any]:
    """Return the plan of two jobs, kept in old.json."""
    names = [str(write(f"{n}.json", one)) for n, one in enumerate((training(), inference("a")))]
    asked = ("--as-of", AS_OF, "-o", "old.json", "-q", "--no-consolidate")
    ran = call("plan", *names, *asked)
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(Path("old.json").read_text())
    return found


def test_the_marker_comes_first_and_shows_nothing(old: dict[str, Any], call: Call) -> None:
    """The first line is one HTML comment, the same in a report and in a diff."""
    assert old["jobs"]
    report = call("report", "old.json", "--style", "github-comment").out
    diff = call("diff", "old.json", "old.json", "--style", "github-comment").out
    marker, _, rest = report.partition("\n")
    assert marker == diff.partition("\n")[0]
    assert marker.startswith("<!--")
    assert marker.endswith("-->")
    assert marker.count("--") == 2
    assert rest == call("report", "old.json").out
    assert call("report", "old.json", "--style", "github-comment").out == report


def test_price_moves_stand_apart_from_usage_moves(
    old: dict[str, Any], call: Call, write: Write
) -> None:
    """A dearer machine is a price move, longer hours a usage move, a new finding is named."""
    base = old["jobs"][0]["baseline"]
    total = base["cost"]["total"]
    longer = changed(old, ("jobs", 0, "baseline", "cost", "total"), f"{float(total) + 100:.2f}")
    longer["jobs"][1]["findings"] = []
    write("new.json", longer)
    text = call("diff", "old.json", "new.json", "--style", "github-comment").out
    assert "(+$100.00; hours +0%, price of an hour +0%)" in text
    assert "| usage changes (same prices) | +$100.00 |" in text
    assert "| price changes (same usage) | +$0.00 |" in text
    assert "| gone finding | job |" in text
    assert old["jobs"][1]["findings"][0]["code"] in text
    report = call("report", "new.json", "--style", "github-comment", "--base", "old.json").out
    assert text.rstrip() in report
    assert report.index("What changed") < report.index("# GPU cost report")


def test_a_comment_of_many_changed_jobs_fits(old: dict[str, Any], call: Call, write: Write) -> None:
    """100 jobs that all changed, with long names: under GitHub's limit, the rest counted."""
    job = {**old["jobs"][0], "rejected": []}  # hundreds of lines each, and no change is of them
    for name, usd in (("old.json", "100.00"), ("new.json", "200.00")):
        cost = {**job["baseline"]["cost"], "total": usd}
        jobs = [
            {**job, "name": f"{'long' * 30}-{n}", "baseline": {**job["baseline"], "cost": cost}}
            for n in range(100)
        ]
        write(name, {**old, "jobs": jobs})
    text = call("report", "new.json", "--style", "github-comment", "--base", "old.json").out
    assert len(text) < GITHUB
    assert "75 more jobs changed by less." in text


@pytest.mark.parametrize(
    "case",
    [
        (("--fail-over", "1"), 7, "is above --fail-over $1.00"),
        (("--fail-over", "1000000"), 0, ""),
        (("--fail-over-increase", "0", "--base", "less.json"), 7, "of less.json"),
        (("--fail-over-increase", "0", "--base", "old.json"), 0, ""),
        (("--fail-over-increase", "10%"), 2, "--base"),
    ],
    ids=str,
)
def test_the_gates_of_a_report(
    case: tuple[tuple[str, ...], int, str], old: dict[str, Any], call: Call, write: Write
) -> None:
    """Over a limit the report is written, exit 7, and the reason is said, also with -q."""
    arguments, code, said = case
    cost = {"low": "0.01", "mid": "0.01", "high": "0.01"}
    write("less.json", changed(old, ("recommended", "cost"), cost))
    for style in ("md", "github-comment"):
        ran = call("report", "old.json", "--style", style, "-q", *arguments)
        assert ran.code == code
        assert said in ran.err
        assert bool(ran.err) == bool(said)
        assert ("GPU cost report" in ran.out) == (code != 2)
