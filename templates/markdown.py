"""Text that cannot break the markdown around it, whatever a file called a job."""

import re

from pricing.listing import as_typed

_IN_FIGURES = (
    (re.compile(r"(?<=\d)-(?=\d)"), "\N{NON-BREAKING HYPHEN}"),
    (re.compile(r"(?<=[tx]) (?=\$)|(?<=\d) (?=(?:h|days?)\b)"), "\N{NO-BREAK SPACE}"),
)
_COMMAND = re.compile(r"gpucost [\w ./%-]*\w|--probe\b")
_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        "|": "\\|",
        "`": "'",
        "[": "\\[",
        "]": "\\]",
        "*": "\\*",
        "<": "&lt;",
        ">": "&gt;",
    }
)


def cell(text: object) -> str:
    """Return text for a table cell or a line: no markup, no HTML, no line or cell end."""
    shown = "".join(c if c.isprintable() else " " for c in str(text))
    return " ".join(shown.split()).translate(_ESCAPES)


def with_commands(text: str) -> str:
    """Return text for a line, as `cell`, the commands and options in it as code."""
    return _COMMAND.sub(r"`\g<0>`", cell(text))


def unbroken(text: str) -> str:
    """Return figures that a narrow cell does not break: `2026-07-20`, `at least $109`, `5.5 h`."""
    for where, mark in _IN_FIGURES:
        text = where.sub(mark, text)
    return text


def command(*argv: str) -> str:
    """Return a command of words as a code span that can be pasted into a shell."""
    return f"`{' '.join(map(as_typed, argv))}`"
