"""Text of strangers (machines, providers, files, plans), one gate for each medium.

Whole documents pass: no field can be forgotten. The gate of the terminal is the stream itself,
`providers.redaction.RedactedStream`; that of cells of CSV is `pricing.tables.for_csv`; pages of
HTML escape every value (jinja2's autoescape).
"""

import dataclasses
import re
from decimal import Decimal
from functools import lru_cache
from operator import is_not
from types import NoneType
from typing import TypeVar

import msgspec

_T = TypeVar("_T")
_APART = "\N{COMBINING GRAPHEME JOINER}"  # unseen, and no part of a name of GitHub
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_IN_MARKDOWN = (
    (re.compile(r"(?<![^\W_])@(?=\w)|@(?=[\w-]+\.\w)"), f"@{_APART}"),
    (re.compile(r"#(?=\d)"), f"#{_APART}"),
    (re.compile(r"((?i:GH)(?=-\d)|(?i:www)(?=\.)|(?i:https?|ftp)(?=://))"), rf"\1{_APART}"),
    (re.compile(r"<(?=[A-Za-z/!?])"), "&lt;"),
    (re.compile(r"\](?=\s*[\[(:])"), "&#93;"),  # after numbers: its own is not apart
)
# No other text is changed; one look at most texts in place of six.
_SUSPECT = re.compile(r"[@#<\]]|://|[Ww]{3}\.|[Gg][Hh]-")
_WITHOUT_TEXT = frozenset((bool, int, float, Decimal, NoneType))
_OF_RUNNER = re.compile(r"(?<!\S):(?=:)|##(?=\[)")  # GitHub's obeys lines of a log: "::error::"
_NOT_IN_FILES = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]"
)


def for_markdown(value: _T) -> _T:
    """Return a document in which no text is HTML, a link, an image, a mention or a line of its own.

    Texts without any of that stay as they are, and so do values that hold none.
    """
    if type(value) in _WITHOUT_TEXT:
        return value
    if isinstance(value, str):
        text = _plain(value)
        return value if text == value else text  # type: ignore[return-value] # of the type that came
    if isinstance(value, msgspec.Struct):
        changes = _changes(value, value.__struct_fields__)
        return msgspec.structs.replace(value, **changes) if changes else value
    if isinstance(value, tuple | list):
        plain = [for_markdown(inner) for inner in value]
        return type(value)(plain) if any(map(is_not, plain, value)) else value
    if isinstance(value, dict):
        texts = {for_markdown(key): for_markdown(inner) for key, inner in value.items()}
        return value if texts == value else texts  # type: ignore[return-value] # the same
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = _changes(value, tuple(value.__dataclass_fields__))
        return dataclasses.replace(value, **changes) if changes else value
    return value


def _changes(value: object, names: tuple[str, ...]) -> dict[str, object]:
    return {n: text for n in names if (text := for_markdown(old := getattr(value, n))) is not old}


@lru_cache(maxsize=10_000)
def _plain(text: str) -> str:
    """Return a text as it may stand; a fleet says most of its texts hundreds of times."""
    text = _CONTROL.sub(" ", text)
    for pattern, replacement in _IN_MARKDOWN if _SUSPECT.search(text) else ():
        text = pattern.sub(replacement, text)
    return text


def printable(text: str) -> str:
    """Return text without control characters, and no command to who runs CI: it stays a line."""
    text = "".join(c if c.isprintable() else " " for c in text)
    return _OF_RUNNER.sub(rf"\g<0>{_APART}", text)


def for_file(text: str) -> str:
    """Return a file of YAML, HCL or shell without characters that end its lines or its reading."""
    return _NOT_IN_FILES.sub("", text)
