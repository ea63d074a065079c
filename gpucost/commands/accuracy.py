"""`gpucost accuracy`: how far predictions are off on measurements that they were not fitted on."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpucost.output import Output, Table, output_options, print_json, print_table
from gpucost.writing import write_file
from pricing.errors import InputError

if TYPE_CHECKING:
    from planner.evaluation.score import Coverage, Errors, Score

DATA = "../shared/datasets"


@click.command(name="accuracy", epilog="Example: gpucost accuracy --data ../shared/datasets")
@click.option(
    "--data",
    type=click.Path(file_okay=False),
    help=f"Folder of the data sets.  [default: {DATA}]",
)
@click.option("-o", "--output", "target", metavar="FILE", help="Write the page as Markdown, too.")
@output_options
def command(data: str | None, target: str | None, output: Output) -> None:
    """Score predictions on published measurements left out of their fit: whole GPUs, whole tasks.

    The data sets are not part of gpucost: without their folder nothing is scored, and it says so.
    """
    folder = Path(data or DATA)
    if not folder.is_dir():
        if data:
            raise InputError(f"--data {data}: no such folder.")
        output.say(f"skipped: {DATA} is absent, and predictions are scored on the data sets there.")
        return
    from planner.evaluation.document import page  # noqa: PLC0415 - pandas, only here
    from planner.evaluation.report import evaluate  # noqa: PLC0415 - the same

    sections = evaluate(folder)
    scores = [score for section in sections for score in section.scores]
    coverages = [one for section in sections for one in section.coverages]
    if target is not None:
        write_file(target, page(sections))
        output.say(f"wrote {target}")
    if output.format == "json":
        print_json(_document(scores, coverages))
        return
    print_table(_score_table(scores), output)
    print_table(_coverage_table(coverages), output)


def _document(scores: "list[Score]", coverages: "list[Coverage]") -> dict[str, Any]:
    return {
        "schema": "gpucost.accuracy/v1",
        "scores": [
            {
                "question": score.question,
                "cases": score.cases,
                "percent": _errors(score.ours),
                "baseline": score.baseline[0] if score.baseline else None,
                "baseline_percent": _errors(score.baseline[1]) if score.baseline else None,
                "at_most_percent": dict(zip(("median", "mean"), score.bar, strict=True)),
                "verdict": score.verdict if any(score.bar) else None,
            }
            for score in scores
        ],
        "coverages": [
            {
                "question": one.question,
                "inside_fraction": round(one.share, 4),
                "median_factor": round(one.factor, 3),
                "by_group": {name: round(share, 4) for name, share in sorted(one.groups.items())},
            }
            for one in coverages
        ],
    }


def _errors(errors: "Errors") -> dict[str, float]:
    return {"median": round(errors.median, 1), "mean": round(errors.mean, 1)}


def _score_table(scores: "list[Score]") -> Table:
    columns = ("predicted", "cases", "median / mean %", "baseline %", "at most", "")
    rows = tuple(
        (
            score.question,
            str(score.cases),
            str(score.ours),
            str(score.baseline[1]) if score.baseline else "-",
            score.bar_text,
            score.verdict if any(score.bar) else "",
        )
        for score in scores
    )
    return Table(columns=columns, rows=rows, right=frozenset(columns[1:4]))


def _coverage_table(coverages: "list[Coverage]") -> Table:
    rows = tuple(
        (one.question, f"{one.share:.1%}", f"x/÷ {one.factor:.2f}", one.by_group)
        for one in coverages
    )
    return Table(columns=("90 % interval of", "inside", "median factor", "by group"), rows=rows)
