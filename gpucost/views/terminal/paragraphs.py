"""Breaks what is said into lines of a terminal, between words."""

import re
import textwrap

_COMMAND = re.compile(r"`[^`]*`")
_KEPT = "\ue000"  # stands for a blank inside a command; no text has it
_OWN_LINE = ("gpucost ", "$ ")


def paragraph(text: str, width: int, indent: str = "") -> list[str]:
    """Return the lines of a text; a name, a number or a command in `...` is not broken.

    What is wider than the terminal stays whole.
    """
    kept = _COMMAND.sub(lambda found: _whole(found[0], width - len(indent)), text)
    lines = textwrap.wrap(
        kept,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_KEPT, " ") for line in lines]


def message(text: str, width: int) -> str:
    """Return a message in lines of that width; a command to be copied stays one line."""
    body = text.lstrip(" ")
    if len(text) <= width or body.startswith(_OWN_LINE):
        return text
    return "\n".join(paragraph(body, width, text[: len(text) - len(body)]))


def one_line(text: str, width: int) -> str:
    """Return the text on one line of that width, cut with an ellipsis where it is longer."""
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _whole(command: str, width: int) -> str:
    return command.replace(" ", _KEPT) if len(command) <= width else command
