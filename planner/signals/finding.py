"""What a diagnosis finds, and what a cure saves: the values that plans and diagnoses hold."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from planner.models.document import Number
from planner.signals.signals import SIGNALS
from planner.signals.thresholds import FAILING
from pricing.money import Amount

Severity = Literal["high", "medium", "low", "info"]
Certainty = Literal["measured", "likely", "possible"]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One reading beside the test that it met.

    Attributes:
        metric: the signal's name.
        value: a number or a word.
        test: the comparison that held, such as `< 0.5`.
        name: the signal in words; that of the signal where it is not given.
        unit: `fraction` is read in percent; None for words, counts and ratios. That of the signal
            where it is not given, as in plans of earlier versions.
    """

    metric: str
    value: Number | str
    test: str
    name: str = ""
    unit: str | None = None

    def __post_init__(self) -> None:
        """Take name and unit of the signal where they are not given."""
        signal = SIGNALS.get(self.metric)
        if signal is not None:
            msgspec.structs.force_setattr(self, "name", self.name or signal.name)
            msgspec.structs.force_setattr(self, "unit", self.unit or signal.unit)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of waste.

    Attributes:
        code: one of the finding codes.
        severity: how much of the bill is at stake.
        confidence: `measured` where the cause itself was timed, `likely` where counters point to
            it, `possible` where they allow it.
        cause: one sentence.
        evidence: the readings that led here.
        against: the readings that speak against it.
        actions: codes of what would help, best first.
        waste_fraction: share of the bill, 0-1; None where unknown.
        waste_usd: in dollars of the period; None without a price.
    """

    code: str
    severity: Severity
    confidence: Certainty
    cause: str
    evidence: tuple[Reading, ...] = ()
    against: tuple[Reading, ...] = ()
    actions: tuple[str, ...] = ()
    waste_fraction: Number | None = None
    waste_usd: Amount | None = None

    def __post_init__(self) -> None:
        if self.waste_usd is not None and self.waste_usd < 0:
            raise ValueError(f"waste_usd is {self.waste_usd}, below 0")


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars of the period that a change on today's machine saves; below 0 where it costs more.

    Attributes:
        low: the 5 % end.
        mid: expected.
        high: the 95 % end.
        time_factor: hours of the job with it, over today's; None in plans that did not say.
    """

    low: Amount
    mid: Amount
    high: Amount
    time_factor: Number | None = None


def program_finding(findings: Iterable[Finding]) -> Finding | None:
    """Return the first finding but for a failing GPU, which no change of the program mends."""
    return next((finding for finding in findings if finding.code != FAILING), None)
