"""One row of the table of formats: how a source is told, who reads it, and what it can tell."""

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from telemetry.readers.hints import Hints
from telemetry.readers.payload import Payload
from telemetry.recording.recording import Recording


class _ReaderModule(Protocol):
    def read(self, payload: Payload, hints: Hints) -> Recording: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format that can be read.

    Attributes:
        name: what `--format` calls it.
        title: what people call it.
        module: the module of `formats` whose `read(payload, hints)` reads it, as `smi.dmon`.
        fits: whether the first characters of a source are of it; of a binary one, one character
            stands for each byte.
        binary: whether it consists of bytes, not of text.
        seen: of which versions files were read, and how real they were.
        tells: what can be known from it.
        lacks: what cannot.
    """

    name: str
    title: str
    module: str
    fits: Callable[[str], bool]
    binary: bool = False
    seen: str = ""
    tells: str = ""
    lacks: str = ""

    def read(self, payload: Payload, hints: Hints) -> Recording:
        """Return what the source holds; the reader's module is imported on first use."""
        module = importlib.import_module(f"telemetry.formats.{self.module}")
        return cast("_ReaderModule", module).read(payload, hints)


def json_with(pattern: str) -> Callable[[str], bool]:
    """Return the test of a head that begins as JSON and holds a pattern."""
    keys = re.compile(pattern)
    return lambda head: head.lstrip()[:1] in ("{", "[") and bool(keys.search(head))


def text_with(pattern: str) -> Callable[[str], bool]:
    """Return the test of a head in which some line holds a pattern; `^` is a line's start."""
    words = re.compile(pattern, re.MULTILINE | re.IGNORECASE)
    return lambda head: bool(words.search(head))
