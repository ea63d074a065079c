"""Text that cannot break the markdown around it, whatever a file called a job."""

import shlex

_UNSAFE_IN_SPAN = frozenset("`<>")
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


def command(*words: str) -> str:
    """Return a command as a code span that can be pasted into a shell.

    A word that would end the span or look like HTML is left for the reader to type: `NAME`.
    """
    return f"`{' '.join(map(_word, words))}`"


def _word(word: str) -> str:
    safe = word.isprintable() and not _UNSAFE_IN_SPAN.intersection(word)
    return shlex.quote(word) if safe else "NAME"
