"""Reads the CSV and TOML files of `pricing.data` into rows of text."""

import csv
import re
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from pricing.errors import InputError

DATA = Path(__file__).parent / "data"
_NUMBER = re.compile(r"[-+]?[$]?[\d.,]+(?:[eE][-+]?\d+)?\s?%?|-")


def read_csv(name: str) -> list[dict[str, str]]:
    """Return the rows of a bundled CSV file in file order, one dict of text a row.

    Args:
        name: path below `pricing/data`, such as "gpus.csv" or "offers/aws.csv".

    Raises:
        InputError: the file is empty or a row has another number of fields than the header.
    """
    path = DATA / name
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header = next(lines, None)
        if header is None:
            raise InputError(f"{path}: empty; reinstall gpucost")
        rows = list(lines)
    width = len(header)
    if set(map(len, rows)) - {width}:
        raise InputError(
            f"{path}:{number}: {len(row)} fields where the header has {width}; fix the row"
            for number, row in enumerate(rows, start=2)
            if len(row) != width
        )
    return [dict(zip(header, row, strict=True)) for row in rows]


_Value = TypeVar("_Value")


def from_row(kind: type[_Value], row: Mapping[str, str], **values: object) -> _Value:
    """Return the value of a row: its cells go to the fields of their names, as their types.

    Args:
        kind: its class; an empty cell is the default of its field.
        row: of a bundled file; columns without a field are left out.
        values: of fields that are not in the row as they are.

    Raises:
        ValueError: a cell is not of its field's type, or missing.
    """
    cells = {name: cell for name, cell in row.items() if cell}
    try:
        return msgspec.convert({**cells, **values}, kind, strict=False)
    except msgspec.ValidationError as error:
        field = str(error).rpartition("$.")[2].rstrip("`")
        raise ValueError(f"{field} is {row.get(field)!r}: {error}") from None


def read_toml(name: str) -> dict[str, Any] | None:
    """Return a bundled TOML file with its decimals kept exact; None where there is no such file."""
    path = DATA / name
    if not path.is_file():
        return None
    return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)


def names(pattern: str) -> tuple[str, ...]:
    """Return the paths below `pricing/data` that match a glob pattern, sorted."""
    return tuple(sorted(path.relative_to(DATA).as_posix() for path in DATA.glob(pattern)))


@cache
def number(text: str) -> float | None:
    """Return the number in a cell; None where the cell is empty, which means unknown."""
    return float(text) if text else None


Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | bool | None"
JsonObject: TypeAlias = Mapping[str, Json]


def members(value: object) -> Mapping[str, object]:
    """Return the members of a JSON object.

    Raises:
        TypeError: the value is not an object.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.40} is not an object")
    return value


def elements(value: object) -> Sequence[object]:
    """Return the elements of a JSON array.

    Raises:
        TypeError: the value is not an array.
    """
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r:.40} is not an array")
    return value


def objects(value: object) -> list[Mapping[str, object]]:
    """Return the objects of a JSON array.

    Raises:
        TypeError: the value is not an array, or something else than objects is in it.
    """
    return [members(element) for element in elements(value)]


def for_csv(text: str) -> str:
    """Return a cell of one line that a spreadsheet takes for no formula; numbers stay as they are.

    The text may be of a stranger: a file, a provider, a machine.
    """
    plain = "".join(c if c.isprintable() else " " for c in text)
    is_formula = plain.lstrip()[:1] in tuple("=+-@") and not _NUMBER.fullmatch(plain)
    return f"'{plain}" if is_formula else plain
