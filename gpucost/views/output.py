"""What commands print: data on standard output, messages for people on standard error."""

import contextlib
import csv
import functools
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import click

from pricing.money import plain, price_text
from templates.markdown import cell

FORMATS = ("table", "json", "csv", "md")
_PIPE_WIDTH = 200  # wide enough that a pipe never loses a column
_FOLDS_FROM = 20  # a longer text folds: names of machines and actions, never an amount
_BETWEEN = 3  # blanks between columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How to print.

    Attributes:
        format: one of FORMATS.
        quiet: no messages.
        verbose: more messages.
        color: whether colours may be used.
    """

    format: str = "table"
    quiet: bool = False
    verbose: bool = False
    color: bool = True

    def say(self, message: str) -> None:
        """Print a message for people on standard error, unless quiet."""
        if not self.quiet:
            self.insist(message)

    @staticmethod
    def insist(message: str) -> None:
        """Print a message on standard error, quiet or not: the reason of an exit code.

        Where nobody can be told any more (the terminal has gone) the work goes on.
        """
        with contextlib.suppress(OSError):
            click.echo(printable(message), err=True)


def price_cell(usd_per_hour: Decimal, output: Output) -> str:
    """Return a price as people write it; in CSV, which programs read, its digits alone."""
    return plain(usd_per_hour) if output.format == "csv" else price_text(usd_per_hour)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -f, -q, -v and --no-color, handed to the command as `output`."""

    @click.option(
        "-f",
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="What is printed.",
    )
    @common_options
    @functools.wraps(command)
    def wrapped(*, format_: str, output: Output, **rest: Any) -> Any:  # noqa: ANN401 - passes options on
        shaped = Output(
            format=format_, quiet=output.quiet, verbose=output.verbose, color=output.color
        )
        return command(output=shaped, **rest)

    return wrapped


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -q, -v and --no-color, handed to the command as `output`."""

    @click.option("-q", "--quiet", is_flag=True, help="No messages.")
    @click.option("-v", "--verbose", is_flag=True, help="More messages.")
    @click.option("--no-color", is_flag=True, help="No colours (NO_COLOR does the same).")
    @functools.wraps(command)
    def wrapped(*, quiet: bool, verbose: bool, no_color: bool, **rest: Any) -> Any:  # noqa: ANN401 - passes options on
        color = not no_color and "NO_COLOR" not in os.environ
        return command(output=Output(quiet=quiet, verbose=verbose, color=color), **rest)

    return wrapped


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under named columns.

    Attributes:
        columns: their names.
        rows: a text a column.
        right: columns that are right-aligned, as numbers are.
        title: above it.
        spare: columns that a terminal too narrow for all leaves out, the first one first.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()
    title: str = ""
    spare: tuple[str, ...] = ()

    def without(self, column: str) -> "Table":
        """Return the table without one of its columns."""
        place = self.columns.index(column)
        return replace(
            self,
            columns=self.columns[:place] + self.columns[place + 1 :],
            rows=tuple(row[:place] + row[place + 1 :] for row in self.rows),
        )


def print_table(table: Table, output: Output) -> None:
    """Print a table as `output.format` asks: table, csv or md."""
    if output.format == "csv":
        click.echo(_as_csv(table), nl=False)
    elif output.format == "md":
        click.echo(_as_markdown(table))
    else:
        _print_rich(table, output)


def printable(text: str) -> str:
    """Return text without control characters, which names from files may carry."""
    return "".join(c if c.isprintable() else " " for c in text)


def print_json(document: object) -> None:
    """Print a value as JSON on standard output, as plan.json would have it."""
    from planner.plan_document.encode import encode  # noqa: PLC0415 - only where JSON is printed

    click.echo(json.dumps(encode(document), indent=1, ensure_ascii=False, allow_nan=False))


def _as_csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([printable(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def _as_markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rule = row(["---:" if name in table.right else "---" for name in table.columns])
    body = (row([cell(text) for text in cells]) for cells in table.rows)
    title = (f"**{cell(table.title)}**", "") if table.title else ()
    return "\n".join((*title, row(table.columns), rule, *body))


def _print_rich(table: Table, output: Output) -> None:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - only where a table is drawn
    from rich.console import Console  # noqa: PLC0415 - the same
    from rich.table import Table as Drawn  # noqa: PLC0415 - the same

    if table.title:
        click.echo(printable(table.title))
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    system: Literal["auto"] | None = "auto" if output.color else None
    console = Console(width=width, color_system=system, highlight=False, markup=False)
    table, left_out = _fitted(table, console.width)
    drawn = Drawn(box=SIMPLE_HEAD, pad_edge=False)
    for name in table.columns:
        side: Literal["left", "right"] = "right" if name in table.right else "left"
        drawn.add_column(name, justify=side, overflow="fold")
    for cells in table.rows:
        drawn.add_row(*(printable(text) for text in cells))
    console.print(drawn)
    if left_out:
        output.say(f"left out in {console.width} columns: {', '.join(left_out)} (-f md has all)")


def _fitted(table: Table, width: int) -> tuple[Table, list[str]]:
    """Return the table without what the terminal has no room for, and what that is.

    Long texts fold; what is no longer than a price does not.
    """
    left_out: list[str] = []
    for column in table.spare:
        if _least_width(table) <= width:
            break
        table = table.without(column)
        left_out.append(column)
    return table, left_out


def _least_width(table: Table) -> int:
    from rich.cells import cell_len  # noqa: PLC0415 - only where a table is drawn

    cells = zip(table.columns, *table.rows, strict=True)
    widest = (max(cell_len(text) for text in column) for column in cells)
    return sum(min(most, _FOLDS_FROM) + _BETWEEN for most in widest)
