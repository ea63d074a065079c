"""Text that cannot break the markdown around it, whatever a file called a job."""

import shlex

_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        "|": "\\|",
        "`": "'",
        "[": "\\[",
        "]": "\\]",
        "*": "\\*",
        "<": "&lt;",
    }
)


def cell(text: object) -> str:
    """Return text for a table cell or a line: no markup, no HTML, no line or cell end."""
    shown = "".join(c if c.isprintable() else " " for c in str(text))
    return " ".join(shown.split()).translate(_ESCAPES)


def command(*words: str) -> str:
    """Return a command as a code span that can be pasted into a shell."""
    shown = " ".join(shlex.quote("".join(filter(str.isprintable, word))) for word in words)
    fence = "``" if "`" in shown else "`"
    padding = " " if fence == "``" else ""
    return f"{fence}{padding}{shown}{padding}{fence}"
