"""Says sentences in the language of a report.

The English sentence stands where it is said, with its figures as fields in braces; it is the key of
the table of each other language. So a sentence cannot be said that the tables do not know, and a
test holds that each of them has it. What plan.json holds as a finished sentence is recognised by
the same key and said anew: its figures are read out of it. In a table, `{name!t}` is a part that is
a sentence itself, `{name!j}` a list between commas.
"""

from __future__ import annotations

import re
import tomllib
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pricing.message import Message, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import date
    from decimal import Decimal

    from planner.models.document import Messages
    from planner.plan.plan import Plan

ENGLISH = "en"
LANGUAGES = (ENGLISH, "zh")
_SPOKEN: ContextVar[str] = ContextVar("language", default=ENGLISH)
_SAVED: ContextVar[Messages] = ContextVar("messages", default=MappingProxyType({}))
_FIELD = re.compile(r"\\\{(\w+)\\\}")
_NEXT_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`])")


@contextmanager
def use_language(language: str, plan: Plan | None = None) -> Iterator[None]:
    """Let everything that is said inside be said in a language: `en` or `zh`.

    Args:
        language: its code.
        plan: what is spoken of; one that was read back holds its messages in tables.
    """
    before, saved_before = _SPOKEN.set(language), _SAVED.set(_saved(plan) if plan else {})
    try:
        yield
    finally:
        _SPOKEN.reset(before)
        _SAVED.reset(saved_before)


def _saved(plan: Plan) -> Messages:
    tables = (plan.messages, *(job.messages for job in plan.jobs))
    return {text: message for table in tables for text, message in table.items()}


def _message(text: str) -> str:
    """Return the message that a text of a saved plan is; the text itself where it is none."""
    message = _SAVED.get().get(text)
    if message is None:
        return text
    params = {name: _parameter(value) for name, value in message.params.items()}
    return Message.saved(text, message.code, params)


def _parameter(value: Parameter) -> Parameter:
    if isinstance(value, str):
        return _message(value)
    return tuple(map(_message, value)) if isinstance(value, tuple) else value


def current_language() -> str:
    """Return the language that is spoken."""
    return _SPOKEN.get()


@cache
def _tables(language: str) -> tuple[dict[str, Any], ...]:
    folder = files(__package__).joinpath(language)
    catalogs = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(tomllib.loads(file.read_text(encoding="utf-8")) for file in catalogs)


def sentences(language: str) -> Mapping[str, str]:
    """Return what a language says for each English sentence that a report makes."""
    return _of("said", language)


@cache
def _of(kind: str, language: str) -> dict[str, str]:
    """Return a table: `said`, `finished` (sentences of plan.json) or `parts` (of such)."""
    return {en: text for table in _tables(language) for en, text in table.get(kind, {}).items()}


@cache
def words(language: str) -> Mapping[str, Mapping[str, str]]:
    """Return what a language calls codes, by kind."""
    tables = (table.get("words", {}) for table in _tables(language))
    return {kind: text for table in tables for kind, text in table.items()}


def page_words(language: str) -> dict[str, str]:
    """Return what a page's own script says in a language; nothing in English, its own words."""
    return {} if language == ENGLISH else dict(_of("page", language))


@cache
def glossary(language: str) -> tuple[dict[str, str], ...]:
    """Return the words that are explained at their first use: `pattern`, `word`, `means`."""
    return tuple(entry for table in _tables(language) for entry in table.get("glossary", ()))


def _(english: str, **fields: object) -> str:
    """Return a sentence with its figures; a sentence without Chinese is said in English."""
    language = current_language()
    if language == ENGLISH:
        return english.format(**fields) if fields else english
    translation = sentences(language).get(english)
    if translation is None:
        return english.format(**fields) if fields else english
    return _FILLED.vformat(translation, (), fields) if fields else translation


def word(kind: str, code: str) -> str:
    """Return a code in the words of the language; the code itself in English, or if not known."""
    if current_language() == ENGLISH:
        return code
    return words(current_language()).get(kind, {}).get(code, code)


def translate_text(sentence: str) -> str:
    """Return a finished English sentence, or several, in the language that is spoken.

    What no table knows stays as it is: a note that a user wrote into a profile is the user's.
    """
    if current_language() == ENGLISH or not sentence:
        return sentence
    message = sentence if isinstance(sentence, Message) else _message(sentence)
    if isinstance(message, Message):
        params = {name: _translate_parameter(value) for name, value in message.params.items()}
        return Message.saved(message, message.code, params).translate_to(current_language())
    whole = _recognised(sentence, current_language())
    if whole is not None:
        return whole
    return _one_by_one(_NEXT_SENTENCE.split(sentence))


def _translate_parameter(value: Parameter) -> Parameter:
    if isinstance(value, list | tuple):
        return tuple(map(translate_text, value))
    return translate_text(value) if isinstance(value, str) else value


def _one_by_one(parts: list[str]) -> str:
    """Return sentences one after the other, the longest run of them that is known at once."""
    text, at, before = "", 0, True
    while at < len(parts):
        runs = (range(at + 1, len(parts) + 1))[::-1]
        match = ((end, _recognised(" ".join(parts[at:end]), current_language())) for end in runs)
        end, translation = next(((end, text) for end, text in match if text), (at + 1, None))
        apart = "" if translation is not None or before else " "
        text += apart + (_clauses(parts[at]) if translation is None else translation)
        at, before = end, translation is not None
    return text


def _part(text: str) -> str:
    """Return a part of a sentence, which may itself be one."""
    return _recognised(text, current_language(), "parts") or translate_text(text)


def join(words: Iterable[str]) -> str:
    """Return words between commas."""
    return _(", ").join(words)


def gap() -> str:
    """Return what stands between two sentences: a space; in Chinese nothing."""
    return " " if current_language() == ENGLISH else ""


def _clauses(text: str) -> str:
    """Return clauses between semicolons, each that is known in the language that is spoken."""
    clauses = text.split("; ")
    if len(clauses) == 1:
        return text
    translation = [_recognised(one, current_language()) for one in clauses]
    if not any(translation):  # a note of the user's
        return text
    both = zip(translation, clauses, strict=True)
    return _("; ").join(text or clause for text, clause in both)


def _recognised(text: str, language: str, kind: str = "finished") -> str | None:
    translation = _of(kind, language).get(text)
    if translation is not None:
        return translation
    for pattern, saying in _patterns(language, kind):
        match = pattern.fullmatch(text)
        if match:
            return _FILLED.vformat(saying, (), match.groupdict())
    return None


@cache
def _patterns(language: str, kind: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the sentences with figures as patterns, those with most words of their own first."""
    table = _of(kind, language)
    keys = [key for key in table if "{" in key and len(_words_of(key)) > 1]
    keys.sort(key=lambda key: -len(_words_of(key)))
    return tuple((_pattern(key), table[key]) for key in keys)


def _words_of(key: str) -> str:
    return re.sub(r"\{\w+\}", "", key).strip()


def _pattern(key: str) -> re.Pattern[str]:
    seen: set[str] = set()

    def group(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>.+?)"

    return re.compile(_FIELD.sub(group, re.escape(key)), re.DOTALL)


class _Filler(Formatter):
    """Fills the fields of a sentence; `!t` says a part anew, `!j` a list."""

    def convert_field(self, value: Any, conversion: Any) -> Any:  # noqa: ANN401 - as its base
        if conversion == "t":
            return _part(str(value))
        if conversion == "j":
            return join(_part(one) for one in str(value).split(", "))
        return super().convert_field(value, conversion)


_FILLED = _Filler()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRate:
    """What a dollar is worth.

    Attributes:
        currency: its code in three letters: CNY.
        per_usd: units of it for one dollar, above 0.
        day: the day of the rate.
    """

    currency: str
    per_usd: Decimal
    day: date


_ASKED: ContextVar[ExchangeRate | None] = ContextVar("rate", default=None)


@contextmanager
def showing(rate: ExchangeRate | None) -> Iterator[None]:
    """Let totals that are said inside have another currency beside them; None: dollars alone."""
    before = _ASKED.set(rate)
    try:
        yield
    finally:
        _ASKED.reset(before)


def asked_rate() -> ExchangeRate | None:
    """Return the rate that was asked for."""
    return _ASKED.get()


def rate_words() -> str:
    """Return the rate with its day in a sentence; empty where none was asked for."""
    rate = asked_rate()
    if rate is None:
        return ""
    return _(
        "{currency} amounts use {rate} {currency} per dollar, the rate given for {day}; bills are "
        "in dollars.",
        currency=rate.currency,
        rate=f"{rate.per_usd:f}",
        day=rate.day.isoformat(),
    )
