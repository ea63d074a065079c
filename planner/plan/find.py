"""The one look-up in a plan: JOB/ID, today's machine `o0` included.

JOB may be left out where the plan has one job, and small and capital letters are one where only one
name fits.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from planner.models.estimate import Estimate
from planner.plan.bill import OptionCost, RentedOffer
from planner.plan.job import JobPlan
from planner.plan.option import STAY, MachineSetup, Option, Settings
from planner.plan.plan import Plan
from pricing.errors import InputError
from pricing.listing import listed

_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOption:
    """One way to run one job: an option, or today's machine.

    Attributes:
        job: the job.
        option: the option; None for today's machine.
    """

    job: JobPlan
    option: Option | None

    @property
    def id(self) -> str:
        """The option's id; `o0` for today's machine."""
        return self.option.id if self.option else STAY

    @property
    def name(self) -> str:
        """What the command line calls it: JOB/ID."""
        return f"{self.job.name}/{self.id}"

    @property
    def is_recommended(self) -> bool:
        """Whether the plan recommends it for the job alone."""
        return self.id == self.job.recommended

    @property
    def offer(self) -> RentedOffer | None:
        """What is rented; None where today's machine has no known price."""
        return (self.option or self.job.baseline).offer

    @property
    def count(self) -> int:
        """Machines."""
        return (self.option or self.job.baseline).count

    @property
    def hours(self) -> Estimate:
        """Hours of the period."""
        return (self.option or self.job.baseline).hours

    @property
    def actions(self) -> tuple[str, ...]:
        """Codes of what changes against today."""
        return self.option.actions if self.option else ()

    @property
    def machine(self) -> MachineSetup | None:
        """What is set on each machine; None in plans of versions that did not say."""
        return (self.option or self.job.baseline).machine

    @property
    def settings(self) -> dict[str, Settings]:
        """What each action that applies there would set."""
        if self.option is None:
            return {one.code: one.settings for one in self.job.remedies}
        return dict(self.option.settings or {})

    @property
    def cost(self) -> OptionCost | None:
        """The bill of the period; today's has no interval. None where no price is known."""
        if self.option is not None:
            return self.option.cost
        today = self.job.baseline.cost
        if today.total is None:
            return None
        return OptionCost(
            low=today.total,
            mid=today.total,
            high=today.total,
            lines=today.lines,
            at_least=today.at_least,
            unknown=today.unknown,
        )


def every_option(job: JobPlan) -> tuple[FoundOption, ...]:
    """Return the ways to run a job, today's machine first."""
    return tuple(FoundOption(job=job, option=one) for one in (None, *job.options))


def find_option(plan: Plan, name: str) -> FoundOption:
    """Return the option called JOB/ID.

    Raises:
        InputError: none is called so, or several are; what there is is listed.
    """
    known = [one for job in plan.jobs for one in every_option(job)]
    for form in (str, str.casefold):
        fits = [one for one in known if form(name) in (form(one.name), form(one.id))]
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise InputError(f"{name!r} fits {len(fits)} options; say which: {_names(fits)}.")
    raise InputError(f"{name!r} is not an option of this plan; known: {_names(known)}.")


def _names(found: Iterable[FoundOption]) -> str:
    return listed([one.name for one in found], _SHOWN)


def find_recommended(plan: Plan) -> FoundOption:
    """Return what the plan recommends for its only job.

    Raises:
        InputError: it has several; the recommended option of each is listed.
    """
    if len(plan.jobs) != 1:
        names = listed([f"{job.name}/{job.recommended}" for job in plan.jobs], _SHOWN)
        raise InputError(f"the plan has {len(plan.jobs)} jobs; say --option JOB/ID, of: {names}.")
    return FoundOption(job=plan.jobs[0], option=plan.jobs[0].choice)
