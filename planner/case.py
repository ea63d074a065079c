"""All that the checks of one job need, and how many machines of a size the job would take."""

from dataclasses import dataclass, field
from functools import cached_property

from planner.estimate import Estimate
from planner.option import Baseline
from planner.predict import Split, Target, kernel_speed_up, predict_on, source_gpu
from planner.profile.model import Profile
from planner.remedies import Action
from planner.requirements import Requirements
from planner.signals import memory_need_gib
from planner.workload import Workload
from pricing.catalog import Catalog
from pricing.hardware import Gpu
from pricing.offer import Offer

GPUS_PER_NODE = 8


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that the checks of one job need.

    Attributes:
        profile: what was measured.
        baseline: what runs today.
        work: the hours and data of the period.
        parts: where the time goes.
        fixes: safe actions with a known effect.
        idle_share: share of the time that ending the machine when idle may save; None where none.
        catalog: offers and rules of the day.
        asked: limits and wishes.
    """

    profile: Profile
    baseline: Baseline
    work: Workload
    parts: Split
    fixes: tuple[Action, ...]
    idle_share: float | None
    catalog: Catalog
    asked: Requirements
    _seen: dict[object, Estimate] = field(default_factory=dict, repr=False)

    @cached_property
    def gpu(self) -> Gpu:
        """The GPU that was profiled."""
        return source_gpu(self.profile)

    @cached_property
    def memory_gib(self) -> float | None:
        """The most memory that one GPU held."""
        return memory_need_gib(self.profile)

    def kernel_speed(self, gpu: Gpu) -> Estimate:
        """Return how much faster one such GPU runs the job's kernels."""
        return kernel_speed_up(self.profile, gpu)

    def speed(self, target: Target, actions: tuple[Action, ...]) -> Estimate:
        """Return the predicted speed-up, computed once per kind of target."""
        key = (target, tuple(a.code for a in actions))
        if key not in self._seen:
            self._seen[key] = predict_on(self.profile, target, actions, self.parts)
        return self._seen[key]


def machines(offer: Offer, case: Case) -> int:
    """Return the machines for a job that spans several: nodes as today, or whole large machines."""
    if same_machine(offer, case):
        return case.baseline.count
    wanted, nodes = case.profile.gpu_count, case.profile.hardware.nodes or case.baseline.count
    if nodes > 1 and offer.gpu_count * nodes == wanted:
        return nodes
    whole = offer.gpu_count >= GPUS_PER_NODE and wanted % offer.gpu_count == 0
    return max(1, int(wanted // offer.gpu_count)) if whole else 1


def gpus_used(offer: Offer, case: Case) -> int:
    """Return the GPUs at work: all of them, but on today's machine those that the job uses."""
    if same_machine(offer, case):
        return case.profile.gpu_count
    return round(offer.gpu_count) * machines(offer, case)


def same_machine(offer: Offer, case: Case) -> bool:
    """Return whether the offer is the size that runs the job today."""
    today = case.baseline.offer
    return today is not None and offer.name == today.name
