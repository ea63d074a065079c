"""What a diagnosis rule is: tests on signals, and the share of the bill at stake when they hold."""

from dataclasses import dataclass
from typing import Literal

from planner.diagnosis.rules.waste import Waste
from planner.signals.condition import Test

Severity = Literal["high", "medium", "low", "info"]
Confidence = Literal["measured", "likely", "possible"]


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
