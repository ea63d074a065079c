"""What a signal is, and tests on signals."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from planner.profile.model import Profile
from planner.signals import thresholds

Value = float | str | None
FRACTION = "fraction"
"""The unit of a share, from 0 to 1; people read it in percent."""


@dataclass(frozen=True, slots=True)
class Signal:
    """A number or a word that rules and actions look at.

    Attributes:
        read: returns it; None where it was not measured.
        name: what people call it.
        unit: FRACTION, or as it is written (`MiB/s`); None for words, counts and ratios.
    """

    read: Callable[[Profile], Value]
    name: str
    unit: str | None = None


def named(readers: Mapping[str, Callable[[Profile], Value]]) -> dict[str, Signal]:
    """Return the signals that functions read, with their names and units of signals.toml."""
    return {signal: Signal(read, *_names()[signal]) for signal, read in readers.items()}


@cache
def _names() -> Mapping[str, tuple[str, ...]]:
    text = (files("planner.signals") / "signals.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


Signals = Mapping[str, Value]


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One comparison with one signal.

    Attributes:
        signal: a key of `planner.signals.signals.SIGNALS`.
        op: `<`, `<=`, `>`, `>=`, `in`, or `unknown` (holds when it was not measured).
        limit: what it is compared with; a tuple of words for `in`.
        or_unknown: whether it also holds, without evidence, when the signal was not measured.
        quiet: whether it only says where the rule applies, and is not evidence.
    """

    __test__ = False  # not a pytest class

    signal: str
    op: str
    limit: float | tuple[str, ...] | None = None
    or_unknown: bool = False
    quiet: bool = False

    def holds(self, signals: Signals) -> bool:
        """Return whether the comparison holds; an unmeasured signal holds nothing by itself."""
        value = signals[self.signal]
        if self.op == "unknown":
            return value is None
        if value is None:
            return self.or_unknown
        if isinstance(self.limit, tuple):
            return value in self.limit
        if isinstance(value, str) or self.limit is None:
            return False
        return _COMPARE[self.op](value, self.limit)

    @property
    def words(self) -> str:
        """The comparison as text: `< 0.5`."""
        if self.op == "unknown":
            return "not measured"
        if isinstance(self.limit, tuple):
            return f"one of {', '.join(self.limit)}"
        return f"{self.op} {self.limit:g}"


_FORM = re.compile(r"(where )?(\S+) (?:unknown|(<=?|>=?|in) (\S+))( or unknown)?")


def parse_test(text: str) -> Test:
    """Return a test as tables write it, such as `where job.kind in MAY_WORK or unknown`.

    `where` makes it say where a rule applies, and no evidence; with `or unknown` an unmeasured
    signal passes. A limit is a number, words between `|`, or a name in thresholds.py.

    Raises:
        ValueError: it has another form.
    """
    match = _FORM.fullmatch(text)
    quiet, signal, op, limit, or_unknown = match.groups() if match else (None,) * 5
    value = None if not limit else _words(limit) if op == "in" else _number(limit)
    if not signal or (op and value is None):
        raise ValueError(f"{text!r} is not a test, such as `where SIGNAL < LIMIT or unknown`")
    return Test(
        signal=signal,
        op=op or "unknown",
        limit=value,
        or_unknown=bool(or_unknown),
        quiet=bool(quiet),
    )


def _number(text: str) -> float | None:
    try:
        return float(getattr(thresholds, text, text))
    except ValueError:
        return None


def _words(text: str) -> tuple[str, ...]:
    named = (getattr(thresholds, word, (word,)) for word in text.split("|"))
    return tuple(word for group in named for word in group)
