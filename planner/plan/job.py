"""The part of plan.json that says what is planned for one job."""

import math
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from planner.actions.settings import Settings
from planner.choice.requirements import Rejected
from planner.models.costs import Saving
from planner.models.document import Number, need
from planner.models.estimate import Interval
from planner.plan.bill import CostLine, CostRange, RentedOffer, distinct
from planner.plan.option import STAY, Baseline, Level, Option, OptionId
from planner.profile.fields import matching
from planner.profile.kinds import JobKind
from planner.signals.finding import Finding, Saved, program_finding
from pricing.message import Messages
from pricing.money import Amount

__all__ = ["JobPlan", "Rejected"]


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """An action on the job itself that applies to it on today's machine.

    Attributes:
        code: the action code.
        kind: `safe`, or `numeric` where it may change results; `class` in the file.
        acts_on: the part of the time that it acts on; None where unknown.
        effect: on that part; None where unknown.
        rests_on: what the effect is known from.
        settings: what it would set.
        effort_hours: engineering time, our estimate; None in plans of versions that did not say.
        saves: alone, on today's machine, in the period; None where it is not known, or the time
            that the machine is held does not change.
    """

    code: str
    kind: str = msgspec.field(name="class")
    acts_on: str | None = None
    effect: Interval | None = None
    rests_on: str | None = None
    settings: Settings
    effort_hours: Number | None = None
    saves: Saved | None = None


class ConfidencePart(msgspec.Struct, frozen=True, kw_only=True):
    """How sure one part of the advice is, and why.

    Attributes:
        level: good, fair or low.
        why: one sentence.
    """

    level: Level
    why: str


class Confidence(msgspec.Struct, frozen=True, kw_only=True):
    """How sure the advice is: of its cause, of the speed elsewhere, of the price.

    Attributes:
        level: that of the weakest part.
        diagnosis: of the cause.
        speed: elsewhere; None where nothing moves or changes.
        price: how far it may have moved.
    """

    level: Level
    diagnosis: ConfidencePart
    speed: ConfidencePart | None = None
    price: ConfidencePart


_CODE = "[a-z0-9][a-z0-9-]*"
_WORD = r"""(?:[A-Za-z0-9@%+=:,./_-]|'[^'`<>\x00-\x1f\x7f-\x9f\u2028\u2029]*'|"'")+"""
_COMMANDS = (
    f"explain {_CODE}",
    rf"recipe plan\.json --option o0 --numeric {_CODE}",
    rf"run plan\.json --option {_WORD}(?: --numeric {_CODE})*(?: --ab)? -- COMMAND",
    rf"(?:provision|export) plan\.json(?: --to {_CODE})? --option {_WORD} --ttl 1h --run COMMAND",
    rf"provision --type {_WORD} --ttl 1h --run COMMAND",
    r"profile -o profile\.json -- COMMAND",
    r"profile -o after\.json -- COMMAND && gpucost verify profile\.json after\.json",
)
Command = Annotated[str, matching(f"gpucost (?:{'|'.join(_COMMANDS)})")]
"""What a plan says to type. Plans come from strangers, and people paste it into a shell: all forms
that there are, with names as a shell quotes them, and nothing else."""


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """What to do on today's machine.

    Attributes:
        kind: `end` the job, or `try` a cure.
        what: in words, without a full stop.
        actions: codes of what it does.
        command: what to type; None where nothing starts it.
        usd: of the period with it; None where that is not known, as the next three.
        saves: in the period.
        time_factor: hours of the job with it, over today's.
        pays_back_periods: until the expected saving has paid for its work.
        effort_hours: engineering time, our estimate.
        option: the id of the listed option that it is; left out where it is none.
    """

    kind: Literal["end", "try"]
    what: str
    actions: tuple[str, ...]
    command: Command | None = None
    usd: CostRange | None = None
    saves: Saved | None = None
    time_factor: Number | None = None
    pays_back_periods: Number | None = None
    effort_hours: Number | None = None
    option: OptionId | UnsetType = UNSET

    @property
    def mends_limit(self) -> bool:
        """Whether it is done for a target that is missed: it costs more, or looks for the cause."""
        return not self.actions or (self.saves is not None and self.saves.mid < 0)


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """An option in the figures that decide.

    Attributes:
        option: its id.
        usd: of the period.
        saves: against today.
        time_factor: hours of the work over today's; None where time is held, not worked off.
        purchase: how it is bought, as in the catalog; a term is owed whole.
        effort_hours: engineering time, our estimate.
        move_usd: for the data, once; None where unknown.
        move_hours: that they take; None where unknown.
        pays_back_periods: until the expected saving has paid for work and move; None: never, or
            unknown.
        price_age_days: since the price was read; None: on no stated day.
        start: what can start it, best first: `provision`, then the tools of `export --to`; empty
            where a person rents it.
    """

    option: OptionId
    usd: CostRange
    saves: Saving
    time_factor: Number | None
    purchase: str
    effort_hours: Number
    move_usd: Amount | None
    move_hours: Number | None
    pays_back_periods: Number | None
    price_age_days: int | None
    start: tuple[Annotated[str, matching(_CODE)], ...]


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The cheapest measurement that would settle what is open.

    Attributes:
        option: the id that it is about; `o0`: today's machine.
        what: one sentence.
        command: what to type; None where a person rents the machine.
        minutes: of measuring.
        usd: what that costs.
        offer: what is rented for it; None: nothing.
        count: machines.
        factor_now: x/÷ of the option's hours; None where it is not about them, as the next.
        factor_after: once it is done.
        roll_back_factor: hours over today's from which on the change does not pay; None where its
            bill does not follow them.
    """

    option: OptionId
    what: str
    command: Command | None
    minutes: Number
    usd: Amount
    offer: RentedOffer | None = None
    count: int = 0
    factor_now: Number | None = None
    factor_after: Number | None = None
    roll_back_factor: Number | None = None

    @property
    def narrows(self) -> float:
        """By how much, in log space."""
        return math.log((self.factor_now or 1.0) / (self.factor_after or 1.0))


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan answers for a job alone.

    Attributes:
        now: the cure here; None where none is known, or nothing is lost.
        next: the recommended option; None: it stays on today's machine.
        cheapest: the option of least expected cost, where it is another one.
        proof: what would settle what is open; None: nothing is worth measuring.
        reason: why it stays on today's machine; None where it does not.
        steady: what a term, or spot capacity, of the machine costs that is used so many hours, and
            from where on either is cheaper; left out where it is used for less.
        off_hours: what a machine that people use costs if it is off at nights and weekends.
    """

    now: Now | None = None
    next: Way | None = None
    cheapest: Way | None = None
    proof: Proof | None = None
    reason: str | None = None
    steady: str | UnsetType = UNSET
    off_hours: str | UnsetType = UNSET


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What is still paid for a job that is to end, of its bill of today.

    Where `answer.now` is to `try`, somebody looks first whether anything of it still runs.

    Attributes:
        gpus: that are free then.
        cost: dollars of the period: of a machine that others keep, or that is owed anyway; None
            where today's is not known.
        lines: that are paid.
        leaving_first: jobs on its machine that move away, as the plan has it, before the machine
            can be given back.
    """

    gpus: Number
    cost: Amount | None
    lines: tuple[CostLine, ...] = ()
    leaving_first: tuple[str, ...] = ()

    @property
    def is_owed(self) -> bool:
        """Whether a part of it is owed whatever runs."""
        return any(line.what == "owed" for line in self.lines)


_ANSWERS = frozenset(kind.value for kind in JobKind if kind.answers)


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is planned for one job.

    Attributes:
        name: the job's name.
        kind: of job, as in profile.json.
        baseline: what runs today; it is the option `o0`.
        findings: ranked, the verdict first.
        remedies: the actions on the job itself that apply.
        options: in order of the objective.
        rejected: one per machine size and reason.
        recommended: an option's id; `o0` means leave it.
        smallest_change: an option's id, or `o0`; None in plans of versions that did not say.
        cheapest: the same.
        first_launchable: the same; None also where none can be launched.
        confidence: how sure the advice is; None in plans of versions that did not say.
        answer: what to do now and next, what proves it; empty in plans that did not say.
        placement: the GPU of the fleet that it is recommended to share; None: its own way.
        busy_fraction: share of the time that kernels ran today, mean over its GPUs, 0-1; left out
            where it was not read.
        ended: of a job that is to end, as no kernel of it ran, what is still paid; left out of
            those that go on, and in plans of versions that did not say.
        messages: what its sentences were made of; empty in plans of versions that did not say.
    """

    name: str
    kind: str
    baseline: Baseline
    findings: tuple[Finding, ...]
    remedies: tuple[Remedy, ...] = ()
    options: tuple[Option, ...]
    rejected: tuple[Rejected, ...]
    recommended: str
    smallest_change: str | None = None
    cheapest: str | None = None
    first_launchable: str | None = None
    confidence: Confidence | None = None
    answer: Answer = Answer()
    placement: int | None = None
    busy_fraction: Number | UnsetType = UNSET
    ended: Ended | UnsetType = UNSET
    messages: Messages = {}

    def __post_init__(self) -> None:
        distinct((option.id for option in self.options), "options")
        for name in ("recommended", "smallest_change", "cheapest", "first_launchable"):
            self._check_named(name, getattr(self, name))

    def _check_named(self, name: str, id_: str | None) -> None:
        exists = id_ is None or id_ == STAY or self.option(id_) is not None
        need(exists, f"{name} is {id_}, which is not an option of the job")

    def option(self, id_: str | None) -> Option | None:
        """Return the option with an id; None where there is none."""
        return next((option for option in self.options if option.id == id_), None)

    @property
    def answers(self) -> bool:
        """Whether it answers requests, and has no end of its own."""
        return self.kind in _ANSWERS

    @property
    def choice(self) -> Option | None:
        """The recommended option; None for "leave it"."""
        return self.option(self.recommended)

    @property
    def verdict(self) -> Finding | None:
        """The first finding; None where nothing was found."""
        return self.findings[0] if self.findings else None

    @property
    def is_looked_at(self) -> bool:
        """Whether it is to end once somebody has seen that nothing of it still runs."""
        return bool(self.ended) and self.answer.now is not None and self.answer.now.kind == "try"

    @property
    def program_finding(self) -> Finding | None:
        """The first finding but for a failing GPU, which no change of the program mends."""
        return program_finding(self.findings)
