"""How far long work is: one line on the terminal that is gone when the work is done."""

import contextlib
import sys
import time
from collections.abc import Callable

from gpucost.views.terminal.paragraphs import one_line
from gpucost.views.terminal.size import message_width

Told = Callable[[int, int], None]
_FIRST_S, _AGAIN_S = 1.0, 0.2
_ERASE = "\r\x1b[K"


def progress(words: str, *, quiet: bool) -> Told:
    """Return what is told how much is done, and of how much; it tells nobody in a pipe.

    Args:
        words: of the line, such as "read {done:,} of {total:,} files".
        quiet: tell nobody at all.
    """
    width = message_width()
    if quiet or width is None:
        return _nobody
    due, shown = time.monotonic() + _FIRST_S, False

    def told(done: int, total: int) -> None:
        nonlocal due, shown
        now = time.monotonic()
        if done < total and now < due:
            return
        line = one_line(words.format(done=done, total=total), width - 1) if done < total else ""
        if line or shown:
            due, shown = now + _AGAIN_S, bool(line)
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{_ERASE}{line}\r" if line else _ERASE)
                sys.stderr.flush()

    return told


def _nobody(_done: int, _total: int) -> None:
    """Tell nobody."""
