"""Markdown of the generated reference: paragraphs and tables."""  # noqa: INP001 - beside a script

import textwrap
from collections.abc import Iterator, Sequence

MADE = "<!-- Written by docs/generate_reference.py; edit the code, then run it again. -->"


def prose(text: str) -> Iterator[str]:
    """Yield a paragraph in lines of 100 columns."""
    yield from textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield a table; a bar inside a cell is escaped."""
    yield from prose("| " + " | ".join(columns) + " |")
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
