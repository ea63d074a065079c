"""The diagnosis as a table: which readings mean which cause. The rules are in rules.toml.

`planner.diagnosis.diagnose` applies them.

Utilisation (`util.kernel_time`) is time with a kernel running, not work done: no rule sizes a GPU
down on it alone.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Literal

import msgspec

from planner.signals.condition import Signals, Test, parse_test
from planner.signals.finding import Certainty, Severity
from planner.signals.thresholds import AT_WORK, BUSY, SM
from pricing.message import Message

Pool = Literal["idle", "busy", "outside", "gpus"]


class Waste(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A share of the bill.

    Attributes:
        pool: the time it is taken from, so that two causes never claim the same second; `outside`
            is before the steps that the statistics are of.
        of: a signal that is the share of the whole bill, 0-1, or the word of a law of several.
        faster: how many times as fast that time could be; None: all of it is wasted.
        words: how it is worked out.
    """

    pool: Pool
    of: str
    faster: float | None = None
    words: str

    def share(self, signals: Signals) -> float | None:
        """Return the share of the whole bill, 0-1; None where unknown.

        Of time on GPUs it is the part of those that work: a GPU at rest waits for nobody.
        """
        names, law = _LAWS.get(self.of, ((self.of,), lambda share: share))
        numbers = [value for name in names if isinstance(value := signals[name], float | int)]
        share: float | None = law(*numbers) if len(numbers) == len(names) else None
        if share is None:
            return None
        if self.pool != "outside" and AT_WORK not in names:
            share *= at_work_share(signals)
        return share if not self.faster else share * (1.0 - 1.0 / self.faster)


def at_work_share(signals: Signals) -> float:
    """Return the part of the job's GPUs that work, above 0, at most 1."""
    share = signals[AT_WORK]
    return share if isinstance(share, float) else 1.0


# Wastes that follow from signals by a law, each with those.
_LAWS: Mapping[str, tuple[tuple[str, ...], Callable[..., float | None]]] = {
    "waiting": ((BUSY,), lambda busy: 1.0 - busy),
    "unfilled": ((BUSY, SM), lambda busy, sm: max(0.0, busy - sm)),
    "uneven": (
        (BUSY, "util.kernel_time.most", AT_WORK),
        lambda mean, peak, part: max(0.0, 1.0 - mean * part / peak) if peak else None,
    ),
    "batch-left": (("serving.fuller_batch",), lambda more: 1.0 - 1.0 / more),
    # Of GPU time, what waits for the slowest rank.
    "behind": (
        ("ranks.behind", "hardware.gpu_count"),
        lambda behind, gpus: behind * (gpus - 1.0) / gpus if gpus else None,
    ),
}


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to recognise a cause: all tests hold.

    Attributes:
        confidence: how sure the tests make it.
        cause: one sentence for a person.
        tests: what must hold.
        waste: the share of the bill at stake; None where nobody can know.
        severity: used where nothing is wasted; the rule's when None.
        actions: what helps in this case, best first; the rule's when None.
        names: the signal that names what the finding is about, such as the program's line.
    """

    confidence: Certainty
    cause: str
    tests: tuple[Test, ...]
    waste: Waste | None = None
    severity: Severity | None = None
    actions: tuple[str, ...] | None = None
    names: str | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


def _read_rules() -> Iterator[Rule]:
    """Yield every rule, in the order of rules.toml, with the tests and wastes that it names."""
    table = tomllib.loads(files(__package__).joinpath("rules.toml").read_text("utf-8"))
    tests, wastes = table.pop("TESTS"), table.pop("WASTES")

    def expanded(texts: Iterable[str]) -> Iterator[Test]:
        for text in texts:
            if text in tests:
                yield from expanded(tests[text])
            else:
                yield parse_test(text)

    def case(fields: dict[str, object], tests: Iterable[str], cause: str) -> dict[str, object]:
        of = fields.get("waste")
        every_step = {"pool": "idle", "of": of, "words": f"{of} of every step"}
        waste = of and wastes.get(of, every_step)
        own = {"waste": waste, "cause": Message(f"cause.{cause}"), "tests": [*expanded(tests)]}
        return {**fields, **own}

    for code, fields in table.items():
        cases = [case(row, row["tests"], row["cause"]) for row in fields["cases"]]
        against = [*expanded(fields.get("against", ()))]
        yield msgspec.convert({**fields, "code": code, "cases": cases, "against": against}, Rule)


RULES: tuple[Rule, ...] = tuple(_read_rules())
