"""What an option changes against today, and why."""

from decimal import Decimal
from functools import lru_cache

from planner.actions import ACTIONS, Action
from planner.choice.candidate import Candidate
from planner.choice.context import JobContext
from planner.choice.feasibility import is_split_server, unproven
from planner.choice.offers import OnSale
from planner.choice.workload import Tenancy
from planner.models.copies import Scaling
from planner.models.estimate import Estimate
from planner.signals.finding import Finding, program_finding
from pricing.catalog.offer import Offer
from pricing.message import Message, join
from pricing.money import usd

_BY_PURCHASE = {
    "spot": "spot",
    "reserved_180d": "commit",
    "reserved_1y": "commit",
    "reserved_3y": "commit",
}
_TEN = 10
# To start the job on another size of the same provider, where no action says so: our estimate.
_OTHER_MACHINE_H = 1.0
_EACH_MORE_H = 0.25  # for each machine after the first: scripted by then, yet checked; our estimate


def size(candidate: Candidate, context: JobContext) -> tuple[bool, bool, int]:
    """Return how large a change it is, to compare: another provider, another machine, actions.

    Where the job runs weighs more than how many settings change: contracts, data and habits hang
    on the provider, a setting is undone in a minute.
    """
    today, offer = context.baseline.offer, candidate.offer
    changes_provider = today is None or today.provider != offer.provider
    changes_size = not context.baseline.has_size_bought_alike(offer)
    return (changes_provider, changes_size, len(candidate.codes))


@lru_cache(maxsize=256)
def effort_usd(hours: float, usd_per_hour: Decimal) -> Decimal:
    """Return what so many hours of engineering cost."""
    return usd(str(hours)) * usd_per_hour


def effort_hours(
    offer: Offer, actions: tuple[Action, ...], changes: tuple[str, ...], context: JobContext
) -> float:
    """Return the engineering hours of a change: each action's own, and each machine's that moves.

    All of them are our estimates, one for each action (`planner/actions`).
    """
    moves = sum([ACTIONS[code].effort_hours for code in changes])
    if not context.baseline.has_size_bought_alike(offer):
        moves = max(moves, _OTHER_MACHINE_H) + _EACH_MORE_H * (context.baseline.count - 1)
    return sum([cure.effort_hours for cure in actions]) + moves


def structural(size: OnSale, kernels: Estimate, context: JobContext) -> tuple[str, ...]:
    """Return the codes for what the choice of machine changes against today.

    Args:
        size: the machines.
        kernels: how much faster the job's kernels run on their GPUs.
        context: of the job.
    """
    offer, today = size.offer, context.baseline.offer
    before, after = context.profile.gpu_count, size.used
    changes = []
    if offer.gpu != context.gpu.name:
        changes.append("smaller-gpu" if kernels.mid < 1.0 else "newer-gpu")
    if after > before:
        changes.extend(("more-gpus", "data-parallel") if before == 1 else ("more-gpus",))
    if not size.today and after < context.measured.gpu_count:  # some of which may do nothing
        changes.append("fewer-gpus")
    if after not in {before, 1} and size.machines == 1 and is_split_server(context):
        changes.append("resplit")
    if today is not None and today.provider != offer.provider:
        changes.append("move-provider")
    if offer.purchase in _BY_PURCHASE and (today is None or today.purchase != offer.purchase):
        changes.append(_BY_PURCHASE[offer.purchase])
    return tuple(changes)


def why(candidate: Candidate, context: JobContext) -> str:
    """Return one sentence on what changes: the speed, the actions, the hourly price."""
    today, offer = context.baseline.offer, candidate.offer
    reasons: list[str] = []
    if offer.gpu == context.gpu.name:
        reasons.append(Message("why.same-gpu"))
    elif context.work.fixed_work or candidate.speed.mid != 1.0:
        reasons.append(Message("why.speed", times=_times(candidate.speed), gpu=offer.gpu))
    if (each := candidate.count // candidate.copies) > 1:
        reasons.append(Message("why.machines", n=each))
    if idle := candidate.size.idle:
        reasons.append(Message("why.idle-gpus", n=idle, of=offer.gpu_count))
    if offer.cpu_architecture != context.cpu_architecture:
        reasons.append(Message("why.architecture", arch=offer.cpu_architecture))
    if doubt := unproven(candidate.size, context):
        reasons.append(doubt)
    if candidate.scaling is not None:
        reasons.append(_copies(candidate.scaling, context))
    elif candidate.actions:
        reasons.append(Message("why.actions", codes=candidate.actions))
    if today is not None and today.usd_per_hour:
        today_usd = today.usd_per_hour * context.baseline.count * _part(context.baseline.tenancy)
        ratio = offer.usd_per_hour * candidate.count * _part(candidate.tenancy) / today_usd
        varies = candidate.scaling is not None and len(candidate.scaling.by_hour) > 1
        reasons.append(Message("why.price-up-to" if varies else "why.price", percent=ratio * 100))
    return join(reasons, "phrases")


def _copies(scaling: Scaling, context: JobContext) -> str:
    """Return how many copies run instead of today's, how busy they are, and what bounds that."""
    few, peak = scaling.fewest, scaling.peak
    many = "why.copy" if peak == 1 else "why.copies" if few == peak else "why.copies-by-hour"
    number = Message(many, few=few, most=peak)
    code = "why.scaled" if scaling.latency_ms is None else "why.scaled-latency"
    return Message(
        code,
        copies=number,
        today=context.work.replicas,
        share=scaling.busiest_fraction,
        ms=scaling.latency_ms or 0.0,
        limit=scaling.limit,
    )


def _part(tenancy: Tenancy | None) -> Decimal:
    """Return the part of a machine's price that the job bears."""
    return Decimal(tenancy.held) / tenancy.of if tenancy else Decimal(1)


def _times(speed: Estimate) -> str:
    ends = (speed.low, speed.mid, speed.high)
    low, mid, high = (f"{x:.0f}" if x >= _TEN else f"{x:.2g}" for x in ends)
    return f"{mid}x ({low}-{high})"


END = "end-job"
LOOK = "see-what-runs"
READ_LOG = "read-step-log"


def must_end(findings: tuple[Finding, ...]) -> bool:
    """Return whether the job hangs, or may: no other machine is known to do its work for less."""
    first = program_finding(findings)
    sure = () if first is None or first.confidence == "possible" else first.actions
    return END in sure or READ_LOG in sure
