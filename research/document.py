"""Renders the scores as the page docs/accuracy.md, the same bytes for the same data."""

from collections.abc import Iterable, Sequence

from planner.documents.accuracy import (
    SCHEMA,
    ClassScore,
    CoverageScore,
    ErrorPercent,
    MostPercent,
    QuestionScore,
    ShippedAccuracy,
)
from research.score import Coverage, Errors, Row, Score, Section

_HEAD = """\
# Accuracy

Written by `make accuracy`; do not edit. How far predictions are off on published measurements that
they were not fitted on: whole GPUs, tasks, boxes, clusters or models are left out, never rows.
Errors are the median and the mean of |predicted / measured - 1| in percent, beside a simple
baseline on the same cases and the bar that we set ourselves. Where four baselines stand beside it,
a prediction holds if it is the best or within half a point of it, and the 90 % interval of a class
if 87 to 93 % of the cases lie inside. The data is not part of the project; without it
`gpucost accuracy` shows these figures as they shipped.
"""


def page(sections: Iterable[Section]) -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *(_section(section) for section in sections)])


def document(sections: Sequence[Section]) -> ShippedAccuracy:
    """Return what JSON says of the sections, and what ships with the package."""
    return ShippedAccuracy(
        schema=SCHEMA,
        rows=tuple(_row(row) for section in sections for row in section.rows),
        scores=tuple(_score(score) for section in sections for score in section.scores),
        coverages=tuple(_covered(one) for section in sections for one in section.coverages),
    )


def _row(row: Row) -> ClassScore:
    return ClassScore(
        work=row.work,
        measured=row.measured,
        left_out=row.left_out,
        cases=row.cases,
        groups=row.groups,
        percent=_errors(row.ours),
        inside_fraction=round(row.inside, 4),
        median_factor=round(row.factor, 3),
        baseline_percent={name: _errors(one) for name, one in row.baselines.items()},
        misses=tuple(row.misses),
    )


def _score(score: Score) -> QuestionScore:
    median, mean = score.bar
    return QuestionScore(
        question=score.question,
        cases=score.cases,
        percent=_errors(score.ours),
        baseline=score.baseline[0] if score.baseline else None,
        baseline_percent=_errors(score.baseline[1]) if score.baseline else None,
        at_most_percent=MostPercent(median=median, mean=mean),
        verdict=score.verdict if any(score.bar) else None,
    )


def _covered(one: Coverage) -> CoverageScore:
    return CoverageScore(
        question=one.question,
        inside_fraction=round(one.share, 4),
        median_factor=round(one.factor, 3),
        by_group={name: round(share, 4) for name, share in sorted(one.groups.items())},
    )


def _errors(found: Errors) -> ErrorPercent:
    return ErrorPercent(median=round(found.median, 1), mean=round(found.mean, 1))


def _section(section: Section) -> str:
    lines = [f"## {section.title}", ""]
    if section.rows:
        lines += [*by_class(section.rows), ""]
    if section.scores:
        lines += [*table(section.scores), ""]
    if section.coverages:
        lines += [*_coverage(section.coverages), ""]
    for note in section.notes:
        lines += [note, ""]
    return "\n".join(lines)


def by_class(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a Markdown table of rows: class, set, errors beside every baseline."""
    names = list(rows[0].baselines)
    head = ("class", "measured", "left out", "cases", "ours", "inside", "x/÷", *names, "")
    lines = [
        "| " + " | ".join(head) + " |",
        "|---|---|---|" + "---:|" * (len(head) - 4) + "---|",
    ]
    for row in rows:
        cells = (
            row.work,
            row.measured,
            row.left_out,
            str(row.cases),
            str(row.ours),
            f"{row.inside:.1%}",
            f"{row.factor:.2f}",
            *(str(row.baselines[name]) for name in names),
            "missed: " + "; ".join(row.misses) if row.misses else "held",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def table(scores: Iterable[Score]) -> list[str]:
    """Return the lines of a Markdown table of scores."""
    rows = [
        "| predicted | cases | ours | baseline | at most | |",
        "|---|---:|---:|---|---:|---|",
    ]
    for score in scores:
        baseline = f"{score.baseline[1]} ({score.baseline[0]})" if score.baseline else "-"
        asked = any(bar is not None for bar in score.bar)
        note = f"; {score.note}" if score.note else ""
        cells = (
            f"{score.question}{note}",
            str(score.cases),
            str(score.ours),
            baseline,
            score.bar_text,
            score.verdict if asked else "",
        )
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def _coverage(coverages: Iterable[Coverage]) -> list[str]:
    head = ("| 90 % interval | inside | median factor | inside by group |", "|---|---:|---:|---|")
    rows = (
        f"| {one.question} | {one.share:.1%} | x/÷ {one.factor:.2f} | {one.by_group} |"
        for one in coverages
    )
    return [*head, *rows]
