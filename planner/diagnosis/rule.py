"""What a diagnosis rule is: tests on signals, and the share of the bill at stake when they hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from planner.diagnosis.finding import Confidence, Evidence, Severity
from planner.signals.signals import Value

Signals = Mapping[str, Value]
Pool = Literal["idle", "busy"]

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
        quiet: whether it only says where the rule applies, and is no evidence.
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

    def evidence(self, signals: Signals) -> Evidence | None:
        """Return the reading beside the test; None for what was not measured or only sets scope."""
        value = signals[self.signal]
        if value is None or self.quiet:
            return None
        shown = round(value, 4) if isinstance(value, float) else value
        return Evidence(metric=self.signal, value=shown, test=self.words)

    @property
    def words(self) -> str:
        """The comparison as text: `< 0.5`."""
        if self.op == "unknown":
            return "not measured"
        if isinstance(self.limit, tuple):
            return f"one of {', '.join(self.limit)}"
        return f"{self.op} {self.limit:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """A share of the bill.

    Attributes:
        pool: the time it is taken from, so that two causes never claim the same second.
        share: the share of the whole bill, 0-1, from the signals; None where unknown.
        words: how it is worked out.
    """

    pool: Pool
    share: Callable[[Signals], float | None]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way to recognise a cause: all tests hold.

    Attributes:
        confidence: how sure the tests make it.
        cause: one sentence for a person.
        tests: what must hold.
        waste: the share of the bill at stake; None where nobody can know.
        severity: used where nothing is wasted; the rule's when None.
        actions: what helps in this case, best first; the rule's when None.
        names: the group of places (`planner.signals.program_places`) whose line the finding
            names, where the program was looked at.
    """

    confidence: Confidence
    cause: str
    tests: tuple[Test, ...]
    waste: Waste | None = None
    severity: Severity | None = None
    actions: tuple[str, ...] | None = None
    names: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A finding code: how it is recognised, what helps, and why we believe it.

    Attributes:
        code: the finding code.
        meaning: one sentence for `gpucost explain`.
        cases: tried in order; the first whose tests all hold makes the finding.
        actions: what helps, best first.
        against: readings that would speak against the cause; shown where they hold.
        severity: used where the waste is unknown or nothing is wasted.
        source: where the rule comes from.
    """

    code: str
    meaning: str
    cases: tuple[Case, ...]
    actions: tuple[str, ...] = ()
    against: tuple[Test, ...] = ()
    severity: Severity = "info"
    source: str


def is_(signal: str, op: str, limit: float | tuple[str, ...] | None = None) -> Test:
    """Return a test that needs the signal."""
    return Test(signal=signal, op=op, limit=limit)


def where(signal: str, op: str, limit: float | tuple[str, ...]) -> Test:
    """Return a test that says where a rule applies; it is no evidence."""
    return Test(signal=signal, op=op, limit=limit, quiet=True)


def unless_known(signal: str, op: str, limit: float) -> Test:
    """Return a test that an unmeasured signal passes."""
    return Test(signal=signal, op=op, limit=limit, or_unknown=True)


def where_known(signal: str, op: str, limit: float) -> Test:
    """Return a test that says where a rule applies, and that an unmeasured signal passes."""
    return Test(signal=signal, op=op, limit=limit, or_unknown=True, quiet=True)
