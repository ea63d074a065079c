"""What commands print: data on standard output, messages for people on standard error."""

import contextlib
import csv
import functools
import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import click

from gpucost.views.wrapping import wrapped
from pricing.money import plain, price_text
from templates.language.speech import ENGLISH, spoken
from templates.markdown import cell

FORMATS = ("table", "json", "csv", "md")
_PIPE_WIDTH = 100  # where COLUMNS does not say another
_LEAST_NAME = 14  # a name is cut no shorter than that; an amount and an id never
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
        whole: columns beside the right-aligned ones and the first that are never cut.
        cut: columns that stay on one line; other names are wrapped between words first.
        chosen: the row that stands out, from 0.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()
    title: str = ""
    spare: tuple[str, ...] = ()
    whole: frozenset[str] = frozenset()
    cut: frozenset[str] = frozenset()
    chosen: int | None = None

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


def terminal_width() -> int:
    """Return the columns of the terminal; in a pipe those of COLUMNS, else 100."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdigit() and int(given) > 0 else _PIPE_WIDTH


def print_prose(text: str, *, indent: str = "", err: bool = False) -> None:
    """Print a paragraph, wrapped between words; what is wider than the terminal stays whole."""
    shown, width = printable(text), max(terminal_width(), _LEAST_NAME)
    if not shown.isascii() and spoken() != ENGLISH:
        said = wrapped(shown, width - len(indent))
        click.echo("\n".join(f"{indent}{line}" for line in said), err=err)
        return
    lines = textwrap.wrap(
        shown,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    click.echo("\n".join(lines), err=err)


def _print_rich(table: Table, output: Output) -> None:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - only where a table is drawn
    from rich.console import Console  # noqa: PLC0415 - the same
    from rich.table import Table as Drawn  # noqa: PLC0415 - the same

    if table.title:
        print_prose(table.title)
    system: Literal["auto"] | None = "auto" if output.color else None
    width = terminal_width()
    table, widths, left_out = _fitted(table, width)
    # An amount that has no room is not broken either: the table is wider than the terminal then.
    console = Console(
        width=max(width, sum(widths) + _BETWEEN * len(widths)),
        color_system=system,
        highlight=False,
        markup=False,
    )
    drawn = Drawn(box=SIMPLE_HEAD, pad_edge=False)
    for name, most in zip(table.columns, widths, strict=True):
        side: Literal["left", "right"] = "right" if name in table.right else "left"
        cut = name in table.cut
        drawn.add_column(name, justify=side, overflow="ellipsis", width=most, no_wrap=cut)
    for place, cells in enumerate(table.rows):
        style = "bold green" if place == table.chosen else None
        drawn.add_row(*(printable(text) for text in cells), style=style)
    with console.capture() as caught:
        console.print(drawn)
    click.echo("\n".join(line.rstrip() for line in caught.get().split("\n")).rstrip("\n"))
    if left_out:
        output.say(f"left out in {width} columns: {', '.join(left_out)} (-f md has all)")


def _fitted(table: Table, width: int) -> tuple[Table, list[int], list[str]]:
    """Return the table without what there is no room for, the widths, and what was left out.

    Columns that may be spared go first, the first one first, then names are cut.
    """
    left_out: list[str] = []
    for column in table.spare:
        if _room(_least_widths(table)) <= width:
            break
        table = table.without(column)
        left_out.append(column)
    widths, least = _natural_widths(table), _least_widths(table)
    while _room(widths) > width and widths != least:
        widest = max(range(len(widths)), key=lambda at: (widths[at] - least[at], widths[at]))
        widths[widest] -= 1
    return table, widths, left_out


def _room(widths: Sequence[int]) -> int:
    return sum(widths) + _BETWEEN * len(widths) - 1


def _natural_widths(table: Table) -> list[int]:
    from rich.cells import cell_len  # noqa: PLC0415 - only where a table is drawn

    cells = zip(table.columns, *table.rows, strict=True)
    return [max(cell_len(printable(text)) for text in column) for column in cells]


def _least_widths(table: Table) -> list[int]:
    """Return how narrow each column may be: ids and amounts as they are, names cut."""
    whole = table.right | table.whole | {table.columns[0]} if table.columns else frozenset()
    return [
        most if name in whole else min(most, max(_LEAST_NAME, len(name)))
        for name, most in zip(table.columns, _natural_widths(table), strict=True)
    ]
