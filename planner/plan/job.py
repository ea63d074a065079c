"""The part of plan.json that says what is planned for one job."""

import math

import msgspec
from msgspec import UNSET, UnsetType

from planner.models.document import Messages, Number
from planner.models.estimate import Estimate
from planner.plan.bill import CostRange, RentedOffer, distinct, need
from planner.plan.option import STAY, Baseline, Level, Option, Settings
from planner.signals.finding import Finding, FirstStep, Saved
from pricing.money import Amount


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Speed-up of the part of the time that an action acts on.

    Attributes:
        low: the least [x].
        mid: expected [x].
        high: the most [x].
    """

    low: Number
    mid: Number
    high: Number


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
    effect: Effect | None = None
    rests_on: str | None = None
    settings: Settings
    effort_hours: Number | None = None
    saves: Saved | None = None


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """An offer that cannot be taken: `provider/type`, one word, one sentence.

    Attributes:
        offer: its place.
        reason: one word.
        detail: one sentence.
    """

    offer: str
    reason: str
    detail: str


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


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One way to get so many GPUs from one provider.

    Attributes:
        offer: the machine.
        count: machines.
        gpus: GPUs in all.
        hours: of the period, for the same work.
        cost: of the period.
        efficiency: the scaling efficiency expected.
        break_even_efficiency: at which it costs as much as one GPU; None for the one-GPU machine.
        remark: what to watch.
    """

    offer: RentedOffer
    count: int
    gpus: int
    hours: Estimate
    cost: CostRange
    efficiency: Estimate
    break_even_efficiency: Number | None
    remark: str


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """The experiment that would narrow the answer most.

    Attributes:
        option: the id that it is about.
        what: one sentence.
        offer: what is rented for it; None: today's machine.
        count: machines.
        minutes: of measuring.
        usd: what that costs.
        factor_now: x/÷ of the option's hours.
        factor_after: with the experiment done.
    """

    option: str
    what: str
    offer: RentedOffer | None
    count: int
    minutes: Number
    usd: Amount
    factor_now: Number
    factor_after: Number

    @property
    def narrows(self) -> float:
        """By how much, in log space."""
        return math.log(self.factor_now / self.factor_after)


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
        first_step: what to do first where it is left; None where nothing is lost.
        placement: the GPU of the fleet that it is recommended to share; None: its own way.
        shapes: one large machine or many small ones.
        probe: the experiment worth making; None: none.
        busy_fraction: share of the time that kernels ran today, mean over its GPUs, 0-1; left out
            where it was not read.
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
    first_step: FirstStep | None = None
    placement: int | None = None
    shapes: tuple[Shape, ...] = ()
    probe: Experiment | None = None
    busy_fraction: Number | UnsetType = UNSET
    messages: Messages = {}

    def __post_init__(self) -> None:
        distinct((option.id for option in self.options), "options")
        for name in ("recommended", "smallest_change", "cheapest", "first_launchable"):
            self._check_named(name, getattr(self, name))

    def _check_named(self, name: str, id_: str | None) -> None:
        known = id_ is None or id_ == STAY or self.option(id_) is not None
        need(known, f"{name} is {id_}, which is not an option of the job")

    def option(self, id_: str | None) -> Option | None:
        """Return the option with an id; None where there is none."""
        return next((option for option in self.options if option.id == id_), None)

    @property
    def choice(self) -> Option | None:
        """The recommended option; None for "leave it"."""
        return self.option(self.recommended)

    @property
    def verdict(self) -> Finding | None:
        """The first finding; None where nothing was found."""
        return self.findings[0] if self.findings else None
