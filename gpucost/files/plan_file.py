"""Reads plan.json."""

import os
from mmap import ACCESS_READ, mmap
from pathlib import Path

from planner.plan.plan import Plan
from planner.plan.read import read_plan
from pricing.errors import InputError
from pricing.message import Message

DEFAULT_PLAN = "plan.json"
_HEAD_BYTES = 4096
_LARGE_BYTES = 64 * 2**20
"""A larger file is mapped: of a fleet of 10,000 jobs it has a gigabyte."""


def load_plan(path: str | Path) -> Plan:
    """Return the values of a plan file, of this version or an earlier one.

    Raises:
        InputError: it is missing (the commands that make one are named), not JSON, not a plan, or
            some of its values cannot be; each is listed with its place.
    """
    try:
        return _read(Path(path))
    except FileNotFoundError as error:
        raise InputError(Message("input.no-plan", path=str(path))) from error
    except IsADirectoryError as error:
        raise InputError(Message("input.plan-folder", path=str(path))) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from error


def is_plan(path: str) -> bool:
    """Return whether a file says that it is a plan, without reading all of it."""
    try:
        with Path(path).open("rb") as file:
            return b'"gpucost.plan/' in file.read(_HEAD_BYTES)
    except OSError:
        return False


def _read(path: Path) -> Plan:
    with path.open("rb") as file:
        if path.is_file() and os.fstat(file.fileno()).st_size > _LARGE_BYTES:
            return read_plan(mmap(file.fileno(), 0, access=ACCESS_READ), str(path))
        return read_plan(file.read(), str(path))
