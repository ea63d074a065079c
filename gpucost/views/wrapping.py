"""Breaks paragraphs into lines of a terminal, in which a Chinese character is two cells wide."""

from __future__ import annotations

import re

# A word of Latin letters stays whole, and a share with its sign; a wide character is a word of its
# own. What closes stays with what it closes, what opens with what follows.
_CLOSES = "\uff0c\u3002\uff1b\uff1a\u3001\uff01\uff1f\uff09\u201d\u300b\uff05"
_OPENS = "\uff08\u201c\u300a"
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_PIECE = re.compile(
    rf"\s+|[{_OPENS}]*(?:[\d.,-]*\d %|[^\s{_WIDE}]+|[{_WIDE}])[{_CLOSES}]*|[{_OPENS}{_CLOSES}]+"
)


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text with wide characters, each at most so many cells wide.

    What has no place to break is wider.
    """
    from rich.cells import cell_len  # noqa: PLC0415 - rich only where it is needed

    lines, line = list[str](), ""
    for piece in _PIECE.findall(" ".join(text.split())):
        if line and cell_len(line) + cell_len(piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece if line else piece.lstrip()
    return [*lines, line.rstrip()] if line.strip() else lines
