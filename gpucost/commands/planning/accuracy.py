"""`gpucost accuracy`: how far predictions are off on measurements left out of their fit."""

import math
from collections.abc import Sequence

import click

from gpucost.arguments.parameters import options
from gpucost.files.outcomes import NAME, read_outcomes
from gpucost.files.writing import state_folder
from gpucost.views.output import Output, Table, output_options, print_if_json, print_table
from planner.documents import accuracy
from planner.models.track_record import Correction, PastPrediction, track_record
from planner.proof.outcome import OwnAccuracy, OwnRecord, own_record


@click.command(name="accuracy", epilog="Example: gpucost accuracy")
@options("mine")
@output_options
def command(output: Output, *, mine: bool) -> None:
    """Show prediction errors on held-out measurements.

    Whole GPUs and whole tasks were held out. The scores ship with this version; the data sets do
    not. --mine shows your own record, which stays on this machine.
    """
    if mine:
        _print_mine(output)
        return
    shipped = accuracy.shipped_accuracy()
    if print_if_json(shipped, output):
        return
    print_table(_class_table(shipped.rows), output)
    print_table(_score_table(shipped.scores), output)
    print_table(_coverage_table(shipped.coverages), output)


def _print_mine(output: Output) -> None:
    path = state_folder() / NAME
    outcomes = read_outcomes(path)
    record = own_record(str(path), outcomes, track_record(str(path), outcomes))
    if not print_if_json(record, output):
        print_own_record(record, output)


def _class_table(rows: Sequence[accuracy.ClassScore]) -> Table:
    names = tuple(rows[0].baseline_percent) if rows else ()
    columns = ("class", "measured", "left out", "cases", "ours %", "inside", "factor", *names, "")
    lines = tuple(
        (
            row.work,
            row.measured,
            row.left_out,
            str(row.cases),
            _percent(row.percent),
            f"{row.inside_fraction:.1%}",
            f"{row.median_factor:.2f}",
            *(_percent(row.baseline_percent[name]) for name in names),
            "missed: " + "; ".join(row.misses) if row.misses else "held",
        )
        for row in rows
    )
    return Table(columns=columns, rows=lines, right=frozenset(columns[3:-1]))


def _percent(error: accuracy.ErrorPercent) -> str:
    return f"{error.median:.1f} / {error.mean:.1f}"


def _score_table(scores: Sequence[accuracy.QuestionScore]) -> Table:
    columns = ("predicted", "cases", "median / mean %", "baseline %", "at most", "")
    rows = tuple(
        (
            score.question,
            str(score.cases),
            _percent(score.percent),
            _percent(score.baseline_percent) if score.baseline_percent else "-",
            _bar(score.at_most_percent),
            score.verdict or "",
        )
        for score in scores
    )
    return Table(columns=columns, rows=rows, right=frozenset(columns[1:4]))


def _bar(bar: accuracy.MostPercent) -> str:
    limits = (bar.median, bar.mean)
    if not any(limits):
        return "-"
    return " / ".join("-" if value is None else f"{value:g}" for value in limits)


def _coverage_table(coverages: Sequence[accuracy.CoverageScore]) -> Table:
    rows = tuple(
        (
            score.question,
            f"{score.inside_fraction:.1%}",
            f"{score.median_factor:.2f}x",
            ", ".join(f"{name} {share:.0%}" for name, share in score.by_group.items()),
        )
        for score in coverages
    )
    return Table(columns=("90 % interval of", "inside", "median factor", "by group"), rows=rows)


_SHOWN = 20


def print_own_record(record: OwnRecord, output: Output) -> None:
    """Print the hit rates, then the outcomes, the last ones first."""
    columns = (
        "predictions",
        "outcomes",
        "held",
        "95 % interval",
        "median off",
        "measured / predicted",
    )
    rows = tuple(_rate(row) for row in record.rows if row.outcomes)
    print_table(Table(columns=columns, rows=rows, right=frozenset(columns[1:])), output)
    if not record.outcomes:
        output.say(
            f"nothing recorded yet in {record.file}: `gpucost verify BEFORE AFTER --plan PLAN` "
            "records the outcome of a prediction."
        )
        return
    latest = sorted(record.outcomes, key=lambda outcome: outcome.recorded, reverse=True)[:_SHOWN]
    shown = ("recorded", "option", "predicted", "measured", "held", "verdict")
    table = Table(columns=shown, rows=tuple(map(_outcome, latest)), right=frozenset(shown[2:4]))
    print_table(table, output)
    for where, outcome in (
        ("on today's GPUs", record.record.same_machine),
        ("on other GPUs", record.record.moved),
    ):
        if outcome.outcomes:
            output.say(f"`plan --history {record.file}`, {where}: {_summary(outcome)}.")


def _rate(row: OwnAccuracy) -> tuple[str, ...]:
    ends = f"{row.held_low or 0.0:.0%} to {row.held_high or 0.0:.0%}"
    off = "" if row.error_percent is None else f"{row.error_percent:.1f} %"
    factor = "" if row.factor is None else f"{row.factor:.2f}"
    share = f"{row.held} ({row.held_fraction or 0.0:.0%})"
    return (row.sort, str(row.outcomes), share, ends, off, factor)


def _outcome(outcome: PastPrediction) -> tuple[str, ...]:
    predicted = outcome.predicted
    return (
        f"{outcome.recorded:%Y-%m-%d}",
        outcome.option,
        f"{predicted.mid:.2f} ({predicted.low:.2f}-{predicted.high:.2f})",
        f"{outcome.measured.mid:.2f}",
        "yes" if outcome.held else "no",
        outcome.verdict,
    )


def _summary(correction: Correction) -> str:
    centred = f"x{math.exp(correction.shift):.3g}" if correction.shift else "as shipped"
    return f"centred {centred}, {correction.widened:.3g} times as wide"
