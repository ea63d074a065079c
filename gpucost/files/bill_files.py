"""Turns the BILL arguments of a command into bills."""

import sys

from planner.bills.bill import Bill
from planner.bills.formats import read_bill
from pricing.errors import InputError
from telemetry.readers.payload import Stream


def read_bills(paths: tuple[str, ...]) -> tuple[Bill, ...]:
    """Return every file of a bill; `-` is standard input.

    Raises:
        InputError: a file is not a bill, has problems, or is given twice; of all files together.
    """
    bills, problems = [], []
    seen: dict[str | None, str] = {}
    for path in paths:
        try:
            with Stream(path, sys.stdin.buffer if path == "-" else None) as stream:
                payload = stream.load()
            if payload.sha256 in seen:
                problems.append(f"{path}: the same bill as {seen[payload.sha256]}; give it once.")
                continue
            seen[payload.sha256] = path
            bills.append(read_bill(payload.name, payload.text))
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return tuple(bills)
