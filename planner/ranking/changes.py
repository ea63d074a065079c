"""What an option changes against today: the codes of it, how large a change it is, and why."""

from decimal import Decimal

from planner.actions import ACTIONS
from planner.baseline.tenancy import Tenancy
from planner.models.estimate import Estimate
from planner.options.candidate import Candidate
from planner.options.context import JobContext, gpus_used, idle_gpus
from planner.options.feasibility import unproven
from planner.prediction.kernels import kernel_speed_up
from pricing.hardware import gpus

_BY_PURCHASE = {"spot": "spot", "reserved_180d": "commit", "reserved_1y": "commit"}
_TEN = 10
# To start the job on another size of the same provider, where no action says so: our estimate.
_OTHER_MACHINE_H = 1.0


def codes(draft: Candidate, case: JobContext) -> tuple[str, ...]:
    """Return everything that has to be done: the actions on the job, and what the machine adds."""
    return (*draft.actions, *_structural(draft, case))


def size(draft: Candidate, case: JobContext) -> tuple[bool, bool, int]:
    """Return how large a change it is, to compare: another provider, another machine, actions.

    Where the job runs weighs more than how many settings change: contracts, data and habits hang
    on the provider, a setting is undone in a minute.
    """
    today, offer = case.baseline.offer, draft.offer
    away = today is None or today.provider != offer.provider
    return (away, _is_other(draft, case), len(codes(draft, case)))


def effort_hours(draft: Candidate, case: JobContext) -> float:
    """Return the engineering hours of a change: each action's own, and another machine's.

    All of them are our estimates, one for each action (`planner/actions`).
    """
    moves = sum(ACTIONS[code].effort_hours for code in _structural(draft, case))
    machine = _OTHER_MACHINE_H if _is_other(draft, case) else 0.0
    return sum(ACTIONS[code].effort_hours for code in draft.actions) + max(moves, machine)


def _is_other(draft: Candidate, case: JobContext) -> bool:
    return not case.baseline.has_size_bought_alike(draft.offer)


def _structural(draft: Candidate, case: JobContext) -> tuple[str, ...]:
    """Return the codes for what the choice of machine changes against today."""
    offer, today = draft.offer, case.baseline.offer
    before, after = case.profile.gpu_count, gpus_used(offer, case)
    found = []
    if offer.gpu != case.gpu.name:
        slower = kernel_speed_up(case.profile, gpus()[offer.gpu]).mid < 1.0
        found.append("smaller-gpu" if slower else "newer-gpu")
    if after > before:
        found.extend(("more-gpus", "data-parallel") if before == 1 else ("more-gpus",))
    if after < before:
        found.append("fewer-gpus")
    if today is not None and today.provider != offer.provider:
        found.append("move-provider")
    if offer.purchase in _BY_PURCHASE and (today is None or today.purchase != offer.purchase):
        found.append(_BY_PURCHASE[offer.purchase])
    return tuple(found)


def why(draft: Candidate, case: JobContext) -> str:
    """Return one sentence on what changes: the speed, the actions, the hourly price."""
    today, offer = case.baseline.offer, draft.offer
    said = []
    if offer.gpu == case.gpu.name:
        said.append("the same GPU")
    elif case.work.fixed_work or draft.speed.mid != 1.0:
        said.append(f"{_times(draft.speed)} today's speed on {offer.gpu}")
    if (each := draft.count // case.work.replicas) > 1:
        said.append(f"on {each} machines over the network")
    if idle := idle_gpus(offer, case):
        said.append(f"{idle} of {offer.gpu_count:g} GPUs idle: no machine with fewer is sold")
    if offer.cpu_architecture != (today.cpu_architecture if today else case.gpu.host_architecture):
        said.append(
            f"on {offer.cpu_architecture} hosts: images and packages must be built for them"
        )
    if doubt := unproven(offer, case):
        said.append(doubt)
    if draft.actions:
        said.append(f"with {', '.join(draft.actions)}")
    if today is not None and today.usd_per_hour:
        here = today.usd_per_hour * case.baseline.count * _part(case.baseline.tenancy)
        ratio = offer.usd_per_hour * draft.count * _part(draft.tenancy) / here
        said.append(f"at {_percent(ratio)} of today's hourly price")
    return ", ".join(said)


def _part(tenancy: Tenancy | None) -> Decimal:
    """Return the part of a machine's price that the job bears."""
    return Decimal(tenancy.held) / tenancy.of if tenancy else Decimal(1)


def _times(speed: Estimate) -> str:
    low, mid, high = (_figure(x) for x in (speed.low, speed.mid, speed.high))
    return f"{mid}x ({low}-{high})"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= _TEN else f"{value:.2g}"


def _percent(ratio: Decimal) -> str:
    return f"{ratio * 100:.0f} %"
