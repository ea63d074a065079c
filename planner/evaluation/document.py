"""Renders the scores as the page docs/accuracy.md, the same bytes for the same data."""

from collections.abc import Iterable

from planner.evaluation.score import Coverage, Score, Section

_HEAD = """\
# Accuracy

Written by `make accuracy`; do not edit. How far predictions are off on published measurements that
they were not fitted on: whole GPUs, tasks, boxes, clusters or models are left out, never rows.
Errors are the median and the mean of |predicted / measured - 1| in percent, beside a simple
baseline on the same cases and the bar that we set ourselves. The data is not part of the project;
without it `make accuracy` says so and leaves this page as it is.
"""


def page(sections: Iterable[Section]) -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *(_section(section) for section in sections)])


def _section(section: Section) -> str:
    lines = [f"## {section.title}", "", *table(section.scores), ""]
    if section.coverages:
        lines += [*_coverage(section.coverages), ""]
    for remark in section.remarks:
        lines += [remark, ""]
    return "\n".join(lines)


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
