"""What an option changes against today and why, and what to do first where nothing is changed.

What to do first where a plan leaves a job where it is: end it, measure it, or try the cure.
A job that wastes money needs a next step even where it is left alone: its cause may be unknown, its
cure may not surely pay, or no machine may help it because it does nothing.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache

from planner.actions import ACTIONS, Action, action
from planner.choice.candidate import Candidate
from planner.choice.context import JobContext, gpus_used, idle_gpus
from planner.choice.feasibility import unproven
from planner.choice.requirements import Requirements
from planner.choice.workload import Tenancy
from planner.models.copies import Scaling
from planner.models.estimate import Estimate
from planner.signals.finding import Finding, FirstStep, Saved
from pricing.catalog.offer import Offer
from pricing.hardware import gpus
from pricing.message import Message, join
from pricing.money import usd, whole_dollars

_BY_PURCHASE = {
    "spot": "spot",
    "reserved_180d": "commit",
    "reserved_1y": "commit",
    "reserved_3y": "commit",
}
_TEN = 10
# To start the job on another size of the same provider, where no action says so: our estimate.
_OTHER_MACHINE_H = 1.0


def codes(candidate: Candidate, context: JobContext) -> tuple[str, ...]:
    """Return everything that has to be done: the actions on the job, and what the machine adds."""
    return (*candidate.actions, *_structural(candidate, context))


def size(candidate: Candidate, context: JobContext) -> tuple[bool, bool, int]:
    """Return how large a change it is, to compare: another provider, another machine, actions.

    Where the job runs weighs more than how many settings change: contracts, data and habits hang
    on the provider, a setting is undone in a minute.
    """
    today, offer = context.baseline.offer, candidate.offer
    away = today is None or today.provider != offer.provider
    return (away, _is_other(candidate, context), len(codes(candidate, context)))


def effort_hours(candidate: Candidate, context: JobContext) -> float:
    """Return the engineering hours of a change: each action's own, and another machine's.

    All of them are our estimates, one for each action (`planner/actions`).
    """
    structural = _structural(candidate, context)
    return _effort_h(candidate.actions, structural, _is_other(candidate, context))


@lru_cache(maxsize=256)
def effort_usd(hours: float, usd_per_hour: Decimal) -> Decimal:
    """Return what so many hours of engineering cost."""
    return usd(str(hours)) * usd_per_hour


@lru_cache(maxsize=4096)
def _effort_h(actions: tuple[str, ...], structural: tuple[str, ...], other: bool) -> float:  # noqa: FBT001 - a key
    moves = sum(ACTIONS[code].effort_hours for code in structural)
    machine = _OTHER_MACHINE_H if other else 0.0
    return sum(ACTIONS[code].effort_hours for code in actions) + max(moves, machine)


def _is_other(candidate: Candidate, context: JobContext) -> bool:
    return not context.baseline.has_size_bought_alike(candidate.offer)


def _structural(candidate: Candidate, context: JobContext) -> tuple[str, ...]:
    """Return the codes for what the choice of machine changes against today."""
    offer = candidate.offer
    key = (offer.gpu, offer.provider, offer.purchase, gpus_used(offer, context))
    known = context.changes.get(key)
    if known is None:
        known = context.changes[key] = tuple(_changes(offer, context))
    return known


def _changes(offer: Offer, context: JobContext) -> list[str]:
    today = context.baseline.offer
    before, after = context.profile.gpu_count, gpus_used(offer, context)
    found = []
    if offer.gpu != context.gpu.name:
        slower = context.kernel_speed(gpus()[offer.gpu]).mid < 1.0
        found.append("smaller-gpu" if slower else "newer-gpu")
    if after > before:
        found.extend(("more-gpus", "data-parallel") if before == 1 else ("more-gpus",))
    if after < before:
        found.append("fewer-gpus")
    if today is not None and today.provider != offer.provider:
        found.append("move-provider")
    if offer.purchase in _BY_PURCHASE and (today is None or today.purchase != offer.purchase):
        found.append(_BY_PURCHASE[offer.purchase])
    return found


def why(candidate: Candidate, context: JobContext) -> str:
    """Return one sentence on what changes: the speed, the actions, the hourly price."""
    today, offer = context.baseline.offer, candidate.offer
    said: list[str] = []
    if offer.gpu == context.gpu.name:
        said.append(Message("why.same-gpu"))
    elif context.work.fixed_work or candidate.speed.mid != 1.0:
        said.append(Message("why.speed", times=_times(candidate.speed), gpu=offer.gpu))
    if (each := candidate.count // candidate.copies) > 1:
        said.append(Message("why.machines", n=each))
    if idle := idle_gpus(offer, context):
        said.append(Message("why.idle-gpus", n=idle, of=offer.gpu_count))
    if offer.cpu_architecture != (
        today.cpu_architecture if today else context.gpu.host_architecture
    ):
        said.append(Message("why.architecture", arch=offer.cpu_architecture))
    if doubt := unproven(offer, context):
        said.append(doubt)
    if candidate.scaling is not None:
        said.append(_copies(candidate.scaling, context))
    elif candidate.actions:
        said.append(Message("why.actions", codes=candidate.actions))
    if today is not None and today.usd_per_hour:
        here = today.usd_per_hour * context.baseline.count * _part(context.baseline.tenancy)
        ratio = offer.usd_per_hour * candidate.count * _part(candidate.tenancy) / here
        varies = candidate.scaling is not None and len(candidate.scaling.by_hour) > 1
        said.append(Message("why.price-up-to" if varies else "why.price", percent=ratio * 100))
    return join(said, "phrases")


def _copies(found: Scaling, context: JobContext) -> str:
    """Return how many copies run instead of today's, how busy they are, and what bounds that."""
    few, most = found.fewest, found.peak
    many = "why.copy" if most == 1 else "why.copies" if few == most else "why.copies-by-hour"
    number = Message(many, few=few, most=most)
    code = "why.scaled" if found.latency_ms is None else "why.scaled-latency"
    return Message(
        code,
        copies=number,
        today=context.work.replicas,
        share=found.busiest_fraction,
        ms=found.latency_ms or 0.0,
        limit=found.limit,
    )


def _part(tenancy: Tenancy | None) -> Decimal:
    """Return the part of a machine's price that the job bears."""
    return Decimal(tenancy.held) / tenancy.of if tenancy else Decimal(1)


def _times(speed: Estimate) -> str:
    low, mid, high = (_figure(x) for x in (speed.low, speed.mid, speed.high))
    return f"{mid}x ({low}-{high})"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= _TEN else f"{value:.2g}"


END = "end-job"
_WORTH = 0.1  # of the bill; less waste needs no first step
_GAINS = 1.1  # on its part of the time; less is not worth a try
_RECORD = "gpucost profile -o profile.json -- COMMAND"


def must_end(findings: tuple[Finding, ...]) -> bool:
    """Return whether the job does nothing that another machine could do faster or cheaper."""
    return bool(findings) and END in findings[0].actions and findings[0].confidence != "possible"


def first_step(context: JobContext, priced: Mapping[str, Saved]) -> FirstStep | None:
    """Return what to do first, here and now; None where nothing is worth it.

    The cure that saves most after its work, of the first finding that has one; else one of unknown
    gain, where all of the waste over the horizon would pay for its work.

    Args:
        context: of the job.
        priced: what each action saves alone on today's machine, by its code.
    """
    findings = context.findings
    if must_end(findings):
        return FirstStep(kind="end", what=Message("first.restart"), actions=(END,))
    best = next((code for one in findings if (code := _best(one, priced, context))), None)
    if best is not None:
        return _try(action(best, context.signals), context.asked, priced[best])
    wasting = [f for f in findings if (f.waste_fraction or 0.0) >= _WORTH]
    worst = max(wasting, key=lambda f: f.waste_fraction or 0.0, default=None)
    if worst is None:
        return _unpriced(context)
    if worst.code == "unmeasured":
        return FirstStep(kind="measure", what=Message("first.record"), command=_RECORD)
    if worst.confidence == "possible":
        what = Message("first.confirm", code=worst.code)
        return FirstStep(kind="measure", what=what, command=_RECORD)
    cure = _cure(worst, context, priced)
    return None if cure is None else _try(cure, context.asked, priced.get(cure.code))


def _best(finding: Finding, priced: Mapping[str, Saved], context: JobContext) -> str | None:
    """Return the action of a finding that saves most over the horizon after its work, if any."""
    if finding.confidence == "possible":
        return None
    rate, periods = context.asked.engineer_usd_per_hour, context.periods

    def net(code: str) -> Decimal:
        return priced[code].mid * periods - effort_usd(ACTIONS[code].effort_hours, rate)

    paying = [code for code in finding.actions if code in priced and net(code) > 0]
    return max(paying, key=net, default=None)


def _unpriced(context: JobContext) -> FirstStep | None:
    """Return the first change of the program itself that a grave finding of unknown waste names."""
    missed = any(broken.reason == "latency" for broken in context.baseline.broken)
    grave = (f for f in context.findings if (missed or f.severity == "high"))
    codes = (code for one in grave if one.confidence != "possible" for code in one.actions)
    cure = next((ACTIONS[code] for code in codes if ACTIONS[code].kind != "structural"), None)
    return None if cure is None else _try(cure, context.asked, None)


def _try(cure: Action, asked: Requirements, saves: Saved | None) -> FirstStep:
    return FirstStep(
        kind="try",
        what=_attempt(cure, asked),
        command=_way(cure),
        actions=(cure.code,),
        effort_hours=cure.effort_hours,
        saves=saves,
    )


def _cure(cause: Finding, context: JobContext, priced: Mapping[str, Saved]) -> Action | None:
    """Return the first action of unknown saving whose work the waste would pay for."""
    signals, rate = context.signals, context.asked.engineer_usd_per_hour
    at_stake = None if cause.waste_usd is None else cause.waste_usd * context.periods
    found = [action(code, signals) for code in cause.actions if code not in priced]
    known = [one for one in found if one.effect is not None]
    helping = [one for one in known if one.gain and one.gain[1] >= _GAINS] if known else found
    for one in helping:
        if at_stake is None or effort_usd(one.effort_hours, rate) < at_stake:
            return one
    return None


def _attempt(cure: Action, asked: Requirements) -> str:
    rate, hours = asked.engineer_usd_per_hour, cure.effort_hours
    if not hours:
        return Message("first.switch", title=cure.title)
    dollars = whole_dollars(rate * round(hours * 4) / 4)
    return Message("first.try", title=cure.title, hours=hours, usd=dollars)


def _way(cure: Action) -> str:
    if cure.kind == "numeric":
        return f"gpucost recipe plan.json --option o0 --numeric {cure.code}"
    return f"gpucost explain {cure.code}"
