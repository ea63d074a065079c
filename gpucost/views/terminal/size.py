"""How large the screen is."""

import os
import shutil
import sys

PIPE_WIDTH = 100
"""Columns of a pipe where COLUMNS does not say another."""
_PIPE_HEIGHT = 50
_LEAST_WIDTH = 14


def terminal_width() -> int:
    """Return the columns of the terminal; in a pipe those of COLUMNS, else 100."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdigit() and int(given) > 0 else PIPE_WIDTH


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
