"""What commands print: data on standard output, messages for people on standard error."""

import csv
import functools
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pricing.errors import InputError

FORMATS = ("table", "json", "csv", "md")
_PIPE_WIDTH = 200  # wide enough that a pipe never loses a column


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
            click.echo(message, err=True)


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
    """Rows of text under named columns; numbers are right-aligned where `right` names them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()
    title: str = ""


def print_table(table: Table, output: Output) -> None:
    """Print a table as `output.format` asks: table, csv or md."""
    if output.format == "csv":
        click.echo(_as_csv(table), nl=False)
    elif output.format == "md":
        click.echo(_as_markdown(table))
    else:
        _print_rich(table, output)


def print_json(document: object) -> None:
    """Print JSON on standard output."""
    click.echo(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))


def _as_csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return text.getvalue()


def _as_markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = row(["---:" if name in table.right else "---" for name in table.columns])
    return "\n".join((row(table.columns), rule, *(row(cells) for cells in table.rows)))


def _print_rich(table: Table, output: Output) -> None:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - only where a table is drawn
    from rich.console import Console  # noqa: PLC0415 - the same
    from rich.table import Table as Drawn  # noqa: PLC0415 - the same

    drawn = Drawn(box=SIMPLE_HEAD, title=table.title or None, title_justify="left", pad_edge=False)
    for name in table.columns:
        drawn.add_column(name, justify="right" if name in table.right else "left")
    for cells in table.rows:
        drawn.add_row(*cells)
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    Console(width=width, no_color=not output.color, highlight=False, markup=False).print(drawn)


def write_file(path: str, text: str) -> None:
    """Write a file whole or not at all; `-` is standard output.

    Raises:
        InputError: it cannot be written.
    """
    if path == "-":
        click.echo(text, nl=False)
        return
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from error
