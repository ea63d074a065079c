"""The ways to run a job, as in plan.json: today's machine and the options."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from planner.actions.settings import MachineSettings, Settings
from planner.choice.baseline import LIMITS
from planner.choice.requirements import Rejected
from planner.models.copies import Scaling
from planner.models.costs import Benefit, Move, Saving, WorkCost
from planner.models.document import Number, need
from planner.models.estimate import Estimate
from planner.models.interruption import Distribution
from planner.models.power import EnergyUse, PowerCap
from planner.plan.bill import OptionCost, RentedOffer, TodayCost
from planner.profile.fields import matching

STAY = "o0"
"""The id of today's machine, which is not among the options."""

OptionId = Annotated[str, matching(r"o\d+")]
"""It stands in commands that are typed: `o1`, `o2`."""

Level = Literal["good", "fair", "low"]


class BilledShare(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a machine's bill that a job bears: GPUs held of how many, beside which jobs.

    Attributes:
        held: GPUs of the job.
        of: GPUs that are billed.
        beside: jobs that bear the rest.
    """

    held: Number
    of: Number
    beside: tuple[str, ...]


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The job as it runs today: the option `o0`.

    Attributes:
        assumed: whether the offer was assumed rather than stated.
        breaks: the limits of the command line that it breaks.
        gpu: model of the GPUs that were measured; None in plans of versions that did not say.
        gpu_count: how many a copy of the job has; None in plans of versions that did not say.
        owned: whether its hours cost nothing more by the hour.
        offer: what is paid today; None where no price is known.
        count: machines, of all replicas together.
        replicas: copies of the job.
        share: the job's part in the bill of a machine that others use; None where it bears all.
        hours: hours of the period.
        cost: the bill of the period.
        cost_per_work: None without measured work.
        energy: of the period; None in plans of versions that did not say.
        power_cap: None where none saves.
        machine: what is set on each machine; None in plans of versions that did not say.
    """

    assumed: bool
    breaks: tuple[Rejected, ...]
    gpu: str | None = None
    gpu_count: int | None = None
    owned: bool = False
    offer: RentedOffer | None
    count: int
    replicas: int = 1
    share: BilledShare | None = None
    hours: Estimate
    cost: TodayCost
    cost_per_work: WorkCost | None = None
    energy: EnergyUse | None = None
    power_cap: PowerCap | None = None
    machine: MachineSettings | None = None

    def __post_init__(self) -> None:
        need(self.count >= 1, "count is below 1")

    @property
    def broken_limits(self) -> tuple[Rejected, ...]:
        """What it breaks of the limits, without wishes for a seller, a GPU or a way of buying."""
        return tuple(broken for broken in self.breaks if broken.reason in LIMITS)


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A way to run the job.

    Attributes:
        id: unique within the job.
        offer: what is rented.
        count: machines, of all replicas together.
        provisionable: whether the version that planned can launch it.
        actions: codes of what changes against today.
        settings: what each action that applies on its machine would set there.
        machine: what is set on each machine; None in plans of versions that did not say.
        sharing: how its GPU is shared; None: not.
        distribution: how training spreads; None for one GPU.
        speed: speed-up over today; None in plans of versions that did not say.
        hours: hours of the period.
        cost: the bill of the period.
        cost_per_work: None without measured work.
        energy: of the period; None in plans of versions that did not say.
        saves: against today.
        move: what moving there costs once; None in the same provider's region.
        benefit: over the horizon; None in plans of versions that did not say.
        confidence: how sure the advice is if it is taken; None where the plan does not say.
        why: one sentence.
        scaling: copies by the hour; left out where as many run as today, all the time.
    """

    id: OptionId
    offer: RentedOffer
    count: int
    provisionable: bool = False
    actions: tuple[str, ...]
    settings: Mapping[str, Settings] | None = None
    machine: MachineSettings | None = None
    sharing: Literal["mig", "mps", "time-slicing"] | None = None
    distribution: Distribution | None = None
    speed: Estimate | None = None
    hours: Estimate
    cost: OptionCost
    cost_per_work: WorkCost | None = None
    energy: EnergyUse | None = None
    saves: Saving
    move: Move | None = None
    benefit: Benefit | None = None
    confidence: Level | None = None
    why: str
    scaling: Scaling | UnsetType = UNSET

    def __post_init__(self) -> None:
        need(self.count >= 1, "count is below 1")
        need(self.id != STAY, f"id is {STAY}, which is today's machine")
