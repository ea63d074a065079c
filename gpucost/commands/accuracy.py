"""`gpucost accuracy`: how far predictions are off on measurements that they were not fitted on."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from gpucost.files.writing import write_file
from gpucost.views.output import Output, Table, output_options, print_json, print_table
from pricing.errors import InputError

DATA = "../shared/datasets"
_SHIPPED = "accuracy.json"


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

    The data sets are not part of gpucost: without their folder the scores that shipped are shown.
    """
    folder = Path(data or DATA)
    if folder.is_dir():
        document = _scored(folder, target, output)
    elif data:
        raise InputError(f"--data {data}: no such folder.")
    else:
        document = json.loads(files("planner.models.data").joinpath(_SHIPPED).read_text("utf-8"))
        output.say(f"{DATA} is absent: these are the scores that shipped, none is new.")
        if target is not None:
            output.say(f"{target} is not written: a page needs the data sets.")
    if output.format == "json":
        print_json(document)
        return
    print_table(_class_table(document["rows"]), output)
    print_table(_score_table(document["scores"]), output)
    print_table(_coverage_table(document["coverages"]), output)


def _scored(folder: Path, target: str | None, output: Output) -> dict[str, Any]:
    from planner.evaluation.document import document, page  # noqa: PLC0415 - pandas, only here
    from planner.evaluation.report import evaluate  # noqa: PLC0415 - the same

    sections = evaluate(folder)
    if target is not None:
        write_file(target, page(sections))
        output.say(f"wrote {target}")
    return document(sections)


def _class_table(rows: list[dict[str, Any]]) -> Table:
    names = tuple(rows[0]["baseline_percent"]) if rows else ()
    columns = ("class", "measured", "left out", "cases", "ours %", "inside", "x/÷", *names, "")
    lines = tuple(
        (
            row["class"],
            row["set"],
            row["left_out"],
            str(row["cases"]),
            _percent(row["percent"]),
            f"{row['inside_fraction']:.1%}",
            f"{row['median_factor']:.2f}",
            *(_percent(row["baseline_percent"][name]) for name in names),
            "missed: " + "; ".join(row["misses"]) if row["misses"] else "held",
        )
        for row in rows
    )
    return Table(columns=columns, rows=lines, right=frozenset(columns[3:-1]))


def _percent(found: dict[str, float]) -> str:
    return f"{found['median']:.1f} / {found['mean']:.1f}"


def _score_table(scores: list[dict[str, Any]]) -> Table:
    columns = ("predicted", "cases", "median / mean %", "baseline %", "at most", "")
    rows = tuple(
        (
            score["question"],
            str(score["cases"]),
            _percent(score["percent"]),
            _percent(score["baseline_percent"]) if score["baseline_percent"] else "-",
            _bar(score["at_most_percent"]),
            score["verdict"] or "",
        )
        for score in scores
    )
    return Table(columns=columns, rows=rows, right=frozenset(columns[1:4]))


def _bar(bar: dict[str, float | None]) -> str:
    if not any(bar.values()):
        return "-"
    return " / ".join("-" if value is None else f"{value:g}" for value in bar.values())


def _coverage_table(coverages: list[dict[str, Any]]) -> Table:
    rows = tuple(
        (
            one["question"],
            f"{one['inside_fraction']:.1%}",
            f"x/÷ {one['median_factor']:.2f}",
            ", ".join(f"{name} {share:.0%}" for name, share in one["by_group"].items()),
        )
        for one in coverages
    )
    return Table(columns=("90 % interval of", "inside", "median factor", "by group"), rows=rows)
