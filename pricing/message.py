"""Sentences as data: a code with its parameters, and a catalog of templates for each language.

A `Message` is its English sentence, so that it stands wherever a contract names a text, and keeps
what it was made of, so that it can be said again in another language. The catalogs are gettext
files (`pricing/data/messages/LANGUAGE/AREA.po`) whose `msgid` is the code: `AREA.what-it-says`.
A template has its parameters in braces, a number with its format: `{share:.0%}`; what stands
between the items of a list is a message, too: `separator.words`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextvars import ContextVar

ENGLISH = "en"
Parameter: TypeAlias = str | int | float | Decimal | tuple[str, ...] | list[str]
"""A word, a number, a list of words; each word may be a message itself."""
_ENTRY = re.compile(r'^msgid "(.+)"\nmsgstr "(.*)"$', re.MULTILINE)
_PARTS = 100  # of a list, that may be messages: no longer list of ours holds any
_ESCAPED = re.compile(r"\\(.)")


class Message(str):
    """A sentence, or a part of one, in English, with its code and parameters.

    Attributes:
        code: of its template.
        params: by the names of the template.

    Raises:
        KeyError: the catalog lacks the code, or the parameters lack a name of its template.
    """

    __slots__ = ("code", "params")
    code: str
    params: Mapping[str, Parameter]

    def __new__(cls, code: str, /, **params: Parameter) -> Self:
        """Return the sentence of a code."""
        template = catalog(ENGLISH)[code]
        for value in params.values():
            if value.__class__ is list or value.__class__ is tuple:
                return cls.saved(_fill(template, params, ENGLISH), code, params)
        return cls.saved(template.format(**params), code, params)  # as most are, and fast

    @classmethod
    def saved(cls, text: str, code: str, params: Mapping[str, Parameter]) -> Self:
        """Return a sentence as it was written, of whatever version."""
        message = super().__new__(cls, text)
        message.code, message.params = code, params
        return message

    def __reduce__(self) -> tuple[object, tuple[str, str, Mapping[str, Parameter]]]:
        return type(self).saved, (str(self), self.code, self.params)

    def translate_to(self, language: str) -> str:
        """Return the sentence in a language; in English where the catalog cannot say it."""
        template = catalog(language).get(self.code)
        try:
            return str(self) if template is None else _fill(template, self.params, language)
        except KeyError:  # of another version, whose template had other parameters
            return str(self)


class SavedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What a sentence of a file was made of, so that it can be said in another language.

    Attributes:
        code: of the message; it stays when the sentence is worded anew.
        params: numbers and words by name; words that are a message themselves are in the same
            table.
    """

    code: str
    params: Mapping[str, int | float | str | tuple[str, ...]] = {}


Messages: TypeAlias = Mapping[str, SavedMessage]
"""The messages of a file by the sentence that its fields hold."""


def save(messages: Iterable[Message]) -> dict[str, SavedMessage]:
    """Return what messages, and those that are a part of them, were made of."""
    table: dict[str, SavedMessage] = {}
    for message in messages:
        if str(message) not in table:
            params = {name: _plain(value) for name, value in message.params.items()}
            table[str(message)] = SavedMessage(code=message.code, params=params)
            values = (v if isinstance(v, list | tuple) else (v,) for v in message.params.values())
            parts = (part for several in values for part in several)
            table |= save(part for part in parts if isinstance(part, Message))
    return table


def _plain(value: Parameter) -> int | float | str | tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(str(part) for part in value)
    return value if isinstance(value, int | float) else str(value)


def restore(sentence: str, table: Messages, *, reworded: bool = False, depth: int = 6) -> str:
    """Return a sentence of a file as the message that it was.

    It is left as text where the file does not tell what it was made of.

    Args:
        sentence: of the file.
        table: its messages.
        reworded: take what was worded otherwise, by another version; else what does not make
            this very sentence is left as text: somebody may have given it the code of another.
        depth: of messages within messages.
    """
    if (saved := table.get(sentence)) is None or depth == 0:
        return sentence

    def part(value: Parameter) -> Parameter:
        if isinstance(value, tuple):
            return value if len(value) > _PARTS else tuple(map(text, value))
        return text(value) if isinstance(value, str) else value

    def text(value: str) -> str:
        return restore(value, table, reworded=reworded, depth=depth - 1)

    try:
        template = catalog(ENGLISH)[saved.code]
        params = {name: part(saved.params[name]) for _, name, _ in _pieces(template) if name}
        is_same = reworded or _fill(template, params, ENGLISH) == sentence
    except (KeyError, ValueError, ArithmeticError):
        return sentence
    return Message.saved(sentence, saved.code, params) if is_same else sentence


def join(parts: Iterable[str], kind: str = "clauses") -> str:
    """Return what is not empty of parts as one message: `words`, `clauses` or `sentences`."""
    some = tuple(part for part in parts if part)
    return some[0] if len(some) == 1 else Message(f"list.{kind}", parts=some) if some else ""


Value = TypeVar("Value")


@contextmanager
def set_within(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Let a variable have a value within a block: the language, or a rate beside dollars."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


@cache
def catalog(language: str) -> Mapping[str, str]:
    """Return the templates of a language by code."""
    folder = files("pricing.data") / "messages" / language
    texts = (file.read_text(encoding="utf-8") for file in folder.iterdir())
    entries = (entry for text in texts for entry in _ENTRY.findall(text.replace('"\n"', "")))
    return {code: _ESCAPED.sub(_character, template) for code, template in entries}


def _character(escaped: re.Match[str]) -> str:
    return "\n" if escaped[1] == "n" else escaped[1]


@cache
def _pieces(template: str) -> tuple[tuple[str, str | None, str], ...]:
    return tuple((text, name, spec or "") for text, name, spec, _ in Formatter().parse(template))


def _fill(template: str, params: Mapping[str, Parameter], language: str) -> str:
    return "".join(
        text if name is None else text + _format(params[name], spec, language)
        for text, name, spec in _pieces(template)
    )


def _format(value: Parameter, spec: str, language: str) -> str:
    """Return a parameter as a language writes it."""
    if isinstance(value, Message):  # which is its English sentence
        return str(value) if language == ENGLISH else value.translate_to(language)
    if isinstance(value, list | tuple):
        separator = catalog(language)[f"separator.{spec or 'words'}"]
        return separator.join(_format(part, "", language) for part in value)
    if not spec:
        return str(value)
    number = Decimal(value) if isinstance(value, str) else value  # as a saved plan holds money
    return format(number, spec)
