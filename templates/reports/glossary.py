"""Words that a reader of bills may not know, explained where a report first uses them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from templates.language.speech import ENGLISH, gap, glossary, say, spoken


@dataclass(frozen=True, slots=True)
class _Word:
    pattern: re.Pattern[str]
    word: str
    means: str


def _word(pattern: str, word: str, means: str) -> _Word:
    return _Word(re.compile(pattern), word, means)


_ENGLISH = (
    _word(
        r"90 % interval",
        "90 % interval",
        "nine times in ten the true figure is meant to lie between its two ends",
    ),
    _word(
        r"[Mm]ixed precision(?: \(AMP\))?",
        "mixed precision",
        "shorter numbers where a model bears them, which a GPU calculates faster",
    ),
    _word(
        r"\bon[_ ]demand\b",
        "on demand",
        "rented as long as it is used, without a commitment",
    ),
    _word(r"--probe\b|\b[Pp]robes?\b(?! =)", "probe", "a short measured run of the job elsewhere"),
    _word(r"\bspot\b", "spot", "cheaper, and may be taken away at short notice"),
    _word(r"\bMPS\b|\bmps\b", "mps", "NVIDIA's way to let several programs use one GPU at once"),
)


@cache
def _of(language: str) -> tuple[_Word, ...]:
    if language == ENGLISH:
        return _ENGLISH
    return tuple(_word(**entry) for entry in glossary(language))


_CODE = re.compile(r"(`[^`]*`)")


def glossed(report: str) -> str:
    """Return a report with each word explained at its first use.

    In a sentence the meaning follows the word in brackets. In a table, where it would widen the
    cell, it stands below the table. Headings, folds' titles and commands explain nothing.
    """
    left, lines = list(_of(spoken())), list[str]()
    waiting: list[_Word] = []
    for line in report.split("\n"):
        in_table = line.startswith("|")
        if waiting and not in_table:
            lines += ["", gap().join(_meaning(word) for word in waiting)]
            waiting = []
        if line.startswith(("#", "<")):
            lines.append(line)
            continue
        for word in tuple(left):
            if in_table and word.pattern.search(_CODE.sub("", line)):
                waiting.append(word)
                left.remove(word)
            elif not in_table:
                line, done = _explained(line, word)  # noqa: PLW2901 - a line gains meanings
                if done:
                    left.remove(word)
        lines.append(line)
    return "\n".join(lines)


def _explained(line: str, word: _Word) -> tuple[str, bool]:
    """Return a line with the meaning behind the first use outside of commands."""
    parts = _CODE.split(line)
    for at, part in enumerate(parts):
        found = None if part.startswith("`") else word.pattern.search(part)
        if found is not None:
            parts[at] = _explains(part, found.end(), word)
            return "".join(parts), True
    return line, False


def _explains(text: str, at: int, word: _Word) -> str:
    return text[:at] + say(" ({rule})", rule=word.means) + text[at:]


def _meaning(word: _Word) -> str:
    return say("*{word}*: {means}.", word=word.word, means=word.means)
