"""Sentences as data: a code with its parameters, and a catalog of templates for each language.

A `Message` is its English sentence, so that it stands wherever a contract names a text, and keeps
what it was made of, so that it can be said again in another language. The catalogs are gettext
files (`pricing/data/messages/LANGUAGE/AREA.po`) whose `msgid` is the code: `AREA.what-it-says`.
A template has its parameters in braces, a number with its format: `{share:.0%}`; what stands
between the items of a list is a message, too: `separator.words`.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextvars import ContextVar

ENGLISH = "en"
Parameter: TypeAlias = str | int | float | Decimal | tuple[str, ...] | list[str]
"""A word, a number, a list of words; each word may be a message itself."""
_ENTRY = re.compile(r'^msgid "(.+)"\nmsgstr "(.*)"$', re.MULTILINE)
_NUMBER = r"[-+\d.,e]*\d%?"
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


def recognized(sentence: str, area: str) -> str:
    """Return an English sentence as the message of an area that it is; any other as it is.

    Of a sentence about a file (`FILE: ...`) what follows the file is recognized.
    """
    if isinstance(sentence, Message):
        return sentence
    file, _, about = sentence.partition(": ")
    for code, fields, pattern in _patterns(area):
        for text in (sentence, about):
            if match := pattern.fullmatch(text):
                figures = {n: _figure(t, fields[n]) for n, t in match.groupdict().items()}
                own = Message.saved(text, code, figures)
                named = {"job": file, "note": own}
                return own if text == sentence else Message.saved(sentence, "note.about", named)
    return sentence


def _figure(text: str, spec: str) -> Parameter:
    """Return what a sentence was given for a part of it: a word, or a number as it was rounded."""
    number = text.replace(",", "").rstrip("%")
    return float(number) / (100 if spec.endswith("%") else 1) if spec else text


@cache
def _patterns(area: str) -> tuple[tuple[str, Mapping[str, str], re.Pattern[str]], ...]:
    """Return code, formats of the parameters and pattern of each sentence of an area."""
    patterns = []
    for code, template in catalog(ENGLISH).items():
        fields, pattern = dict[str, str](), ""
        for text, name, spec in _pieces(template) if code.startswith(f"{area}.") else ():
            group = f"(?P<{name}>{_NUMBER if spec else '.+?'})" if name else ""
            pattern += re.escape(text) + (f"(?P={name})" if name in fields else group)
            fields |= {name: spec} if name else {}
        patterns += [(code, fields, re.compile(pattern))] if pattern else []
    return tuple(patterns)


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
