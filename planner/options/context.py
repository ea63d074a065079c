"""All that the checks of one job need, and how many machines of a size the job would take."""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

from planner.actions import Action
from planner.baseline.baseline import Baseline, where
from planner.baseline.requirements import Requirements
from planner.baseline.workload import Workload
from planner.diagnosis.finding import Finding
from planner.models.estimate import Estimate
from planner.models.work_cost import WorkCost, work_cost
from planner.prediction.kernels import kernel_speed_up
from planner.prediction.layout import GPUS_PER_NODE, Layout
from planner.prediction.predict import Split, predict_from, scaling
from planner.profile.model import Profile
from planner.profile.source import source_gpu
from planner.signals.condition import Signals
from planner.signals.signals import memory_need_gib, read_signals
from pricing.billing.dearest import dearest
from pricing.billing.usage import Usage
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.regions import continent_of, placed
from pricing.hardware import Gpu
from pricing.money import HOURS_PER_MONTH

_OF_EACH_MACHINE = ("boot-disk", "address")
_MONTH_S = HOURS_PER_MONTH * 3600


@dataclass(frozen=True, kw_only=True)
class JobContext:
    """All that the checks of one job need.

    Attributes:
        profile: what was measured.
        baseline: what runs today.
        work: the hours and data of the period.
        parts: where the time goes.
        fixes: safe actions with a known effect.
        findings: the causes, as diagnosed.
        idle_share: share of the time that ending the machine when idle may save; None where none.
        catalog: offers and rules of the day.
        asked: limits and wishes.
        probes: the same job measured elsewhere.
    """

    profile: Profile
    baseline: Baseline
    work: Workload
    findings: tuple[Finding, ...]
    parts: Split
    fixes: tuple[Action, ...]
    idle_share: float | None
    catalog: Catalog
    asked: Requirements
    probes: tuple[Profile, ...] = ()
    _seen: dict[object, Estimate] = field(default_factory=dict, repr=False)
    _dearest: dict[object, Decimal | None] = field(default_factory=dict, repr=False)

    @cached_property
    def gpu(self) -> Gpu:
        """The GPU that was profiled."""
        return source_gpu(self.profile)

    @cached_property
    def signals(self) -> Signals:
        """Every signal of the profile."""
        return read_signals(self.profile)

    def dearest(self, what: str, usage: Usage) -> Decimal | None:
        """Return the highest known price of a part of a bill; None where none is known.

        A disk that is kept for the period costs the same whatever runs beside it. What each machine
        has for as long as it lives is asked for once, for a machine and a month.
        """
        if what in _OF_EACH_MACHINE:
            month = replace(
                usage,
                duration_s=_MONTH_S,
                count=1,
                addresses=1,
                boot_s=0,
                lost_work_s=0,
                checkpoint_s=0,
                idle_tail_s=0,
            )
            most = self._most(what, usage.boot_disk_bytes, month)
            return None if most is None else most * usage.count * usage.life_s / _MONTH_S
        kept = what == "disk" and usage.storage_h is not None
        key = (usage.storage_bytes, usage.storage_kind, usage.storage_h) if kept else usage
        return self._most(what, key, usage)

    def _most(self, what: str, key: object, usage: Usage) -> Decimal | None:
        if (what, key) not in self._dearest:
            self._dearest[what, key] = dearest(what, usage, self.catalog.offers)
        return self._dearest[what, key]

    @property
    def periods(self) -> Decimal:
        """How many of the plan's periods the horizon holds: months, or the one run."""
        return self.asked.horizon if self.work.storage_h is not None else Decimal(1)

    def work_cost(self, cost: Decimal | None) -> WorkCost | None:
        """Return what an amount of the job's work costs, of a bill of the period."""
        unit = self.profile.work.unit if self.profile.work else None
        return work_cost(cost, self.work.units, unit)

    @cached_property
    def memory_gib(self) -> float | None:
        """The most memory that one GPU held."""
        return memory_need_gib(self.profile)

    @property
    def stays_on(self) -> str | None:
        """The continent that a service with a latency target stays on, unless regions were asked.

        None for other jobs, and where today's machine is assumed or its place is not known.
        """
        today, job = self.baseline.offer, self.profile.job
        bound = job.kind.answers and job.latency_slo_ms is not None
        if not bound or self.asked.regions or today is None or self.baseline.assumed:
            return None
        return continent_of(where(today, self.profile))

    def there(self, offer: Offer) -> Offer | None:
        """Return the offer in a region where the job may run; None where nothing shows one."""
        if self.asked.regions:
            return placed(offer, self.asked.regions)
        continent = self.stays_on
        return offer if continent is None or continent_of(offer) == continent else None

    def kernel_speed(self, gpu: Gpu) -> Estimate:
        """Return how much faster one such GPU runs the job's kernels."""
        return kernel_speed_up(self.profile, gpu)

    def speed(self, target: Layout, actions: tuple[Action, ...]) -> Estimate:
        """Return the predicted speed-up, computed once per kind of target."""
        key = (target, tuple(a.code for a in actions))
        if key not in self._seen:
            self._seen[key] = predict_from(
                self.profile,
                self.probes,
                target,
                actions,
                self.parts,
                record=self.asked.history,
            )
        return self._seen[key]

    def scaling(self, target: Layout) -> Estimate:
        """Return the throughput of the target's GPUs over the profiled ones, GPU for GPU."""
        return scaling(self.profile, target, self.parts)

    def least_host(self, gpu: str) -> tuple[float | None, float | None]:
        """Return the least vCPUs and memory (GiB) for each GPU that is sold with a model.

        None where no machine with it states them.
        """
        return self._least_hosts.get(gpu, (None, None))

    @cached_property
    def _least_hosts(self) -> dict[str, tuple[float | None, float | None]]:
        sold: dict[str, list[Offer]] = {}
        for offer in self.catalog.offers:
            if offer.gpu_count >= 1:
                sold.setdefault(offer.gpu, []).append(offer)
        return {
            gpu: (
                min((o.vcpus / o.gpu_count for o in offers if o.vcpus), default=None),
                min((o.ram_gib / o.gpu_count for o in offers if o.ram_gib), default=None),
            )
            for gpu, offers in sold.items()
        }


def machines(offer: Offer, context: JobContext) -> int:
    """Return how many machines of a size one copy of the job would take.

    As many nodes as today, or whole large machines. Where a provider sells a GPU by ones and by
    eights and the job wants a number between, training takes as many single ones as it wants.
    """
    each = context.baseline.count // context.baseline.replicas
    if same_machine(offer, context):
        return each
    wanted, nodes = context.profile.gpu_count, context.profile.hardware.nodes or each
    if nodes > 1 and offer.gpu_count * nodes == wanted:
        return nodes
    if offer.gpu_count >= GPUS_PER_NODE and wanted % offer.gpu_count == 0:
        return max(1, int(wanted // offer.gpu_count))
    job = context.profile.job
    spreads = job.kind.trains and not job.splits_the_model  # else it needs the links of one machine
    if offer.gpu_count == 1 and spreads and _not_sold(offer, context):
        return wanted
    return 1


def gpus_used(offer: Offer, context: JobContext) -> int:
    """Return the GPUs at work: all of them, but what the job wants where more must be paid."""
    if same_machine(offer, context) or idle_gpus(offer, context):
        return context.profile.gpu_count
    return round(offer.gpu_count) * machines(offer, context)


def idle_gpus(offer: Offer, context: JobContext) -> int:
    """Return the GPUs that would be paid for and not used, in the next larger machine sold."""
    wanted = context.profile.gpu_count
    if wanted == 1 or not _not_sold(offer, context):
        return 0
    larger = [n for n in context.catalog.gpu_counts(offer) if n > wanted]
    return round(offer.gpu_count) - wanted if larger and offer.gpu_count == larger[0] else 0


def _not_sold(offer: Offer, context: JobContext) -> bool:
    """Return whether the provider sells this GPU, but no machine with as many as the job wants."""
    wanted = context.profile.gpu_count
    return 1 < wanted < GPUS_PER_NODE and wanted not in context.catalog.gpu_counts(offer)


def same_machine(offer: Offer, context: JobContext) -> bool:
    """Return whether the offer is the size that runs the job today."""
    return context.baseline.has_size(offer)
