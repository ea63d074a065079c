"""A loop as a table: what each round tried, where, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucost.views.output import Output, Table, print_json, print_table
from pricing.money import plain, show

if TYPE_CHECKING:
    from gpucost.loop.loop_record import LoopRecord, Round

_COLUMNS = ("round", "where", "with", "low", "speed-up", "high", "USD saved", "verdict")


def print_loop(record: LoopRecord, output: Output) -> None:
    """Print the rounds; why the loop ended is said beside."""
    if output.format == "json":
        print_json(record)
    else:
        rows = tuple(_row(number, one, output) for number, one in enumerate(record.rounds, start=1))
        print_table(Table(columns=_COLUMNS, rows=rows, right=frozenset(_COLUMNS[3:7])), output)
    for sentence in record.ended:
        output.say(f"ended: {sentence}")
    if record.spent_usd:
        output.say(f"spent on rented machines: ${show(record.spent_usd)}")


def _row(number: int, one: Round, output: Output) -> tuple[str, ...]:
    speed, saves = one.speedup, one.saves_usd
    ends = ("", "unknown", "") if speed is None else (speed.low, speed.mid, speed.high)
    money = plain if output.format == "csv" else show
    per = f" a {one.period}" if one.period and output.format != "csv" else ""
    return (
        str(number),
        one.where,
        ", ".join(one.settings),
        *(end if isinstance(end, str) else f"{end:.3g}x" for end in ends),
        "" if saves is None else f"{money(saves)}{per}",
        one.verdict or "",
    )
