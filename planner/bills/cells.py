"""Cells of bills as values: dollars, times, hours; and rows of CSV with their line numbers."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal

from planner.bills.bill import refuse
from pricing.errors import InputError
from pricing.money import usd

_NULL = frozenset(("", "null", "none", "\\n"))
_DOLLARS = re.compile(r"(-?)\(?(-?)\$?\s*(-?)([\d,]*\.?\d*(?:[eE][+-]?\d+)?)\)?")
_BEFORE_OFFSET = re.compile(r"\s+(?=[+-]\d{2}:?\d{2}$)")
_WORD_ZONE = re.compile(r"\s*(?:UTC|GMT)$")
_LONGEST_FIELD = 1 << 24


def present(text: object) -> str | None:
    """Return a cell's text; None where it is empty or one of the ways to write null."""
    value = "" if text is None else str(text).strip()
    return None if value.lower() in _NULL else value


def dollars(text: str) -> Decimal:
    """Return the amount of `$3.11`, `-$3.11`, `($3.11)`, `1,234.56` or `8E-7`, exactly.

    Raises:
        ValueError: it is none of these.
    """
    match = _DOLLARS.fullmatch(text.strip())
    if match is None or not any(c.isdigit() for c in match[4]):
        raise ValueError(f"{text!r} is not an amount")
    try:
        amount = usd(match[4].replace(",", ""))
    except InputError as error:
        raise ValueError(f"{text!r} is not an amount") from error
    minus = "-" in (match[1], match[2], match[3]) or text.strip().startswith("(")
    return -amount if minus else amount


def moment(text: str) -> datetime:
    """Return a time as UTC; one without a zone is UTC already, as every bill says.

    Raises:
        ValueError: it is not a time.
    """
    plain = _BEFORE_OFFSET.sub("", _WORD_ZONE.sub("", text.strip()))
    try:
        when = datetime.fromisoformat(plain)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time") from None


def csv_rows(
    name: str, text: str, column: Callable[[str], str] = str
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row with the number of its last line in the file.

    Args:
        name: of the file, for messages.
        text: all of it.
        column: our name of a column, from the file's.

    Raises:
        InputError: rows have another number of cells than the header, or the text is not CSV; all
            such rows are listed.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""))
    problems, rows = [], []
    try:
        header = [column(cell.strip()) for cell in next(reader, [])]
        for row in reader:
            if not any(row):
                continue
            if len(row) == len(header):
                rows.append((reader.line_num, dict(zip(header, row, strict=True))))
            else:
                problems.append(
                    f"{name}:{reader.line_num}: {len(row)} cells where the header has "
                    f"{len(header)}; the file is cut or was edited. Download it again."
                )
    except csv.Error as error:
        problems.append(f"{name}:{reader.line_num}: no CSV ({error}). Download it again.")
    refuse(problems)
    yield from rows
