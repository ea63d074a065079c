"""What commands print: data on standard output, messages for people on standard error."""

import contextlib
import csv
import functools
import io
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import click

from gpucost.arguments.parameters import Command, options
from gpucost.files.writing import write_pieces
from planner.models.document import to_text
from pricing.errors import GpucostError
from pricing.money import plain, price_text
from pricing.tables import for_csv
from templates.language.translate import (
    ENGLISH,
    ExchangeRate,
    _,
    current_language,
    join,
    showing,
    translate_text,
    use_language,
    word,
)
from templates.markdown import cell
from templates.strangers import for_markdown, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from telemetry.folder import FolderReadOptions

PIPE_WIDTH = 100
"""Columns of a pipe where COLUMNS does not say another."""
_PIPE_HEIGHT = 50
_LEAST_WIDTH = 14


def terminal_width() -> int:
    """Return the columns of the terminal; in a pipe those of COLUMNS, else 100."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and int(columns) > 0 else PIPE_WIDTH


def terminal_height() -> int:
    """Return the lines of the terminal; in a pipe 50."""
    if not sys.stdout.isatty():
        return _PIPE_HEIGHT
    return shutil.get_terminal_size((80, 24)).lines


def message_width() -> int | None:
    """Return the columns for messages; None where they go to a file or a pipe, in whole lines."""
    if not sys.stderr.isatty():
        return None
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return None
    return max(columns, _LEAST_WIDTH) if columns else None


_COMMAND = re.compile(r"`[^`]*`")
_KEPT = "\ue000"  # stands for a blank inside a command; no text has it
_OWN_LINE = ("gpucost ", "$ ")


def paragraph(text: str, width: int, indent: str = "") -> list[str]:
    """Return the lines of a text; a name, a number or a command in `...` is not broken.

    What is wider than the terminal stays whole.
    """
    joined = _COMMAND.sub(lambda match: _unbroken(match[0], width - len(indent)), text)
    lines = textwrap.wrap(
        joined,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_KEPT, " ") for line in lines]


def broken_into_lines(text: str, width: int) -> str:
    """Return a message in lines of that width; a command to be copied stays one line."""
    body = text.lstrip(" ")
    if len(text) <= width or body.startswith(_OWN_LINE):
        return text
    return "\n".join(paragraph(body, width, text[: len(text) - len(body)]))


def one_line(text: str, width: int) -> str:
    """Return the text on one line of that width, cut with an ellipsis where it is longer."""
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _unbroken(command: str, width: int) -> str:
    return command.replace(" ", _KEPT) if len(command) <= width else command


# A word of Latin letters stays whole, and a share with its sign; a wide character is a word of its
# own. What closes stays with what it closes, what opens with what follows.
_CLOSES = "\uff0c\u3002\uff1b\uff1a\u3001\uff01\uff1f\uff09\u201d\u300b\uff05"
_OPENS = "\uff08\u201c\u300a"
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_PIECE = re.compile(
    rf"\s+|[{_OPENS}]*(?:[\d.,-]*\d %|[^\s{_WIDE}]+|[{_WIDE}])[{_CLOSES}]*|[{_OPENS}{_CLOSES}]+"
)


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text with wide characters, each at most so many cells wide.

    What has no place to break is wider.
    """
    from rich.cells import cell_len  # noqa: PLC0415 - rich only where it is needed

    lines, line = list[str](), ""
    for piece in _PIECE.findall(" ".join(text.split())):
        if line and cell_len(line) + cell_len(piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece if line else piece.lstrip()
    return [*lines, line.rstrip()] if line.strip() else lines


ProgressCallback = Callable[[int, int], None]
_FIRST_S, _AGAIN_S = 1.0, 0.2
_ERASE = "\r\x1b[K"


def progress(label: str, *, quiet: bool) -> ProgressCallback:
    """Return what is told how much is done, and of how much; it tells nobody in a pipe.

    Args:
        label: of the line, such as "read {done:,} of {total:,} files".
        quiet: tell nobody at all.
    """
    width = message_width()
    if quiet or width is None:
        return lambda _done, _total: None
    due, shown = time.monotonic() + _FIRST_S, False

    def report(done: int, total: int) -> None:
        nonlocal due, shown
        now = time.monotonic()
        if done < total and now < due:
            return
        line = one_line(label.format(done=done, total=total), width - 1) if done < total else ""
        if line or shown:
            due, shown = now + _AGAIN_S, bool(line)
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{_ERASE}{line}\r" if line else _ERASE)
                sys.stderr.flush()

    return report


FORMATS = ("table", "json", "csv", "md")
_LEAST_NAME = 22  # a name is cut no shorter than that; an amount and an id never
READING = "read {done:,} of {total:,} files"
PLANNING = "planned {done:,} of {total:,} jobs"
_GAPS = (3, 2, 1)  # blanks between columns, as many as there is room for
_PADDING = {3: (0, 1, 0, 1), 2: (0, 1, 0, 0), 1: (0, 0, 0, 0)}


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

    @property
    def options(self) -> dict[str, str | bool]:
        """The options of a command that prints in this way."""
        flags = {"quiet": self.quiet, "verbose": self.verbose, "no_color": not self.color}
        return {"format_": self.format, **flags}

    def say(self, message: str) -> None:
        """Print a message for people on standard error, unless quiet."""
        if not self.quiet:
            self.insist(message)

    def progress(self, label: str) -> ProgressCallback:
        """Return what is told how far work is: a line on a terminal, nothing in a pipe."""
        return progress(label, quiet=self.quiet)

    @staticmethod
    def insist(message: str) -> None:
        """Print a message on standard error, quiet or not: the reason of an exit code.

        Where nobody can be told any more (the terminal has gone) the work goes on.
        """
        with contextlib.suppress(OSError):
            width = message_width()
            text = printable(message)
            click.echo(text if width is None else broken_into_lines(text, width), err=True)


def price_cell(usd_per_hour: Decimal, output: Output) -> str:
    """Return a price as people write it; in CSV, which programs read, its digits alone."""
    return plain(usd_per_hour) if output.format == "csv" else price_text(usd_per_hour)


def output_options(command: Command) -> Command:
    """Add -f, -q, -v and --no-color, handed to the command as `output`."""

    @options("format", format={"type": click.Choice(FORMATS)})
    @common_options
    @functools.wraps(command)
    def wrapped(*, format_: str, output: Output, **typed: Any) -> Any:  # noqa: ANN401 - passes options on
        return command(output=replace(output, format=format_), **typed)

    return wrapped


def common_options(command: Command) -> Command:
    """Add -q, -v and --no-color, handed to the command as `output`."""

    @options("quiet verbose no-color")
    @functools.wraps(command)
    def wrapped(*, quiet: bool, verbose: bool, no_color: bool, **typed: Any) -> Any:  # noqa: ANN401 - passes options on
        color = not no_color and "NO_COLOR" not in os.environ
        return command(output=Output(quiet=quiet, verbose=verbose, color=color), **typed)

    return wrapped


@contextlib.contextmanager
def speaking(lang: str, rate: ExchangeRate | None, output: Output) -> Iterator[None]:
    """Print for people in their language and currency; data for programs stay as they are."""
    for_people = output.format in ("table", "md")
    with use_language(lang if for_people else ENGLISH), showing(rate if for_people else None):
        yield


def language_option(command: Command) -> Command:
    """Return a command with --lang, which it runs in."""

    @options("lang")
    @functools.wraps(command)
    def wrapped(*, lang: str, output: Output, **typed: Any) -> Any:  # noqa: ANN401 - passes options on
        with speaking(lang, None, output):
            try:
                return command(output=output, **typed)
            except GpucostError as error:  # it is printed in English once this language has ended
                error.problems = tuple(map(translate_text, error.problems))
                raise

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
        uncut: columns beside the right-aligned ones and the first that are never cut.
        cut: columns that stay on one line; other names are wrapped between words first.
        chosen: the row that stands out, from 0.
        styles: of each row, such as "red"; none: plain.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()
    title: str = ""
    spare: tuple[str, ...] = ()
    uncut: frozenset[str] = frozenset()
    cut: frozenset[str] = frozenset()
    chosen: int | None = None
    styles: tuple[str, ...] = ()


def save_file(path: str, pieces: Iterable[str], output: Output) -> None:
    """Write a file, and say so; `-` is standard output."""
    write_pieces(path, pieces)
    if path != "-":
        output.say(f"wrote {path}")


def print_if_json(document: object, output: Output) -> bool:
    """Print a document where JSON is asked for; return whether it is."""
    is_json = output.format == "json"
    if is_json:
        print_json(document)
    return is_json


def print_table(table: Table, output: Output) -> None:
    """Print a table as `output.format` asks: table, csv or md."""
    if output.format == "csv":
        click.echo(_as_csv(table), nl=False)
    elif output.format == "md":
        click.echo(_as_markdown(table))
    else:
        _draw(table, output)


def print_json(document: object) -> None:
    """Print a value as JSON on standard output, as plan.json would have it."""
    click.echo(to_text(document), nl=False)


def _as_csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(map(for_csv, row) for row in table.rows)
    return text.getvalue()


def _as_markdown(table: Table) -> str:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rule = row(["---:" if name in table.right else "---" for name in table.columns])
    body = (row([cell(for_markdown(text)) for text in cells]) for cells in table.rows)
    title = (f"**{cell(for_markdown(table.title))}**", "") if table.title else ()
    return "\n".join((*title, row([word("column", name) for name in table.columns]), rule, *body))


def print_prose(text: str, *, indent: str = "", err: bool = False) -> int:
    """Print a paragraph, wrapped between words, and return on how many lines.

    What is wider than the terminal stays whole.
    """
    lines = prose_lines(text, max(terminal_width(), _LEAST_WIDTH), indent)
    click.echo("\n".join(lines), err=err)
    return len(lines)


def prose_lines(text: str, width: int, indent: str = "") -> list[str]:
    """Return the lines of a paragraph in the language that is spoken."""
    shown = printable(text)
    if not shown.isascii() and current_language() != ENGLISH:
        return [f"{indent}{line}" for line in wrapped(shown, width - len(indent))]
    return paragraph(shown, width, indent)


def print_line(text: str) -> None:
    """Print a line: on a terminal broken between words, in a pipe whole."""
    shown = printable(text)
    click.echo(broken_into_lines(shown, terminal_width()) if sys.stdout.isatty() else shown)


def print_rich(drawn: "RenderableType", output: Output, width: int | None = None) -> None:
    """Print what rich draws, without blanks at the ends of lines."""
    from rich.console import Console  # noqa: PLC0415 - only where something is drawn

    system: Literal["auto"] | None = "auto" if output.color else None
    console = Console(
        width=width or terminal_width(), color_system=system, highlight=False, markup=False
    )
    with console.capture() as caught:
        console.print(drawn)
    click.echo("\n".join(line.rstrip() for line in caught.get().split("\n")).rstrip("\n"))


def _draw(table: Table, output: Output) -> None:
    """Print a table in the terminal's width: empty columns go first, then spare ones.

    An amount that has no room is not broken: the table is wider than the terminal then.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - only where a table is drawn
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - the same
    from rich.table import Table as Drawn  # noqa: PLC0415 - the same

    if table.title:
        print_prose(table.title)
    width = terminal_width()
    columns = {
        name: [printable(row[at]) for row in table.rows] for at, name in enumerate(table.columns)
    }
    heads = {name: word("column", name) for name in table.columns}
    wide = {name: max(map(cell_len, (heads[name], *cells))) for name, cells in columns.items()}
    narrow = {name: _min_width(table, name, cells) for name, cells in columns.items()}
    shown = [name for name in columns if _room(wide.values(), 3) <= width or any(columns[name])]
    for name in table.spare:
        if name in shown and _room((narrow[name] for name in shown), 2) > width:
            shown.remove(name)
    left_out = [name for name in table.spare if name not in shown and any(columns[name])]
    gap = next((n for n in _GAPS if _room((wide[name] for name in shown), n) <= width), 2)
    gap = gap if _room((narrow[name] for name in shown), gap) <= width else _GAPS[-1]
    widths = {name: wide[name] for name in shown}
    while _room(widths.values(), gap) > width and widths != {name: narrow[name] for name in shown}:
        widest = max(shown, key=lambda name: (widths[name] - narrow[name], widths[name]))
        widths[widest] -= 1
    drawn = Drawn(box=SIMPLE_HEAD, pad_edge=False, padding=_PADDING[gap])
    for name in shown:
        side: Literal["left", "right"] = "right" if name in table.right else "left"
        drawn.add_column(heads[name], justify=side, overflow="ellipsis", width=widths[name])
    for at in range(len(table.rows)):
        cells = [columns[name][at] for name in shown]
        for column, name in enumerate(shown):
            if name in table.cut and cell_len(cells[column]) > widths[name]:
                cells[column] = f"{set_cell_size(cells[column], widths[name] - 1).rstrip()}…"
        style = table.styles[at] if table.styles else None
        drawn.add_row(*cells, style="bold green" if at == table.chosen else style)
    print_rich(drawn, output, max(width, _room(widths.values(), gap) + 1))
    if left_out:
        names = join(heads[name] for name in left_out)
        output.say(_("Hidden columns: {names} (widen the terminal or use -f md)", names=names))


def _room(widths: Iterable[int], gap: int) -> int:
    """Return the columns of the terminal that a table takes, with a blank before it."""
    shares = list(widths)
    return sum(shares) + gap * (len(shares) - 1) + 1


def _min_width(table: Table, name: str, cells: Sequence[str]) -> int:
    """Return how narrow a column may be: ids and amounts stay whole, names may be cut."""
    from rich.cells import cell_len  # noqa: PLC0415 - only where a table is drawn

    head = max(map(cell_len, word("column", name).split()), default=0)
    widest = max((head, *map(cell_len, cells)))
    uncut = table.right | table.uncut | set(table.columns[:1]) - table.cut
    return widest if name in uncut else min(widest, max(_LEAST_NAME, head))


def folder_options(
    jobs_by: str | None, output: Output, default: str = "file"
) -> "FolderReadOptions":
    """Return how folders are read: what is joined is said, and how far the reading is."""
    from telemetry.folder import FolderReadOptions  # noqa: PLC0415 - only where one is read

    context = click.get_current_context(silent=True)
    lang = (context.params.get("lang") if context else None) or current_language()

    def say(text: str) -> None:
        with speaking(lang, None, output):
            output.say(translate_text(text))

    return FolderReadOptions(
        jobs_by=jobs_by or default, progress=output.progress(READING), on_join=say
    )
