"""Says sentences in the language of a report.

The English sentence of a report stands where it is said, with its figures as fields in braces; it
is the key of the table of each other language. A test holds that each of them has it. What
plan.json holds are messages (`pricing.message`): they are said anew by their code and parameters.
"""

from __future__ import annotations

import tomllib
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pricing.message import Message, Messages, restore, set_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import date
    from decimal import Decimal

    from planner.plan.plan import Plan

ENGLISH = "en"
LANGUAGES = (ENGLISH, "zh")
_SPOKEN: ContextVar[str] = ContextVar("language", default=ENGLISH)
_SAVED: ContextVar[Messages] = ContextVar("messages", default=MappingProxyType({}))


@contextmanager
def use_language(language: str, plan: Plan | None = None) -> Iterator[None]:
    """Let everything that is said inside be said in a language: `en` or `zh`.

    Args:
        language: its code.
        plan: what is spoken of; one that was read back holds its messages in tables.
    """
    with set_within(_SPOKEN, language), set_within(_SAVED, _saved(plan) if plan else {}):
        yield


def _saved(plan: Plan) -> Messages:
    tables = (plan.messages, *(job.messages for job in plan.jobs))
    return {text: message for table in tables for text, message in table.items()}


current_language = _SPOKEN.get  # the language that is spoken


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
    """Return a table: `said`, or `page`, what a page's own script says."""
    return {en: text for table in _tables(language) for en, text in table.get(kind, {}).items()}


@cache
def word_lists(language: str) -> Mapping[str, Mapping[str, str]]:
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
    return translation.format(**fields) if fields else translation


def word(kind: str, code: str) -> str:
    """Return a code in the words of the language; the code itself in English, or if not known."""
    if current_language() == ENGLISH:
        return code
    return word_lists(current_language()).get(kind, {}).get(code, code)


def translate_text(text: str) -> str:
    """Return a message in the language that is spoken; any other text, a user's, as it is."""
    if current_language() == ENGLISH or not text:
        return text
    message = text if isinstance(text, Message) else restore(text, _SAVED.get(), reworded=True)
    return message.translate_to(current_language()) if isinstance(message, Message) else text


def join(items: Iterable[str]) -> str:
    """Return words between commas."""
    return _(", ").join(items)


def gap() -> str:
    """Return what stands between two sentences: a space; in Chinese nothing."""
    return " " if current_language() == ENGLISH else ""


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


def showing(rate: ExchangeRate | None) -> AbstractContextManager[None]:
    """Let totals that are said inside have another currency beside them; None: dollars alone."""
    return set_within(_ASKED, rate)


_PLAN_FILE: ContextVar[str | None] = ContextVar("plan file", default=None)


def reading_plan(path: str | None) -> AbstractContextManager[None]:
    """Let the commands that are said inside read the plan from a file; None: it was not saved."""
    return set_within(_PLAN_FILE, None if path == "-" else path)


plan_file = _PLAN_FILE.get  # the file that commands read the plan from
asked_rate = _ASKED.get  # the rate that was asked for


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
