"""One's own record of predictions as tables."""

import math

from gpucost.views.output import Output, Table, print_table
from planner.models.track_record import Correction, PastPrediction
from planner.proof.outcome import OwnAccuracy, OwnRecord

_SHOWN = 20


def print_own_record(found: OwnRecord, output: Output) -> None:
    """Print the hit rates, then the outcomes, the last ones first."""
    columns = (
        "predictions",
        "outcomes",
        "held",
        "95 % interval",
        "median off",
        "measured / predicted",
    )
    rows = tuple(_rate(row) for row in found.rows if row.outcomes)
    print_table(Table(columns=columns, rows=rows, right=frozenset(columns[1:])), output)
    if not found.outcomes:
        output.say(
            f"nothing recorded yet in {found.file}: `gpucost verify BEFORE AFTER --plan PLAN` "
            "records what became of a prediction."
        )
        return
    latest = sorted(found.outcomes, key=lambda one: one.recorded, reverse=True)[:_SHOWN]
    shown = ("recorded", "option", "predicted", "measured", "held", "verdict")
    table = Table(columns=shown, rows=tuple(map(_outcome, latest)), right=frozenset(shown[2:4]))
    print_table(table, output)
    for where, one in (
        ("on today's GPUs", found.record.same_machine),
        ("on other GPUs", found.record.moved),
    ):
        if one.outcomes:
            output.say(f"`plan --history {found.file}`, {where}: {_words(one)}.")


def _rate(row: OwnAccuracy) -> tuple[str, ...]:
    ends = f"{row.held_low or 0.0:.0%} to {row.held_high or 0.0:.0%}"
    off = "" if row.error_percent is None else f"{row.error_percent:.1f} %"
    factor = "" if row.factor is None else f"{row.factor:.2f}"
    share = f"{row.held} ({row.held_fraction or 0.0:.0%})"
    return (row.sort, str(row.outcomes), share, ends, off, factor)


def _outcome(one: PastPrediction) -> tuple[str, ...]:
    told = one.predicted
    return (
        f"{one.recorded:%Y-%m-%d}",
        one.option,
        f"{told.mid:.2f} ({told.low:.2f}-{told.high:.2f})",
        f"{one.measured.mid:.2f}",
        "yes" if one.held else "no",
        one.verdict,
    )


def _words(one: Correction) -> str:
    centred = f"x{math.exp(one.shift):.3g}" if one.shift else "as shipped"
    return f"centred {centred}, {one.widened:.3g} times as wide"
